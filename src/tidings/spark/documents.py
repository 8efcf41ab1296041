"""Documents in Spark: events that are the text of one JSON object each, in a column of their own.

`decode_documents` makes the columns of a source of documents: the text, and the id and the time that it has in its
fields. `build_events` gives the mappings that filters see, for matching and for patterns alike: `json.loads` of the
text without its payload, and the columns that were derived beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from tidings.matcher.loading.documents import (
    DOCUMENT,
    PAYLOAD,
    BadDocument,
    Document,
    find_value,
    read_documents,
    to_id,
    to_moment,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidings.model import EventLike

BLANK = " \t\r\u00a0"
"""Characters of lines that are no events."""

QUOTED = 80
"""Characters of a text that a reason quotes."""


# What filters see ---------------------------------------------------------------------------------


def build_events(texts: pa.Array, beside: Mapping[str, pa.Array] | None = None) -> list[EventLike]:
    """Return what filters see of each document; `beside` are columns that were derived, and win over its fields.

    One that cannot be read stays a `BadDocument`, which is a bad event to every matcher. (A source refuses it before.)
    """
    events = read_documents(texts)
    columns = {name: column.to_pylist() for name, column in (beside or {}).items()}
    for row, event in enumerate(events):
        if not isinstance(event, BadDocument):
            event.pop(PAYLOAD, None)
            event.update((name, values[row]) for name, values in columns.items() if values[row] is not None)
    return cast("list[EventLike]", events)


# The columns of a source ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DocumentFields:
    """The fields that name an event and say when it happened; None where a document need not have any."""

    id: str | None = None
    time: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a source of documents."""
        return (DOCUMENT, *(name for name in (self.id, self.time) if name is not None))


@dataclass(frozen=True, slots=True)
class DecodeStep:
    """The function that Spark runs over texts: `_text`, `_broken`, `_file` and others in, columns of documents out.

    The columns that come out are those of `DocumentFields.names`, the others as they were, and why a row is refused,
    with its text. `_broken` is why reading has refused it already, `_file` what is known of it then. Lines without a
    character are left out where `drops_blank`.
    """

    fields: DocumentFields
    others: tuple[str, ...] = ()
    drops_blank: bool = True

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode every batch."""
        return map(self.decode, batches)

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch as columns of documents."""
        texts, bad = to_texts(batch.column("_text"))
        if self.drops_blank:
            kept = pc.or_kleene(pc.not_equal(pc.utf8_trim(texts, BLANK), ""), pc.is_valid(batch.column("_broken")))
            if kept.true_count < len(kept):
                return self.decode(batch.filter(kept))
        rows = [self._read(document) for document in read_documents(texts)]
        reasons = [bad.get(number) or reason for number, (_, _, reason) in enumerate(rows)]
        broken = batch.column("_broken")
        refused = pc.coalesce(broken, pa.array(reasons, pa.string()))
        raw = pc.if_else(pc.is_valid(refused), pc.coalesce(batch.column("_file"), texts), pa.scalar(None, pa.string()))
        columns = [pc.if_else(pc.is_valid(refused), pa.scalar(None, pa.string()), texts)]
        if self.fields.id is not None:
            columns.append(pa.array([id for id, _, _ in rows], pa.string()))
        if self.fields.time is not None:
            columns.append(pa.array([time for _, time, _ in rows], pa.timestamp("us", "UTC")))
        columns += [batch.column(name) for name in self.others]
        return build_batch([*columns, refused, raw])

    def _read(self, document: Document) -> tuple[str | None, Any, str | None]:
        """Return the id, the time, and why the document is refused."""
        if isinstance(document, BadDocument):
            return None, None, document.reason
        id = reason = None
        if self.fields.id is not None:
            try:
                id = to_id(find_value(document, self.fields.id))
                reason = None if id is not None else f"no id: there is no `{self.fields.id}`"
            except ValueError as problem:
                reason = f"no id: `{self.fields.id}`: {problem}"
        time = None if self.fields.time is None else to_moment(find_value(document, self.fields.time))
        return id, time, reason


def to_texts(column: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Return bytes as text, and why some of them are none, by row: those are shown as well as they can be."""
    try:
        return column.cast(pa.string()), {}
    except pa.ArrowInvalid:
        contents: list[bytes | None] = column.to_pylist()
        texts = [None if content is None else content.decode(errors="replace") for content in contents]
        reasons = {
            row: f"not UTF-8: '{shorten(text)}'"
            for row, (content, text) in enumerate(zip(contents, texts, strict=True))
            if text is not None and text.encode() != content
        }
        return pa.array(texts, pa.string()), reasons


def shorten(text: str) -> str:
    """Return the beginning of a text, as reasons quote it."""
    return f"{text[:QUOTED]}…" if len(text) > QUOTED else text


def build_batch(columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """Return columns as a batch; Spark reads them by place, so names only have to differ."""
    return pa.RecordBatch.from_arrays(list(columns), list(map(str, range(len(columns)))))
