"""Five-fold cross-validation over cities: each fold is forecast by a model of the other four.

The cities of the US and the others are dealt into folds apart, so "together" has both in every fold. Counts add up:
each fold's is taken once, and a model of four folds is their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.p_topss.chains import (
    StateSpace,
    build_hand_made,
    compute_exactly,
    compute_first_passage,
    compute_printed,
    find_bands,
    generate_space,
)
from benchmarks.papers.p_topss.predicting import (
    LOOKAHEADS,
    Alarms,
    Outcomes,
    add_outcomes,
    build_constant,
    count_alarms,
    count_outcomes,
    sum_square_errors,
)
from tidings.model.patterns import Mode

if TYPE_CHECKING:
    from benchmarks.papers.p_topss.heat import CityTemperatures

FOLDS = 5
GROUPS = {"US": ("US",), "INTL": ("INTL",), "together": ("US", "INTL")}
"""Whose cities are trained on and forecast."""

Part: TypeAlias = tuple[str, int]
"""A group of cities, US or others, and a fold."""

Estimate: TypeAlias = Callable[[StateSpace, Any, int], NDArray[np.float64]]
"""What makes `p[lookahead, state]` of a space and its counts."""

MODES = (Mode.OVERLAP, Mode.RESTART)


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """A model run through the cities of each part: its counts there, and the outcomes observed in its states."""

    space: StateSpace
    counts: dict[Part, Any]
    seen: dict[Part, Outcomes]

    def sum_counts(self, part_of: list[Part]) -> Any:
        """Return the counts of several parts together."""
        first, *rest = (self.counts[part] for part in part_of)
        for counts in rest:
            first = first + counts
        return first


@dataclass(frozen=True, slots=True, eq=False)
class FoldResult:
    """One fold's forecasts: alarms, and sums of squared errors by lookahead, also those of two base rates."""

    alarms: Alarms
    errors: NDArray[np.float64]
    base_of_training: NDArray[np.float64]
    base_of_test: NDArray[np.float64]
    decided: NDArray[np.int64]


def deal_cities(cities: Sequence[CityTemperatures], *, seed: int) -> dict[Part, list[CityTemperatures]]:
    """Split the cities of each group into folds."""
    rng, parts = np.random.default_rng(seed), {}
    for (group,) in (GROUPS["US"], GROUPS["INTL"]):
        mine = [city for city in cities if city.group == group]
        order = rng.permutation(len(mine)).tolist()
        for fold in range(FOLDS):
            parts[group, fold] = [mine[place] for place in order[fold::FOLDS]]
    return parts


def walk_cities(
    space: StateSpace,
    symbols_of: Callable[[CityTemperatures], NDArray[np.int64]],
    parts: dict[Part, list[CityTemperatures]],
) -> Walked:
    """Follow a space through every city and count."""
    counts, outcomes = {}, {}
    for part, cities in parts.items():
        read = [symbols_of(city) for city in cities]
        states = [space.walk(symbols) for symbols in read]
        counts[part] = sum(space.count_moves(*both) for both in zip(read, states, strict=True))
        outcomes[part] = add_outcomes(count_outcomes(mine, space.final[mine], len(space)) for mine in states)
    return Walked(space, counts, outcomes)


def validate_model(model: Walked, estimate: Estimate, group: str) -> list[FoldResult]:
    """Return the result of each fold of a group."""
    return [_fold(model, estimate, GROUPS[group], fold) for fold in range(FOLDS)]


def _fold(model: Walked, estimate: Estimate, groups: tuple[str, ...], fold: int) -> FoldResult:
    parts = [part for part in model.seen if part[0] in groups]
    rest = [part for part in parts if part[1] != fold]
    test = add_outcomes(model.seen[part] for part in parts if part[1] == fold)
    trained = add_outcomes(model.seen[part] for part in rest)
    p = estimate(model.space, model.sum_counts(rest), len(LOOKAHEADS))
    return FoldResult(
        count_alarms(p, test),
        sum_square_errors(p, test),
        sum_square_errors(build_constant(trained.base, test), test),
        sum_square_errors(build_constant(test.base, test), test),
        test.decided.sum(axis=1),
    )


# The chains in numpy ---------------------------------------------------------------------------


def find_hot_days(city: CityTemperatures) -> NDArray[np.int64]:
    """Return 1 for hot days."""
    return city.hot.astype(np.int64)


def build_models(parts: dict[Part, list[CityTemperatures]], mode: Mode) -> dict[str, Walked]:
    """Return the paper's two models, followed through the cities."""
    return {
        "generated": walk_cities(generate_space(mode), find_hot_days, parts),
        "hand-made": walk_cities(build_hand_made(mode), lambda city: find_bands(city.celsius), parts),
    }


FORMULAS: dict[str, Estimate] = {
    "as printed": compute_printed,
    "first passage": compute_first_passage,
    "n-th power alone": compute_exactly,
}
"""How probabilities are made of counts: sections 5.2.2 (b) and, last, (a)."""
