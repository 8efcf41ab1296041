"""Arrow columns of parameters as plain arrays: values, where they are given, and the rows that are not so plain.

Two masks are filled on the way. `odd` rows hold what only the long way can judge: values that a filter refuses or
reads its own way, integers that floats cannot hold. `unsaid` rows are compiled like all others, but cannot be
read back from their literals as they were written: `5.0` would come back as `5`, `[5 .. 5]` as `= 5`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.compile.bulk_table import Areas, Ends, Points, Sets, Spans
from tidings.engine.compile.code_spaces import Bytewise
from tidings.engine.compile.columns import Column, View
from tidings.errors import TidingsError
from tidings.kernels.match.bulk_load import CLOSED, OPEN
from tidings.matcher.loading.parameter_table import HIGH, LOW, Says, area_of_text, readable
from tidings.model import Kind, Within
from tidings.model.filters import Exists, Test

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from tidings.concepts import Ontology
    from tidings.engine.compile.bulk_table import Given, Tested
    from tidings.matcher.loading.parameter_table import Asked

EXACT = 2**53
"""Integers up to here are floats as well."""

VIEWS = {Kind.NUMBER: View.NUMBER, Kind.TIME: View.NUMBER, Kind.BOOL: View.NUMBER, Kind.TEXT: View.TEXT}
"""The view of an attribute that equality and ranges look at."""


class Plain:
    """Reads the columns of a table of parameters."""

    def __init__(self, table: pa.Table, kinds: dict[str, Kind | None], ontology: Ontology) -> None:
        """Read nothing yet; `kinds` are those that are declared."""
        self._table, self._kinds, self._ontology = table, kinds, ontology
        self.odd = np.zeros(table.num_rows, bool)
        self.unsaid = np.zeros(table.num_rows, bool)
        self.texts: dict[Column, Bytewise] = {}

    def test(self, asked: Asked) -> Tested | None:
        """Return what the columns ask, or nothing where every row that asks it is odd."""
        every = {says: self._column(name) for says, name in asked.columns.items()}
        columns = {says: column for says, column in every.items() if _kind(column.type) is not None}
        if not columns:
            return None
        kinds = {_kind(column.type) for column in columns.values()}
        if Says.WITHIN in columns:
            return self._areas(asked.attribute, columns[Says.WITHIN])
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is None or kinds or not self._means_itself(asked.attribute, kind):
            self._not_plain(columns)
            return None
        column = Column(asked.attribute, VIEWS[kind], kind=kind)
        if kind is Kind.TEXT and (asked.ranged or column in self.texts):
            self._not_plain(columns)  # several columns of text would need one order for all of them
            return None
        if not asked.ranged:
            given = columns[Says.IS]
            return self._set(column, given) if _is_list(given.type) else self._points(column, given)
        if kind is Kind.BOOL or any(_is_list(one.type) for one in columns.values()):
            self._not_plain(columns)
            return None
        return self._spans(column, columns)

    def _column(self, name: str) -> pa.Array:
        column = self._table.column(name)
        kind = readable(column.type)
        return (column if kind == column.type else column.cast(kind, safe=False)).combine_chunks()

    def _means_itself(self, attribute: str, kind: Kind) -> bool:
        """Tell whether values of an attribute are what they say."""
        told = self._kinds.get(attribute)
        if self._ontology.attribute(attribute) != attribute or (kind is Kind.TEXT and told not in (None, Kind.TEXT)):
            return False
        try:
            Test(attribute, Exists())
        except ValueError:
            return False
        return True

    def _not_plain(self, columns: dict[Says, pa.Array]) -> None:
        for column in columns.values():
            self.odd |= _given(column) != 0

    # Tests -------------------------------------------------------------------------------------

    def _points(self, column: Column, array: pa.Array) -> Points:
        given = _given(array)
        ends, odd, unsaid = self._values(column, array, given)
        _join(self.odd, odd)
        _join(self.unsaid, unsaid)
        return Points(column, ends)

    def _set(self, column: Column, array: pa.Array) -> Sets:
        given = _given(array)
        start = np.zeros(len(array) + 1, np.int64)
        sizes = np.diff(np.asarray(array.offsets))
        np.cumsum(np.where(given, sizes, 0), out=start[1:])
        flat = array.flatten()
        there = _given(flat)
        ends, odd, unsaid = self._values(column, flat, there)
        row = np.repeat(np.arange(len(array)), np.diff(start))
        self.odd |= (given != 0) & (np.diff(start) == 0)
        for mask, of in (
            (odd, self.odd),
            (unsaid, self.unsaid),
            (None if flat.null_count == 0 else there == 0, self.odd),
        ):
            if mask is not None:
                of[row[mask]] = True
        self.odd[_repeating(row, ends.values, start)] = True
        return Sets(column, ends, start, given)

    def _spans(self, column: Column, columns: dict[Says, pa.Array]) -> Spans:
        low, high = (self._end(column, [columns.get(says) for says in ends]) for ends in (LOW, HIGH))
        if low is not None and high is not None:
            both = (low.given != 0) & (high.given != 0)
            self.odd |= both & (low.values > high.values)
            self.unsaid |= both & (low.values == high.values)
        nothing = low or high
        assert nothing is not None
        none = Ends(nothing.values, np.zeros(len(nothing.given), np.uint8))
        return Spans(column, low or none, high or none)

    def _end(self, column: Column, arrays: list[pa.Array | None]) -> Ends | None:
        """Return the ends on one side: closed ones and open ones in one array."""
        found: Ends | None = None
        for array, state in zip(arrays, (CLOSED, OPEN), strict=True):
            if array is None:
                continue
            given = _given(array)
            ends, odd, unsaid = self._values(column, array, given)
            _join(self.odd, odd)
            _join(self.unsaid, unsaid)
            if found is None:
                found = ends if state == CLOSED else Ends(ends.values, given * np.uint8(state))
                continue
            self.odd |= (found.given != 0) & (given != 0)
            values, states = np.where(given, ends.values, found.values), np.where(given, np.uint8(state), found.given)
            found = Ends(values, states)
        return found

    def _areas(self, attribute: str, array: pa.Array) -> Areas | None:
        given = _given(array)
        if (
            _kind(array.type) is not Kind.TEXT
            or _is_list(array.type)
            or self._ontology.attribute(attribute) != attribute
        ):
            self.odd |= given != 0
            return None
        coded = array.dictionary_encode()
        areas: list[Within] = []
        number = np.full(len(coded.dictionary), -1, np.int64)
        for at, text in enumerate(coded.dictionary.to_pylist()):
            try:
                area = Within(area_of_text(text))
            except (TidingsError, ValueError):
                continue  # said by the rows that ask for it
            number[at] = len(areas)
            areas.append(area)
        where = np.where(given, number[_indices(coded)] if len(number) else -1, -1)
        self.odd |= (given != 0) & (where < 0)
        self.unsaid |= given != 0
        return Areas(attribute, areas, where, given)

    # Values ------------------------------------------------------------------------------------

    def _values(
        self, column: Column, array: pa.Array, given: Given
    ) -> tuple[Ends, NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
        """Return the values of an array, where they are odd, and where they cannot be read back."""
        import pyarrow.types as t

        if column.kind is Kind.TEXT:
            self.texts[column], ranks = _ranked(array)
            return Ends(ranks, given), None, None
        if t.is_floating(array.type):
            values = _buffer(array, np.float64).copy()
            finite, whole = np.isfinite(values), np.floor(values) == values
            return Ends(values, given), None if finite.all() else ~finite & (given != 0), whole & (given != 0)
        values = _integers(array)
        wide = array.type.bit_width == 64 or column.kind is Kind.TIME  # of narrow integers none is beyond floats
        if wide and len(values) and (values.max() > EXACT or values.min() < -EXACT):
            return Ends(values, given), ((values > EXACT) | (values < -EXACT)) & (given != 0), None
        return Ends(values, given), None, None


def _join(mask: NDArray[np.bool_], more: NDArray[np.bool_] | None) -> None:
    if more is not None:
        mask |= more


def _repeating(row: NDArray[np.int64], values: NDArray[Any], start: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows in whose set a value comes twice."""
    several = np.flatnonzero((np.diff(start) > 1)[row]) if len(row) else row
    if not len(several):
        return several
    order = np.lexsort((values[several], row[several]))
    rows, sorted_values = row[several][order], values[several][order]
    return np.asarray(rows[1:][(rows[1:] == rows[:-1]) & (sorted_values[1:] == sorted_values[:-1])])


def _given(array: pa.Array) -> Given:
    """Return 1 where there is a value."""
    if array.null_count == 0:
        return np.ones(len(array), np.uint8)
    bits = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), bitorder="little") if array.buffers()[0] else None
    if bits is None:  # Arrow's type of nothing but nulls
        return np.zeros(len(array), np.uint8)
    return bits[array.offset : array.offset + len(array)]


def _buffer(array: pa.Array, dtype: Any) -> NDArray[Any]:
    """Return the values as they lie in memory; what stands at a null is anything."""
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype)[array.offset : array.offset + len(array)]


def _integers(array: pa.Array) -> NDArray[Any]:
    """Return integers and truth values, and times as microseconds since 1970."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_boolean(array.type):
        array = array.cast(pa.int8())
    elif t.is_date(array.type):
        return np.asarray(_buffer(array, np.int32).astype(np.int64) * 86_400_000_000)
    elif t.is_timestamp(array.type):
        scale = {"s": 1_000_000, "ms": 1_000, "us": 1}[array.type.unit]
        values = _buffer(array, np.int64).copy()
        # Beyond what Python's times hold, anything odd will do.
        return values if scale == 1 else np.asarray(np.clip(values, -2 * EXACT // scale, 2 * EXACT // scale) * scale)
    elif t.is_uint64(array.type):
        return np.asarray(np.minimum(_buffer(array, np.uint64), np.uint64(2 * EXACT)).astype(np.int64))
    narrow = array.type.bit_width < 32 or t.is_int32(array.type)  # half the memory is half the time
    # A copy: kernels want arrays that can be written.
    return _buffer(array, array.type.to_pandas_dtype()).astype(np.int32 if narrow else np.int64)


def _ranked(array: pa.Array) -> tuple[Bytewise, NDArray[np.int64]]:
    """Return the space of texts, and the rank of each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = array.dictionary_encode()
    words = coded.dictionary
    order = np.asarray(pc.sort_indices(words), np.int64)
    in_order = words.take(pa.array(order)).cast(pa.large_binary())
    rank = np.zeros(len(order) + 1, np.int64)  # the last is found by -1: no text
    rank[order] = np.arange(len(order))
    offsets = _buffer_at(in_order, 1, np.int64)[in_order.offset : in_order.offset + len(words) + 1]
    blob = _buffer_at(in_order, 2, np.uint8)
    start = offsets - offsets[0] if len(offsets) else np.zeros(1, np.int64)
    space = Bytewise(blob[int(offsets[0]) : int(offsets[-1])] if len(offsets) else blob, start)
    return space, rank[np.where(_given(array), _indices(coded), -1)]


def _indices(coded: pa.Array) -> NDArray[np.int64]:
    places: NDArray[np.int64] = _buffer(coded.indices, np.int32).astype(np.int64)
    return places


def _buffer_at(array: pa.Array, place: int, dtype: Any) -> NDArray[Any]:
    data = array.buffers()[place]
    return np.frombuffer(data, dtype) if data is not None else np.zeros(0, dtype)


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow.types as t

    return bool(t.is_large_list(kind))


def _kind(kind: pa.DataType) -> Kind | None:
    """Return the kind of a readable type; a column of nulls alone has none."""
    import pyarrow.types as t

    if _is_list(kind):
        return _kind(kind.value_type)
    if t.is_boolean(kind):
        return Kind.BOOL
    if t.is_integer(kind) or t.is_floating(kind):
        return Kind.NUMBER
    if t.is_timestamp(kind) or t.is_date(kind):
        return Kind.TIME
    return Kind.TEXT if t.is_large_string(kind) else None
