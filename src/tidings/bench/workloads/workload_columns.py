"""Subscriptions in columns: reading the columns' names, making and drawing columns in bulk, and writing them as text.

Everything works on whole Arrow columns or NumPy arrays, so a million subscriptions take seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from tidings.bench.workloads.cars import CITIES
from tidings.model.arrow_types import is_text_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray

    from tidings.kernels.array_types import BoolArray, FloatArray, IntArray

WorkloadColumn: TypeAlias = "pa.Array | pa.ChunkedArray | NDArray[np.generic]"
"""A column of a workload in bulk: Arrow where there are nulls, text or places, else NumPy."""

SIGNS = {"from": ">=", "above": ">", "to": "<=", "below": "<"}
"""The comparison that each end of a range stands for; a column of `price_from` holds such ends."""

OPERATORS = (*SIGNS, "within")
"""The last words of columns' names that are not part of the attribute; columns of `spot_within` hold areas."""

CORNERS = (6, 9)
"""Least and greatest number of corners of an area."""

_LON = np.array([city.lon for city in CITIES])
_LAT = np.array([city.lat for city in CITIES])


def group_by_attribute(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the columns of each attribute by operator, `is` where the name has none, in the order of the table.

    >>> group_by_attribute(["id", "make", "price_from", "price_below"])
    {'make': {'is': 'make'}, 'price': {'from': 'price_from', 'below': 'price_below'}}
    """
    columns: dict[str, dict[str, str]] = {}
    for name in names:
        attribute, _, operator = name.rpartition("_")
        if operator not in OPERATORS:
            attribute, operator = name, "is"
        if name != "id":
            columns.setdefault(attribute, {})[operator] = name
    return columns


# Making columns --------------------------------------------------------------------------------


def make_ids(n: int) -> pa.Array:
    """Return the ids `s0`, `s1`, ..."""
    return pc.binary_join_element_wise("s", pc.cast(pa.array(np.arange(n)), pa.string()), "")


def mask_column(values: NDArray[np.generic], valid: BoolArray) -> pa.Array:
    """Return a column of values that is null where `valid` is false."""
    return pa.array(values, mask=~valid)


def make_places(lons: FloatArray, lats: FloatArray, *, valid: BoolArray | None = None) -> pa.Array:
    """Return a column of places, null where `valid` is false."""
    mask = None if valid is None else pa.array(~valid)
    return pa.StructArray.from_arrays([pa.array(lons), pa.array(lats)], ["lon", "lat"], mask=mask)


def decode_dictionary(codes: IntArray, vocabulary: Sequence[str]) -> pa.Array:
    """Return the words of a vocabulary by their codes as a dictionary column; a negative code is null."""
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(vocabulary), pa.string()))


def decode_words(codes: IntArray, vocabulary: Sequence[str]) -> pa.Array:
    """Return the words of a vocabulary by their codes as a column of text; a negative code is null."""
    return decode_dictionary(codes, vocabulary).dictionary_decode()


def decode_sets(codes: IntArray, vocabulary: Sequence[str]) -> pa.Array:
    """Return a list of words for each row of a matrix of codes; negative codes are skipped, an empty list is null."""
    used = codes >= 0
    sizes = used.sum(axis=1)
    return _make_lists(sizes, decode_words(codes[used], vocabulary), mask=pa.array(sizes == 0, pa.bool_()))


def _make_lists(sizes: IntArray, values: pa.Array, *, mask: pa.Array) -> pa.ListArray:
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), values, mask=mask)


def to_floats(column: WorkloadColumn) -> FloatArray:
    """Return a column of numbers or truth values as floats, NaN for null."""
    floats: FloatArray = np.asarray(pc.fill_null(pc.cast(column, pa.float64()), float("nan")).to_numpy())
    return floats


# Drawing columns -------------------------------------------------------------------------------


def draw_zipf(rng: Generator, size: int | tuple[int, ...], count: int, exponent: float) -> IntArray:
    """Draw numbers below `count`, the n-th of them n ** -exponent times as often as the first."""
    shares = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)
    return np.asarray(np.searchsorted(shares, rng.random(size) * shares[-1]), np.int64)


def draw_subsets(rng: Generator, n: int, *, wanted: int, among: int) -> IntArray:
    """Draw for each of `n` rows `wanted` different numbers below `among`, ascending."""
    if wanted * 8 > among:
        keys = rng.random((n, among), dtype=np.float32)
        return np.sort(np.argpartition(keys, wanted - 1, axis=1)[:, :wanted], axis=1).astype(np.int64)
    subsets = np.sort(rng.integers(0, among, (n, wanted)), axis=1)
    while len(twice := np.flatnonzero((subsets[:, 1:] == subsets[:, :-1]).any(axis=1))):
        subsets[twice] = np.sort(rng.integers(0, among, (len(twice), wanted)), axis=1)
    return subsets.astype(np.int64)


def draw_sparse(
    rng: Generator, n: int, names: Sequence[str], *, wanted: int, values: int, dtype: type = np.int64
) -> dict[str, pa.Array]:
    """Draw columns of these names with numbers below `values`; each of `n` rows has one in `wanted` of the columns."""
    chosen = draw_subsets(rng, n, wanted=wanted, among=len(names))
    order = np.argsort(chosen, axis=None, kind="stable")
    rows, flat = order // wanted, rng.integers(0, values, chosen.shape, dtype=dtype).ravel()[order]
    ends = np.cumsum(np.bincount(chosen.ravel(), minlength=len(names)))
    columns = {}
    for name, begin, end in zip(names, np.concatenate(([0], ends[:-1])), ends, strict=True):
        cells, valid = np.zeros(n, flat.dtype), np.zeros(n, np.bool_)
        cells[rows[begin:end]], valid[rows[begin:end]] = flat[begin:end], True
        columns[name] = mask_column(cells, valid)
    return columns


def draw_places(rng: Generator, count: int, *, valid: BoolArray | None = None) -> pa.Array:
    """Return places scattered around cities, the larger ones more often; null where `valid` is false."""
    city = draw_zipf(rng, count, len(CITIES), 1.0)
    lon = np.round(rng.normal(_LON[city], 0.15), 5)
    lat = np.round(rng.normal(_LAT[city], 0.1), 5)
    return make_places(lon, lat, valid=valid)


def draw_areas(rng: Generator, count: int, *, reach: tuple[float, float]) -> list[str]:
    """Return areas around cities as WKT; corners are as far from the centre as `reach` says, in degrees."""
    most = CORNERS[1]
    city = draw_zipf(rng, count, len(CITIES), 1.0)
    corners = rng.integers(CORNERS[0], most, count, endpoint=True)
    steps = np.arange(most) + rng.uniform(-0.3, 0.3, (count, most))
    turns = steps * (2 * np.pi) / corners[:, None]
    radii = rng.uniform(*reach, (count, most))
    lon = np.round(_LON[city][:, None] + radii * np.cos(turns), 4)
    lat = np.round(_LAT[city][:, None] + 0.7 * radii * np.sin(turns), 4)
    rings = zip(lon.tolist(), lat.tolist(), corners.tolist(), strict=True)
    return [render_ring(list(zip(xs, ys, strict=True))[:size]) for xs, ys, size in rings]


def render_ring(corners: list[tuple[float, float]]) -> str:
    """Write a polygon of these corners, which need not be closed, as WKT."""
    return f"POLYGON(({', '.join(f'{lon} {lat}' for lon, lat in [*corners, corners[0]])}))"


# Writing text ----------------------------------------------------------------------------------


def render_filters(columns: pa.Table) -> pa.Table:
    """Return subscriptions in columns as a table of `id` and `filter`, in text notation."""
    attributes = group_by_attribute(columns.column_names)
    tests = [test for name, operators in attributes.items() for test in _render_tests(columns, name, operators)]
    filters = pc.binary_join_element_wise(*tests, " and ", null_handling="skip")
    return pa.table({"id": columns.column("id"), "filter": filters})


def _render_tests(columns: pa.Table, name: str, operators: dict[str, str]) -> list[pa.Array]:
    """Return the tests of one attribute as columns of text, null where a row has none."""
    tests = []
    if "is" in operators:
        tests.append(_render_equality(name, columns.column(operators["is"])))
    if "within" in operators:
        tests.append(_join(f"{name} within ", pc.cast(columns.column(operators["within"]), "string")))
    ends = {operator: columns.column(column) for operator, column in operators.items() if operator in SIGNS}
    if ends:
        tests.append(_render_range(name, ends))
    return tests


def _render_equality(name: str, column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not t.is_list(column.type):
        return _join(f"{name} = ", _render_literal(column))
    column = normalize_lists(column)
    literals = pa.ListArray.from_arrays(column.offsets, _render_literal(column.values), mask=column.is_null())
    listed = pc.binary_join(literals, ", ")
    alone = pc.equal(pc.list_value_length(column), 1)
    return pc.if_else(alone, _join(f"{name} = ", listed), _join(f"{name} in (", listed, ")"))


def normalize_lists(column: pa.Array | pa.ChunkedArray) -> pa.ListArray:
    """Return a column of lists as one array whose offsets start at zero, even if the column is a slice."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return _make_lists(sizes, column.flatten(), mask=column.is_null())


def _render_literal(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not is_text_type(column.type):
        return pc.cast(column, pa.string())
    return _join("'", pc.replace_substring(pc.replace_substring(column, "\\", "\\\\"), "'", "\\'"), "'")


def _render_range(name: str, ends: dict[str, pa.ChunkedArray]) -> pa.Array:
    """Return the ends of a range as text: both ends as one range, a single one as a comparison."""
    nothing = pa.nulls(len(next(iter(ends.values()))), pa.string())
    literals = {operator: _render_literal(column) for operator, column in ends.items()}
    low = pc.coalesce(_join("[", literals.get("from", nothing)), _join("(", literals.get("above", nothing)))
    high = pc.coalesce(_join(literals.get("to", nothing), "]"), _join(literals.get("below", nothing), ")"))
    single = [_join(f"{name} {SIGNS[operator]} ", column) for operator, column in literals.items()]
    return pc.coalesce(_join(f"{name} in ", low, " .. ", high), *single)


def _join(*parts: pa.Array | str) -> pa.Array:
    """Concatenate columns and words, row by row; null where a column is null."""
    return pc.binary_join_element_wise(*parts, "")
