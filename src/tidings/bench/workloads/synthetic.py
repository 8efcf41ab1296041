"""Conjunctions of ranges and of equalities over plain numbers: the workloads that matchers publish figures on.

What to expect follows from the parameters alone: tests on different attributes are independent, so shares
multiply.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.bench.workloads.base import Workload
from tidings.bench.workloads.parameter_forms import ids, some_of, spread, where

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.random import Generator
    from numpy.typing import NDArray

DOMAIN = 1_000_000
"""Integer attributes of `ranges` lie below this."""

EXACT = 1_000_000
"""HEM's numbers are multiples of one part in so many."""


def _names(count: int) -> list[str]:
    return [f"a{number}" for number in range(count)]


def _numbers(names: list[str]) -> dict[str, str]:
    return dict.fromkeys(names, "number")


def ranges(*, wanted: int = 10, attributes: int = 20, width: float = 0.3) -> Workload:
    """Closed integer ranges of one width on some of the attributes; events carry all of them."""
    names, span = _names(attributes), round(width * DOMAIN)

    def columns(n: int, rng: Generator) -> pa.Table:
        given = _chosen(rng, n, wanted=wanted, attributes=attributes)
        lows = rng.integers(0, DOMAIN - span, (attributes, n), dtype=np.int32, endpoint=True)
        return _table(n, _closed(names, lows, lows + np.int32(span), given))

    def events(count: int, rng: Generator) -> pa.Table:
        return _events(names, rng.integers(0, DOMAIN, (attributes, count)))

    share = ((span + 1) / (DOMAIN + 1)) ** wanted
    return Workload(
        key="ranges",
        description=f"{wanted} integer ranges on {wanted} of {attributes} attributes, {width:g} of the domain each",
        expected=lambda n: n * share,
        tolerance=0.35,
        make_events=events,
        make_columns=columns,
        schema=_numbers(names),
        peers={"mokaccino": 2_000, "duckdb": 100_000, "numpy": 100_000},
    )


def ranges_float(*, wanted: int = 10, attributes: int = 20, width: float = 0.3) -> Workload:
    """The same on numbers from 0 to 1 with all their digits."""
    names = _names(attributes)

    def columns(n: int, rng: Generator) -> pa.Table:
        given = _chosen(rng, n, wanted=wanted, attributes=attributes)
        lows = rng.random((attributes, n)) * (1 - width)
        return _table(n, _closed(names, lows, lows + width, given))

    def events(count: int, rng: Generator) -> pa.Table:
        return _events(names, rng.random((attributes, count)))

    return Workload(
        key="ranges-float",
        description=f"{wanted} ranges of floats on {wanted} of {attributes} attributes, {width:g} of the domain each",
        expected=lambda n: n * width**wanted,
        tolerance=0.35,
        make_events=events,
        make_columns=columns,
        schema=_numbers(names),
        peers={"duckdb": 100_000, "numpy": 100_000},
    )


def hem(*, m: int = 10, delta: float = 0.5) -> Workload:
    """Ranges as in section 5 of the HEM paper: one on each attribute, high = low + delta, all kinds of ends evenly."""
    names, span = _names(m), round(delta * EXACT)

    def columns(n: int, rng: Generator) -> pa.Table:
        found: dict[str, Any] = {}
        for name in names:
            low = rng.integers(0, EXACT - span, n, endpoint=True)
            ends = rng.integers(0, 4, n)
            found[f"{name}_from"] = where(low / EXACT, (ends & 1) == 0)
            found[f"{name}_above"] = where(low / EXACT, (ends & 1) == 1)
            found[f"{name}_to"] = where((low + span) / EXACT, (ends & 2) == 0)
            found[f"{name}_below"] = where((low + span) / EXACT, (ends & 2) == 2)
        return _table(n, found)

    def events(count: int, rng: Generator) -> pa.Table:
        return _events(names, rng.integers(0, EXACT, (m, count), endpoint=True) / EXACT)

    return Workload(
        key="hem",
        description=f"HEM section 5: {m} ranges of width {delta:g} on {m} attributes, open and closed ends evenly",
        expected=lambda n: n * delta**m,
        tolerance=0.25,
        make_events=events,
        make_columns=columns,
        schema=_numbers(names),
        peers={"duckdb": 100_000, "numpy": 100_000},
    )


def equalities(*, wanted: int = 3, attributes: int = 20, values: int = 50) -> Workload:
    """Equalities on some of the attributes; events carry all of them."""
    names = _names(attributes)

    def columns(n: int, rng: Generator) -> pa.Table:
        chosen = some_of(rng, n, wanted=wanted, among=attributes)
        given = spread(chosen, rng.integers(0, values, chosen.shape, dtype=np.int32), attributes)
        return _table(n, dict(zip(names, given, strict=True)))

    def events(count: int, rng: Generator) -> pa.Table:
        return _events(names, rng.integers(0, values, (attributes, count)))

    return Workload(
        key="equalities",
        description=f"{wanted} equalities on {wanted} of {attributes} attributes of {values} values",
        expected=lambda n: n * float(values) ** -wanted,
        tolerance=0.25,
        make_events=events,
        make_columns=columns,
        schema=_numbers(names),
        peers={"mokaccino": 1_000_000, "duckdb": 100_000, "numpy": 100_000},
    )


def sparse(*, wanted: int = 3, attributes: int = 1000, values: int = 5, present: int = 20) -> Workload:
    """Equalities over many attributes, of which an event carries a few.

    With the 50 values of `equalities` nothing would ever match; five leave some fifty matches in 1,024 events
    at a million subscriptions, enough to check an answer by.
    """
    names = _names(attributes)

    def columns(n: int, rng: Generator) -> pa.Table:
        chosen = some_of(rng, n, wanted=wanted, among=attributes)
        # One byte a cell: a thousand columns of a million rows have to fit.
        given = spread(chosen, rng.integers(0, values, chosen.shape, dtype=np.int8), attributes)
        return _table(n, dict(zip(names, given, strict=True)))

    def events(count: int, rng: Generator) -> pa.Table:
        import pyarrow as pa

        chosen = some_of(rng, count, wanted=present, among=attributes)
        given = spread(chosen, rng.integers(0, values, chosen.shape), attributes)
        return pa.table(dict(zip(names, given, strict=True)))

    share = comb(present, wanted) / comb(attributes, wanted) / values**wanted
    return Workload(
        key="sparse",
        description=f"{wanted} equalities over {attributes:,} attributes of {values} values; an event has {present}",
        expected=lambda n: n * share,
        tolerance=0.5,
        make_events=events,
        make_columns=columns,
        schema=_numbers(names),
        peers={"mokaccino": 1_000_000},
    )


def _chosen(rng: Generator, n: int, *, wanted: int, attributes: int) -> NDArray[np.bool_]:
    """Tell for each attribute and row whether the row has a range there."""
    given = np.zeros((attributes, n), np.bool_)
    given[some_of(rng, n, wanted=wanted, among=attributes), np.arange(n)[:, None]] = True
    return given


def _closed(names: list[str], lows: NDArray[Any], highs: NDArray[Any], given: NDArray[np.bool_]) -> dict[str, pa.Array]:
    found = {}
    for name, low, high, there in zip(names, lows, highs, given, strict=True):
        found[f"{name}_from"], found[f"{name}_to"] = where(low, there), where(high, there)
    return found


def _table(n: int, columns: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    return pa.table({"id": ids(n), **columns})


def _events(names: list[str], values: NDArray[Any]) -> pa.Table:
    import pyarrow as pa

    return pa.table({name: pa.array(row) for name, row in zip(names, values, strict=True)})
