"""Subscriptions in columns, made in bulk and written as text in bulk.

`Draft` gathers conditions attribute by attribute, `texts_of` writes a table of columns in text notation; both
work on whole columns, so a million subscriptions take seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

ENDS = {"_from": "low", "_above": "low", "_to": "high", "_below": "high"}
"""The endings of columns that are ends of a range."""

WITHIN = "_within"
"""The ending of a column of areas."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a column of subscriptions says: `is`, `from`, `to`, `above`, `below` or `within`, of an attribute."""

    attribute: str
    says: str
    column: str


def parameters(names: Sequence[str]) -> list[Parameter]:
    """Read the columns' names.

    >>> [(p.attribute, p.says) for p in parameters(["id", "make", "price_from"])]
    [('make', 'is'), ('price', 'from')]
    """
    found = []
    for name in names:
        ending = next((end for end in (*ENDS, WITHIN) if name.endswith(end)), None)
        if name != "id":
            found.append(Parameter(name.removesuffix(ending or ""), ending[1:] if ending else "is", name))
    return found


def attributes_of(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the columns of each attribute by what they say, in the order of the table."""
    found: dict[str, dict[str, str]] = {}
    for given in parameters(names):
        found.setdefault(given.attribute, {})[given.says] = given.column
    return found


# Making columns --------------------------------------------------------------------------------


def ids(n: int) -> pa.Array:
    """Return the ids `s0`, `s1`, ..."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pc.cast(pa.array(np.arange(n)), pa.string())
    return pc.binary_join_element_wise("s", numbers, "")


def where(values: NDArray[Any], given: NDArray[np.bool_]) -> pa.Array:
    """Return a column that is null where nothing is given."""
    import pyarrow as pa

    return pa.array(values, mask=~given)


def words(codes: NDArray[Any], vocabulary: Sequence[str]) -> pa.Array:
    """Return the words of a vocabulary by their numbers; below zero is null."""
    import pyarrow as pa

    places = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.array(list(vocabulary), pa.string()).take(places)


def shared_words(codes: NDArray[Any], vocabulary: Sequence[str]) -> pa.Array:
    """Return the same with each word kept once: for areas, which are long and repeat."""
    import pyarrow as pa

    places = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(places, pa.array(list(vocabulary), pa.string()))


def sets(codes: NDArray[Any], vocabulary: Sequence[str]) -> pa.Array:
    """Return lists of words from a matrix of numbers, a row for each list; below zero is no word, no word is null."""
    import pyarrow as pa

    used = codes >= 0
    sizes = used.sum(axis=1)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(starts), words(codes[used], vocabulary), mask=pa.array(sizes == 0, pa.bool_())
    )


def zipf_draw(rng: np.random.Generator, size: int | tuple[int, ...], count: int, exponent: float) -> NDArray[np.int64]:
    """Draw numbers below `count`, the n-th of them n ** -exponent times as often as the first."""
    shares = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)
    return np.asarray(np.searchsorted(shares, rng.random(size) * shares[-1]), np.int64)


def some_of(rng: np.random.Generator, n: int, *, wanted: int, among: int) -> NDArray[np.int64]:
    """Draw for each of `n` rows `wanted` different numbers below `among`, ascending."""
    if wanted * 8 > among:
        keys = rng.random((n, among), dtype=np.float32)
        return np.sort(np.argpartition(keys, wanted - 1, axis=1)[:, :wanted], axis=1).astype(np.int64)
    drawn = np.sort(rng.integers(0, among, (n, wanted)), axis=1)
    while len(twice := np.flatnonzero((drawn[:, 1:] == drawn[:, :-1]).any(axis=1))):
        drawn[twice] = np.sort(rng.integers(0, among, (len(twice), wanted)), axis=1)
    return drawn.astype(np.int64)


def spread(chosen: NDArray[np.int64], values: NDArray[Any], among: int) -> list[pa.Array]:
    """Return a column for each of `among` attributes from the chosen attributes and values of each row."""
    n, wanted = chosen.shape
    order = np.argsort(chosen, axis=None, kind="stable")
    rows, flat = order // wanted, values.ravel()[order]
    ends = np.cumsum(np.bincount(chosen.ravel(), minlength=among))
    columns = []
    for begin, end in zip(np.concatenate(([0], ends[:-1])), ends, strict=True):
        cells, given = np.zeros(n, values.dtype), np.zeros(n, np.bool_)
        cells[rows[begin:end]], given[rows[begin:end]] = flat[begin:end], True
        columns.append(where(cells, given))
    return columns


# Writing text ----------------------------------------------------------------------------------


def texts_of(columns: pa.Table) -> pa.Table:
    """Write subscriptions in columns as a table of `id` and `filter`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    tests = [_tests(columns, name, said) for name, said in attributes_of(columns.column_names).items()]
    found = [test for several in tests for test in several]
    filters = pc.binary_join_element_wise(*found, " and ", null_handling="skip")
    return pa.table({"id": columns.column("id"), "filter": filters})


def _tests(columns: pa.Table, name: str, said: dict[str, str]) -> list[Any]:
    import pyarrow.compute as pc

    tests = []
    if "is" in said:
        tests.append(_equality(name, columns.column(said["is"])))
    if "within" in said:
        areas = pc.cast(columns.column(said["within"]), "string")
        tests.append(pc.binary_join_element_wise(f"{name} within ", areas, ""))
    ends = {says: columns.column(column) for says, column in said.items() if f"_{says}" in ENDS}
    if ends:
        tests.append(_range(name, ends))
    return tests


def _equality(name: str, column: Any) -> Any:
    import pyarrow.compute as pc
    import pyarrow.types as t

    if not t.is_list(column.type):
        return pc.binary_join_element_wise(f"{name} = ", _literal(column), "")
    column = lists_of(column)
    listed = pc.binary_join(_with_values(column, _literal(column.values)), ", ")
    alone = pc.equal(pc.list_value_length(column), 1)
    one = pc.binary_join_element_wise(f"{name} = ", listed, "")
    several = pc.binary_join_element_wise(f"{name} in (", listed, ")", "")
    return pc.if_else(alone, one, several)


def lists_of(column: Any) -> Any:
    """Return a column of lists as one array that begins at its beginning, whatever it was cut from."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), column.flatten(), mask=column.is_null())


def _with_values(column: Any, values: Any) -> Any:
    import pyarrow as pa

    return pa.ListArray.from_arrays(column.offsets, values, mask=column.is_null())


def _literal(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as t

    if t.is_string(column.type) or t.is_large_string(column.type):
        plain = pc.replace_substring(pc.replace_substring(column, "\\", "\\\\"), "'", "\\'")
        return pc.binary_join_element_wise("'", plain, "'", "")
    return pc.cast(column, pa.string())


def _range(name: str, ends: dict[str, Any]) -> Any:
    """Write the ends: both as one range, a single one as a comparison."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(next(iter(ends.values())))
    nothing = pa.nulls(count, pa.string())
    written = {says: _literal(column) for says, column in ends.items()}
    low = pc.coalesce(_join("[", written.get("from", nothing)), _join("(", written.get("above", nothing)))
    high = pc.coalesce(_join(written.get("to", nothing), "]"), _join(written.get("below", nothing), ")"))
    both = pc.binary_join_element_wise(f"{name} in ", low, " .. ", high, "")
    signs = {"from": ">=", "above": ">", "to": "<=", "below": "<"}
    single = [_join(f"{name} {signs[says]} ", column) for says, column in written.items()]
    return pc.coalesce(both, *single)


def _join(first: Any, second: Any) -> Any:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(first, second, "")
