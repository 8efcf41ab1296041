"""What the engine holds at one moment: immutable, so that readers never lock and never see half a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidings.engine.segment import Segment
from tidings.engine.staging import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidings.engine.compile.columns import Column


CHUNK = 4096
"""So many ids are read at a time."""


@dataclass(frozen=True, slots=True)
class Part:
    """A segment, and which of its slots are dead (nothing: none is)."""

    segment: Segment
    dead: NDArray[np.bool_] | None = None
    deaths: int = 0

    def __len__(self) -> int:
        """Count the living."""
        return len(self.segment) - self.deaths

    def find(self, id: object) -> int:
        """Return the slot of a living subscription, or -1."""
        slot = self.segment.ids.find(id)
        return -1 if slot >= 0 and self.dead is not None and self.dead[slot] else slot

    def find_many(self, ids: Any) -> NDArray[np.int64]:
        """Return the slot of each living subscription, or -1."""
        slots = self.segment.ids.find_many(ids)
        return slots if self.dead is None else np.where(self.dead[np.maximum(slots, 0)], -1, slots)

    def without(self, slots: NDArray[np.int64]) -> Part:
        """Return the part with these slots dead as well."""
        if not len(slots):
            return self
        dead = np.zeros(len(self.segment), bool) if self.dead is None else self.dead.copy()
        dead[slots] = True
        return replace(self, dead=dead, deaths=int(dead.sum()))

    def living(self) -> NDArray[np.int64]:
        """Return the living slots."""
        return np.arange(len(self.segment)) if self.dead is None else np.flatnonzero(~self.dead)


@dataclass(frozen=True, slots=True)
class State:
    """Segments, the largest first, and the few subscriptions that wait to be compiled."""

    parts: tuple[Part, ...] = ()
    waiting: Mapping[str | int, Waiting] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self.waiting) + sum(map(len, self.parts))

    def wanted(self) -> tuple[Column, ...]:
        """Return the columns that segments look at, but for text patterns, which each segment finds by itself."""
        return tuple(dict.fromkeys(column for part in self.parts for column in part.segment.wanted))

    def find(self, id: object) -> tuple[int, int] | None:
        """Return the part and the slot of a compiled subscription."""
        for number, part in enumerate(self.parts):
            slot = part.find(id)
            if slot >= 0:
                return number, slot
        return None

    def without(self, ids: Sequence[str | int]) -> State:
        """Return the state without these subscriptions, those of them that are there."""
        waiting = self.waiting
        if any(id in waiting for id in ids):
            gone = set(ids)
            waiting = {id: one for id, one in waiting.items() if id not in gone}
        parts = []
        for part in self.parts:
            if len(ids) == 1:
                slot = part.find(ids[0])
                parts.append(part if slot < 0 else part.without(np.array([slot])))
                continue
            slots = part.find_many(ids)
            parts.append(part.without(np.unique(slots[slots >= 0])))
        return State(tuple(parts), waiting)

    def ids(self) -> Iterator[str | int]:
        """Yield the ids."""
        for part in self.parts:
            ids, living = part.segment.ids, part.living() if part.dead is not None else ()
            for start in range(0, len(living), CHUNK):  # who asks for the first must not wait for a million
                yield from ids.to_list(living[start : start + CHUNK])
            yield from ids if part.dead is None else ()
        yield from self.waiting
