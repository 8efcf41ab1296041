"""What the engine has in force at one moment: immutable, so that readers never lock and never see half a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.ids import to_arrow_ids
from tidings.engine.segment import Segment
from tidings.engine.staging import WaitingSubscription
from tidings.kernels.array_types import BoolArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidings.engine.compile.columns import Column
    from tidings.kernels.array_types import IntArray


CHUNK = 4096
"""Ids that are read at a time: whoever wants the first must not wait for a million."""


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
        if any(id in waiting for id in ids):
            deleted = set(ids)
            waiting = {id: subscription for id, subscription in waiting.items() if id not in deleted}
        found = zip(self.parts, self.find_slots(ids) if slots is None else slots, strict=True)
        return EngineState(tuple(part.delete_slots(own[own >= 0]) for part, own in found), waiting)

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
