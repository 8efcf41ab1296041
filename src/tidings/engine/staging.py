"""A stage: bound filters on their way into the engine, of one call.

A few stay as they are; more are compiled into a draft as they come, so that a million of them never exist as trees at
the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidings.engine.compile.draft import FilterDraft

if TYPE_CHECKING:
    from tidings.concepts import Ontology
    from tidings.engine.compile.source_text import FilterSource
    from tidings.engine.tuning import EngineTuning
    from tidings.model import Filter


class WaitingSubscription(NamedTuple):
    """A subscription that is not compiled yet: its filter as written and as bound.

    `lossless` is true when binding changed nothing, so that the filter can be read back from its compiled row.
    """

    source: FilterSource
    bound: Filter
    lossless: bool


class Stage:
    """The subscriptions of one call; where ids repeat, the last one counts."""

    def __init__(self, ontology: Ontology, tuning: EngineTuning) -> None:
        """Start empty."""
        self._ontology, self._tuning = ontology, tuning
        self.waiting: dict[str | int, WaitingSubscription] = {}
        self.ids: list[str | int] = []
        self.draft: FilterDraft | None = None
        self.sources: dict[int, FilterSource] = {}

    def add(self, id: str | int, bound: Filter, source: FilterSource, *, lossless: bool) -> None:
        """Add a subscription; `lossless` says that its bound filter is the one that was written."""
        if self.draft is None:
            self.waiting[id] = WaitingSubscription(source, bound, lossless)
            if len(self.waiting) > self._tuning.waiting_limit:
                self.compile()
            return
        slot = len(self.ids)
        self.ids.append(id)
        if not self.draft.add(slot, bound) or not lossless:
            self.sources[slot] = source

    def compile(self) -> None:
        """Compile what waits into a draft, and everything that is added from now on."""
        self.draft = FilterDraft(self._ontology, self._tuning)
        waiting, self.waiting = self.waiting, {}
        for id, subscription in waiting.items():
            self.add(id, subscription.bound, subscription.source, lossless=subscription.lossless)
