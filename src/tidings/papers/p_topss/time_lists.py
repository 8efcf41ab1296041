"""Time lists and time compatibility sets of P-ToPSS: the time part of Match, and Prune.

Section 5.1 of the paper (see `paper_machine`). An instance has a time list for each state that a condition refers to or
depends on: when the state was reached and, with each such time, for each state that it was compared with, the times
that satisfied the conditions (the compatibility set). Prune keeps the times of a list that later lists still point to,
and the times of a set that are still in the list.

Conditions bound differences of times, so lists that are consistent pair by pair and not empty contain a match: the
latest time of each list is one. That is why pruning alone decides.

Lists are never changed in place, so instances share them.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from tidings.papers.p_topss.state_graph import PairCondition, PaperState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CompatibilitySets: TypeAlias = dict[PaperState, frozenset[int]]
"""For each state that an arrival was compared with, the times that satisfied the conditions."""

TimeLists: TypeAlias = dict[PaperState, dict[int, CompatibilitySets]]
"""The time list of each state."""


def enter_state(state: PaperState, lists: TimeLists, *, time: int, left: PaperState) -> TimeLists | None:
    """Return the lists after a primary link from the state `left`; None when a condition forbids it."""
    entry = _find_compatible(state, lists, time)
    if entry is None or not state.timed:
        return None if entry is None else lists
    moved = {**lists, state: {time: entry}}
    # Printed is the state that is left. The one entered finds the same and, where no condition joins the two, more.
    seen: set[PaperState] = set()
    prune(moved, left, seen=seen)
    prune(moved, state, seen=seen)
    return moved if all(moved.values()) else None


def renew_state(state: PaperState, lists: TimeLists, *, time: int) -> TimeLists | None:
    """Return the lists after a secondary link: one more time in the state's own list, and no pruning."""
    entry = _find_compatible(state, lists, time)
    if entry is None or state not in lists:
        return None if entry is None else lists
    return {**lists, state: {**lists[state], time: entry}}


def _find_compatible(state: PaperState, lists: TimeLists, time: int) -> CompatibilitySets | None:
    """Evaluate the conditions that depend on a state; None when one is satisfied by no time of its list."""
    entry: CompatibilitySets = {}
    for rule in state.rules:
        times = lists.get(rule.reference, {})
        matched = frozenset(then for then in times if rule.bounds.holds(time, then))
        # Two conditions on one state: both must hold of the same time.
        entry[rule.reference] = entry.get(rule.reference, matched) & matched
        if not entry[rule.reference]:
            return None
    return entry


def prune(lists: TimeLists, state: PaperState, *, seen: set[PaperState]) -> None:
    """Update the lists around a state, then around its neighbours (Prune), until nothing changes.

    States that the instance has not reached, and lists that were dropped, are skipped.
    """
    seen.add(state)
    if state not in lists:
        return
    for reference in state.refs:
        if reference in lists and (_drop_unreferenced(lists, reference, by=state) or reference not in seen):
            prune(lists, reference, seen=seen)
    for dependent in state.dependents:
        if dependent in lists and (_narrow(lists, dependent, to=state) or dependent not in seen):
            prune(lists, dependent, seen=seen)


def _drop_unreferenced(lists: TimeLists, reference: PaperState, *, by: PaperState) -> bool:
    """Keep the times of a list that a dependent list points to; return whether some were dropped."""
    sets = [entry.get(reference) for entry in lists[by].values()]
    if None in sets:  # case 4: not evaluated yet
        return False
    wanted = frozenset[int]().union(*(times for times in sets if times is not None))
    before = lists[reference]
    if wanted.issuperset(before):
        return False
    lists[reference] = {time: entry for time, entry in before.items() if time in wanted}
    return True


def _narrow(lists: TimeLists, dependent: PaperState, *, to: PaperState) -> bool:
    """Narrow the compatibility sets to the times in the list; drop entries with an empty set (not printed)."""
    times_in_list, before, changed = lists[to], lists[dependent], False
    after: dict[int, CompatibilitySets] = {}
    for time, entry in before.items():
        times = entry.get(to)
        if times is None or times_in_list.keys() >= times:
            after[time] = entry
            continue
        changed, left = True, times & times_in_list.keys()
        if left:
            after[time] = {**entry, to: left}
    if changed:
        lists[dependent] = after
    return changed


def drop_unneeded(lists: TimeLists, wanted: set[PaperState]) -> TimeLists:
    """Return the lists that a later condition refers to, without references to the others."""
    if lists.keys() <= wanted:
        return lists
    kept = {state for state in lists if state in wanted}
    return {
        state: {
            time: {reference: times for reference, times in entry.items() if reference in kept}
            for time, entry in lists[state].items()
        }
        for state in kept
    }


def merge_parts(parts: Sequence[TimeLists], pairs: Iterable[PairCondition]) -> TimeLists | None:
    """Merge the lists of an `and`'s parts, evaluate the conditions between them, prune; None if a list gets empty."""
    together: TimeLists = reduce(_merge_lists, parts)
    lists = {**together}
    for pair in pairs:
        then = lists.get(pair.reference, {})
        lists[pair.dependent] = {
            time: {**entry, pair.reference: frozenset(other for other in then if pair.bounds.holds(other, time))}
            for time, entry in lists.get(pair.dependent, {}).items()
        }
    return prune_all(lists)


def _merge_lists(first: TimeLists, second: TimeLists) -> TimeLists:
    """Merge the time lists of two parts; a list that both got from before the `and` keeps the times that both kept."""
    both = {
        state: {
            time: _merge_sets(first[state][time], second[state][time])
            for time in first[state].keys() & second[state].keys()
        }
        for state in first.keys() & second.keys()
    }
    return {**first, **second, **both}


def _merge_sets(first: CompatibilitySets, second: CompatibilitySets) -> CompatibilitySets:
    return {**first, **second, **{state: first[state] & second[state] for state in first.keys() & second.keys()}}


def prune_all(lists: TimeLists) -> TimeLists | None:
    """Prune around every state; None when a list is left empty."""
    lists = {
        state: {time: entry for time, entry in entries.items() if all(entry.values())}
        for state, entries in lists.items()
    }
    for state in lists:
        prune(lists, state, seen=set())
    return lists if all(lists.values()) else None


def drop_expired(lists: TimeLists, since: int) -> TimeLists | None:
    """Return the lists without times before `since`; None when a list is left empty."""
    if all(time >= since for entries in lists.values() for time in entries):
        return lists
    recent = {
        state: {time: entry for time, entry in entries.items() if time >= since} for state, entries in lists.items()
    }
    return prune_all(recent)


def covers(outer: TimeLists, inner: TimeLists) -> bool:
    """Tell whether the first lists have every entry of the second, so that they lead to all its matches."""
    return all(
        state in outer
        and all(
            time in outer[state]
            and all(outer[state][time].get(reference, frozenset()) >= times for reference, times in entry.items())
            for time, entry in entries.items()
        )
        for state, entries in inner.items()
    )
