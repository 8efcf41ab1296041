"""Where a forecaster stands, as a header and arrays, and back.

Patterns are called by their names, filters by what they say; keys are called by their places among the names that are
held, as all of a detector's state is.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.forecast.learning.counting import PendingWaits
from tidings.forecast.learning.counts import Counts, Traffic
from tidings.patterns.state.graph_bytes import hash_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.forecast.courses.streams import KeyGaps
    from tidings.forecast.learning.counting import GroupCounter
    from tidings.forecast.learning.learner import Learner
    from tidings.forecast.predicting.following import GroupFollower
    from tidings.forecast.predicting.forecaster import Forecaster
    from tidings.model import Filter

_COLUMNS = tuple(field.name for field in fields(PendingWaits))


def dump_forecaster(
    forecaster: Forecaster, held: np.ndarray, filters: Sequence[Filter]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a forecaster's state; keys become their places in `held`."""
    header: dict[str, Any] = {"followings": [], "next": [forecaster.first_event, forecaster.next_refresh]}
    arrays: dict[str, Any] = {}
    for number, following in enumerate(forecaster.followers):
        header["followings"].append(_dump_follower(f"follow{number}", following, held, arrays))
    if forecaster.learner is not None:
        header["learner"] = _dump_learner(forecaster.learner, held, filters, arrays)
    return header, arrays


def load_forecaster(
    forecaster: Forecaster, header: dict[str, Any], arrays: dict[str, Any], filters: Mapping[Filter, int]
) -> None:
    """Let a forecaster that has seen nothing go on from such a state."""
    for number, told in enumerate(header["followings"]):
        ways = tuple(map(tuple, told["ways"]))
        for following in forecaster.followers:
            if following.group.ways == ways and told.get("timed", following.group.timed) == following.group.timed:
                _load_follower(f"follow{number}", following, told, arrays)
    if forecaster.learner is not None and header.get("learner") is not None:
        _load_learner(forecaster.learner, header["learner"], arrays, filters)
        forecaster.first_event, forecaster.next_refresh = header["next"]


# Following ------------------------------------------------------------------------------------------


def _dump_follower(name: str, following: GroupFollower, held: np.ndarray, arrays: dict[str, Any]) -> dict[str, Any]:
    group = following.group
    rows = held if group.keyed else np.zeros(1, np.int64)
    following.widen(int(rows.max(initial=-1)) + 1)
    arrays |= {
        f"{name}.cells": following.cells[:, rows],
        f"{name}.last": following.last[:, rows],
    }
    _dump_gaps(name, following.silences, rows, arrays)
    for place in range(len(group.tracked)):
        arrays[f"{name}.states{place}"] = following.states[place][rows]
        arrays[f"{name}.due{place}"] = following.due[place][rows]
    return {
        "ways": [list(way) for way in group.ways],
        "timed": group.timed,
        "seen": following.seen,
        "exact": [one.name for one in group.exact],
        "tracked": [one.name for one in group.tracked],
    }


def _load_follower(name: str, following: GroupFollower, told: dict[str, Any], arrays: dict[str, Any]) -> None:
    group = following.group
    keys = arrays[f"{name}.last"].shape[1]
    following.widen(keys)
    following.seen = told["seen"]
    _load_gaps(name, following.silences, arrays)
    for row, one in enumerate(group.members):
        kinds = told["exact"] if row < len(group.exact) else told["tracked"]
        if one.name not in kinds:
            continue
        place = kinds.index(one.name)
        kept = place if row < len(group.exact) else len(told["exact"]) + place
        following.last[row, :keys] = arrays[f"{name}.last"][kept]
        if row < len(group.exact):
            cells = arrays[f"{name}.cells"][place]
            if cells.max(initial=0) < one.course.cells:
                following.cells[row, :keys] = cells
        else:
            _load_tracked(
                following, row - len(group.exact), arrays[f"{name}.states{place}"], arrays[f"{name}.due{place}"]
            )


def _load_tracked(following: GroupFollower, row: int, states: np.ndarray, due: np.ndarray) -> None:
    if states.shape[1] == following.states[row].shape[1]:
        following.states[row][: len(states)], following.due[row][: len(due)] = states, due


# Learning -------------------------------------------------------------------------------------------


def _dump_learner(
    learner: Learner, held: np.ndarray, filters: Sequence[Filter], arrays: dict[str, Any]
) -> dict[str, Any]:
    learner.settle()
    for number, lesson in enumerate(learner.counters):
        _dump_counter(f"learn{number}", lesson, held, arrays)
    numbers = {of: place for place, of in enumerate(learner.numbers(filters))}
    return {
        "now": list(learner.now),
        "last": learner.last_time,
        "traffic": {field.name: getattr(learner.traffic, field.name) for field in fields(Traffic)},
        "filters": [hash_text(repr(told)) for told in filters],
        "kinds": [[numbers[symbol] for symbol in kind if symbol in numbers] for kind in learner.kinds.members],
        "lessons": [
            {
                "ways": [list(way) for way in lesson.group.ways],
                "members": [one.name for one in lesson.group.members],
                "spans": [list(one.spans) for one in lesson.counts],
            }
            for lesson in learner.counters
        ],
    }


def _dump_counter(name: str, lesson: GroupCounter, held: np.ndarray, arrays: dict[str, Any]) -> None:
    group = lesson.group
    rows = held if group.keyed else np.zeros(1, np.int64)
    lesson.widen(int(rows.max(initial=-1)) + 1)
    for column in _COLUMNS:
        arrays[f"{name}.pending.{column}"] = getattr(lesson.pending, column)
    if group.keyed:
        arrays[f"{name}.pending.key"] = np.searchsorted(held, lesson.pending.key)
    arrays |= {f"{name}.cells": lesson.cells[:, rows], f"{name}.own": lesson.own}
    _dump_gaps(name, lesson.silences, rows, arrays)
    for row, counts in enumerate(lesson.counts):
        arrays |= {f"{name}.moves{row}": counts.moves, f"{name}.waits{row}": counts.waits}
        arrays[f"{name}.later{row}"] = counts.later
        arrays |= {f"{name}.span{row}.{span}": of for span, of in counts.spans.items()}
    for row in range(len(group.tracked)):
        arrays[f"{name}.states{row}"] = lesson.states[row][rows]
        arrays[f"{name}.reports{row}"] = _renumber_reports(lesson.reports[row], held, keyed=group.keyed)


def _load_learner(
    learner: Learner, told: dict[str, Any], arrays: dict[str, Any], filters: Mapping[Filter, int]
) -> None:
    learner.now = tuple(told["now"])
    learner.last_time, learner.traffic = told["last"], Traffic(**told["traffic"])
    numbers = {hash_text(repr(of)): number for of, number in filters.items()}
    known = [numbers.get(name, -1) for name in told["filters"]]
    learner.kinds.restore(
        [tuple(sorted(known[place] for place in kind if known[place] >= 0)) for kind in told["kinds"]]
    )
    learner.arrange([saved["members"] for saved in told["lessons"]])
    for number, saved in enumerate(told["lessons"]):
        for lesson in learner.counters:
            same = lesson.group.ways == tuple(map(tuple, saved["ways"]))
            if same and {one.name for one in lesson.group.members} <= set(saved["members"]):
                _load_counter(f"learn{number}", lesson, saved, arrays, learner.now)


def _load_counter(
    name: str, lesson: GroupCounter, saved: dict[str, Any], arrays: dict[str, Any], now: tuple[int, int]
) -> None:
    # Of an older state it may be a part: there, patterns with and without times learned together.
    rows = [saved["members"].index(one.name) for one in lesson.group.members]
    exact, cells = len(lesson.group.exact), arrays[f"{name}.cells"]
    lesson.pending = PendingWaits(*(arrays[f"{name}.pending.{column}"].copy() for column in _COLUMNS))
    lesson.cells, lesson.own, lesson.now = cells[rows[:exact]], arrays[f"{name}.own"].copy(), now
    lesson.room = lesson.cells.shape[1]
    _load_gaps(name, lesson.silences, arrays)
    lesson.counts = [
        Counts(
            arrays[f"{name}.moves{row}"],
            arrays[f"{name}.waits{row}"],
            arrays[f"{name}.later{row}"],
            {span: arrays[f"{name}.span{row}.{span}"] for span in saved["spans"][row]},
        )
        for row in rows
    ]
    for place, row in enumerate(rows[exact:]):
        lesson.states[place] = arrays[f"{name}.states{row - len(cells)}"]
        lesson.reports[place] = arrays[f"{name}.reports{row - len(cells)}"]


def _dump_gaps(name: str, silences: KeyGaps, rows: np.ndarray, arrays: dict[str, Any]) -> None:
    silences.widen(int(rows.max(initial=-1)) + 1)
    if silences.last.shape[1]:
        silences = silences.select(rows)
    arrays |= {f"{name}.silent": silences.last, f"{name}.gaps": silences.mean, f"{name}.heard": silences.count}


def _load_gaps(name: str, silences: KeyGaps, arrays: dict[str, Any]) -> None:
    # Copies: an older state has one stream for patterns with and without times.
    silences.last, silences.mean = arrays[f"{name}.silent"].copy(), arrays[f"{name}.gaps"].copy()
    silences.count = arrays[f"{name}.heard"].copy()


def _renumber_reports(reports: np.ndarray, held: np.ndarray, *, keyed: bool) -> np.ndarray:
    """Return reports with their keys called by their places in `held`."""
    found = reports.copy()
    if keyed:
        found[:, 0] = np.searchsorted(held, found[:, 0])
    return found
