"""Subscriptions in columns as flat arrays, for the scans that matchers are compared with.

A condition becomes closed intervals of float64 in a column: an open end is the next number, a word is its place
in the attribute's vocabulary, an area is its bounding box (and an exact test of the pairs that are left). This
is exact for integers below 2**53 and for all floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidings.bench.workloads.parameter_forms import attributes_of, lists_of

if TYPE_CHECKING:
    import pyarrow as pa

LON, LAT = "lon", "lat"


@dataclass(frozen=True, slots=True)
class Areas:
    """The areas of one attribute: row `rows[i]` asks for the shape `shapes[which[i]]`."""

    attribute: str
    of_row: NDArray[np.int32]  # -1: the row asks for none
    shapes: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Conjunctions:
    """Row `r` has the literals from `starts[r]` on, literal `i` the intervals from `parts[i]` on."""

    names: tuple[str, ...]  # the columns: attributes, and `spot.lon`, `spot.lat` for places
    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    parts: NDArray[np.int64] | None  # nothing where every literal has one interval
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    vocabularies: dict[str, dict[str, float]]
    areas: tuple[Areas, ...]

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.starts) - 1

    def cells(self, events: pa.Table) -> NDArray[np.float64]:
        """Return the events as a matrix, a row for each; NaN is absent or unknown to every subscription."""
        cells = np.full((events.num_rows, len(self.names)), np.nan)
        for place, name in enumerate(self.names):
            values = _values(events, name)
            if values is not None:
                cells[:, place] = self._coded(name, values)
        return cells

    def _coded(self, name: str, values: Any) -> NDArray[np.float64]:
        vocabulary = self.vocabularies.get(name)
        if vocabulary is None:
            return _floats(values)
        return np.array([vocabulary.get(word, np.nan) for word in values.to_pylist()], np.float64)

    def decided(self, rows: NDArray[np.int32], cells: NDArray[np.float64]) -> NDArray[np.int32]:
        """Keep the rows whose areas hold the event's place; their bounding boxes do already."""
        import shapely

        for areas in self.areas:
            asked = areas.of_row[rows]
            lon, lat = (cells[self.names.index(f"{areas.attribute}.{axis}")] for axis in (LON, LAT))
            held = shapely.intersects_xy(areas.shapes[np.maximum(asked, 0)], lon, lat)
            rows = rows[(asked < 0) | held]
        return rows


@dataclass(frozen=True, slots=True)
class _Literals:
    """One column's literals: their rows, and their intervals, `sizes` many each."""

    column: int
    rows: NDArray[np.int64]
    sizes: NDArray[np.int64]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]


def conjunctions_of(table: pa.Table) -> Conjunctions:
    """Encode a table of subscriptions."""
    names: list[str] = []
    literals: list[_Literals] = []
    vocabularies: dict[str, dict[str, float]] = {}
    areas: list[Areas] = []
    for name, said in attributes_of(table.column_names).items():
        if "is" in said:
            literals.append(_equality(len(names), name, table.column(said["is"]), vocabularies))
            names.append(name)
        if any(end in said for end in ("from", "to", "above", "below")):
            place = names.index(name) if name in names else len(names)
            literals.append(_ranges(place, table, said))
            names += [name] if place == len(names) else []
        if "within" in said:
            areas.append(_areas(name, table.column(said["within"])))
            literals += _boxes(len(names), areas[-1])
            names += [f"{name}.{LON}", f"{name}.{LAT}"]
    return _assembled(table.num_rows, names, literals, vocabularies=vocabularies, areas=areas)


def _assembled(
    n: int,
    names: list[str],
    literals: list[_Literals],
    *,
    vocabularies: dict[str, dict[str, float]],
    areas: list[Areas],
) -> Conjunctions:
    """Bring the literals of each row together, in the order of the columns."""
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
        moved = np.repeat(begins[order], sizes[order]) + within
        lows, highs = lows[moved], highs[moved]
    return Conjunctions(tuple(names), starts, columns[order], parts, lows, highs, vocabularies, tuple(areas))


def _there(column: Any) -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.flatnonzero(column.is_valid().to_numpy())
    return found


def _floats(column: Any) -> NDArray[np.float64]:
    """Return numbers or truth values as floats, NaN for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pc.cast(column, pa.float64())
    found: NDArray[np.float64] = np.asarray(pc.fill_null(numbers, float("nan")).to_numpy())
    return found


def _equality(place: int, name: str, column: Any, vocabularies: dict[str, dict[str, float]]) -> _Literals:
    import pyarrow as pa
    import pyarrow.types as t

    rows = _there(column)
    if t.is_list(column.type):
        column = lists_of(column)
        sizes = np.diff(column.offsets.to_numpy())[rows].astype(np.int64)
        values = column.values
    else:
        sizes, values = np.ones(len(rows), np.int64), column.drop_null().combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if t.is_string(values.type) or t.is_large_string(values.type):
        coded = values.dictionary_encode()
        vocabularies[name] = {word: float(at) for at, word in enumerate(coded.dictionary.to_pylist())}
        codes = coded.indices.to_numpy().astype(np.float64)
    else:
        codes = _floats(values)
    return _Literals(place, rows, sizes, codes, codes)


def _ranges(place: int, table: pa.Table, said: dict[str, str]) -> _Literals:
    n = table.num_rows
    lows, highs = np.full(n, -np.inf), np.full(n, np.inf)
    given = np.zeros(n, np.bool_)
    for end, column in said.items():
        if end in ("is", "within"):
            continue
        values = _floats(table.column(column))
        there = ~np.isnan(values)
        given |= there
        if end in ("from", "above"):
            lows[there] = np.nextafter(values[there], np.inf) if end == "above" else values[there]
        else:
            highs[there] = np.nextafter(values[there], -np.inf) if end == "below" else values[there]
    rows = np.flatnonzero(given)
    return _Literals(place, rows, np.ones(len(rows), np.int64), lows[rows], highs[rows])


def _areas(name: str, column: Any) -> Areas:
    import pyarrow as pa
    import shapely

    coded = column.combine_chunks()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    coded = coded if isinstance(coded, pa.DictionaryArray) else coded.dictionary_encode()
    shapes = np.asarray(shapely.from_wkt(coded.dictionary.to_pylist()))
    shapely.prepare(shapes)
    of_row = coded.indices.fill_null(-1).to_numpy().astype(np.int32)
    return Areas(name, of_row, shapes)


def _boxes(place: int, areas: Areas) -> list[_Literals]:
    import shapely

    rows = np.flatnonzero(areas.of_row >= 0)
    boxes = shapely.bounds(areas.shapes)[areas.of_row[rows]]
    one = np.ones(len(rows), np.int64)
    return [
        _Literals(place, rows, one, boxes[:, 0], boxes[:, 2]),
        _Literals(place + 1, rows, one, boxes[:, 1], boxes[:, 3]),
    ]


def _values(events: pa.Table, name: str) -> Any:
    """Return a column of events, reaching into places; nothing where events have none."""
    import pyarrow.compute as pc

    if name in events.column_names:
        return events.column(name)
    outer, _, inner = name.rpartition(".")
    if outer in events.column_names and inner in (LON, LAT):
        return pc.struct_field(events.column(outer), inner)
    return None
