"""Brute force: every filter is asked about every event. The oracle that the other matchers are held to.

O(filters) for each event; nothing is indexed, so adding and removing cost a dictionary entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.algebra import Reading, Setting, holds
from tidings.matcher.algorithm import Algorithm, SubId

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.model import Filter


class Brute(Algorithm):
    """Asks `holds` of every filter in turn."""

    def __init__(self) -> None:
        self.filters: dict[SubId, Filter] = {}

    def compile_filter(self, tree: Filter) -> Filter:
        """Return the filter as it is: the law decides every one."""
        return tree

    def add_many(self, filters: Iterable[tuple[SubId, Filter]]) -> None:
        """Take filters in; a known id is replaced."""
        self.filters.update(filters)

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there."""
        del self.filters[id]

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        return [id for id, tree in self.filters.items() if holds(tree, reading, setting)]

    def explain(self) -> dict[str, object]:
        """Say that everything is asked."""
        count = len(self.filters)
        return {"algorithm": "brute force", "filters": count, "asked for each event": count}
