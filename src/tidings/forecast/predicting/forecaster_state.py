"""The state of a forecaster as a header and arrays, and back.

Patterns are written by name, filters by a hash of their trees, keys as positions among those in use, as in the state
of the run.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.forecast.learning.counting import GroupCounter, PendingWaits
from tidings.forecast.learning.counts import Counts, Traffic
from tidings.patterns.state.graph_bytes import hash_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.forecast.courses.streams import KeyGaps
    from tidings.forecast.learning.learner import Learner
    from tidings.forecast.predicting.following import GroupFollower
    from tidings.forecast.predicting.forecaster import Forecaster
    from tidings.kernels.array_types import IntArray
    from tidings.model import Filter

_COLUMNS = tuple(field.name for field in fields(PendingWaits))


def dump_forecaster(
    forecaster: Forecaster, kept: IntArray, filters: Sequence[Filter]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a forecaster's state; keys become their positions in `kept`."""
    header: dict[str, Any] = {"followings": [], "next": [forecaster.first_event, forecaster.next_refresh]}
    arrays: dict[str, Any] = {}
    for number, follower in enumerate(forecaster.followers):
        header["followings"].append(_dump_follower(f"follow{number}", follower, kept, arrays))
    if forecaster.learner is not None:
        header["learner"] = _dump_learner(forecaster.learner, kept, filters, arrays)
    return header, arrays


def load_forecaster(
    forecaster: Forecaster, header: dict[str, Any], arrays: dict[str, Any], filters: Mapping[Filter, int]
) -> None:
    """Load such a state into a forecaster that has taken no events."""
    for number, saved in enumerate(header["followings"]):
        ways = tuple(map(tuple, saved["ways"]))
        for follower in forecaster.followers:
            if follower.group.ways == ways and saved.get("timed", follower.group.timed) == follower.group.timed:
                _load_follower(f"follow{number}", follower, saved, arrays)
    if forecaster.learner is not None and header.get("learner") is not None:
        _load_learner(forecaster.learner, header["learner"], arrays, filters)
        forecaster.first_event, forecaster.next_refresh = header["next"]


# Following ------------------------------------------------------------------------------------------


def _dump_follower(name: str, follower: GroupFollower, kept: IntArray, arrays: dict[str, Any]) -> dict[str, Any]:
    group = follower.group
    rows = kept if group.keyed else np.zeros(1, np.int64)
    follower.widen(int(rows.max(initial=-1)) + 1)
    arrays |= {
        f"{name}.cells": follower.cells[:, rows],
        f"{name}.last": follower.last[:, rows],
    }
    _dump_gaps(name, follower.silences, rows, arrays)
    for place in range(len(group.tracked)):
        arrays[f"{name}.states{place}"] = follower.states[place][rows]
        arrays[f"{name}.due{place}"] = follower.due[place][rows]
    return {
        "ways": [list(way) for way in group.ways],
        "timed": group.timed,
        "seen": follower.seen,
        "exact": [member.name for member in group.exact],
        "tracked": [member.name for member in group.tracked],
    }


def _load_follower(name: str, follower: GroupFollower, saved: dict[str, Any], arrays: dict[str, Any]) -> None:
    group = follower.group
    keys = arrays[f"{name}.last"].shape[1]
    follower.widen(keys)
    follower.seen = saved["seen"]
    _load_gaps(name, follower.silences, arrays)
    for row, member in enumerate(group.members):
        kinds = saved["exact"] if row < len(group.exact) else saved["tracked"]
        if member.name not in kinds:
            continue
        place = kinds.index(member.name)
        kept = place if row < len(group.exact) else len(saved["exact"]) + place
        follower.last[row, :keys] = arrays[f"{name}.last"][kept]
        if row < len(group.exact):
            cells = arrays[f"{name}.cells"][place]
            if cells.max(initial=0) < member.course.cells:
                follower.cells[row, :keys] = cells
        else:
            _load_tracked(
                follower, row - len(group.exact), arrays[f"{name}.states{place}"], arrays[f"{name}.due{place}"]
            )


def _load_tracked(follower: GroupFollower, row: int, states: IntArray, due: IntArray) -> None:
    if states.shape[1] == follower.states[row].shape[1]:
        follower.states[row][: len(states)], follower.due[row][: len(due)] = states, due


# Learning -------------------------------------------------------------------------------------------


def _dump_learner(
    learner: Learner, kept: IntArray, filters: Sequence[Filter], arrays: dict[str, Any]
) -> dict[str, Any]:
    learner.settle()
    for number, counter in enumerate(learner.counters):
        _dump_counter(f"learn{number}", counter, kept, arrays)
    numbers = {of: place for place, of in enumerate(learner.numbers(filters))}
    return {
        "now": list(learner.now),
        "last": learner.last_time,
        "traffic": {field.name: getattr(learner.traffic, field.name) for field in fields(Traffic)},
        "filters": [hash_text(repr(tree)) for tree in filters],
        "kinds": [[numbers[symbol] for symbol in kind if symbol in numbers] for kind in learner.kinds.members],
        "lessons": [
            {
                "ways": [list(way) for way in counter.group.ways],
                "members": [member.name for member in counter.group.members],
                "spans": [list(member.spans) for member in counter.counts],
            }
            for counter in learner.counters
        ],
    }


def _dump_counter(name: str, counter: GroupCounter, kept: IntArray, arrays: dict[str, Any]) -> None:
    group = counter.group
    rows = kept if group.keyed else np.zeros(1, np.int64)
    counter.widen(int(rows.max(initial=-1)) + 1)
    for column in _COLUMNS:
        arrays[f"{name}.pending.{column}"] = getattr(counter.pending, column)
    if group.keyed:
        arrays[f"{name}.pending.key"] = np.searchsorted(kept, counter.pending.key)
    arrays |= {f"{name}.cells": counter.cells[:, rows], f"{name}.own": counter.own}
    _dump_gaps(name, counter.silences, rows, arrays)
    for row, counts in enumerate(counter.counts):
        arrays |= {f"{name}.moves{row}": counts.moves, f"{name}.waits{row}": counts.waits}
        arrays[f"{name}.later{row}"] = counts.later
        arrays |= {f"{name}.span{row}.{span}": of for span, of in counts.spans.items()}
    for row in range(len(group.tracked)):
        arrays[f"{name}.states{row}"] = counter.states[row][rows]
        arrays[f"{name}.reports{row}"] = _renumber_reports(counter.reports[row], kept, keyed=group.keyed)


def _load_learner(
    learner: Learner, header: dict[str, Any], arrays: dict[str, Any], filters: Mapping[Filter, int]
) -> None:
    learner.now = tuple(header["now"])
    learner.last_time, learner.traffic = header["last"], Traffic(**header["traffic"])
    numbers = {hash_text(repr(of)): number for of, number in filters.items()}
    current = [numbers.get(name, -1) for name in header["filters"]]
    learner.kinds.restore(
        [tuple(sorted(current[place] for place in kind if current[place] >= 0)) for kind in header["kinds"]]
    )
    learner.arrange([saved["members"] for saved in header["lessons"]])
    for number, saved in enumerate(header["lessons"]):
        for counter in learner.counters:
            same = counter.group.ways == tuple(map(tuple, saved["ways"]))
            if same and {member.name for member in counter.group.members} <= set(saved["members"]):
                _load_counter(f"learn{number}", counter, saved, arrays, learner.now)


def _load_counter(
    name: str, counter: GroupCounter, saved: dict[str, Any], arrays: dict[str, Any], now: tuple[int, int]
) -> None:
    # Of an older state it may be a part: there, patterns with and without times learned together.
    rows = [saved["members"].index(member.name) for member in counter.group.members]
    exact, cells = len(counter.group.exact), arrays[f"{name}.cells"]
    counter.pending = PendingWaits(*(arrays[f"{name}.pending.{column}"].copy() for column in _COLUMNS))
    counter.cells, counter.own, counter.now = cells[rows[:exact]], arrays[f"{name}.own"].copy(), now
    counter.room = counter.cells.shape[1]
    _load_gaps(name, counter.silences, arrays)
    counter.counts = [
        Counts(
            arrays[f"{name}.moves{row}"],
            arrays[f"{name}.waits{row}"],
            arrays[f"{name}.later{row}"],
            {span: arrays[f"{name}.span{row}.{span}"] for span in saved["spans"][row]},
        )
        for row in rows
    ]
    for place, row in enumerate(rows[exact:]):
        counter.states[place] = arrays[f"{name}.states{row - len(cells)}"]
        counter.reports[place] = arrays[f"{name}.reports{row - len(cells)}"]


def _dump_gaps(name: str, silences: KeyGaps, rows: IntArray, arrays: dict[str, Any]) -> None:
    silences.widen(int(rows.max(initial=-1)) + 1)
    if silences.last.shape[1]:
        silences = silences.select(rows)
    arrays |= {f"{name}.silent": silences.last, f"{name}.gaps": silences.mean, f"{name}.heard": silences.count}


def _load_gaps(name: str, silences: KeyGaps, arrays: dict[str, Any]) -> None:
    # Copies: an older state has one stream for patterns with and without times.
    silences.last, silences.mean = arrays[f"{name}.silent"].copy(), arrays[f"{name}.gaps"].copy()
    silences.count = arrays[f"{name}.heard"].copy()


def _renumber_reports(reports: IntArray, kept: IntArray, *, keyed: bool) -> IntArray:
    """Return reports whose keys are replaced by their positions in `kept`."""
    renumbered = reports.copy()
    if keyed:
        renumbered[:, 0] = np.searchsorted(kept, renumbered[:, 0])
    return renumbered
