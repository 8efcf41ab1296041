"""Loading a table of filters in text: plain conjunctions become columns of parameters, and go in as those do.

A kernel reads all texts at once (`kernels.texts`); what it is certain of is laid out as `price_from`, `price_to`,
`make` and so on (`matcher.parameters`), and `matcher.bulk` does the rest. Rows that it leaves alone, and rows that the
columns cannot hold, are parsed one by one, as ever. Filters come back as they were written: rows whose tests stand in
another order than the columns keep their text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidings.engine.compile.source_text import Sources
from tidings.kernels.match import filter_text as kernel
from tidings.lang.filters.render_text import RESERVED
from tidings.matcher.loading.bulk_load import Load
from tidings.matcher.loading.parameter_table import Says

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from tidings.concepts import Ontology
    from tidings.engine.compile.bulk_table import Tested
    from tidings.engine.engine import Engine
    from tidings.matcher.admission import Admission
    from tidings.matcher.algorithm_store import AlgorithmStore
    from tidings.matcher.loading.parameter_columns import Plain
    from tidings.model import Schema

MANY = 2_000
"""From so many rows on the kernel pays."""

BLOCK = 65_536
"""Rows that are read at once: the room that predicates may need is reckoned from the bytes, and is mostly unused."""

COLUMNS = 1_000
"""Names beyond so many are left to the parser: a table has a few columns for each."""


class Read(NamedTuple):
    """Predicates and their values, as the kernel found them, and the rows that it leaves to the parser."""

    row: NDArray[np.int64]
    name: NDArray[np.int32]
    op: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    first: NDArray[np.int64]
    size: NDArray[np.int32]
    kind: NDArray[np.uint8]
    ints: NDArray[np.int64]
    floats: NDArray[np.float64]
    texts: pa.Array
    names: list[str]
    long: NDArray[np.bool_]


def takes(table: Any) -> bool:
    """Tell whether a table of `id` and `filter` is worth the columns: many rows, all in the text notation."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(table, pa.Table | pa.RecordBatch) or table.num_rows < MANY:
        return False
    names = table.schema.names
    if "id" not in names or "filter" not in names or not pa.types.is_string(table.schema.field("filter").type):
        return False
    if "notation" in names and not pa.types.is_null(table.schema.field("notation").type):
        other = pc.fill_null(pc.not_equal(table.column("notation"), "text"), False)
        if pc.any(other).as_py():
            return False
    sample = read_texts(_texts(table.slice(0, MANY // 2)))
    return bool(sample.long.mean() < 0.5)


def table_of(given: list[Any]) -> pa.Table | None:
    """Return triples of id, filter and notation as a table, where they are many, and all filters are text."""
    import pyarrow as pa

    if len(given) < MANY:
        return None
    ids, filters = [], []
    for id, source, notation in given:
        if type(source) is not str or notation != "text":
            return None
        ids.append(id)
        filters.append(source)
    if {*map(type, ids)} not in ({str}, {int}):
        return None
    try:
        table = pa.table({"id": ids, "filter": pa.array(filters, pa.string())})
    except (pa.ArrowException, OverflowError, UnicodeError):
        return None
    return table if takes(table) else None


def _texts(table: Any) -> pa.Array:
    import pyarrow as pa

    column = table.column("filter")
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


# Reading -------------------------------------------------------------------------------------------


def read_texts(texts: pa.Array) -> Read:
    """Read the filters; nulls and whatever is not plain are for the parser."""
    names = np.zeros((kernel.NAMES + 1, 2), np.int64)
    table = np.full(4 * kernel.NAMES, -1, np.int64)
    start = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"\0", np.uint8)
    blocks = [_block(data, start[at : at + BLOCK + 1], names, table, at) for at in range(0, len(texts), BLOCK)]
    return _joined(blocks, texts, data, names)


def _block(
    data: NDArray[np.uint8], start: NDArray[np.int32], names: NDArray[np.int64], table: NDArray[np.int64], base: int
) -> tuple[Any, ...]:
    room, rows = int(start[-1] - start[0]), len(start) - 1
    most, many = room // 8 + 2 * rows, room // 2 + 2 * rows
    kinds = (np.int32, np.int32, np.uint8, np.uint8, np.int64, np.int32)
    predicates = tuple(np.empty(most, kind) for kind in kinds)
    values = tuple(np.empty(many, kind) for kind in (np.uint8, np.int64, np.float64, np.int64, np.int32))
    long = np.zeros(rows, bool)
    total, used = kernel.read_filters(data, start, predicates, values, names, table, long)
    row = predicates[0][:total].astype(np.int64) + base
    return row, *(one[:total] for one in predicates[1:]), *(one[:used] for one in values), long


def _joined(blocks: list[tuple[Any, ...]], texts: pa.Array, data: NDArray[np.uint8], names: NDArray[np.int64]) -> Read:
    used = np.concatenate([[0], np.cumsum([len(block[6]) for block in blocks])])
    row, name, op, flags, first, count, kind, ints, floats, place, length, long = (
        np.concatenate([block[number] for block in blocks]) for number in range(12)
    )
    first = first + np.repeat(used[:-1], [len(block[0]) for block in blocks])
    words = [data[at : at + size].tobytes().decode() for at, size in names[: names[kernel.NAMES, 0]]]
    if texts.null_count:
        long |= np.asarray(texts.is_null())
    return Read(
        row, name, op, flags, first, count, kind, ints, floats, _strings(data, kind, place, length), words, long
    )


def _strings(
    data: NDArray[np.uint8], kind: NDArray[np.uint8], place: NDArray[np.int64], length: NDArray[np.int32]
) -> pa.Array:
    """Return the text of each value that is text, and null for the others."""
    import pyarrow as pa

    from tidings.engine.ranges import runs

    is_text = kind == kernel.TEXT
    sizes = np.where(is_text, length, 0).astype(np.int64)
    ends = np.zeros(len(kind) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    taken = data[runs(place[is_text], sizes[is_text])] if is_text.any() else np.zeros(0, np.uint8)
    valid = pa.array(is_text).buffers()[1]
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(taken))]
    return pa.Array.from_buffers(pa.large_string(), len(kind), buffers)


# Laying out ----------------------------------------------------------------------------------------


class Laid(NamedTuple):
    """Columns of parameters, the rows that are not in them, and those whose tests stand in another order."""

    columns: dict[str, pa.Array]
    long: NDArray[np.bool_]
    moved: NDArray[np.bool_]


def laid_out(found: Read) -> Laid:
    """Lay the predicates out as columns of parameters."""
    long = found.long.copy()
    long[found.row[~_usable(found)]] = True
    long[_repeated(found)] = True
    keep = ~long[found.row]
    parts = ("row", "name", "op", "flags", "first", "size")
    found = found._replace(**{part: getattr(found, part)[keep] for part in parts})
    equal = (found.op == kernel.EQ) | (found.op == kernel.SET)
    test = 2 * found.name.astype(np.int64) + equal  # a name may be ranged over in one row and equal in another
    begin = np.searchsorted(found.row, found.row)
    position = np.arange(len(found.row)) - begin
    order = np.argsort(_mean(test, position, 2 * len(found.names)), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    backwards = (np.diff(rank[test]) < 0) & (np.diff(found.row) == 0)
    moved = np.zeros(len(long), bool)
    moved[found.row[1:][backwards]] = True
    columns: dict[str, pa.Array] = {}
    for number in order.tolist():
        mine = np.flatnonzero(test == number) if len(test) else np.zeros(0, np.int64)
        if len(mine):
            columns |= (_equal if number % 2 else _ranged)(found, mine, len(long))
    return Laid(columns, long, moved)


def _usable(found: Read) -> NDArray[np.bool_]:
    """Tell of each predicate whether a column can hold it."""
    endings = tuple(one.value for one in Says if one)
    fine = np.array(
        [
            number < COLUMNS
            and name.lower() not in RESERVED
            and name not in ("id", "filter")
            and not name.endswith(endings)
            for number, name in enumerate(found.names)
        ],
        bool,
    )
    is_text = np.concatenate([[0], np.cumsum(found.kind == kernel.TEXT)])
    texts = is_text[found.first + found.size] - is_text[found.first]
    equal = (found.op == kernel.EQ) | (found.op == kernel.SET)
    alike = np.where(equal, (texts == 0) | (texts == found.size), texts == 0)
    good = fine[found.name] & alike if len(found.names) else alike
    # A column is of text or of numbers: the fewer of the two take the long way.
    more = np.zeros(len(found.names), np.int64)
    np.add.at(more, found.name[equal & alike], np.where(texts[equal & alike] > 0, 1, -1))
    textual = more >= 0
    return np.asarray(good & (~equal | (textual[found.name] == (texts > 0))), bool)


def _repeated(found: Read) -> NDArray[np.int64]:
    """Return the rows that test a name twice."""
    keys = np.sort(found.row * (len(found.names) + 1) + found.name)
    return np.asarray(keys[1:][np.diff(keys) == 0] // (len(found.names) + 1))


def _mean(test: NDArray[np.int64], position: NDArray[np.int64], tests: int) -> NDArray[np.float64]:
    """Return at which place each test stands, on average."""
    count = np.maximum(np.bincount(test, minlength=tests), 1)
    return np.asarray(np.bincount(test, position, minlength=tests) / count)


def _ranged(found: Read, mine: NDArray[np.int64], rows: int) -> dict[str, pa.Array]:
    """Return the columns of the ends of ranges over a name."""
    op, flags, name = found.op[mine], found.flags[mine], found.names[found.name[mine[0]]]
    is_range = op == kernel.RANGE
    low = np.where(is_range, flags & kernel.HAS_LOW != 0, op >= kernel.GT)
    low_open = np.where(is_range, flags & kernel.LOW_OPEN != 0, op == kernel.GT)
    high = np.where(is_range, flags & kernel.HAS_HIGH != 0, op <= kernel.LE)
    high_open = np.where(is_range, flags & kernel.HIGH_OPEN != 0, op == kernel.LT)
    last = found.first[mine] + found.size[mine] - 1
    ends = {
        Says.FROM: (low & ~low_open, found.first[mine]),
        Says.ABOVE: (low & low_open, found.first[mine]),
        Says.TO: (high & ~high_open, last),
        Says.BELOW: (high & high_open, last),
    }
    return {
        name + says: _numbers(found, found.row[mine][given], at[given], rows)
        for says, (given, at) in ends.items()
        if given.any()
    }


def _numbers(found: Read, row: NDArray[np.int64], at: NDArray[np.int64], rows: int) -> pa.Array:
    import pyarrow as pa

    whole = bool((found.kind[at] == kernel.INT).all())
    values = np.zeros(rows, np.int64 if whole else np.float64)
    values[row] = (found.ints if whole else found.floats)[at]
    absent = np.ones(rows, bool)
    absent[row] = False
    return pa.array(values, mask=absent)


def _equal(found: Read, mine: NDArray[np.int64], rows: int) -> dict[str, pa.Array]:
    """Return the column of what a name is equal to: one value, or a list where some row has a set."""
    import pyarrow as pa

    from tidings.engine.ranges import runs

    name, row = found.names[found.name[mine[0]]], found.row[mine]
    sizes = np.zeros(rows, np.int64)
    sizes[row] = found.size[mine]
    at = runs(found.first[mine], found.size[mine])
    if (found.kind[at] == kernel.TEXT).any():
        flat = found.texts.take(pa.array(at))
    else:
        whole = bool((found.kind[at] == kernel.INT).all())
        flat = pa.array((found.ints if whole else found.floats)[at])
    absent = pa.array(sizes == 0)
    if (found.op[mine] == kernel.SET).any():
        ends = np.concatenate([[0], np.cumsum(sizes)])
        return {name: pa.LargeListArray.from_arrays(pa.array(ends), flat, mask=absent)}
    place = np.cumsum(sizes) - 1
    return {name: flat.take(pa.array(place, mask=sizes == 0))}


# Going in ------------------------------------------------------------------------------------------


class TextLoad(Load):
    """Filters in text on their way in."""

    def __init__(
        self, table: Any, admission: Admission, kept: Engine | AlgorithmStore, *, schema: Schema | None, ontology: Ontology
    ) -> None:
        """Read the texts, and lay them out."""
        import pyarrow as pa

        self._texts = _texts(table)
        self._laid = laid_out(read_texts(self._texts))
        columns = {name: one for name, one in self._laid.columns.items() if not (schema and _misread(name, schema))}
        if len(columns) < len(self._laid.columns):  # a declared attribute has the name of a column of ours
            columns, self._laid = {}, self._laid._replace(long=np.ones(len(self._texts), bool))
        super().__init__(
            pa.table({"id": table.column("id"), **columns}), admission, kept, schema=schema, ontology=ontology
        )

    def _left(self) -> NDArray[np.bool_]:
        return self._laid.long

    def _filters(self, rows: NDArray[np.int64]) -> Sequence[Any]:
        return list(self._texts.take(rows).to_pylist())

    def _sources(self, tests: list[Tested], read: Plain, odd: NDArray[np.bool_], slots: NDArray[np.int64]) -> Sources:
        rows = self._unsaid(tests, read, odd | self._laid.moved, slots)
        return Sources(slots[rows].astype(np.int64), _Texts(self._texts.take(rows)))


def _misread(name: str, schema: Schema) -> bool:
    """Tell whether a column for an end of a range would be taken for an attribute of that name."""
    return name in schema and any(one and name.endswith(one) for one in Says)


class _Texts(Sequence[str]):
    """Texts of Arrow's, each made into one of Python's when it is asked for."""

    def __init__(self, texts: pa.Array) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, at: Any) -> Any:
        return self._texts[at].as_py()
