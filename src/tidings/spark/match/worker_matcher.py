"""What runs inside Spark's Python workers: Arrow batches in, the matcher, Arrow batches out.

No loop here visits rows one by one: a whole Arrow batch is matched at once, and matched rows are taken from it by
index. Output is cut into bounded pieces, so that memory stays bounded even where every subscription matches every
event: the matcher returns its matches in pieces (`match_in_pieces`), and each piece leaves in chunks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.kernels.array_types import IntArray
from tidings.model import DeadLetter, EventBatch, Matches
from tidings.model.values import to_datetime
from tidings.spark.documents import build_events
from tidings.spark.subscriptions.worker_store import WorkerStore

if TYPE_CHECKING:
    from tidings.matcher import Matcher

CHUNK = 1 << 16
"""Rows of one output batch, about: an event's list of ids is not cut."""

RowBuilder: TypeAlias = Callable[["Answer", pa.DataType], Iterator[pa.RecordBatch]]
"""Makes the output rows of an answer, with ids of the given type."""


@dataclass(frozen=True, slots=True)
class WorkerTuning:
    """Sizes that bound a worker's memory; they change no result."""

    chunk: int = CHUNK
    first_events: int = 128  # matched before it is known how many matches an event has
    pairs: int = 1 << 22  # about so many matches are wanted at once


@dataclass(frozen=True, slots=True)
class Answer:
    """The matches of some rows, as pairs of a row index and an id, and the rows that could not be read.

    `rows` has the columns that are kept, `whole` all columns of the event, which a dead letter shows.
    """

    rows: pa.RecordBatch
    whole: pa.RecordBatch
    index: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    ids: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    letters: tuple[DeadLetter, ...] = ()
    is_tally: bool = False  # its rows are a whole batch, to be counted
    mismatches: str | None = None  # values that filters could not read: `MismatchCounts.to_rows` and the shard, as JSON
    chunk: int = CHUNK

    @property
    def letter_rows(self) -> pa.Array:
        """The row indexes of the dead letters."""
        return pa.array([letter.index for letter in self.letters], pa.int64())

    @property
    def letter_reasons(self) -> pa.Array:
        """The reasons of the dead letters."""
        return pa.array([letter.reason for letter in self.letters], pa.string())


@dataclass(frozen=True, slots=True)
class StepColumns:
    """Which columns of an Arrow batch, by place, a `MatchStep` uses.

    The columns `read`, called `names`, are the event; each output row takes the columns `kept`. `now` is a time, or the
    place of a column that holds it, the same in every row of a query. `shard` is the place of the column that says
    which shard a row is for, `refused` of the one that says why the source could not read the row. With `documents`,
    the event is what these say, and the columns `read` are what a dead letter shows.
    """

    read: tuple[int, ...]
    names: tuple[str, ...]
    kept: tuple[int, ...]
    now: datetime | int
    shard: int | None = None
    refused: int | None = None
    documents: DocumentPlaces | None = None


@dataclass(frozen=True, slots=True)
class DocumentPlaces:
    """Where whole documents are: the place of their text, and those of the columns that filters see beside it."""

    text: int
    beside: Mapping[str, int] = field(default_factory=dict)

    def read_events(self, rows: pa.RecordBatch) -> EventBatch:
        """Return what filters see of the rows."""
        beside = {name: rows.column(place) for name, place in self.beside.items()}
        return EventBatch(build_events(rows.column(self.text), beside))


@dataclass(frozen=True, slots=True)
class MatchStep:
    """The function that Spark runs over Arrow batches; `judge` returns dead letters only."""

    store: WorkerStore
    build: RowBuilder
    columns: StepColumns
    id_type: pa.DataType
    limit: int | None = None
    judge: bool = False
    tuning: WorkerTuning = WorkerTuning()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the output of every batch."""
        store, pace = None, Pace(self.tuning)
        for batch in batches:
            store = store or self.store.resolve()
            for shard, rows in self._split_by_shard(batch):
                for answer in self._answer_rows(store.open(shard), rows, shard, pace):
                    yield from self.build(answer, self.id_type)

    def _split_by_shard(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of each shard; mostly a batch is of one shard."""
        if self.columns.shard is None:
            yield 0, batch
            return
        column = batch.column(self.columns.shard)
        for shard in pc.unique(column).sort().to_pylist():
            mine = pc.equal(column, shard)
            yield shard, batch if mine.true_count == len(batch) else batch.filter(mine)

    def _answer_rows(self, matcher: Matcher, rows: pa.RecordBatch, shard: int, pace: Pace) -> Iterator[Answer]:
        """Yield the tally and the refused rows, then the matches in pieces, then the mismatches.

        Every shard sees every event, so only the first one counts them and reports dead letters.
        """
        good, letters = self._split_refused(rows)
        if shard == 0:
            yield self._build_answer(rows, letters=letters, is_tally=True)
        for part in pace.cut(good):
            for first, matches in self._match_pieces(matcher, part):
                pace.learn(matches)
                yield self._apply_limit(part.slice(first, matches.events), matches, report=shard == 0)
        if mismatches := matcher.drain_mismatches():
            yield self._build_answer(rows.slice(0, 0), mismatches=json.dumps([shard, mismatches]))

    def _split_refused(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, tuple[DeadLetter, ...]]:
        """Return the rows that the source could read, and dead letters for the others."""
        refused = self.columns.refused
        if refused is None or rows.column(refused).null_count == len(rows):
            return rows, ()
        reasons = rows.column(refused)
        bad = np.flatnonzero(np.asarray(reasons.is_valid()))
        return rows.filter(reasons.is_null()), tuple(DeadLetter(row, reasons[row].as_py()) for row in bad.tolist())

    def _match_pieces(self, matcher: Matcher, rows: pa.RecordBatch) -> Iterator[tuple[int, Matches]]:
        documents, now = self.columns.documents, self.columns.now
        events = documents.read_events(rows) if documents else EventBatch.from_arrow(self._select_events(rows))
        if not isinstance(now, datetime):
            now = to_datetime(rows.column(now)[0].value)
        if self.judge:
            letters = tuple(matcher.dead_letters(events, now=now))
            return iter([(0, Matches(np.zeros(0, np.int64), [], len(events), letters))])
        return matcher.match_in_pieces(events, on_error="collect", now=now)

    def _apply_limit(self, rows: pa.RecordBatch, matches: Matches, *, report: bool) -> Answer:
        """Return the matches without those of events over the limit, each of which becomes a dead letter."""
        index, ids = matches.event_index, matches.id_array()
        letters = list(matches.dead_letters) if report else []
        if self.limit is not None and len(index) > self.limit:
            counts = np.bincount(index, minlength=rows.num_rows)
            for row in np.flatnonzero(counts > self.limit).tolist():
                letters.append(DeadLetter(row, f"{counts[row]:,}{describe_excess(self.limit)}"))
            is_within = counts[index] <= self.limit
            index, ids = index[is_within], ids.filter(pa.array(is_within))
        return self._build_answer(rows, index=index, ids=ids, letters=tuple(letters))

    def _build_answer(self, rows: pa.RecordBatch, **contents: Any) -> Answer:
        """Return an answer about these rows, with these fields of an `Answer`."""
        kept, whole = rows.select(list(self.columns.kept)), self._select_events(rows)
        return Answer(kept, whole, chunk=self.tuning.chunk, **contents)

    def _select_events(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.select(list(self.columns.read)).rename_columns(list(self.columns.names))


class Pace:
    """How many events to match at once: few at first, then as many as their number of matches allows.

    The engine's own bound is on what it can represent at all; the text ids of so many matches would take gigabytes.
    """

    def __init__(self, tuning: WorkerTuning) -> None:
        self._events, self._pairs = tuning.first_events, tuning.pairs

    def cut(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows in slices whose size follows `learn`."""
        start = 0
        while start < rows.num_rows:
            part = rows.slice(start, self._events)
            start += part.num_rows
            yield part

    def learn(self, matches: Matches) -> None:
        """Adapt the size to the number of matches that so many events had."""
        self._events = max(1, self._pairs * matches.events // max(1, len(matches)))


def describe_excess(limit: int) -> str:
    """Return the end of the reason of a dead letter, after the number of subscriptions that match the event."""
    return f" subscriptions match, more than the limit of {limit:,}"


def build_pairs(answer: Answer, id_type: pa.DataType) -> Iterator[pa.RecordBatch]:
    """Yield a row for each match: the event's columns and the subscription's id."""
    ids = answer.ids.cast(id_type)
    for start in range(0, len(answer.index), answer.chunk):
        rows = answer.rows.take(pa.array(answer.index[start : start + answer.chunk]))
        yield _to_batch(*rows.columns, ids.slice(start, answer.chunk))


def build_lists(answer: Answer, id_type: pa.DataType) -> Iterator[pa.RecordBatch]:
    """Yield a row for each event that matched: its columns and the list of all ids that match it."""
    order = np.argsort(answer.index, kind="stable")
    events, counts = np.unique(answer.index, return_counts=True)
    ids = answer.ids.cast(id_type).take(pa.array(order))
    first = 0
    for part in _cut_lists(counts, answer.chunk):
        total = int(counts[part].sum())
        ends = np.concatenate(([0], np.cumsum(counts[part])))
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), ids.slice(first, total))
        yield _to_batch(*answer.rows.take(pa.array(events[part])).columns, lists)
        first += total


def _cut_lists(counts: IntArray, chunk: int) -> Iterator[slice]:
    """Yield slices of lists of these lengths, each of about `chunk` ids in all."""
    start = 0
    while start < len(counts):
        ends = np.cumsum(counts[start : start + chunk])
        size = max(1, int(np.searchsorted(ends, chunk, "right")))
        yield slice(start, start + size)
        start += size


def build_letters(answer: Answer, id_type: pa.DataType) -> Iterator[pa.RecordBatch]:  # noqa: ARG001 - a `RowBuilder`
    """Yield a row for each event that could not be read: its columns and the reason."""
    if answer.letters:
        yield _to_batch(*answer.rows.take(answer.letter_rows).columns, answer.letter_reasons)


@dataclass(frozen=True, slots=True)
class TaggedRows:
    """A row builder for matches, dead letters, tallies and mismatches in one pass.

    After the columns of the match come `reason` and `row` of a dead letter, the row as JSON; `events` and `newest` of a
    tally: the number of events of a batch and the newest `time` among them; and `mismatches`, the counts of values that
    filters could not read. Each output row is of one of the four sorts and null in the columns of the others. A dead
    letter of an event that the source could not decode shows its text, from the column `raw`; `hidden` columns are not
    shown. Of a whole document its text is the row, from the column `document`.
    """

    build: RowBuilder
    raw: str | None = None
    document: str | None = None
    time: str | None = None
    hidden: tuple[str, ...] = ()

    def __call__(self, answer: Answer, id_type: pa.DataType) -> Iterator[pa.RecordBatch]:
        """Yield the matches, then the dead letters, then the tally and the mismatches."""
        for matches in self.build(answer, id_type):
            yield _add_tags(matches.columns, {})
        no_id = pa.list_(id_type) if self.build is build_lists else id_type
        if answer.letters:
            rows = [*answer.rows.take(answer.letter_rows).columns, pa.nulls(len(answer.letters), no_id)]
            events = [self._to_json(row) for row in answer.whole.take(answer.letter_rows).to_pylist()]
            yield _add_tags(rows, {"reason": answer.letter_reasons, "row": pa.array(events, pa.string())})
        nulls = [pa.nulls(1, kind) for kind in (*answer.rows.schema.types, no_id)]
        if answer.is_tally:
            newest = None if self.time is None else pc.max(answer.whole.column(self.time))
            count = pa.array([answer.whole.num_rows], pa.int64())
            yield _add_tags(nulls, {"events": count, "newest": _to_timestamp(newest)})
        if answer.mismatches is not None:
            yield _add_tags(nulls, {"mismatches": pa.array([answer.mismatches])})

    def _to_json(self, row: dict[str, Any]) -> str:
        row = {name: value for name, value in row.items() if name not in self.hidden}
        raw = row.pop(self.raw, None) if self.raw is not None else None
        if self.document is not None and (text := row.get(self.document)) is not None:
            return str(text)
        if raw is not None:  # not decoded: its other columns only say where it came from
            row = {**{name: value for name, value in row.items() if value is not None}, "raw": raw}
        return json.dumps(row, default=_to_json_value, ensure_ascii=False)


TAG_TYPES = {
    "reason": pa.string(),
    "row": pa.string(),
    "events": pa.int64(),
    "newest": pa.timestamp("us", "UTC"),
    "mismatches": pa.string(),
}
"""The columns that `TaggedRows` adds, in their order."""


def _add_tags(columns: list[pa.Array], tags: dict[str, pa.Array]) -> pa.RecordBatch:
    """Add all columns of `TAG_TYPES`, null where `tags` has no value."""
    return _to_batch(
        *columns, *(tags.get(name, pa.nulls(len(columns[-1]), tag_type)) for name, tag_type in TAG_TYPES.items())
    )


def _to_timestamp(newest: pa.Scalar | None) -> pa.Array:
    """Return the newest time as Spark has it; a date is its midnight, a time without a zone is in UTC."""
    target = TAG_TYPES["newest"]
    if newest is None or not newest.is_valid:
        return pa.nulls(1, target)
    return pa.array([newest.as_py()], newest.type).cast(pa.timestamp("us")).cast(pa.int64()).cast(target)


def _to_json_value(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _to_batch(*columns: pa.Array) -> pa.RecordBatch:
    """Return columns as a batch; Spark reads columns by place, so names only have to differ."""
    return pa.RecordBatch.from_arrays(list(columns), list(map(str, range(len(columns)))))
