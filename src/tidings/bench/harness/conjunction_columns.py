"""Subscriptions in columns as flat arrays, for the scans that matchers are compared with.

A condition becomes closed intervals of float64 in a column: an open end is the next number, a word is its code in the
attribute's vocabulary, an area is its bounding box (and an exact test of the rows that are left). This is exact for
integers below 2**53 and for all floats.

    row r       literals starts[r] .. starts[r + 1]        each on the column columns[i]
    literal i   intervals parts[i] .. parts[i + 1]         lows[j] <= value <= highs[j]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t
import shapely
from numpy.typing import NDArray

from tidings.bench.workloads.workload_columns import SIGNS, group_by_attribute, normalize_lists, to_floats
from tidings.kernels.array_types import FloatArray, Int32Array, IntArray
from tidings.model.arrow_types import is_text_type

LON, LAT = "lon", "lat"


@dataclass(frozen=True, slots=True)
class AreaConditions:
    """The areas of one attribute: row `r` asks for `shapes[shape_of_row[r]]`, or for none where that is -1."""

    attribute: str
    shape_of_row: Int32Array
    shapes: NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class Conjunctions:
    """Conjunctions of literals, a literal being one or more intervals on a column; see the module for the arrays."""

    names: tuple[str, ...]  # of the columns: attributes, and `spot.lon`, `spot.lat` for places
    starts: IntArray
    columns: Int32Array
    parts: IntArray | None  # None where every literal has one interval
    lows: FloatArray
    highs: FloatArray
    vocabularies: dict[str, dict[str, float]]
    areas: tuple[AreaConditions, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.starts) - 1

    def encode_events(self, events: pa.Table) -> FloatArray:
        """Return the events as a matrix, a row for each; NaN is absent, or a word that no subscription has."""
        cells = np.full((events.num_rows, len(self.names)), np.nan)
        for place, name in enumerate(self.names):
            values = _find_values(events, name)
            if values is not None and name in self.vocabularies:
                vocabulary = self.vocabularies[name]
                cells[:, place] = [vocabulary.get(word, np.nan) for word in values.to_pylist()]
            elif values is not None:
                cells[:, place] = to_floats(values)
        return cells

    def filter_by_area(self, rows: Int32Array, cells: FloatArray) -> Int32Array:
        """Return those of the rows whose areas contain the event's place; their bounding boxes do already."""
        for areas in self.areas:
            shape = areas.shape_of_row[rows]
            lon, lat = (cells[self.names.index(f"{areas.attribute}.{axis}")] for axis in (LON, LAT))
            inside = shapely.intersects_xy(areas.shapes[np.maximum(shape, 0)], lon, lat)
            rows = rows[(shape < 0) | inside]
        return rows


@dataclass(frozen=True, slots=True)
class _ColumnLiterals:
    """The literals of one column: their rows, and their intervals; literal `i` has `sizes[i]` of them."""

    column: int
    rows: IntArray
    sizes: IntArray
    lows: FloatArray
    highs: FloatArray


def encode_conjunctions(table: pa.Table) -> Conjunctions:
    """Encode a table of subscriptions in columns."""
    names: list[str] = []
    literals: list[_ColumnLiterals] = []
    vocabularies: dict[str, dict[str, float]] = {}
    areas: list[AreaConditions] = []
    for name, operators in group_by_attribute(table.column_names).items():
        if "is" in operators:
            literals.append(_encode_equality(len(names), name, table.column(operators["is"]), vocabularies))
            names.append(name)
        if SIGNS.keys() & operators.keys():
            place = names.index(name) if name in names else len(names)
            literals.append(_encode_ranges(place, table, operators))
            names += [name] if place == len(names) else []
        if "within" in operators:
            areas.append(_encode_areas(name, table.column(operators["within"])))
            literals += _encode_boxes(len(names), areas[-1])
            names += [f"{name}.{LON}", f"{name}.{LAT}"]
    return _assemble(table.num_rows, names, literals, vocabularies=vocabularies, areas=areas)


def _assemble(
    n: int,
    names: list[str],
    literals: list[_ColumnLiterals],
    *,
    vocabularies: dict[str, dict[str, float]],
    areas: list[AreaConditions],
) -> Conjunctions:
    """Sort the literals by row; those of a row keep the order of the columns."""
    rows = np.concatenate([literal.rows for literal in literals])
    columns = np.concatenate([np.full(len(literal.rows), literal.column, np.int32) for literal in literals])
    sizes = np.concatenate([literal.sizes for literal in literals])
    lows = np.concatenate([literal.lows for literal in literals])
    highs = np.concatenate([literal.highs for literal in literals])
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=n)))).astype(np.int64)
    if bool((sizes == 1).all()):
        lows, highs, parts = lows[order], highs[order], None
    else:
        begins = np.cumsum(sizes) - sizes
        parts = np.concatenate(([0], np.cumsum(sizes[order]))).astype(np.int64)
        within = np.arange(parts[-1]) - np.repeat(parts[:-1], sizes[order])
        order_of_intervals = np.repeat(begins[order], sizes[order]) + within
        lows, highs = lows[order_of_intervals], highs[order_of_intervals]
    return Conjunctions(tuple(names), starts, columns[order], parts, lows, highs, vocabularies, tuple(areas))


def _encode_equality(
    place: int, name: str, column: pa.ChunkedArray, vocabularies: dict[str, dict[str, float]]
) -> _ColumnLiterals:
    rows: IntArray = np.flatnonzero(column.is_valid().to_numpy())
    if t.is_list(column.type):
        column = normalize_lists(column)
        sizes = np.diff(column.offsets.to_numpy())[rows].astype(np.int64)
        values = column.values
    else:
        sizes, values = np.ones(len(rows), np.int64), column.drop_null().combine_chunks()
    if is_text_type(values.type):
        coded = values.dictionary_encode()
        vocabularies[name] = {word: float(code) for code, word in enumerate(coded.dictionary.to_pylist())}
        codes = coded.indices.to_numpy().astype(np.float64)
    else:
        codes = to_floats(values)
    return _ColumnLiterals(place, rows, sizes, codes, codes)


def _encode_ranges(place: int, table: pa.Table, operators: dict[str, str]) -> _ColumnLiterals:
    lows, highs = np.full(table.num_rows, -np.inf), np.full(table.num_rows, np.inf)
    has_range = np.zeros(table.num_rows, np.bool_)
    for end in SIGNS.keys() & operators.keys():
        values = to_floats(table.column(operators[end]))
        has_range |= ~np.isnan(values)
        if end in ("from", "above"):  # `fmax` and `fmin` pass over NaN, which is a row without this end
            lows = np.fmax(lows, np.nextafter(values, np.inf) if end == "above" else values)
        else:
            highs = np.fmin(highs, np.nextafter(values, -np.inf) if end == "below" else values)
    rows = np.flatnonzero(has_range)
    return _ColumnLiterals(place, rows, np.ones(len(rows), np.int64), lows[rows], highs[rows])


def _encode_areas(name: str, column: pa.ChunkedArray) -> AreaConditions:
    coded = column.combine_chunks()
    coded = coded if isinstance(coded, pa.DictionaryArray) else coded.dictionary_encode()
    shapes = np.asarray(shapely.from_wkt(coded.dictionary.to_pylist()))
    shapely.prepare(shapes)
    shape_of_row = coded.indices.fill_null(-1).to_numpy().astype(np.int32)
    return AreaConditions(name, shape_of_row, shapes)


def _encode_boxes(place: int, areas: AreaConditions) -> list[_ColumnLiterals]:
    rows = np.flatnonzero(areas.shape_of_row >= 0)
    boxes = shapely.bounds(areas.shapes)[areas.shape_of_row[rows]]
    sizes = np.ones(len(rows), np.int64)
    return [
        _ColumnLiterals(place, rows, sizes, boxes[:, 0], boxes[:, 2]),
        _ColumnLiterals(place + 1, rows, sizes, boxes[:, 1], boxes[:, 3]),
    ]


def _find_values(events: pa.Table, name: str) -> pa.ChunkedArray | None:
    """Return a column of events, or a coordinate of a column of places; None where events have no such column."""
    if name in events.column_names:
        return events.column(name)
    outer, _, inner = name.rpartition(".")
    if outer in events.column_names and inner in (LON, LAT):
        return pc.struct_field(events.column(outer), inner)
    return None
