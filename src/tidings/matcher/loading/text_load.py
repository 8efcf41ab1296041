"""Loading a table of filters in text: plain conjunctions become columns of parameters, and go in as those do.

A kernel reads all texts at once (`kernels.match.filter_text`); the predicates that it is certain of are laid out as
`price_from`, `price_to`, `make` and so on (`parameter_table`), and `bulk_load` does the rest. Rows that the kernel
leaves to the parser, and rows that columns cannot hold, are parsed one by one. Filters come back as they were written:
rows whose tests stand in another order than the columns keep their text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidings.engine.arrays import compute_starts, expand_ranges
from tidings.kernels.match import filter_text as kernel
from tidings.lang.filters.render_text import RESERVED
from tidings.matcher.loading.bulk_load import Load, WrittenFilters
from tidings.matcher.loading.parameter_table import ColumnRole
from tidings.model.arrow_types import is_arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.kernels.array_types import BoolArray, ByteArray, FloatArray, Int32Array, IntArray
    from tidings.matcher.admission import Admission
    from tidings.matcher.backend import Backend
    from tidings.matcher.loading.subscription_input import Submission

MIN_KERNEL_ROWS = 2_000
"""From so many rows on the kernel is faster than the parser, with the layout that follows."""

BLOCK = 65_536
"""Rows that are read at once: the room for predicates is computed from the bytes, and is mostly unused."""

COLUMNS = 1_000
"""Names beyond so many are left to the parser: a table has a few columns for each."""


class ParsedPredicates(NamedTuple):
    """Predicates and their values as the kernel read them; `unparsed` marks the rows that it leaves to the parser."""

    row: IntArray
    name: Int32Array
    op: ByteArray
    flags: ByteArray
    first: IntArray
    size: Int32Array
    kind: ByteArray
    ints: IntArray
    floats: FloatArray
    texts: pa.Array
    names: list[str]
    unparsed: BoolArray


def is_worth_columns(table: Any) -> bool:
    """Tell whether a table of `id` and `filter` is loaded by columns: many rows, all in the text notation."""
    if not is_arrow(table):
        return False
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(table, pa.Table | pa.RecordBatch) or table.num_rows < MIN_KERNEL_ROWS:
        return False
    names = table.schema.names
    if "id" not in names or "filter" not in names or not pa.types.is_string(table.schema.field("filter").type):
        return False
    if "notation" in names and not pa.types.is_null(table.schema.field("notation").type):
        other = pc.fill_null(pc.not_equal(table.column("notation"), "text"), False)
        if pc.any(other).as_py():
            return False
    sample = read_texts(_filter_texts(table.slice(0, MIN_KERNEL_ROWS // 2)))
    return bool(sample.unparsed.mean() < 0.5)


def build_text_table(submissions: list[Submission]) -> pa.Table | None:
    """Return triples of id, filter and notation as a table, where it is worth it and all filters are text."""
    import pyarrow as pa

    if len(submissions) < MIN_KERNEL_ROWS:
        return None
    ids, filters = [], []
    for id, source, notation in submissions:
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
    return table if is_worth_columns(table) else None


def _filter_texts(table: Any) -> pa.Array:
    import pyarrow as pa

    column = table.column("filter")
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


# Reading -------------------------------------------------------------------------------------------


def read_texts(texts: pa.Array) -> ParsedPredicates:
    """Read the filters; nulls and whatever is not plain are for the parser."""
    names = np.zeros((kernel.NAMES + 1, 2), np.int64)
    table = np.full(4 * kernel.NAMES, -1, np.int64)
    start = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"\0", np.uint8)
    firsts = range(0, len(texts), BLOCK)
    blocks = [_read_block(data, start[first : first + BLOCK + 1], names, table) for first in firsts]
    predicates, values, unparsed = zip(*blocks, strict=True)
    row, name, op, flags, first_value, size = (np.concatenate(parts) for parts in zip(*predicates, strict=True))
    kind, ints, floats, place, length = (np.concatenate(parts) for parts in zip(*values, strict=True))
    # Blocks count their rows and values from 0.
    counts, values_before = [len(part[0]) for part in predicates], compute_starts([len(part[0]) for part in values])
    row, first_value = row + np.repeat(firsts, counts), first_value + np.repeat(values_before[:-1], counts)
    words = [data[begin : begin + size].tobytes().decode() for begin, size in names[: names[kernel.NAMES, 0]]]
    left_over = np.concatenate(unparsed)
    if texts.null_count:
        left_over |= np.asarray(texts.is_null())
    strings = _build_strings(data, kind, place, length)
    return ParsedPredicates(row, name, op, flags, first_value, size, kind, ints, floats, strings, words, left_over)


def _read_block(data: ByteArray, start: Int32Array, names: IntArray, table: IntArray) -> tuple[Any, Any, BoolArray]:
    """Return the arrays of predicates, the arrays of values, and a mask of the rows that are left to the parser."""
    room, rows = int(start[-1] - start[0]), len(start) - 1
    # The least bytes that a predicate and a value take, and some more for each row.
    most, many = room // 8 + 2 * rows, room // 2 + 2 * rows
    kinds = (np.int32, np.int32, np.uint8, np.uint8, np.int64, np.int32)
    predicates = tuple(np.empty(most, kind) for kind in kinds)
    values = tuple(np.empty(many, kind) for kind in (np.uint8, np.int64, np.float64, np.int64, np.int32))
    unparsed = np.zeros(rows, bool)
    total, used = kernel.read_filters(data, start, predicates, values, names, table, unparsed)
    return tuple(array[:total] for array in predicates), tuple(array[:used] for array in values), unparsed


def _build_strings(data: ByteArray, kind: ByteArray, place: IntArray, length: Int32Array) -> pa.Array:
    """Return the text of each value that is text, and null for the others."""
    import pyarrow as pa

    is_text = kind == kernel.TEXT
    sizes = np.where(is_text, length, 0).astype(np.int64)
    ends = compute_starts(sizes)
    chars = data[expand_ranges(place[is_text], sizes[is_text])]
    valid = pa.array(is_text).buffers()[1]
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(chars))]
    return pa.Array.from_buffers(pa.large_string(), len(kind), buffers)


# Laying out ----------------------------------------------------------------------------------------


class ParameterLayout(NamedTuple):
    """Columns of parameters, the rows that are not in them, and those whose tests stand in another order."""

    columns: dict[str, pa.Array]
    unparsed: BoolArray
    reordered: BoolArray


def lay_out(parsed: ParsedPredicates) -> ParameterLayout:
    """Lay the predicates out as columns of parameters."""
    unparsed = parsed.unparsed.copy()
    unparsed[parsed.row[~_find_usable(parsed)]] = True
    unparsed[_find_repeated(parsed)] = True
    keep = ~unparsed[parsed.row]
    parts = ("row", "name", "op", "flags", "first", "size")
    parsed = parsed._replace(**{part: getattr(parsed, part)[keep] for part in parts})
    equal = (parsed.op == kernel.EQ) | (parsed.op == kernel.SET)
    test = 2 * parsed.name.astype(np.int64) + equal  # a name may be ranged over in one row and equal in another
    begin = np.searchsorted(parsed.row, parsed.row)
    position = np.arange(len(parsed.row)) - begin
    tests = 2 * len(parsed.names)
    count = np.maximum(np.bincount(test, minlength=tests), 1)
    order = np.argsort(np.bincount(test, position, minlength=tests) / count, kind="stable")  # by mean position
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    backwards = (np.diff(rank[test]) < 0) & (np.diff(parsed.row) == 0)
    reordered = np.zeros(len(unparsed), bool)
    reordered[parsed.row[1:][backwards]] = True
    columns: dict[str, pa.Array] = {}
    for number in order.tolist():
        own = np.flatnonzero(test == number)
        if len(own):
            columns |= (_build_equality if number % 2 else _build_ends)(parsed, own, len(unparsed))
    return ParameterLayout(columns, unparsed, reordered)


def _find_usable(parsed: ParsedPredicates) -> BoolArray:
    """Return a mask of the predicates that a column can hold."""
    endings = tuple(role.value for role in ColumnRole if role)
    fine = np.array(
        [
            number < COLUMNS
            and name.lower() not in RESERVED
            and name not in ("id", "filter")
            and not name.endswith(endings)
            for number, name in enumerate(parsed.names)
        ],
        bool,
    )
    is_text = compute_starts(parsed.kind == kernel.TEXT)  # how many of the values before each are text
    texts = is_text[parsed.first + parsed.size] - is_text[parsed.first]
    equal = (parsed.op == kernel.EQ) | (parsed.op == kernel.SET)
    has_one_kind = np.where(equal, (texts == 0) | (texts == parsed.size), texts == 0)
    good = fine[parsed.name] & has_one_kind
    # A column is of text or of numbers: rows with the rarer of the two are left to the parser.
    more = np.zeros(len(parsed.names), np.int64)
    np.add.at(more, parsed.name[equal & has_one_kind], np.where(texts[equal & has_one_kind] > 0, 1, -1))
    textual = more >= 0
    return np.asarray(good & (~equal | (textual[parsed.name] == (texts > 0))), bool)


def _find_repeated(parsed: ParsedPredicates) -> IntArray:
    """Return the rows that test a name twice."""
    keys = np.sort(parsed.row * (len(parsed.names) + 1) + parsed.name)
    return np.asarray(keys[1:][np.diff(keys) == 0] // (len(parsed.names) + 1))


def _build_ends(parsed: ParsedPredicates, own: IntArray, rows: int) -> dict[str, pa.Array]:
    """Return the columns of the ends of ranges over a name."""
    op, flags, name = parsed.op[own], parsed.flags[own], parsed.names[parsed.name[own[0]]]
    is_range = op == kernel.RANGE
    low = np.where(is_range, flags & kernel.HAS_LOW != 0, op >= kernel.GT)
    low_open = np.where(is_range, flags & kernel.LOW_OPEN != 0, op == kernel.GT)
    high = np.where(is_range, flags & kernel.HAS_HIGH != 0, op <= kernel.LE)
    high_open = np.where(is_range, flags & kernel.HIGH_OPEN != 0, op == kernel.LT)
    last = parsed.first[own] + parsed.size[own] - 1
    ends = {
        ColumnRole.FROM: (low & ~low_open, parsed.first[own]),
        ColumnRole.ABOVE: (low & low_open, parsed.first[own]),
        ColumnRole.TO: (high & ~high_open, last),
        ColumnRole.BELOW: (high & high_open, last),
    }
    return {
        name + role: _build_numbers(parsed, parsed.row[own][has_end], value_index[has_end], rows)
        for role, (has_end, value_index) in ends.items()
        if has_end.any()
    }


def _build_numbers(parsed: ParsedPredicates, row: IntArray, value_index: IntArray, rows: int) -> pa.Array:
    import pyarrow as pa

    whole = bool((parsed.kind[value_index] == kernel.INT).all())
    values = np.zeros(rows, np.int64 if whole else np.float64)
    values[row] = (parsed.ints if whole else parsed.floats)[value_index]
    absent = np.ones(rows, bool)
    absent[row] = False
    return pa.array(values, mask=absent)


def _build_equality(parsed: ParsedPredicates, own: IntArray, rows: int) -> dict[str, pa.Array]:
    """Return the column of the values that a name must equal: one each, or a list where some row has a set."""
    import pyarrow as pa

    name, row = parsed.names[parsed.name[own[0]]], parsed.row[own]
    sizes = np.zeros(rows, np.int64)
    sizes[row] = parsed.size[own]
    value_index = expand_ranges(parsed.first[own], parsed.size[own])
    if (parsed.kind[value_index] == kernel.TEXT).any():
        flat = parsed.texts.take(pa.array(value_index))
    else:
        whole = bool((parsed.kind[value_index] == kernel.INT).all())
        flat = pa.array((parsed.ints if whole else parsed.floats)[value_index])
    absent = pa.array(sizes == 0)
    if (parsed.op[own] == kernel.SET).any():
        ends = compute_starts(sizes)
        return {name: pa.LargeListArray.from_arrays(pa.array(ends), flat, mask=absent)}
    place = np.cumsum(sizes) - 1
    return {name: flat.take(pa.array(place, mask=sizes == 0))}


# Going in ------------------------------------------------------------------------------------------


def build_text_load(table: Any, admission: Admission, backend: Backend, *, bulk_rows: int) -> Load:
    """Return a load of a table of filters in text: the texts are read, and laid out as columns of parameters."""
    import pyarrow as pa

    texts = _filter_texts(table)
    columns, unparsed, reordered = lay_out(read_texts(texts))
    schema = admission.vocabulary.schema or ()
    endings = tuple(role for role in ColumnRole if role)
    if any(name in schema and name.endswith(endings) for name in columns):
        # The column of an end of a range would be taken for the declared attribute of that name.
        columns, unparsed = {}, np.ones(len(texts), bool)
    parameters = pa.table({"id": table.column("id"), **columns})
    return Load(parameters, admission, backend, bulk_rows=bulk_rows, written=WrittenFilters(texts, unparsed, reordered))
