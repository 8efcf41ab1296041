"""Carrying the state of a forecaster over to the forecaster of a changed set of patterns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidings.forecast.model import pattern_key

if TYPE_CHECKING:
    from tidings.forecast.courses.groups import CourseGroup
    from tidings.forecast.learning.counting import GroupCounter
    from tidings.forecast.learning.counts import Counts
    from tidings.forecast.learning.learner import Learner
    from tidings.forecast.predicting.following import GroupFollower
    from tidings.forecast.predicting.forecaster import Forecaster
    from tidings.patterns.compile.graph import CompiledPattern


def carry_over(before: Forecaster, after: Forecaster) -> None:
    """Copy the state of patterns that are in both sets, unchanged."""
    then = {pattern.name: pattern for pattern in before.pattern_set.patterns}
    stay = [
        pattern
        for pattern in after.pattern_set.patterns
        if pattern.name in then and _is_unchanged(then[pattern.name], pattern)
    ]
    names = {pattern.name for pattern in stay}
    for follower in after.followers:
        old = next(
            (pattern for pattern in before.followers if pattern.group.partitioning == follower.group.partitioning), None
        )
        if old is not None:
            _carry_following(old, follower, names)
        for number, pattern in enumerate(follower.group.members):
            if before.plans.get(pattern.name) != after.plans.get(
                pattern.name
            ):  # the old plan's last forecast says nothing about the new plan
                follower.last[number] = np.nan
    if before.learner is not None and after.learner is not None:
        _carry_learner(before.learner, after.learner, {pattern_key(pattern.pattern, pattern.mode) for pattern in stay})


def _is_unchanged(then: CompiledPattern, now: CompiledPattern) -> bool:
    return (then.pattern, then.mode, then.born) == (now.pattern, now.mode, now.born)


def _carry_following(old: GroupFollower, new: GroupFollower, names: set[str]) -> None:
    new.widen(old.cells.shape[1])
    new.seen, new.silences = old.seen, old.silences
    for now, then in _pairs(old.group, new.group, names):
        new.last[now, : old.last.shape[1]] = old.last[then]
        exact_now, exact_then = len(new.group.exact), len(old.group.exact)
        if now < exact_now and then < exact_then:
            new.cells[now, : old.cells.shape[1]] = old.cells[then]
        elif now >= exact_now and then >= exact_then:
            kept = old.states[then - exact_then]
            new.states[now - exact_now][: len(kept)] = kept
            due = old.due[then - exact_then]
            new.due[now - exact_now][: len(due)] = due


def _carry_learner(old: Learner, new: Learner, stay: set[str]) -> None:
    """Continue counters with the patterns that stay and their pending waits; new patterns get counters of their own."""
    kept = [[member.name for member in then.group.members if member.name in stay] for then in old.counters]
    new.arrange(kept)
    for then, names in zip(old.counters, kept, strict=True):
        for counter in new.counters:
            if names and names[0] in {member.name for member in counter.group.members}:
                continue_counter(counter, then)
    new.go_on(old, [then.group.ways for then, names in zip(old.counters, kept, strict=True) if names])


def continue_counter(counter: GroupCounter, then: GroupCounter) -> None:
    """Let a counter continue from one that had its patterns and perhaps others."""
    places = {member.name: place for place, member in enumerate(then.group.members)}
    rows = [places[member.name] for member in counter.group.members]
    exact, tracked = rows[: len(counter.group.exact)], rows[len(counter.group.exact) :]
    behind = [row - len(then.group.exact) for row in tracked]
    counter.counts = [_with_spans(then.counts[row], now) for row, now in zip(rows, counter.counts, strict=True)]
    counter.pending, counter.fresh, counter.now = then.pending, then.fresh, then.now
    counter.cells, counter.states = then.cells[exact], [then.states[row] for row in behind]
    counter.reports = [then.reports[row] for row in behind]
    counter.silences, counter.own, counter.room = then.silences, then.own, then.room


def _with_spans(counts: Counts, now: Counts) -> Counts:
    """Return counts with empty rows for spans of time that were not counted before."""
    room = {span: np.zeros_like(of) for span, of in now.spans.items()}
    return replace(counts, spans=room | counts.spans)


def _pairs(old: CourseGroup, new: CourseGroup, names: set[str]) -> list[tuple[int, int]]:
    """Return the numbers, new and old, of members that are in both groups and stay."""
    old_numbers = {member.name: number for number, member in enumerate(old.members)}
    return [
        (now, old_numbers[member.name])
        for now, member in enumerate(new.members)
        if member.name in names and member.name in old_numbers
    ]
