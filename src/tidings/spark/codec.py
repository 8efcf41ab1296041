"""What runs inside Spark's Python workers: Arrow batch in, matcher, Arrow batch out.

The matcher travels as bytes inside the function that Spark ships; a worker process unpacks it once and keeps it
by digest, so later batches pay nothing. Nothing here imports pyspark, and no loop here visits rows one by one:
matched rows are taken from the batch by index. Output comes in slices of the input, so memory stays bounded by
what a thousand events can match.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from tidings.model import EventBatch, Matches

if TYPE_CHECKING:
    from tidings.matcher import Matcher

SLICE = 1024
"""Events matched in one call; what they match is in memory at once."""

KEPT = 4
"""Matchers a worker keeps open: a few queries may share its process."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""What Spark counts its microseconds from."""

Build: TypeAlias = Callable[[pa.RecordBatch, Matches, pa.DataType], pa.RecordBatch]
"""Makes the output of some rows (their columns that are kept) from what matched, given the type of ids."""

_open: OrderedDict[str, Matcher] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Shipment:
    """A matcher on its way to the workers, as it was when it was packed."""

    digest: str
    payload: bytes

    @classmethod
    def of(cls, matcher: Matcher) -> Shipment:
        """Pack the matcher; changes made to it later do not travel."""
        payload = pickle.dumps(matcher, protocol=pickle.HIGHEST_PROTOCOL)
        return cls(hashlib.blake2b(payload, digest_size=16).hexdigest(), payload)

    def open(self) -> Matcher:
        """Return the matcher, unpacked once in this process."""
        if self.digest not in _open:
            _open[self.digest] = pickle.loads(self.payload)  # noqa: S301 - our own bytes, from our own driver
            while len(_open) > KEPT:
                _open.popitem(last=False)
        _open.move_to_end(self.digest)
        return _open[self.digest]


@dataclass(frozen=True, slots=True)
class Step:
    """The function Spark runs over Arrow batches, whose columns it knows by their place.

    The columns `read`, called `names`, are the event; each output row takes the columns `kept`. `now` is a
    moment, or the place of a column that holds it (the same in every row that Spark hands over in one query).
    """

    shipment: Shipment
    build: Build
    read: tuple[int, ...]
    names: tuple[str, ...]
    kept: tuple[int, ...]
    ids: pa.DataType
    now: datetime | int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the output of every slice of every batch."""
        matcher = self.shipment.open()
        for batch in batches:
            for start in range(0, batch.num_rows, SLICE):
                rows = batch.slice(start, SLICE)
                yield self.build(rows.select(list(self.kept)), self._matched(matcher, rows), self.ids)

    def _matched(self, matcher: Matcher, rows: pa.RecordBatch) -> Matches:
        events = EventBatch.from_arrow(rows.select(list(self.read)).rename_columns(list(self.names)))
        return matcher.match_many(events, on_error="collect", now=self._now(rows))

    def _now(self, rows: pa.RecordBatch) -> datetime:
        if isinstance(self.now, datetime):
            return self.now
        return EPOCH + timedelta(microseconds=rows.column(self.now)[0].value)


def pairs(rows: pa.RecordBatch, matches: Matches, ids: pa.DataType) -> pa.RecordBatch:
    """Return a row for each match: the event's columns and the subscription's id."""
    taken = rows.take(pa.array(matches.event_index, pa.int64()))
    return _with(taken, pa.array(matches.ids, ids))


def lists(rows: pa.RecordBatch, matches: Matches, ids: pa.DataType) -> pa.RecordBatch:
    """Return a row for each event that matched: its columns and the list of all ids that match it."""
    order = np.argsort(matches.event_index, kind="stable")
    events, counts = np.unique(matches.event_index, return_counts=True)
    ends = np.concatenate(([0], np.cumsum(counts)))
    sorted_ids = pa.array(matches.ids, ids).take(pa.array(order, pa.int64()))
    found = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), sorted_ids)
    return _with(rows.take(pa.array(events, pa.int64())), found)


def letters(rows: pa.RecordBatch, matches: Matches, _: pa.DataType) -> pa.RecordBatch:
    """Return a row for each event that could not be read: its columns and the reason."""
    bad = pa.array([letter.index for letter in matches.dead_letters], pa.int64())
    return _with(rows.take(bad), pa.array([letter.reason for letter in matches.dead_letters], pa.string()))


def _with(rows: pa.RecordBatch, column: pa.Array) -> pa.RecordBatch:
    """Add the column; Spark goes by place, and names only have to differ."""
    columns = [*rows.columns, column]
    return pa.RecordBatch.from_arrays(columns, list(map(str, range(len(columns)))))
