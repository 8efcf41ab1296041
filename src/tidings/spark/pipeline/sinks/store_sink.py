"""Matches, detections and forecasts as rows of a store's bounded table of the latest matches, exactly once.

The store remembers which batch of which query it has: one that is tried again after a crash writes nothing. Rows come
to the driver partition by partition, so that a batch of any size takes bounded memory; the first are fetched before the
store's transaction begins, so that a usual batch keeps no other writer waiting.

What a row says of its event is the whole document where it is kept (`keep = ["document"]`), with its payload, and else
the kept columns.
"""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from tidings.errors import SinkError
from tidings.matcher.loading.documents import DOCUMENT, BadDocument, find_value, parse_document, to_moment
from tidings.service.store.base import Store, StoreError
from tidings.service.subscription import MatchRow, split_engine_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

FIRST_ROWS = 20_000
"""Rows that are fetched before the store's transaction begins."""

PATIENCE, PAUSE = 60.0, 0.5
"""Seconds that a store may be out of reach, and between two tries."""

MATCH_COLUMNS = ("event", "subscription", "subscriptions")
"""Columns of matches that are not the event's."""

OF_DETECTIONS = ("horizon", "estimator", "key")
"""Columns of detections that are values of their rows."""


@dataclass(frozen=True, slots=True)
class StoreTable:
    """The matches of a store; `query` names the checkpoint and the query that number the batches.

    `time` is the field or column with an event's time; without one it is the time of the batch.
    """

    store: Store
    query: str
    keep: int
    time: str | None = None

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write the rows of a frame."""
        self._write(lambda: _fetch_rows(frame), batch)

    def write_rows(self, rows: Sequence[Mapping[str, Any]], batch: int) -> None:
        """Write rows that are here already."""
        self._write(lambda: iter(rows), batch)

    def _write(self, fetch: Callable[[], Iterator[Mapping[str, Any]]], batch: int) -> None:
        """Write the rows unless the store has the batch; wait a while for a store that does not answer."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self._try_write(fetch(), batch)
            except StoreError as problem:
                if time.monotonic() > until:
                    way_out = "see to it and start the pipeline again: it goes on with this batch"
                    msg = f"the store does not take batch {batch} of matches: {problem}; {way_out}"
                    raise SinkError(msg) from problem
                time.sleep(PAUSE)
            else:
                return

    def _try_write(self, rows: Iterator[Mapping[str, Any]], batch: int) -> None:
        at = datetime.now(UTC)
        matches = RowReader(self.time, at).read(rows)
        first = list(islice(matches, FIRST_ROWS))
        self.store.matches.write(self.query, batch, chain(first, matches), at=at, keep=self.keep)


def _fetch_rows(frame: DataFrame) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a frame, partition by partition."""
    return (row.asDict(recursive=True) for row in frame.toLocalIterator(prefetchPartitions=True))


class RowReader:
    """Makes matches of the rows of a frame; a document is decoded once for the rows of it that follow each other."""

    def __init__(self, time: str | None, at: datetime) -> None:
        self._time, self._at = time, at
        self._last: tuple[str, dict[str, Any]] = "", {}

    def read(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[MatchRow]:
        """Yield the matches of rows: of a pair, of an event with all its subscriptions, or of a detection."""
        for row in rows:
            if "pattern" in row:
                yield self._build_detection(row)
            else:
                yield from self._build_matches(row)

    def _build_matches(self, row: Mapping[str, Any]) -> Iterator[MatchRow]:
        ids, event = row.get("subscriptions") or [row.get("subscription")], row.get("event")
        values = self._read_values({name: value for name, value in row.items() if name not in MATCH_COLUMNS})
        time = None if self._time is None else find_value(values, self._time)
        name, at = None if event is None else str(event), to_moment(time) or self._at
        for owner, id in map(split_engine_id, map(str, ids)):
            yield MatchRow(owner=owner, subscription=id, kind="match", at=at, event=name, values=values)

    def _build_detection(self, row: Mapping[str, Any]) -> MatchRow:
        owner, subscription = split_engine_id(str(row["pattern"]))
        events: list[Any] = row["events"] or []
        values = {name: row[name] for name in OF_DETECTIONS if row.get(name) is not None}
        if events and isinstance(events[0], dict):  # an id, and what is kept of its event
            values["events"] = [self._read_values(event) for event in events]
            events = [event["event"] for event in events]
        return MatchRow(
            owner=owner,
            subscription=subscription,
            kind="forecast" if row["kind"] == "forecast" else "detection",
            at=row["at"].astimezone(UTC),
            events=tuple(map(str, events)),
            probability=row.get("probability"),
            values=to_plain(values),
        )

    def _read_values(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a row says of its event."""
        text = row.get(DOCUMENT)
        if not isinstance(text, str):
            return {name: to_plain(value) for name, value in row.items() if value is not None}
        if self._last[0] != text:
            document = parse_document(text)
            self._last = text, {} if isinstance(document, BadDocument) else document
        return self._last[1]


def to_plain(value: Any) -> Any:
    """Return a value of Spark's as JSON has it.

    >>> to_plain([Decimal("1.5"), b"a", {"at": date(2024, 7, 1)}])
    [1.5, 'YQ==', {'at': '2024-07-01'}]
    """
    match value:
        case dict():
            return {str(name): to_plain(item) for name, item in value.items()}
        case list() | tuple():
            return [to_plain(item) for item in value]
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case _:
            return value
