"""Where a forecaster stands: taken over by another one, or kept as arrays."""

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
    """Let patterns that are in both go on where they stood."""
    then = {one.name: one for one in before.pattern_set.patterns}
    stay = [one for one in after.pattern_set.patterns if one.name in then and _is_unchanged(then[one.name], one)]
    names = {one.name for one in stay}
    for following in after.followers:
        old = next((one for one in before.followers if one.group.partitioning == following.group.partitioning), None)
        if old is not None:
            _carry_following(old, following, names)
        for number, one in enumerate(following.group.members):
            if before.plans.get(one.name) != after.plans.get(one.name):  # what was told by the old plan was not by this
                following.last[number] = np.nan
    if before.learner is not None and after.learner is not None:
        _carry_learner(before.learner, after.learner, {pattern_key(one.pattern, one.mode) for one in stay})


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
    """Let lessons go on with the patterns that stay, and waits that have not ended; new ones have their own."""
    kept = [[one.name for one in then.group.members if one.name in stay] for then in old.counters]
    new.arrange(kept)
    for then, names in zip(old.counters, kept, strict=True):
        for lesson in new.counters:
            if names and names[0] in {one.name for one in lesson.group.members}:
                continue_counter(lesson, then)
    new.go_on(old, [then.group.ways for then, names in zip(old.counters, kept, strict=True) if names])


def continue_counter(lesson: GroupCounter, then: GroupCounter) -> None:
    """Let a lesson of some of the same patterns go on where another stood."""
    places = {one.name: place for place, one in enumerate(then.group.members)}
    rows = [places[one.name] for one in lesson.group.members]
    exact, tracked = rows[: len(lesson.group.exact)], rows[len(lesson.group.exact) :]
    behind = [row - len(then.group.exact) for row in tracked]
    lesson.counts = [_with_spans(then.counts[row], now) for row, now in zip(rows, lesson.counts, strict=True)]
    lesson.pending, lesson.fresh, lesson.now = then.pending, then.fresh, then.now
    lesson.cells, lesson.states = then.cells[exact], [then.states[row] for row in behind]
    lesson.reports = [then.reports[row] for row in behind]
    lesson.silences, lesson.own, lesson.room = then.silences, then.own, then.room


def _with_spans(counts: Counts, now: Counts) -> Counts:
    """Return counts with room for the spans of time that are asked for now."""
    room = {span: np.zeros_like(of) for span, of in now.spans.items()}
    return replace(counts, spans=room | counts.spans)


def _pairs(old: CourseGroup, new: CourseGroup, names: set[str]) -> list[tuple[int, int]]:
    """Return the members of both that stay, by their numbers."""
    known = {one.name: number for number, one in enumerate(old.members)}
    return [(now, known[one.name]) for now, one in enumerate(new.members) if one.name in names and one.name in known]
