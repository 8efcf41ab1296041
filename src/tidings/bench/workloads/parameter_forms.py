"""Subscriptions in columns: reading the columns' names, making columns in bulk, and writing them as text in bulk.

Everything works on whole Arrow columns or NumPy arrays, so a million subscriptions take seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from tidings.kernels.array_types import BoolArray, FloatArray, IntArray

ENDS = {"_from": "low", "_above": "low", "_to": "high", "_below": "high"}
"""Suffixes of columns that hold an end of a range."""

WITHIN = "_within"
"""Suffix of columns that hold areas."""

SIGNS = {"from": ">=", "above": ">", "to": "<=", "below": "<"}
"""The comparison that each end of a range stands for."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A column of subscriptions: its attribute, and its operator: `is`, `from`, `to`, `above`, `below` or `within`."""

    attribute: str
    operator: str
    column: str


def parse_parameters(names: Sequence[str]) -> list[Parameter]:
    """Parse the names of columns.

    >>> [(p.attribute, p.operator) for p in parse_parameters(["id", "make", "price_from"])]
    [('make', 'is'), ('price', 'from')]
    """
    parameters = []
    for name in names:
        ending = next((end for end in (*ENDS, WITHIN) if name.endswith(end)), None)
        if name != "id":
            parameters.append(Parameter(name.removesuffix(ending or ""), ending[1:] if ending else "is", name))
    return parameters


def group_by_attribute(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the columns of each attribute by operator, in the order of the table."""
    columns: dict[str, dict[str, str]] = {}
    for parameter in parse_parameters(names):
        columns.setdefault(parameter.attribute, {})[parameter.operator] = parameter.column
    return columns


# Making columns --------------------------------------------------------------------------------


def make_ids(n: int) -> pa.Array:
    """Return the ids `s0`, `s1`, ..."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pc.cast(pa.array(np.arange(n)), pa.string())
    return pc.binary_join_element_wise("s", numbers, "")


def mask_column(values: NDArray[Any], valid: BoolArray) -> pa.Array:
    """Return a column of values that is null where `valid` is false."""
    import pyarrow as pa

    return pa.array(values, mask=~valid)


def decode_dictionary(codes: NDArray[Any], vocabulary: Sequence[str]) -> pa.Array:
    """Return the words of a vocabulary by their codes as a dictionary column; a negative code is null."""
    import pyarrow as pa

    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(vocabulary), pa.string()))


def decode_words(codes: NDArray[Any], vocabulary: Sequence[str]) -> pa.Array:
    """Return the words of a vocabulary by their codes as a column of text; a negative code is null."""
    return decode_dictionary(codes, vocabulary).dictionary_decode()


def decode_sets(codes: NDArray[Any], vocabulary: Sequence[str]) -> pa.Array:
    """Return a list of words for each row of a matrix of codes; negative codes are skipped, an empty list is null."""
    import pyarrow as pa

    used = codes >= 0
    sizes = used.sum(axis=1)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(starts), decode_words(codes[used], vocabulary), mask=pa.array(sizes == 0, pa.bool_())
    )


def draw_zipf(rng: np.random.Generator, size: int | tuple[int, ...], count: int, exponent: float) -> IntArray:
    """Draw numbers below `count`, the n-th of them n ** -exponent times as often as the first."""
    shares = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)
    return np.asarray(np.searchsorted(shares, rng.random(size) * shares[-1]), np.int64)


def draw_subsets(rng: np.random.Generator, n: int, *, wanted: int, among: int) -> IntArray:
    """Draw for each of `n` rows `wanted` different numbers below `among`, ascending."""
    if wanted * 8 > among:
        keys = rng.random((n, among), dtype=np.float32)
        return np.sort(np.argpartition(keys, wanted - 1, axis=1)[:, :wanted], axis=1).astype(np.int64)
    drawn = np.sort(rng.integers(0, among, (n, wanted)), axis=1)
    while len(twice := np.flatnonzero((drawn[:, 1:] == drawn[:, :-1]).any(axis=1))):
        drawn[twice] = np.sort(rng.integers(0, among, (len(twice), wanted)), axis=1)
    return drawn.astype(np.int64)


def scatter_to_columns(chosen: IntArray, values: NDArray[Any], among: int) -> list[pa.Array]:
    """Return a column for each of `among` attributes; row `r` has `values[r, i]` in the column `chosen[r, i]`."""
    n, wanted = chosen.shape
    order = np.argsort(chosen, axis=None, kind="stable")
    rows, flat = order // wanted, values.ravel()[order]
    ends = np.cumsum(np.bincount(chosen.ravel(), minlength=among))
    columns = []
    for begin, end in zip(np.concatenate(([0], ends[:-1])), ends, strict=True):
        cells, valid = np.zeros(n, values.dtype), np.zeros(n, np.bool_)
        cells[rows[begin:end]], valid[rows[begin:end]] = flat[begin:end], True
        columns.append(mask_column(cells, valid))
    return columns


def to_floats(column: Any) -> FloatArray:
    """Return a column of numbers or truth values as floats, NaN for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    floats: FloatArray = np.asarray(pc.fill_null(pc.cast(column, pa.float64()), float("nan")).to_numpy())
    return floats


# Writing text ----------------------------------------------------------------------------------


def render_filters(columns: pa.Table) -> pa.Table:
    """Return subscriptions in columns as a table of `id` and `filter`, in text notation."""
    import pyarrow as pa
    import pyarrow.compute as pc

    attributes = group_by_attribute(columns.column_names)
    tests = [test for name, operators in attributes.items() for test in _render_tests(columns, name, operators)]
    filters = pc.binary_join_element_wise(*tests, " and ", null_handling="skip")
    return pa.table({"id": columns.column("id"), "filter": filters})


def _render_tests(columns: pa.Table, name: str, operators: dict[str, str]) -> list[Any]:
    """Return the tests of one attribute as columns of text, null where a row has none."""
    import pyarrow.compute as pc

    tests = []
    if "is" in operators:
        tests.append(_render_equality(name, columns.column(operators["is"])))
    if "within" in operators:
        areas = pc.cast(columns.column(operators["within"]), "string")
        tests.append(pc.binary_join_element_wise(f"{name} within ", areas, ""))
    ends = {operator: columns.column(column) for operator, column in operators.items() if operator in SIGNS}
    if ends:
        tests.append(_render_range(name, ends))
    return tests


def _render_equality(name: str, column: Any) -> Any:
    import pyarrow.compute as pc
    import pyarrow.types as t

    if not t.is_list(column.type):
        return pc.binary_join_element_wise(f"{name} = ", _render_literal(column), "")
    column = normalize_lists(column)
    listed = pc.binary_join(_with_values(column, _render_literal(column.values)), ", ")
    alone = pc.equal(pc.list_value_length(column), 1)
    single = pc.binary_join_element_wise(f"{name} = ", listed, "")
    several = pc.binary_join_element_wise(f"{name} in (", listed, ")", "")
    return pc.if_else(alone, single, several)


def normalize_lists(column: Any) -> Any:
    """Return a column of lists as one array whose offsets start at zero, even if the column is a slice."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), column.flatten(), mask=column.is_null())


def _with_values(column: Any, values: Any) -> Any:
    import pyarrow as pa

    return pa.ListArray.from_arrays(column.offsets, values, mask=column.is_null())


def _render_literal(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as t

    if t.is_string(column.type) or t.is_large_string(column.type):
        plain = pc.replace_substring(pc.replace_substring(column, "\\", "\\\\"), "'", "\\'")
        return pc.binary_join_element_wise("'", plain, "'", "")
    return pc.cast(column, pa.string())


def _render_range(name: str, ends: dict[str, Any]) -> Any:
    """Return the ends of a range as text: both ends as one range, a single one as a comparison."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(next(iter(ends.values())))
    nothing = pa.nulls(count, pa.string())
    literals = {operator: _render_literal(column) for operator, column in ends.items()}
    low = pc.coalesce(_join("[", literals.get("from", nothing)), _join("(", literals.get("above", nothing)))
    high = pc.coalesce(_join(literals.get("to", nothing), "]"), _join(literals.get("below", nothing), ")"))
    both = pc.binary_join_element_wise(f"{name} in ", low, " .. ", high, "")
    single = [_join(f"{name} {SIGNS[operator]} ", column) for operator, column in literals.items()]
    return pc.coalesce(both, *single)


def _join(first: Any, second: Any) -> Any:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(first, second, "")
