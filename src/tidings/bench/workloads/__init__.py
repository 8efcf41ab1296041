"""Seeded workloads: subscriptions and events as functions of a size and a seed, so that two machines measure the same.

`workload(key)` makes one; `WORKLOADS` lists them. A key may carry parameters: `hem:m=5,delta=0.1`. Each says how
many matches to expect. Made-up ones need nothing but NumPy and Arrow; `used-cars` and `house-sales` need data that
are not part of the project. `car_ads` and `saved_searches` are a small market in plain Python, with everything the
language has.

>>> ranges = workload("ranges")
>>> round(ranges.expected(1_000_000), 1)
5.9
>>> ranges.columns(1000, seed=1).num_rows, ranges.events(10, seed=1).num_rows
(1000, 10)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.bench.workloads.ads import CAR_SCHEMA, NOW, car_ads, saved_searches, zipf
from tidings.bench.workloads.base import Baseline, Workload, rows_of
from tidings.bench.workloads.boolean_trees import boolean, boolean_and
from tidings.bench.workloads.classifieds import classifieds, geo
from tidings.bench.workloads.concept_hierarchies import concepts
from tidings.bench.workloads.real_data import data_folder, house_sales, used_cars
from tidings.bench.workloads.synthetic import equalities, hem, ranges, ranges_float, sparse
from tidings.bench.workloads.titles import text
from tidings.concepts.spelling import did_you_mean
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CAR_SCHEMA",
    "NOW",
    "WORKLOADS",
    "Baseline",
    "Workload",
    "car_ads",
    "data_folder",
    "rows_of",
    "saved_searches",
    "workload",
    "zipf",
]

WORKLOADS: dict[str, Callable[..., Workload]] = {
    "ranges": ranges,
    "ranges-float": ranges_float,
    "equalities": equalities,
    "hem": hem,
    "classifieds": classifieds,
    "sparse": sparse,
    "boolean": boolean,
    "boolean-and": boolean_and,
    "text": text,
    "concepts": concepts,
    "geo": geo,
    "used-cars": used_cars,
    "house-sales": house_sales,
}
"""One line for each workload: its key and how to make it."""

MOST = 100_000
"""No parameter that counts something goes beyond this, unless `_LESS` says less."""

_LESS = {("sparse", "values"): 128, ("concepts", "height"): 10}
"""A value of `sparse` has one byte, and the trees of `concepts` double with each level."""

_AMONG = (("wanted", "attributes"), ("wanted", "present"), ("present", "attributes"))
"""Parameters that say how many of another one."""


def workload(key: str) -> Workload:
    """Return the workload of this key, which may carry parameters.

    >>> workload("hem:m=2,delta=0.5").expected(1000)
    250.0
    """
    from dataclasses import replace

    name, _, given = key.partition(":")
    if name not in WORKLOADS:
        way_out = did_you_mean(name, WORKLOADS) or f"; there are {', '.join(WORKLOADS)}"
        msg = f"unknown workload `{name}`{way_out}"
        raise TidingsError(msg)
    parameters = dict(_parameter(piece, key) for piece in given.split(",") if piece)
    allowed = WORKLOADS[name].__kwdefaults__ or {}
    for unknown in parameters.keys() - allowed.keys():
        known = ", ".join(allowed) or "none"
        msg = f"the workload `{name}` has no parameter `{unknown}`; it has {known}"
        raise TidingsError(msg)
    _check(key, name, parameters, allowed)
    made = WORKLOADS[name](**parameters)
    return replace(made, key=key) if parameters else made


def _check(key: str, name: str, given: dict[str, Any], defaults: dict[str, Any]) -> None:
    """Refuse parameters that no workload can be made of."""
    for one, value in given.items():
        most = _LESS.get((name, one), MOST)
        if isinstance(defaults[one], int):
            right, range_ = isinstance(value, int) and 1 <= value <= most, f"a whole number from 1 to {most:,}"
        else:
            right, range_ = 0 < value <= 1, "a share: more than 0, at most 1"
        if not right:
            msg = f"the parameter `{one}={value}` of `{key}` is out of range; it is {range_}"
            raise TidingsError(msg)
    said = {**defaults, **given}
    for some, among in _AMONG:
        if some in said and among in said and said[some] > said[among]:
            msg = f"`{key}` has `{some}={said[some]}` of `{among}={said[among]}`; there cannot be more of them"
            raise TidingsError(msg)


def _parameter(piece: str, key: str) -> tuple[str, Any]:
    name, _, value = piece.partition("=")
    try:
        return name.strip(), int(value) if value.strip().isdigit() else float(value)
    except ValueError:
        msg = f"cannot read `{piece}` in `{key}`; parameters are numbers, as in `hem:m=5,delta=0.1`"
        raise TidingsError(msg) from None
