"""What the engine has in force at one moment, and the stage that collects what comes next.

A state is immutable, so that readers never lock and never see half a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidings.engine.compile.draft import FilterDraft
from tidings.engine.compile.row_table import RowTable
from tidings.engine.compile.source_text import FilterSource, FilterSources
from tidings.engine.ids import CHUNK, Ids, to_arrow_ids
from tidings.engine.segment import Segment
from tidings.kernels.array_types import BoolArray, IntArray

if TYPE_CHECKING:
    from tidings.concepts import Ontology
    from tidings.engine.compile.columns import Column
    from tidings.engine.tuning import EngineTuning
    from tidings.model import Filter


@dataclass(frozen=True, slots=True)
class LiveSegment:
    """A segment, and a mask of its deleted slots (None: none is deleted)."""

    segment: Segment
    deleted: BoolArray | None = None
    deleted_count: int = 0

    def __len__(self) -> int:
        return len(self.segment) - self.deleted_count

    def find(self, id: object) -> int:
        """Return the slot of a live subscription, or -1."""
        slot = self.segment.ids.find(id)
        return -1 if slot >= 0 and self.deleted is not None and self.deleted[slot] else slot

    def find_many(self, ids: Any) -> IntArray:
        """Return the slot of each id, -1 where no live subscription has it."""
        slots = self.segment.ids.find_many(ids)
        return slots if self.deleted is None else np.where(self.deleted[np.maximum(slots, 0)], -1, slots)

    def delete_slots(self, slots: IntArray) -> LiveSegment:
        """Return the segment with these slots deleted as well."""
        if not len(slots):
            return self
        deleted = np.zeros(len(self.segment), bool) if self.deleted is None else self.deleted.copy()
        deleted[slots] = True
        return LiveSegment(self.segment, deleted, int(np.count_nonzero(deleted)))

    def list_live_slots(self) -> IntArray:
        """Return the slots that are not deleted, ascending."""
        return np.arange(len(self.segment)) if self.deleted is None else np.flatnonzero(~self.deleted)


class WaitingSubscription(NamedTuple):
    """A subscription that is not compiled yet: its filter as written and as bound.

    `lossless` is true when binding changed nothing, so that the filter can be read back from its compiled row.
    """

    source: FilterSource
    bound: Filter
    lossless: bool


@dataclass(frozen=True, slots=True)
class EngineState:
    """Segments, the largest first, and the few subscriptions that are not compiled yet; an id is in one place only."""

    parts: tuple[LiveSegment, ...] = ()
    waiting: Mapping[str | int, WaitingSubscription] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.waiting) + sum(map(len, self.parts))

    def collect_columns(self) -> tuple[Column, ...]:
        """Return the columns that the segments read, but for text patterns, which each segment numbers by itself."""
        return tuple(dict.fromkeys(column for part in self.parts for column in part.segment.required_columns))

    def find(self, id: object) -> tuple[Segment, int] | None:
        """Return the segment and the slot of a compiled subscription."""
        for part in self.parts:
            slot = part.find(id)
            if slot >= 0:
                return part.segment, slot
        return None

    def find_slots(self, ids: Sequence[str | int]) -> list[IntArray]:
        """Return for each part the slot of each id, -1 where the part does not have it."""
        if len(ids) == 1:  # not worth an Arrow array
            return [np.array([part.find(ids[0])]) for part in self.parts]
        arrow_ids = to_arrow_ids(ids) if self.parts else None
        return [part.find_many(arrow_ids) for part in self.parts]

    def delete_ids(self, ids: Sequence[str | int], slots: Sequence[IntArray] | None = None) -> EngineState:
        """Return the state without these subscriptions; ids that do not exist are passed over.

        `slots` are those of `find_slots`, where the caller has them.
        """
        waiting = self.waiting
        if waiting and any(id in waiting for id in ids):  # most often none is, and readers share the mapping
            deleted = set(ids)
            waiting = {id: subscription for id, subscription in waiting.items() if id not in deleted}
        pairs = zip(self.parts, self.find_slots(ids) if slots is None else slots, strict=True)
        return EngineState(tuple(part.delete_slots(own[own >= 0]) for part, own in pairs), waiting)

    def iterate_ids(self) -> Iterator[str | int]:
        """Yield the ids, segment by segment."""
        for part in self.parts:
            if part.deleted is None:
                yield from part.segment.ids
                continue
            slots = part.list_live_slots()
            for start in range(0, len(slots), CHUNK):
                yield from part.segment.ids.to_list(slots[start : start + CHUNK])
        yield from self.waiting


class Stage:
    """Bound filters on their way into the engine, of one call; where ids repeat, the last one counts.

    A few stay as they are; more are compiled into a draft as they come, so that a million of them never exist as trees
    at the same time.
    """

    def __init__(self, ontology: Ontology, tuning: EngineTuning) -> None:
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

    def build_table(self) -> tuple[RowTable, Ids, FilterSources]:
        """Return what was compiled, as `Engine.add_table` takes it."""
        assert self.draft is not None
        return RowTable.from_draft(self.draft), Ids.build(self.ids), FilterSources.from_slots(self.sources)
