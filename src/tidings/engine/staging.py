"""A stage: subscriptions that have been read and bound, on their way into the engine.

A few wait as they are; more are compiled into a draft as they come, so that a million of them never exist as
trees at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidings.engine.compile.draft import Draft

if TYPE_CHECKING:
    from tidings.concepts import Ontology
    from tidings.engine.compile.source_text import Written
    from tidings.model import Filter

FEW = 16
"""So many wait as they are, and are asked one by one."""


class Waiting(NamedTuple):
    """A subscription that is not compiled yet: what was written, and what it means."""

    written: Written
    bound: Filter
    faithful: bool


class Stage:
    """Subscriptions of one call; ids may repeat, the last one counts."""

    def __init__(self, ontology: Ontology) -> None:
        """Start empty."""
        self._ontology = ontology
        self.few: dict[str | int, Waiting] = {}
        self.ids: list[str | int] = []
        self.draft: Draft | None = None
        self.sources: dict[int, Written] = {}

    def add(self, id: str | int, bound: Filter, written: Written, *, faithful: bool) -> None:
        """Take a subscription; `faithful` says that what it means is what was written."""
        if self.draft is None:
            self.few[id] = Waiting(written, bound, faithful)
            if len(self.few) > FEW:
                self.compile()
            return
        slot = len(self.ids)
        self.ids.append(id)
        if not self.draft.add(slot, bound) or not faithful:
            self.sources[slot] = written

    def compile(self) -> None:
        """Compile what waits, and everything that comes after it."""
        self.draft = Draft(self._ontology)
        waiting, self.few = self.few, {}
        for id, one in waiting.items():
            self.add(id, one.bound, one.written, faithful=one.faithful)
