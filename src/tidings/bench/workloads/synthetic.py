"""Conjunctions of ranges and of equalities over plain numbers: the workloads that matchers publish figures on.

The expected number of matches follows from the parameters alone: tests on different attributes are independent, so
their selectivities multiply.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from tidings.bench.workloads.seeded_workload import Workload
from tidings.bench.workloads.workload_columns import draw_sparse, draw_subsets, mask_column

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.random import Generator
    from numpy.typing import NDArray

    from tidings.kernels.array_types import BoolArray

DOMAIN = 1_000_000
"""Integer attributes of `ranges` lie below this."""

EXACT = 1_000_000
"""The numbers of `hem` are multiples of one part in so many."""


def build_ranges(*, wanted: int = 10, attributes: int = 20, width: float = 0.3) -> Workload:
    """Closed integer ranges of one width on some of the attributes; events carry all of them."""
    names, span = _name_attributes(attributes), round(width * DOMAIN)

    def draw_columns(n: int, rng: Generator) -> dict[str, pa.Array]:
        has_range = _draw_mask(rng, n, wanted=wanted, attributes=attributes)
        lows = rng.integers(0, DOMAIN - span, (attributes, n), dtype=np.int32, endpoint=True)
        return _make_ranges(names, lows, lows + np.int32(span), has_range)

    return Workload(
        key="ranges",
        description=f"{wanted} integer ranges on {wanted} of {attributes} attributes, {width:g} of the domain each",
        expected=lambda n: n * ((span + 1) / (DOMAIN + 1)) ** wanted,
        tolerance=0.35,
        make_events=lambda count, rng: _name_rows(names, rng.integers(0, DOMAIN, (attributes, count))),
        make_columns=draw_columns,
        schema=dict.fromkeys(names, "number"),
        peers={"mokaccino": 2_000, "duckdb": 100_000, "numpy": 100_000},
    )


def build_ranges_float(*, wanted: int = 10, attributes: int = 20, width: float = 0.3) -> Workload:
    """Closed ranges of floats from 0 to 1 on some of the attributes; events carry all of them."""
    names = _name_attributes(attributes)

    def draw_columns(n: int, rng: Generator) -> dict[str, pa.Array]:
        has_range = _draw_mask(rng, n, wanted=wanted, attributes=attributes)
        lows = rng.random((attributes, n)) * (1 - width)
        return _make_ranges(names, lows, lows + width, has_range)

    return Workload(
        key="ranges-float",
        description=f"{wanted} ranges of floats on {wanted} of {attributes} attributes, {width:g} of the domain each",
        expected=lambda n: n * width**wanted,
        tolerance=0.35,
        make_events=lambda count, rng: _name_rows(names, rng.random((attributes, count))),
        make_columns=draw_columns,
        schema=dict.fromkeys(names, "number"),
        peers={"duckdb": 100_000, "numpy": 100_000},
    )


def build_hem(*, m: int = 10, delta: float = 0.5) -> Workload:
    """Ranges as in section 5 of the HEM paper: one on each attribute, high = low + delta, all kinds of ends evenly."""
    names, span = _name_attributes(m), round(delta * EXACT)

    def draw_columns(n: int, rng: Generator) -> dict[str, pa.Array]:
        ranges: dict[str, pa.Array] = {}
        for name in names:
            low = rng.integers(0, EXACT - span, n, endpoint=True)
            ends = rng.integers(0, 4, n)
            ranges[f"{name}_from"] = mask_column(low / EXACT, (ends & 1) == 0)
            ranges[f"{name}_above"] = mask_column(low / EXACT, (ends & 1) == 1)
            ranges[f"{name}_to"] = mask_column((low + span) / EXACT, (ends & 2) == 0)
            ranges[f"{name}_below"] = mask_column((low + span) / EXACT, (ends & 2) == 2)
        return ranges

    return Workload(
        key="hem",
        description=f"HEM section 5: {m} ranges of width {delta:g} on {m} attributes, open and closed ends evenly",
        expected=lambda n: n * delta**m,
        tolerance=0.25,
        make_events=lambda count, rng: _name_rows(names, rng.integers(0, EXACT, (m, count), endpoint=True) / EXACT),
        make_columns=draw_columns,
        schema=dict.fromkeys(names, "number"),
        peers={"duckdb": 100_000, "numpy": 100_000},
    )


def build_equalities(*, wanted: int = 3, attributes: int = 20, values: int = 50) -> Workload:
    """Equalities on some of the attributes; events carry all of them."""
    names = _name_attributes(attributes)
    return Workload(
        key="equalities",
        description=f"{wanted} equalities on {wanted} of {attributes} attributes of {values} values",
        expected=lambda n: n * float(values) ** -wanted,
        tolerance=0.25,
        make_events=lambda count, rng: _name_rows(names, rng.integers(0, values, (attributes, count))),
        make_columns=lambda n, rng: draw_sparse(rng, n, names, wanted=wanted, values=values, dtype=np.int32),
        schema=dict.fromkeys(names, "number"),
        peers={"mokaccino": 1_000_000, "duckdb": 100_000, "numpy": 100_000},
    )


def build_sparse(*, wanted: int = 3, attributes: int = 1000, values: int = 5, present: int = 20) -> Workload:
    """Equalities over many attributes, of which an event carries a few.

    With the 50 values of `equalities` nothing would ever match; five leave some fifty matches in 1,024 events
    at a million subscriptions, enough to check answers.
    """
    names = _name_attributes(attributes)
    share = comb(present, wanted) / comb(attributes, wanted) / values**wanted
    return Workload(
        key="sparse",
        description=f"{wanted} equalities over {attributes:,} attributes of {values} values; an event has {present}",
        expected=lambda n: n * share,
        tolerance=0.5,
        make_events=lambda count, rng: draw_sparse(rng, count, names, wanted=present, values=values),
        # One byte a cell: a thousand columns of a million rows have to fit.
        make_columns=lambda n, rng: draw_sparse(rng, n, names, wanted=wanted, values=values, dtype=np.int8),
        schema=dict.fromkeys(names, "number"),
        peers={"mokaccino": 1_000_000},
    )


def _name_attributes(count: int) -> list[str]:
    return [f"a{number}" for number in range(count)]


def _name_rows(names: list[str], rows: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
    return dict(zip(names, rows, strict=True))


def _draw_mask(rng: Generator, n: int, *, wanted: int, attributes: int) -> BoolArray:
    """Return a mask of attributes and rows: whether the row has a range on the attribute."""
    mask = np.zeros((attributes, n), np.bool_)
    mask[draw_subsets(rng, n, wanted=wanted, among=attributes), np.arange(n)[:, None]] = True
    return mask


def _make_ranges(
    names: list[str], lows: NDArray[np.generic], highs: NDArray[np.generic], mask: BoolArray
) -> dict[str, pa.Array]:
    columns = {}
    for name, low, high, valid in zip(names, lows, highs, mask, strict=True):
        columns[f"{name}_from"], columns[f"{name}_to"] = mask_column(low, valid), mask_column(high, valid)
    return columns
