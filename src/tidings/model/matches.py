"""What `match_many` returns: pairs of an event's index and a subscription's id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from tidings.kernels.array_types import IntArray


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that could not be read: its index in the batch, and why."""

    index: int
    reason: str


class Matches:
    """The pairs found in a batch, in no promised order; bad events are in `dead_letters`.

    Ids are looked up when they are first asked for: a million pairs cost little until somebody reads them.
    """

    __slots__ = ("_arrow", "_ids", "_look_up", "dead_letters", "event_index", "events")

    def __init__(
        self,
        event_index: IntArray,
        ids: list[str | int] | Callable[[], pa.Array],
        events: int,
        dead_letters: tuple[DeadLetter, ...] = (),
    ) -> None:
        """Take the events' indexes and as many ids, or what looks them up as an Arrow array."""
        self.event_index = event_index
        self.events = events
        self.dead_letters = dead_letters
        self._ids: list[str | int] | None = None if callable(ids) else ids
        self._look_up = ids if callable(ids) else None
        self._arrow: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.event_index)

    @property
    def ids(self) -> list[str | int]:
        """The ids of the pairs, in their order."""
        if self._ids is None:
            self._ids = self.id_array().to_pylist()
        return self._ids

    def __iter__(self) -> Iterator[tuple[int, str | int]]:
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

        return pa.table({"event": pa.array(self.event_index, pa.int64()), "subscription": self.id_array()})

    def id_array(self) -> pa.Array:
        """Return the ids of the pairs, in their order, as an Arrow array."""
        import pyarrow as pa

        if self._arrow is None:
            if self._look_up is not None:
                self._arrow = self._look_up()
            else:
                kind = pa.int64() if self._ids and isinstance(self._ids[0], int) else pa.string()
                self._arrow = pa.array(self._ids, kind)
        return self._arrow

    def __repr__(self) -> str:
        return f"<Matches: {len(self):,} pairs in {self.events:,} events, {len(self.dead_letters):,} dead letters>"
