"""The order of names in a tree of paths: the most frequent first, and when that is looked at again.

A name is an attribute as tests read it: those that read it as numbers and those that read it as text are two names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.algebra.law.typed_attribute import TypedAttribute

MIN_PATHS = 64
"""Below so many paths the order is left as it comes: there is little to win."""


def describe_attribute(key: TypedAttribute) -> str:
    """Say an attribute and how it is read.

    >>> from tidings.algebra.law.typed_attribute import TypedAttribute
    >>> shown(TypedAttribute("size", "number", "byte"))
    'size as number in byte'
    """
    name, kind, unit, _ = key
    return name + (f" as {kind}" if kind else "") + (f" in {unit}" if unit else "")


class NameOrder:
    """Counts how often paths use each name, and keeps an order that was right when it was last settled.

    The order is settled again each time the number of paths has doubled. A tree that is then built anew does so
    once for each doubling, which is a constant amount of work for each path. A name that nobody used then comes
    after those that were used, in the order of coming; a name that nobody uses any more is forgotten.
    """

    def __init__(self) -> None:
        """Start without names."""
        self.counts: dict[TypedAttribute, int] = {}
        self.ranks: dict[TypedAttribute, int] = {}
        self._next = 0
        self.settled_at = MIN_PATHS // 2

    def add(self, names: Iterable[TypedAttribute]) -> None:
        """Count the names of a path that comes."""
        counts = self.counts
        for name in names:
            if name in counts:
                counts[name] += 1
            else:
                counts[name] = 1
                self.ranks[name] = self._next
                self._next += 1

    def discard(self, names: Iterable[TypedAttribute]) -> None:
        """Take the names of a path back."""
        counts = self.counts
        for name in names:
            counts[name] -= 1
            if not counts[name]:
                del counts[name], self.ranks[name]
        if not counts:
            self._next, self.settled_at = 0, MIN_PATHS // 2

    def is_due(self, paths: int) -> bool:
        """Tell whether there are twice as many paths as when the order was settled."""
        return paths >= 2 * self.settled_at

    def settle(self, paths: int) -> bool:
        """Order the names by their counts now; tell whether that changes the order."""
        before = sorted(self.ranks, key=self.ranks.__getitem__)
        now = self.sort_by_frequency()
        self.ranks = {name: at for at, name in enumerate(now)}
        self._next, self.settled_at = len(now), paths
        return before != now

    def sort_by_frequency(self) -> list[TypedAttribute]:
        """Return the names, the most frequent first; names as frequent as each other by the alphabet."""
        return sorted(self.counts, key=lambda name: (-self.counts[name], name))
