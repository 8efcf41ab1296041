"""Where a forecaster stands: taken over by another one, or kept as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.forecast.following import Following
    from tidings.forecast.forecaster import Forecaster
    from tidings.forecast.groups import Group
    from tidings.forecast.learner import Learner
    from tidings.forecast.learning import Lesson


def carry(before: Forecaster, after: Forecaster) -> None:
    """Let patterns that are in both go on where they stood."""
    for following in after.followings:
        old = next((one for one in before.followings if one.group.ways == following.group.ways), None)
        if old is not None:
            _carry_following(old, following)
    if before.learner is not None and after.learner is not None:
        _carry_learner(before.learner, after.learner)


def _carry_following(old: Following, new: Following) -> None:
    new.widen(old.cells.shape[1])
    new.seen, new.silences = old.seen, old.silences
    for now, then in _pairs(old.group, new.group):
        new.last[now, : old.last.shape[1]] = old.last[then]
        exact_now, exact_then = len(new.group.exact), len(old.group.exact)
        if now < exact_now and then < exact_then:
            new.cells[now, : old.cells.shape[1]] = old.cells[then]
        elif now >= exact_now and then >= exact_then:
            kept = old.states[then - exact_then]
            new.states[now - exact_now][: len(kept)] = kept
            new.late[now - exact_now] = old.late[then - exact_then]


def _carry_learner(old: Learner, new: Learner) -> None:
    """Let waits that have not ended go on; of patterns that are new, they begin after those that are pending."""
    for lesson in new.lessons:
        then = next((one for one in old.lessons if one.group.ways == lesson.group.ways), None)
        if then is not None and [one.name for one in then.group.members] == [one.name for one in lesson.group.members]:
            go_on(lesson, then)
    new.go_on(old)


def go_on(lesson: Lesson, then: Lesson) -> None:
    """Let a lesson of the same patterns go on where another stood."""
    lesson.counts, lesson.pending, lesson.fresh = then.counts, then.pending, then.fresh
    lesson.reports, lesson.cells, lesson.states = then.reports, then.cells, then.states
    lesson._seen, lesson._forgotten, lesson.silences = then._seen, then._forgotten, then.silences


def _pairs(old: Group, new: Group) -> list[tuple[int, int]]:
    """Return the members of both that are the same pattern, by their numbers."""
    known = {(one.name, one.pattern): number for number, one in enumerate(old.members)}
    return [
        (now, known[one.name, one.pattern]) for now, one in enumerate(new.members) if (one.name, one.pattern) in known
    ]
