"""What `match_many` returns: pairs of an event's index and a subscription's id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that could not be read: its index in the batch, and why."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The pairs found in a batch, by event; bad events are in `dead_letters`."""

    event_index: np.ndarray
    ids: list[str] | list[int]
    events: int
    dead_letters: tuple[DeadLetter, ...] = ()

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[int, str | int]]:
        """Yield `(event_index, id)`."""
        return zip(self.event_index.tolist(), self.ids, strict=True)

    def by_event(self) -> list[list[str | int]]:
        """Return one list of ids for each event of the batch."""
        lists: list[list[str | int]] = [[] for _ in range(self.events)]
        for index, id_ in self:
            lists[index].append(id_)
        return lists

    def to_arrow(self) -> pa.Table:
        """Return a table `event: int64, subscription`."""
        import pyarrow as pa

        kind = pa.int64() if self.ids and isinstance(self.ids[0], int) else pa.string()
        return pa.table({"event": pa.array(self.event_index, pa.int64()), "subscription": pa.array(self.ids, kind)})
