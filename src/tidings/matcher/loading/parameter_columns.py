"""Arrow columns of parameters as plain arrays: values, masks of the rows that have one, and the rows left over.

Two masks are filled. `odd`: an odd row is left to row-by-row admission, for a value that a filter refuses or reads as
something else, or an integer that floats cannot hold. `lossy` rows are compiled like all others, but their literals
do not give back what was written: `5.0` would come back as `5`, `[5 .. 5]` as `= 5`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.arrays import compute_starts, view_buffer
from tidings.engine.compile.bulk_table import AreaColumn, EndColumn, EqualityColumn, RangeColumn, SetColumn
from tidings.engine.compile.code_spaces import ByteSpace
from tidings.engine.compile.columns import EXACT, Column, View
from tidings.errors import TidingsError
from tidings.kernels.match.column_literals import CLOSED, OPEN
from tidings.matcher.loading.parameter_table import HIGH, LOW, ColumnRole, parse_area, to_value_type
from tidings.model import Kind, Within
from tidings.model.arrow_types import find_kind, is_list_type
from tidings.model.conditions import Exists
from tidings.model.filters import Test

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from tidings.concepts import Ontology
    from tidings.engine.compile.bulk_table import PredicateColumn, RowMask
    from tidings.kernels.array_types import BoolArray, IntArray
    from tidings.matcher.loading.parameter_table import TableParameter

VIEWS = {Kind.NUMBER: View.NUMBER, Kind.TIME: View.NUMBER, Kind.BOOL: View.NUMBER, Kind.TEXT: View.TEXT}
"""The view of an attribute that equality and ranges look at."""


class PlainColumns:
    """Reads the columns of a table of parameters, one parameter after the other."""

    def __init__(self, table: pa.Table, kinds: dict[str, Kind | None], ontology: Ontology) -> None:
        """Read nothing yet; `kinds` are the declared kinds of attributes."""
        self._table, self._kinds, self._ontology = table, kinds, ontology
        self.odd = np.zeros(table.num_rows, bool)
        self.lossy = np.zeros(table.num_rows, bool)
        self.texts: dict[Column, ByteSpace] = {}

    def read(self, parameter: TableParameter) -> PredicateColumn | None:
        """Return the tests of one parameter in all rows, or None where every row that has one is odd."""
        cast = {role: self._cast_column(name) for role, name in parameter.columns.items()}
        columns = {role: column for role, column in cast.items() if _find_value_kind(column.type) is not None}
        if not columns:
            return None
        kinds = {_find_value_kind(column.type) for column in columns.values()}
        if ColumnRole.WITHIN in columns:
            return self._read_areas(parameter.attribute, columns[ColumnRole.WITHIN])
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is None or kinds or not self._is_literal(parameter.attribute, kind):
            self._mark_odd(columns)
            return None
        column = Column(parameter.attribute, VIEWS[kind], kind=kind)
        if kind is Kind.TEXT and (parameter.is_range or column in self.texts):
            self._mark_odd(columns)  # several columns of text would need one order for all of them
            return None
        if not parameter.is_range:
            values = columns[ColumnRole.EQUAL]
            if is_list_type(values.type):
                return self._read_sets(column, values)
            return EqualityColumn(column, self._read_values(column, values, _find_present(values)))
        if kind is Kind.BOOL or any(is_list_type(array.type) for array in columns.values()):
            self._mark_odd(columns)
            return None
        return self._read_ranges(column, columns)

    def _cast_column(self, name: str) -> pa.Array:
        column = self._table.column(name)
        kind = to_value_type(column.type)
        return (column if kind == column.type else column.cast(kind, safe=False)).combine_chunks()

    def _is_literal(self, attribute: str, kind: Kind) -> bool:
        """Tell whether values of an attribute mean themselves: no synonym, no concept, no text of another kind."""
        declared = self._kinds.get(attribute)
        is_synonym = self._ontology.attribute(attribute) != attribute
        if is_synonym or (kind is Kind.TEXT and declared not in (None, Kind.TEXT)):
            return False
        try:
            Test(attribute, Exists())
        except ValueError:
            return False
        return True

    def _mark_odd(self, columns: dict[ColumnRole, pa.Array]) -> None:
        """Leave all rows that have a value in one of the columns to row-by-row admission."""
        for column in columns.values():
            self.odd |= _find_present(column) != 0

    # Tests -------------------------------------------------------------------------------------

    def _read_sets(self, column: Column, array: pa.Array) -> SetColumn:
        mask = _find_present(array)
        sizes = np.where(mask, np.diff(np.asarray(array.offsets)), 0)
        start, row = compute_starts(sizes), np.repeat(np.arange(len(array)), sizes)
        flat = array.flatten()
        present = _find_present(flat)
        ends = self._read_values(column, flat, present, row)
        self.odd |= (mask != 0) & (sizes == 0)
        if flat.null_count:
            self.odd[row[present == 0]] = True
        self.odd[_find_repeating(row, ends.values, start)] = True
        return SetColumn(column, ends, start, mask)

    def _read_ranges(self, column: Column, columns: dict[ColumnRole, pa.Array]) -> RangeColumn:
        low, high = (self._read_end(column, [columns.get(role) for role in ends]) for ends in (LOW, HIGH))
        if low is not None and high is not None:
            has_both_ends = (low.mask != 0) & (high.mask != 0)
            self.odd |= has_both_ends & (low.values > high.values)
            self.lossy |= has_both_ends & (low.values == high.values)
        side = low or high
        assert side is not None
        unbounded = EndColumn(side.values, np.zeros(len(side.mask), np.uint8))
        return RangeColumn(column, low or unbounded, high or unbounded)

    def _read_end(self, column: Column, arrays: list[pa.Array | None]) -> EndColumn | None:
        """Return the ends on one side: closed ones and open ones in one array."""
        side: EndColumn | None = None
        for array, state in zip(arrays, (CLOSED, OPEN), strict=True):
            if array is None:
                continue
            mask = _find_present(array)
            ends = self._read_values(column, array, mask)
            if side is None:
                side = ends if state == CLOSED else EndColumn(ends.values, mask * np.uint8(state))
                continue
            self.odd |= (side.mask != 0) & (mask != 0)
            values, states = np.where(mask, ends.values, side.values), np.where(mask, np.uint8(state), side.mask)
            side = EndColumn(values, states)
        return side

    def _read_areas(self, attribute: str, array: pa.Array) -> AreaColumn | None:
        mask = _find_present(array)
        is_synonym = self._ontology.attribute(attribute) != attribute
        if _find_value_kind(array.type) is not Kind.TEXT or is_list_type(array.type) or is_synonym:
            self.odd |= mask != 0
            return None
        coded = array.dictionary_encode()
        areas: list[Within] = []
        number = np.full(len(coded.dictionary), -1, np.int64)
        for index, text in enumerate(coded.dictionary.to_pylist()):
            try:
                area = Within(parse_area(text))
            except (TidingsError, ValueError):
                continue  # the rows with this text are odd, and refused one by one
            number[index] = len(areas)
            areas.append(area)
        area_number = np.where(mask, number[_read_indices(coded)] if len(number) else -1, -1)
        self.odd |= (mask != 0) & (area_number < 0)
        self.lossy |= mask != 0
        return AreaColumn(attribute, areas, area_number, mask)

    # Values ------------------------------------------------------------------------------------

    def _read_values(self, column: Column, array: pa.Array, mask: RowMask, row: IntArray | None = None) -> EndColumn:
        """Return the values of an array, and mark the rows of odd and lossy ones; `row` is given for elements of sets.

        `mask` is 1 where there is a value, and `row` the row of each element.
        """
        import pyarrow.types as t

        if column.kind is Kind.TEXT:
            self.texts[column], ranks = _rank_texts(array)
            return EndColumn(ranks, mask)
        if t.is_floating(array.type):
            values = view_buffer(array, np.float64).copy()
            finite = np.isfinite(values)
            if not finite.all():
                _mark_rows(self.odd, ~finite & (mask != 0), row)
            _mark_rows(self.lossy, (np.floor(values) == values) & (mask != 0), row)
            return EndColumn(values, mask)
        values = _to_integers(array)
        wide = array.type.bit_width == 64 or column.kind is Kind.TIME  # no narrow integer is beyond floats
        if wide and len(values) and (values.max() > EXACT or values.min() < -EXACT):
            _mark_rows(self.odd, ((values > EXACT) | (values < -EXACT)) & (mask != 0), row)
        return EndColumn(values, mask)


def _mark_rows(marks: BoolArray, is_marked: BoolArray, row: IntArray | None) -> None:
    """Set the marks of rows; `row` is the row of each value, where there are other values than one for each row."""
    if row is None:
        marks |= is_marked
    else:
        marks[row[is_marked]] = True


def _find_repeating(row: IntArray, values: NDArray[Any], start: IntArray) -> IntArray:
    """Return the rows in whose set a value comes twice."""
    several = np.flatnonzero((np.diff(start) > 1)[row])
    order = np.lexsort((values[several], row[several]))
    rows, sorted_values = row[several][order], values[several][order]
    return np.asarray(rows[1:][(rows[1:] == rows[:-1]) & (sorted_values[1:] == sorted_values[:-1])])


def _find_present(array: pa.Array) -> RowMask:
    """Return 1 where there is a value, 0 at nulls."""
    if array.null_count == 0:
        return np.ones(len(array), np.uint8)
    validity = array.buffers()[0]
    if validity is None:  # Arrow's type of nothing but nulls
        return np.zeros(len(array), np.uint8)
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)]


def _to_integers(array: pa.Array) -> NDArray[Any]:
    """Return integers and truth values, and times as microseconds since 1970."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_boolean(array.type):
        array = array.cast(pa.int8())
    elif t.is_date(array.type):
        return np.asarray(view_buffer(array, np.int32).astype(np.int64) * 86_400_000_000)
    elif t.is_timestamp(array.type):
        scale = {"s": 1_000_000, "ms": 1_000, "us": 1}[array.type.unit]
        values = view_buffer(array, np.int64).copy()
        # Times beyond those of Python are odd whatever their value, so clipping them changes nothing.
        return values if scale == 1 else np.asarray(np.clip(values, -2 * EXACT // scale, 2 * EXACT // scale) * scale)
    elif t.is_uint64(array.type):
        return np.asarray(np.minimum(view_buffer(array, np.uint64), np.uint64(2 * EXACT)).astype(np.int64))
    narrow = array.type.bit_width < 32 or t.is_int32(array.type)  # half the memory is half the time
    # A copy: kernels want arrays that can be written.
    return view_buffer(array, array.type.to_pandas_dtype()).astype(np.int32 if narrow else np.int64)


def _rank_texts(array: pa.Array) -> tuple[ByteSpace, IntArray]:
    """Return the code space of the texts, and the rank of each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = array.dictionary_encode()
    words = coded.dictionary
    order = np.asarray(pc.sort_indices(words), np.int64)
    in_order = words.take(pa.array(order)).cast(pa.large_binary())
    rank = np.zeros(len(order) + 1, np.int64)  # index -1 finds the last, which is for nulls
    rank[order] = np.arange(len(order))
    _, offsets, blob = in_order.buffers()  # `take` made them anew, so they begin at 0; either may be missing
    start = np.frombuffer(offsets or bytes(8), np.int64)[: len(words) + 1].copy()
    space = ByteSpace(np.frombuffer(blob or b"", np.uint8)[: start[-1]], start)
    return space, rank[np.where(_find_present(array), _read_indices(coded), -1)]


def _read_indices(coded: pa.Array) -> IntArray:
    return view_buffer(coded.indices, np.int32).astype(np.int64)


def _find_value_kind(type_: pa.DataType) -> Kind | None:
    """Return the kind of a column's values, or of the elements of its lists; None for nulls alone."""
    return _find_value_kind(type_.value_type) if is_list_type(type_) else find_kind(type_)
