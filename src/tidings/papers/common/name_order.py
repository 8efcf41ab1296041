"""The order of names in a tree of paths: the most frequent first, and when it is computed again.

A name is an attribute as tests read it: those that read it as numbers and those that read it as text are two names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.algebra.law.typed_attribute import TypedAttribute

MIN_PATHS = 64
"""Below this many paths names stay in the order in which they came: there is little to gain."""


def describe_attribute(key: TypedAttribute) -> str:
    """Return an attribute, and how it is read, as text.

    >>> from tidings.algebra.law.typed_attribute import TypedAttribute
    >>> describe_attribute(TypedAttribute("size", "number", "byte"))
    'size as number in byte'
    """
    name, kind, unit, _ = key
    return name + (f" as {kind}" if kind else "") + (f" in {unit}" if unit else "")


class NameOrder:
    """Counts how often paths use each name, and keeps the order that was right at the last `reorder`.

    A caller reorders each time the number of paths has doubled. A tree that is rebuilt then is rebuilt once
    for each doubling, which is a constant amount of work for each path. Names that come in between are last in the
    order, one after the other; a name without paths is forgotten.
    """

    def __init__(self, min_paths: int = MIN_PATHS) -> None:
        self.counts: dict[TypedAttribute, int] = {}
        self.ranks: dict[TypedAttribute, int] = {}
        self._next, self._min_paths, self.reordered_at = 0, min_paths, min_paths // 2

    def add(self, names: Iterable[TypedAttribute]) -> None:
        """Count the names of a new path."""
        counts = self.counts
        for name in names:
            if name in counts:
                counts[name] += 1
            else:
                counts[name] = 1
                self.ranks[name] = self._next
                self._next += 1

    def discard(self, names: Iterable[TypedAttribute]) -> None:
        """Count the names of a path no more."""
        counts = self.counts
        for name in names:
            counts[name] -= 1
            if not counts[name]:
                del counts[name], self.ranks[name]
        if not counts:
            self._next, self.reordered_at = 0, self._min_paths // 2

    def is_due(self, paths: int) -> bool:
        """Tell whether there are twice as many paths as at the last `reorder`."""
        return paths >= 2 * self.reordered_at

    def reorder(self, paths: int) -> bool:
        """Rank the names anew by how many paths use each now; return whether any rank differs from before."""
        before = sorted(self.ranks, key=self.ranks.__getitem__)
        now = self.sort_by_frequency()
        self.ranks = {name: at for at, name in enumerate(now)}
        self._next, self.reordered_at = len(now), paths
        return before != now

    def sort_by_frequency(self) -> list[TypedAttribute]:
        """Return the names, the most frequent first; those of equal frequency in alphabetical order."""
        return sorted(self.counts, key=lambda name: (-self.counts[name], name))
