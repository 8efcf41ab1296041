"""The state of a forecaster as a header and arrays, and back; and carried over to a changed set of patterns.

Patterns are written by name, filters by a hash of their trees, keys as positions among those in use, as in the state
of the run.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from tidings.forecast.learning.counts import Counts, Traffic
from tidings.forecast.learning.group_counter import GroupCounter, PendingWaits
from tidings.forecast.model import make_pattern_key
from tidings.patterns.state.graph_bytes import Arrays, Header, State, fingerprint_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.forecast.courses.streams import KeyGaps
    from tidings.forecast.learning.learner import Learner
    from tidings.forecast.predicting.following import GroupFollower
    from tidings.forecast.predicting.forecaster import Forecaster
    from tidings.kernels.array_types import IntArray
    from tidings.model import Filter

_COLUMNS = tuple(field.name for field in fields(PendingWaits))


def dump_forecaster(forecaster: Forecaster, kept: IntArray, filters: Sequence[Filter]) -> State:
    """Return a forecaster's state; keys become their positions in `kept`."""
    header: Header = {"followings": [], "next": [forecaster.first_event, forecaster.next_refresh]}
    arrays: Arrays = {}
    for number, follower in enumerate(forecaster.followers):
        header["followings"].append(_dump_follower(f"follow{number}", follower, kept, arrays))
    if forecaster.learner is not None:
        header["learner"] = _dump_learner(forecaster.learner, kept, filters, arrays)
    return header, arrays


def load_forecaster(forecaster: Forecaster, header: Header, arrays: Arrays, filters: Mapping[Filter, int]) -> None:
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


def _dump_follower(name: str, follower: GroupFollower, kept: IntArray, arrays: Arrays) -> Header:
    group = follower.group
    rows = kept if group.keyed else np.zeros(1, np.int64)
    follower.widen(int(rows.max(initial=-1)) + 1)
    arrays |= {f"{name}.cells": follower.cells[:, rows], f"{name}.last": follower.alarm_memory[:, rows]}
    _dump_gaps(name, follower.key_gaps, rows, arrays)
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


def _load_follower(name: str, follower: GroupFollower, saved: Header, arrays: Arrays) -> None:
    group = follower.group
    keys = arrays[f"{name}.last"].shape[1]
    follower.widen(keys)
    follower.seen = saved["seen"]
    _load_gaps(name, follower.key_gaps, arrays)
    last, cells = arrays[f"{name}.last"], arrays[f"{name}.cells"]
    for row, member in enumerate(group.exact):
        if member.name in saved["exact"]:
            place = saved["exact"].index(member.name)
            follower.alarm_memory[row, :keys] = last[place]
            if cells[place].max(initial=0) < member.course.cells:
                follower.cells[row, :keys] = cells[place]
    for row, member in enumerate(group.tracked):
        if member.name in saved["tracked"]:
            place = saved["tracked"].index(member.name)
            follower.alarm_memory[len(group.exact) + row, :keys] = last[len(saved["exact"]) + place]
            states, due = arrays[f"{name}.states{place}"], arrays[f"{name}.due{place}"]
            if states.shape[1] == follower.states[row].shape[1]:
                follower.states[row][: len(states)], follower.due[row][: len(due)] = states, due


# Learning -------------------------------------------------------------------------------------------


def _dump_learner(learner: Learner, kept: IntArray, filters: Sequence[Filter], arrays: Arrays) -> Header:
    learner.count_pending()
    for number, counter in enumerate(learner.counters):
        _dump_counter(f"learn{number}", counter, kept, arrays)
    numbers = {learner.filters[tree]: place for place, tree in enumerate(filters)}
    return {
        "now": list(learner.now),
        "last": learner.last_time,
        "traffic": {field.name: getattr(learner.traffic, field.name) for field in fields(Traffic)},
        "filters": [fingerprint_text(repr(tree)) for tree in filters],
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


def _dump_counter(name: str, counter: GroupCounter, kept: IntArray, arrays: Arrays) -> None:
    group = counter.group
    rows = kept if group.keyed else np.zeros(1, np.int64)
    counter.widen(int(rows.max(initial=-1)) + 1)
    arrays |= {f"{name}.pending.{column}": getattr(counter.pending, column) for column in _COLUMNS}
    if group.keyed:
        arrays[f"{name}.pending.key"] = np.searchsorted(kept, counter.pending.key)
    arrays |= {f"{name}.cells": counter.cells[:, rows], f"{name}.own": counter.own}
    _dump_gaps(name, counter.key_gaps, rows, arrays)
    for row, counts in enumerate(counter.counts):
        arrays |= {f"{name}.moves{row}": counts.moves, f"{name}.waits{row}": counts.waits}
        arrays[f"{name}.later{row}"] = counts.later
        arrays |= {f"{name}.span{row}.{span}": span_counts for span, span_counts in counts.spans.items()}
    for row in range(len(group.tracked)):
        arrays[f"{name}.states{row}"] = counter.states[row][rows]
        arrays[f"{name}.reports{row}"] = reports = counter.reports[row].copy()
        if group.keyed:
            reports[:, 0] = np.searchsorted(kept, reports[:, 0])


def _load_learner(learner: Learner, header: Header, arrays: Arrays, filters: Mapping[Filter, int]) -> None:
    learner.now = tuple(header["now"])
    learner.last_time, learner.traffic = header["last"], Traffic(**header["traffic"])
    numbers = {fingerprint_text(repr(tree)): number for tree, number in filters.items()}
    current = [numbers.get(name, -1) for name in header["filters"]]
    kinds = [sorted(current[place] for place in kind if current[place] >= 0) for kind in header["kinds"]]
    learner.kinds.restore([tuple(kind) for kind in kinds])
    learner.arrange([saved["members"] for saved in header["lessons"]])
    for number, saved in enumerate(header["lessons"]):
        for counter in learner.counters:
            same = counter.group.ways == tuple(map(tuple, saved["ways"]))
            if same and {member.name for member in counter.group.members} <= set(saved["members"]):
                _load_counter(f"learn{number}", counter, saved, arrays, learner.now)


def _load_counter(name: str, counter: GroupCounter, saved: Header, arrays: Arrays, now: tuple[int, int]) -> None:
    # Of an older state it may be a part: there, patterns with and without times learned together.
    rows = [saved["members"].index(member.name) for member in counter.group.members]
    exact, cells = len(counter.group.exact), arrays[f"{name}.cells"]
    counter.pending = PendingWaits(*(arrays[f"{name}.pending.{column}"].copy() for column in _COLUMNS))
    counter.cells, counter.own, counter.now = cells[rows[:exact]], arrays[f"{name}.own"].copy(), now
    _load_gaps(name, counter.key_gaps, arrays)
    counter.counts = []
    for row in rows:
        spans = {span: arrays[f"{name}.span{row}.{span}"] for span in saved["spans"][row]}
        moves, waits, later = (arrays[f"{name}.{kind}{row}"] for kind in ("moves", "waits", "later"))
        counter.counts.append(Counts(moves, waits, later, spans))
    for place, row in enumerate(rows[exact:]):
        counter.states[place] = arrays[f"{name}.states{row - len(cells)}"]
        counter.reports[place] = arrays[f"{name}.reports{row - len(cells)}"]


def _dump_gaps(name: str, key_gaps: KeyGaps, rows: IntArray, arrays: Arrays) -> None:
    key_gaps.widen(int(rows.max(initial=-1)) + 1)
    if key_gaps.last.shape[1]:
        key_gaps = key_gaps.select(rows)
    arrays |= {f"{name}.silent": key_gaps.last, f"{name}.gaps": key_gaps.mean, f"{name}.heard": key_gaps.count}


def _load_gaps(name: str, key_gaps: KeyGaps, arrays: Arrays) -> None:
    # Copies: an older state has one stream for patterns with and without times.
    key_gaps.last, key_gaps.mean = arrays[f"{name}.silent"].copy(), arrays[f"{name}.gaps"].copy()
    key_gaps.count = arrays[f"{name}.heard"].copy()


# Another set of patterns ----------------------------------------------------------------------------


def carry_over(before: Forecaster, after: Forecaster) -> None:
    """Copy the state of patterns that are in both sets, unchanged."""
    old_patterns = {p.name: (p.pattern, p.mode, p.born) for p in before.pattern_set.patterns}
    kept = [p for p in after.pattern_set.patterns if old_patterns.get(p.name) == (p.pattern, p.mode, p.born)]
    names = {pattern.name for pattern in kept}
    for follower in after.followers:
        for old in before.followers:
            if old.group.partitioning == follower.group.partitioning:
                _carry_follower(old, follower, names)
        for number, member in enumerate(follower.group.members):
            if before.plans.get(member.name) != after.plans.get(member.name):
                follower.alarm_memory[number] = np.nan  # the old plan's last forecast says nothing about the new plan
    if before.learner is not None and after.learner is not None:
        keys = {make_pattern_key(pattern.pattern, pattern.mode) for pattern in kept}
        _carry_learner(before.learner, after.learner, keys)


def _carry_follower(old: GroupFollower, new: GroupFollower, names: set[str]) -> None:
    arrays: Arrays = {}
    saved = _dump_follower("", old, np.arange(old.cells.shape[1]), arrays)
    for kind in ("exact", "tracked"):
        saved[kind] = [name if name in names else None for name in saved[kind]]
    _load_follower("", new, saved, arrays)


def _carry_learner(old: Learner, new: Learner, keys: set[str]) -> None:
    """Continue counters with the patterns of `keys` and their pending waits; new patterns get counters of their own."""
    kept = [[member.name for member in counter.group.members if member.name in keys] for counter in old.counters]
    new.arrange(kept)
    continued = [(counter, names) for counter, names in zip(old.counters, kept, strict=True) if names]
    for old_counter, names in continued:
        for counter in new.counters:
            if names[0] in {member.name for member in counter.group.members}:
                _continue_counter(counter, old_counter)
    new.continue_from(old, [old_counter.group.ways for old_counter, _ in continued])


def _continue_counter(counter: GroupCounter, old: GroupCounter) -> None:
    """Let a counter continue from one that had its patterns and perhaps others."""
    places = {member.name: place for place, member in enumerate(old.group.members)}
    rows = [places[member.name] for member in counter.group.members]
    exact = len(counter.group.exact)
    tracked = [row - len(old.group.exact) for row in rows[exact:]]
    for at, row in enumerate(rows):
        zeros = {span: np.zeros_like(cells) for span, cells in counter.counts[at].spans.items()}
        counter.counts[at] = replace(old.counts[row], spans=zeros | old.counts[row].spans)
    counter.pending, counter.fresh, counter.now = old.pending, old.fresh, old.now
    counter.cells, counter.states = old.cells[rows[:exact]], [old.states[row] for row in tracked]
    counter.reports = [old.reports[row] for row in tracked]
    counter.key_gaps, counter.own = old.key_gaps, old.own
