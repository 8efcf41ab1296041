"""Sets of ordered values as disjoint spans between cuts; open and closed ends become one thing.

A cut lies before or after a value: `[1 .. 2)` runs from before 1 to before 2, a single value from before
it to after it. Spans that share a cut touch, so joining, meeting and containing are plain comparisons of
cuts, whatever the values are.

Invariant: the spans of a set ascend, do not touch, and each has its low cut below its high cut.
Cost: linear in the spans, and a sort for cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Cut: TypeAlias = "tuple[Any, ...]"
"""A place before or after a value; the cuts of one attribute compare."""

Spans: TypeAlias = "tuple[tuple[Cut, Cut], ...]"
"""A set: the values between each low cut and its high cut."""

Cell: TypeAlias = "tuple[Cut, Cut, int]"
"""A stretch between neighbouring cuts, and in which of several sets it lies, one bit each."""


def contains(outer: Spans, inner: Spans) -> bool:
    """Tell whether the second set lies within the first."""
    at = 0
    for low, high in inner:
        while at < len(outer) and outer[at][1] < high:
            at += 1
        if at == len(outer) or low < outer[at][0]:
            return False
    return True


def meet(one: Spans, two: Spans) -> Spans:
    """Return what lies in both."""
    found = []
    left, right = 0, 0
    while left < len(one) and right < len(two):
        low = max(one[left][0], two[right][0])
        high = min(one[left][1], two[right][1])
        if low < high:
            found.append((low, high))
        if one[left][1] == high:
            left += 1
        else:
            right += 1
    return tuple(found)


def join(sets: Iterable[Spans]) -> Spans:
    """Return what lies in some of them."""
    found: list[tuple[Cut, Cut]] = []
    for low, high in sorted(span for spans in sets for span in spans):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def without(everything: Spans, spans: Spans) -> Spans:
    """Return what is left of the first set."""
    return tuple((low, high) for low, high, inside in cells([everything, spans]) if inside == 1)


def cells(sets: Sequence[Spans]) -> Iterator[Cell]:
    """Yield the stretches between neighbouring cuts that lie in some set."""
    toggles: dict[Cut, int] = {}
    for at, spans in enumerate(sets):
        for span in spans:
            for cut in span:
                toggles[cut] = toggles.get(cut, 0) ^ (1 << at)
    inside, low = 0, None
    for cut in sorted(toggles):
        if inside and low is not None:
            yield low, cut, inside
        inside ^= toggles[cut]
        low = cut
