"""Seeded workloads: subscriptions and events as functions of a size and a seed, so that two machines measure the same.

`workload(key)` makes one; `WORKLOADS` lists them. A key may carry parameters: `hem:m=5,delta=0.1`. Each says how
many matches to expect. Synthetic ones need only NumPy and Arrow; `used-cars` and `house-sales` need data that are
not part of the project. `car_ads` and `saved_searches` are a small market in plain Python, with everything the
language has.

>>> ranges = workload("ranges")
>>> round(ranges.expected(1_000_000), 1)
5.9
>>> ranges.columns(1000, seed=1).num_rows, ranges.events(10, seed=1).num_rows
(1000, 10)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.bench.workloads import boolean_trees, classifieds, concept_hierarchies, real_data, synthetic, titles
from tidings.bench.workloads.ads import CAR_SCHEMA, NOW, car_ads, saved_searches, zipf
from tidings.bench.workloads.real_data import data_folder
from tidings.bench.workloads.seeded_workload import Baseline, Workload, rows_of
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
    "ranges": synthetic.build_ranges,
    "ranges-float": synthetic.build_ranges_float,
    "equalities": synthetic.build_equalities,
    "hem": synthetic.build_hem,
    "classifieds": classifieds.build_classifieds,
    "sparse": synthetic.build_sparse,
    "boolean": boolean_trees.build_boolean,
    "boolean-and": boolean_trees.build_boolean_and,
    "text": titles.build_text,
    "concepts": concept_hierarchies.build_concepts,
    "geo": classifieds.build_geo,
    "used-cars": real_data.build_used_cars,
    "house-sales": real_data.build_house_sales,
}
"""The function that builds each workload, by key; its keyword arguments are the parameters of the key."""

MAX_PARAMETER = 100_000
"""Upper limit of parameters that count something, unless `_LIMITS` has a lower one."""

_LIMITS = {("sparse", "values"): 128, ("concepts", "height"): 10}
"""Lower limits: a value of `sparse` has one byte, and the trees of `concepts` double with each level."""

_SUBSETS = (("wanted", "attributes"), ("wanted", "present"), ("present", "attributes"))
"""Pairs of parameters of which the first counts a subset of the second."""


def workload(key: str) -> Workload:
    """Return the workload of this key, which may carry parameters.

    >>> workload("hem:m=2,delta=0.5").expected(1000)
    250.0
    """
    name, _, arguments = key.partition(":")
    if name not in WORKLOADS:
        way_out = did_you_mean(name, WORKLOADS) or f"; there are {', '.join(WORKLOADS)}"
        msg = f"unknown workload `{name}`{way_out}"
        raise TidingsError(msg)
    parameters = dict(_parse_parameter(piece, key) for piece in arguments.split(",") if piece)
    allowed = WORKLOADS[name].__kwdefaults__ or {}
    for unknown in parameters.keys() - allowed.keys():
        listed = ", ".join(allowed) or "none"
        msg = f"the workload `{name}` has no parameter `{unknown}`; it has {listed}"
        raise TidingsError(msg)
    _check(key, name, parameters, allowed)
    chosen = WORKLOADS[name](**parameters)
    return replace(chosen, key=key) if parameters else chosen


def _check(key: str, name: str, parameters: dict[str, float], defaults: dict[str, float]) -> None:
    """Refuse parameters that are out of range."""
    for parameter, value in parameters.items():
        most = _LIMITS.get((name, parameter), MAX_PARAMETER)
        if isinstance(defaults[parameter], int):
            right, range_ = isinstance(value, int) and 1 <= value <= most, f"a whole number from 1 to {most:,}"
        else:
            right, range_ = 0 < value <= 1, "a share: more than 0, at most 1"
        if not right:
            msg = f"the parameter `{parameter}={value}` of `{key}` is out of range; it is {range_}"
            raise TidingsError(msg)
    values = {**defaults, **parameters}
    for some, among in _SUBSETS:
        if some in values and among in values and values[some] > values[among]:
            msg = f"`{key}` has `{some}={values[some]}` of `{among}={values[among]}`; there cannot be more of them"
            raise TidingsError(msg)


def _parse_parameter(piece: str, key: str) -> tuple[str, float]:
    name, _, value = piece.partition("=")
    try:
        return name.strip(), int(value) if value.strip().isdigit() else float(value)
    except ValueError:
        msg = f"cannot read `{piece}` in `{key}`; parameters are numbers, as in `hem:m=5,delta=0.1`"
        raise TidingsError(msg) from None
