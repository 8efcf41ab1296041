"""What runs inside Spark's Python workers: Arrow batch in, matcher, Arrow batches out.

No loop here visits rows one by one: a whole Arrow batch is matched at once, and matched rows are taken from it by
index. What comes out is cut into bounded pieces, so that a subscription set of which everything matches fills no
memory: the matcher gives its matches in pieces (`match_in_pieces`), and each goes out in chunks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.model import DeadLetter, EventBatch, Matches
from tidings.spark.subscriptions.worker_store import WorkerStore

if TYPE_CHECKING:
    from tidings.matcher import Matcher

CHUNK = 1 << 16
"""Rows of one batch that goes out, about: an event's list of ids is not cut."""

FEW, PAIRS = 128, 1 << 22
"""So many events are asked about first, and then so many that about `PAIRS` matches come at once."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""What Spark counts its microseconds from."""

RowBuilder: TypeAlias = Callable[["Answer", pa.DataType], Iterator[pa.RecordBatch]]
"""Makes the output from what matched, given the type of ids."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of some rows: pairs of a row and an id, and the rows that could not be read.

    `rows` has the columns that are kept; `whole` all that the event had, to show a bad one as it was.
    """

    rows: pa.RecordBatch
    whole: pa.RecordBatch
    index: NDArray[np.int64]
    ids: pa.Array
    letters: tuple[DeadLetter, ...]
    tallied: bool = False  # whether its rows are all of a batch's, and are to be counted
    mismatches: str | None = None  # values that filters could not read, as `Mismatches.to_rows` in JSON, with the shard


@dataclass(frozen=True, slots=True)
class MatchStep:
    """The function Spark runs over Arrow batches, whose columns it knows by their place.

    The columns `read`, called `names`, are the event; each output row takes the columns `kept`. `now` is a moment, or
    the place of a column that holds it (the same in every row that Spark hands over in one query). `shard` is the place
    of the column that says which shard a row is for, `refused` of the one that says why the source could not read it.
    """

    place: WorkerStore
    build: RowBuilder
    read: tuple[int, ...]
    names: tuple[str, ...]
    kept: tuple[int, ...]
    ids: pa.DataType
    now: datetime | int
    shard: int | None = None
    refused: int | None = None
    limit: int | None = None
    judge: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the output of every batch."""
        place, pace = None, Pace()
        for batch in batches:
            place = place or self.place.resolve()
            for shard, rows in self._by_shard(batch):
                for answer in self._answers(place.open(shard), rows, shard, pace):
                    yield from self.build(answer, self.ids)

    def _by_shard(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Part a batch by shard; mostly it is all of one."""
        if self.shard is None:
            yield 0, batch
            return
        column = batch.column(self.shard)
        for shard in pc.unique(column).sort().to_pylist():
            mine = pc.equal(column, shard)
            yield shard, batch if mine.true_count == len(batch) else batch.filter(mine)

    def _answers(self, matcher: Matcher, rows: pa.RecordBatch, shard: int, pace: Pace) -> Iterator[Answer]:
        good, letters = self._sifted(rows)
        if shard == 0:
            none = self._answer(rows, np.zeros(0, np.int64), pa.array([], self.ids), tuple(letters))
            yield replace(none, tallied=True)
        for some in pace.cut(good):
            for first, matches in self._pieces(matcher, some):
                pace.learn(matches)
                yield self._limited(some.slice(first, matches.events), matches, report=shard == 0)
        if counted := matcher.drain_mismatches():
            nothing = self._answer(rows.slice(0, 0), np.zeros(0, np.int64), pa.array([], self.ids), ())
            yield replace(nothing, mismatches=json.dumps([shard, counted]))

    def _sifted(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, list[DeadLetter]]:
        """Part the rows that the source could not read from the others."""
        if self.refused is None or rows.column(self.refused).null_count == len(rows):
            return rows, []
        reasons = rows.column(self.refused)
        bad = np.flatnonzero(np.asarray(reasons.is_valid()))
        return rows.filter(reasons.is_null()), [DeadLetter(at, reasons[at].as_py()) for at in bad.tolist()]

    def _pieces(self, matcher: Matcher, rows: pa.RecordBatch) -> Iterator[tuple[int, Matches]]:
        events = EventBatch.from_arrow(rows.select(list(self.read)).rename_columns(list(self.names)))
        if self.judge:
            letters = tuple(matcher.dead_letters(events, now=self._now(rows)))
            return iter([(0, Matches(np.zeros(0, np.int64), [], len(events), letters))])
        return matcher.match_in_pieces(events, on_error="collect", now=self._now(rows))

    def _limited(self, rows: pa.RecordBatch, matches: Matches, *, report: bool) -> Answer:
        """Leave out the events that too many want, and say so."""
        index, ids = matches.event_index, matches.id_array()
        letters = list(matches.dead_letters) if report else []
        if self.limit is not None and len(index) > self.limit:
            counts = np.bincount(index, minlength=rows.num_rows)
            for at in np.flatnonzero(counts > self.limit).tolist():
                letters.append(DeadLetter(at, describe_excess(int(counts[at]), self.limit)))
            fine = counts[index] <= self.limit
            index, ids = index[fine], ids.filter(pa.array(fine))
        return self._answer(rows, index, ids, tuple(letters))

    def _answer(
        self, rows: pa.RecordBatch, index: NDArray[np.int64], ids: pa.Array, letters: tuple[DeadLetter, ...]
    ) -> Answer:
        whole = rows.select(list(self.read)).rename_columns(list(self.names))
        return Answer(rows.select(list(self.kept)), whole, index, ids, letters)

    def _now(self, rows: pa.RecordBatch) -> datetime:
        if isinstance(self.now, datetime):
            return self.now
        return EPOCH + timedelta(microseconds=rows.column(self.now)[0].value)


class Pace:
    """How many events to ask about at once: few at first, then as many as their matches allow.

    The engine's own bound is on what it can write down at all; text ids of so many matches would take gigabytes.
    """

    def __init__(self) -> None:
        """Begin carefully."""
        self._events = FEW

    def cut(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows in slices, each as long as was learnt from those before."""
        start = 0
        while start < rows.num_rows:
            some = rows.slice(start, self._events)
            start += some.num_rows
            yield some

    def learn(self, matches: Matches) -> None:
        """Take in how many matches so many events had."""
        self._events = max(1, PAIRS * matches.events // max(1, len(matches)))


def describe_excess(count: int, limit: int) -> str:
    """Say that too many want an event."""
    return f"{count:,} subscriptions match, more than the limit of {limit:,}"


def build_pairs(answer: Answer, ids: pa.DataType) -> Iterator[pa.RecordBatch]:
    """Yield a row for each match: the event's columns and the subscription's id."""
    found = _as(answer.ids, ids)
    for start in range(0, len(answer.index), CHUNK):
        taken = answer.rows.take(pa.array(answer.index[start : start + CHUNK]))
        yield _with(taken, found.slice(start, CHUNK))


def build_lists(answer: Answer, ids: pa.DataType) -> Iterator[pa.RecordBatch]:
    """Yield a row for each event that matched: its columns and the list of all ids that match it."""
    order = np.argsort(answer.index, kind="stable")
    events, counts = np.unique(answer.index, return_counts=True)
    found = _as(answer.ids, ids).take(pa.array(order))
    first = 0
    for some in _cut(counts):
        total = int(counts[some].sum())
        ends = np.concatenate(([0], np.cumsum(counts[some])))
        listed = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), found.slice(first, total))
        yield _with(answer.rows.take(pa.array(events[some])), listed)
        first += total


def _cut(counts: NDArray[np.int64]) -> Iterator[slice]:
    """Cut lists into runs of about `CHUNK` ids."""
    at = 0
    while at < len(counts):
        ends = np.cumsum(counts[at : at + CHUNK])
        size = max(1, int(np.searchsorted(ends, CHUNK, "right")))
        yield slice(at, at + size)
        at += size


def build_letters(answer: Answer, ids: pa.DataType) -> Iterator[pa.RecordBatch]:  # noqa: ARG001 - what a `Build` takes
    """Yield a row for each event that could not be read: its columns and the reason."""
    if answer.letters:
        yield _with(answer.rows.take(_places(answer)), _reasons(answer))


@dataclass(frozen=True, slots=True)
class TaggedRows:
    """Matches and dead letters in one pass, and how many events there were.

    After the columns of the match come `reason` and `row` of a dead letter, the row as JSON; `events` and `newest`
    of a tally: the number of events of a batch and the newest `time` among them; and `mismatches`, what was counted
    of values that filters could not read. A row of the output has one of the four and null for the others. An event
    that the source could not decode shows the text that it had, in the column `raw`; columns that are `hidden` are not
    shown.
    """

    build: RowBuilder
    raw: str | None = None
    time: str | None = None
    hidden: tuple[str, ...] = ()

    def __call__(self, answer: Answer, ids: pa.DataType) -> Iterator[pa.RecordBatch]:
        """Yield the matches, then the letters, then the tally."""
        for found in self.build(answer, ids):
            yield _beside(found, {})
        made = pa.list_(ids) if self.build is build_lists else ids
        if answer.letters:
            rows = _with(answer.rows.take(_places(answer)), pa.nulls(len(answer.letters), made))
            yield _beside(rows, {"reason": _reasons(answer), "row": pa.array(self._shown(answer), pa.string())})
        if answer.tallied:
            nothing = _nulls(answer.rows.schema)
            newest = None if self.time is None else pc.max(answer.whole.column(self.time))
            tally = {"events": pa.array([answer.whole.num_rows], pa.int64()), "newest": _moment(newest)}
            yield _beside(_with(nothing, pa.nulls(1, made)), tally)
        if answer.mismatches is not None:
            yield _beside(
                _with(_nulls(answer.rows.schema), pa.nulls(1, made)), {"mismatches": pa.array([answer.mismatches])}
            )

    def _shown(self, answer: Answer) -> list[str]:
        whole = answer.whole.take(_places(answer))
        return [self._json(row) for row in whole.to_pylist()]

    def _json(self, row: dict[str, Any]) -> str:
        row = {name: value for name, value in row.items() if name not in self.hidden}
        raw = row.pop(self.raw, None) if self.raw is not None else None
        if raw is not None:  # not decoded: what columns there are say where it came from
            row = {**{name: value for name, value in row.items() if value is not None}, "raw": raw}
        return json.dumps(row, default=_plain, ensure_ascii=False)


TAG_TYPES = {
    "reason": pa.string(),
    "row": pa.string(),
    "events": pa.int64(),
    "newest": pa.timestamp("us", "UTC"),
    "mismatches": pa.string(),
}
"""The columns that `Both` adds, in their order."""


def _nulls(schema: pa.Schema) -> pa.RecordBatch:
    """Return a row of nulls."""
    return pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in schema], names=schema.names)


def _beside(rows: pa.RecordBatch, given: dict[str, pa.Array]) -> pa.RecordBatch:
    for name, kind in TAG_TYPES.items():
        rows = _with(rows, given.get(name, pa.nulls(rows.num_rows, kind)))
    return rows


def _moment(newest: pa.Scalar | None) -> pa.Array:
    """Return the newest time as Spark has it; a date is its midnight, a time without a zone is in UTC."""
    kind = TAG_TYPES["newest"]
    if newest is None or not newest.is_valid:
        return pa.nulls(1, kind)
    found = pa.array([newest.as_py()], newest.type).cast(pa.timestamp("us"))
    return found.cast(pa.int64()).cast(kind) if newest.type != kind else pa.array([newest.as_py()], kind)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _places(answer: Answer) -> pa.Array:
    return pa.array([letter.index for letter in answer.letters], pa.int64())


def _reasons(answer: Answer) -> pa.Array:
    return pa.array([letter.reason for letter in answer.letters], pa.string())


def _as(ids: pa.Array, kind: pa.DataType) -> pa.Array:
    return ids if ids.type == kind else ids.cast(kind)


def _with(rows: pa.RecordBatch, column: pa.Array) -> pa.RecordBatch:
    """Add the column; Spark goes by place, and names only have to differ."""
    columns = [*rows.columns, column]
    return pa.RecordBatch.from_arrays(columns, list(map(str, range(len(columns)))))
