"""Sets of ordered values as disjoint spans between cuts, so that open and closed ends need no case distinction.

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
"""A position before or after a value; cuts of one space are ordered."""

Spans: TypeAlias = "tuple[tuple[Cut, Cut], ...]"
"""A set: the values between each low cut and its high cut."""

Cell: TypeAlias = "tuple[Cut, Cut, int]"
"""A stretch between neighbouring cuts, and the sets it lies in, one bit each."""


def includes(outer: Spans, inner: Spans) -> bool:
    """Tell whether the second set lies within the first."""
    index = 0
    for low, high in inner:
        while index < len(outer) and outer[index][1] < high:
            index += 1
        if index == len(outer) or low < outer[index][0]:
            return False
    return True


def intersect(first: Spans, second: Spans) -> Spans:
    """Return the intersection."""
    common = []
    left, right = 0, 0
    while left < len(first) and right < len(second):
        low = max(first[left][0], second[right][0])
        high = min(first[left][1], second[right][1])
        if low < high:
            common.append((low, high))
        if first[left][1] == high:
            left += 1
        else:
            right += 1
    return tuple(common)


def unite(sets: Iterable[Spans]) -> Spans:
    """Return the union."""
    united: list[tuple[Cut, Cut]] = []
    for low, high in sorted(span for spans in sets for span in spans):
        if united and low <= united[-1][1]:
            united[-1] = (united[-1][0], max(high, united[-1][1]))
        else:
            united.append((low, high))
    return tuple(united)


def subtract(everything: Spans, spans: Spans) -> Spans:
    """Return the first set without the second."""
    return tuple((low, high) for low, high, inside in split_into_cells([everything, spans]) if inside == 1)


def split_into_cells(sets: Sequence[Spans]) -> Iterator[Cell]:
    """Yield the stretches between neighbouring cuts that lie in at least one set."""
    toggles: dict[Cut, int] = {}
    for index, spans in enumerate(sets):
        for span in spans:
            for cut in span:
                toggles[cut] = toggles.get(cut, 0) ^ (1 << index)
    inside, low = 0, None
    for cut in sorted(toggles):
        if inside and low is not None:
            yield low, cut, inside
        inside ^= toggles[cut]
        low = cut
