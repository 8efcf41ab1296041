"""Portions of a pattern set that changes: patterns come and go, and what they leave alone stays compiled.

A pattern belongs to one portion for as long as it is the same, whatever others there are. Each portion has a catalog
of its own, so a change compiles the patterns that it brings and the graphs of the portions that it touches.
Invariant: `compile` returns what `split_patterns` returns for the same patterns, but for the numbers of filters. Those
depend on the changes that this object has seen, so they mean nothing outside of it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from tidings.patterns.pattern_set import PatternCatalog, PatternSet, StreamSettings
from tidings.patterns.run.machine import Ways, find_ways, map_filters
from tidings.patterns.run.portions import Portion, name_portion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.concepts import Vocabulary
    from tidings.lang import WrittenPattern


class DatedPattern(NamedTuple):
    """A pattern, and the time, in microseconds, after which it sees events."""

    written: WrittenPattern
    since: int


class ChangingPortions:
    """Patterns by name, in portions of `buckets` buckets, those without a key in `shards` portions."""

    def __init__(self, vocabulary: Vocabulary, settings: StreamSettings, *, buckets: int, shards: int) -> None:
        self._vocabulary, self._buckets, self._shards = vocabulary, buckets, shards
        self._part_settings = StreamSettings(time=settings.time, partials=settings.partials)
        self._all = PatternCatalog(vocabulary, settings)
        self._parts: dict[str, tuple[Ways, PatternCatalog]] = {}
        self._homes: dict[str, str] = {}  # of each pattern, the name of its portion

    def change(self, patterns: Iterable[DatedPattern] = (), *, removed: Iterable[str] = ()) -> None:
        """Remove patterns, those that are not there too, and add others; one of a name that is there begins anew.

        After an error (a pattern that the vocabulary refuses) this object is of no more use.
        """
        patterns = list(patterns)
        for name in [*removed, *(written.name for written, _ in patterns)]:
            self._remove(name)
        _add_patterns(self._all, patterns)  # first: what is wrong with one of them is raised here
        homes: dict[str, list[DatedPattern]] = defaultdict(list)
        for dated in patterns:
            ways = find_ways(dated.written.pattern)
            home = name_portion(dated.written.name, ways, self._shards)
            self._homes[dated.written.name] = home
            self._parts.setdefault(home, (ways, PatternCatalog(self._vocabulary, self._part_settings)))
            homes[home].append(dated)
        for home, members in homes.items():
            _add_patterns(self._parts[home][1], members)

    def compile(self) -> tuple[PatternSet, list[Portion]]:
        """Return the set of all patterns, and its portions."""
        patterns = self._all.compile()
        portions = []
        for name, (ways, catalog) in self._parts.items():
            part = catalog.compile()
            buckets = self._buckets if ways != ((),) else 1
            portions.append(Portion(name, part, ways, buckets, map_filters(patterns.filters, part.filters)))
        return patterns, portions

    def _remove(self, name: str) -> None:
        home = self._homes.pop(name, None)
        if home is None:
            return
        catalog = self._parts[home][1]
        self._all.remove(name)
        catalog.remove(name)
        if not len(catalog):
            del self._parts[home]


def _add_patterns(catalog: PatternCatalog, patterns: Iterable[DatedPattern]) -> None:
    """Add patterns in one step for each time that they begin at: the matcher takes many filters as quickly as a few."""
    groups: dict[int, list[WrittenPattern]] = defaultdict(list)
    for written, since in patterns:
        groups[since].append(written)
    for since, members in groups.items():
        catalog.add_many(members, since=since)
