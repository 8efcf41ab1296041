"""Figures 10 a-c of P-ToPSS: precision of forecasts on made streams, `python -m benchmarks.papers.p_topss.figure_10`.

Models are trained on one stream and tested on another: with more partial matches than in training (a), with the same
distribution (b), and trained on a gaussian stream, tested on a uniform one (c). Alarms of all subscriptions are added
up. Test streams have another seed than training streams, also where the distribution is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from benchmarks.papers.p_topss.chains import StateSpace, build_space, compute_printed
from benchmarks.papers.p_topss.ours import build_cells, compute_chances, train_model
from benchmarks.papers.p_topss.predicting import (
    LOOKAHEADS,
    THRESHOLDS,
    Alarms,
    build_constant,
    build_threshold_lines,
    compute_skill,
    count_alarms,
    count_outcomes,
    sum_square_errors,
)
from benchmarks.studies import Chart, Line, Study
from tidings.bench.workloads.composites import IRRELEVANT, composites, name_of, publications
from tidings.model import Schema
from tidings.model.patterns import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from tidings.bench.workloads.composites import PublicationStream, Shape
    from tidings.model.patterns import Pattern

TITLE = "P-ToPSS, Figures 10 a-c"
QUOTA, POOL = 20, 50
"""N_pm and N_fm, and the event pool, as printed."""

RATIOS = {"1:1": 1, "1:2": 2, "1:4": 4}
"""Full to partial matches in the test streams of Figure 10(a); in training, and in b and c, they are as many."""

SCHEMA = Schema({"type": "text"})
"""An event has one type: filters for two of them exclude each other."""

WHO = {"paper": "the paper's chain as printed", "ours": "ours"}
MODE = Mode.OVERLAP
"""What the paper's machine does."""

CLAIMED = ("over_lookahead", "over_threshold", "settles", "over_partial", "gaussian", "converges")
FACTS = (
    *(f"{who}_precision_{name}" for who in WHO for name in CLAIMED),
    "ours_synthetic_skill",
    "paper_synthetic_skill",
)


class Tested:
    """Alarms and squared errors of one forecaster on one test stream."""

    def __init__(self) -> None:
        """Start with none."""
        self.alarms = Alarms(*np.zeros((2, len(LOOKAHEADS), len(THRESHOLDS)), np.int64))
        self.errors, self.base = np.zeros((2, len(LOOKAHEADS)))

    def note(self, p: NDArray[np.float64], states: NDArray[np.int32], space: StateSpace) -> None:
        """Add the alarms and errors of one subscription's forecasts."""
        outcomes = count_outcomes(states, space.final[states], len(space))
        self.alarms = self.alarms + count_alarms(p, outcomes)
        self.errors += sum_square_errors(p, outcomes)
        self.base += sum_square_errors(build_constant(outcomes.base, outcomes), outcomes)


ResultsByTest: TypeAlias = dict[tuple[str, str], Tested]
"""By who forecasts, and by the test: a ratio, or `gaussian`."""


def measure_figure_10(n: int, *, seed: int, say: Callable[[str], None]) -> Study:
    """Return charts, facts and notes for this number of subscriptions."""
    patterns = composites(n, pool=POOL, seed=seed)
    say(f"figure 10: streams of {n} subscriptions")
    train: dict[str, PublicationStream] = {
        shape: _stream(patterns, shape, 1, seed + 1) for shape in ("uniform", "gaussian")
    }
    test = {name: _stream(patterns, "uniform", ratio, seed + 2) for name, ratio in RATIOS.items()}
    results: ResultsByTest = {}
    for who, words in WHO.items():
        say(f"figure 10: {words}")
        for name in (*RATIOS, "gaussian"):
            results[who, name] = Tested()
        _forecast(who, patterns, train, test, results)
    notes = [
        f"Figure 10: {n} patterns in `{MODE}`, N_pm = N_fm = {QUOTA}, {len(train['uniform']):,} events to train on,"
        f" {len(test['1:1']):,} to test on, {len(test['1:4']):,} with four times as many partial matches"
    ]
    return Study(TITLE, _build_charts(results), _compute_facts(results), tuple(notes))


def _stream(patterns: list[Pattern], shape: Shape, ratio: int, seed: int) -> PublicationStream:
    return publications(patterns, shape=shape, partial=QUOTA * ratio, full=QUOTA, pool=POOL, seed=seed)


def _forecast(
    who: str,
    patterns: list[Pattern],
    train: dict[str, PublicationStream],
    test: dict[str, PublicationStream],
    results: ResultsByTest,
) -> None:
    """Train on both streams, then test: the gaussian model on the first test stream alone."""
    for shape, stream in train.items():
        tests = {"gaussian": test["1:1"]} if shape == "gaussian" else test
        for space, p in _train(who, patterns, stream):
            for name, other in tests.items():
                results[who, name].note(p, space.walk(_to_symbols(space, other)), space)


def _train(
    who: str, patterns: list[Pattern], stream: PublicationStream
) -> Iterator[tuple[StateSpace, NDArray[np.float64]]]:
    """Yield each subscription's states, or cells, with their forecasts."""
    if who == "ours":
        model = train_model(patterns, stream.table(), MODE)
        for number in range(len(patterns)):
            yield build_cells(model, str(number)), compute_chances(model, str(number), len(LOOKAHEADS))
        return
    for pattern in patterns:
        space = build_space(pattern, MODE, SCHEMA)
        symbols = _to_symbols(space, stream)
        yield space, compute_printed(space, space.count_moves(symbols, space.walk(symbols)), len(LOOKAHEADS))


def _to_symbols(space: StateSpace, stream: PublicationStream) -> NDArray[np.int64]:
    return space.to_symbols([name_of(number) for number in range(POOL + IRRELEVANT)], stream.types)


# Facts -----------------------------------------------------------------------------------------


def _compute_facts(results: ResultsByTest) -> dict[str, float]:
    facts: dict[str, float] = {}
    for who in WHO:
        same, more, gaussian = (results[who, name].alarms for name in ("1:1", "1:4", "gaussian"))
        low, middle, high = (_pool_alarms(same)[place] for place in (1, THRESHOLDS.index(0.5), -1))
        facts |= {
            f"{who}_precision_over_lookahead": _divide(
                _compute_mean(same.precision[-1]), _compute_mean(same.precision[0])
            ),
            f"{who}_precision_over_threshold": _divide(high, low),
            f"{who}_precision_settles": _divide(high - middle, middle - low),
            f"{who}_precision_over_partial": _divide(_compute_mean(more.precision), _compute_mean(same.precision)),
            f"{who}_precision_gaussian": _divide(_compute_mean(gaussian.precision), _compute_mean(same.precision)),
            f"{who}_precision_converges": _compute_distance(same.precision[:, THRESHOLDS.index(0.9)]),
            f"{who}_synthetic_skill": float(compute_skill(results[who, "1:1"].errors, results[who, "1:1"].base).min()),
        }
    return facts


def _pool_alarms(alarms: Alarms) -> NDArray[np.float64]:
    """Return the precision over all lookaheads together, by threshold; the last known one where there are no alarms."""
    together = Alarms(alarms.true.sum(axis=0), alarms.false.sum(axis=0)).precision
    last = np.maximum.accumulate(np.where(np.isnan(together), 0, np.arange(len(together))))
    return together[last]


def _compute_mean(precision: NDArray[np.float64]) -> float:
    """Return the mean over thresholds above 0, where there are alarms."""
    numbers = precision[..., 1:][~np.isnan(precision[..., 1:])]
    return float(numbers.mean()) if len(numbers) else float("nan")


def _divide(mine: float, other: float) -> float:
    return float(mine) / float(other) if other else float("nan")


def _compute_distance(values: NDArray[np.float64]) -> float:
    numbers = values[~np.isnan(values)]
    return float(np.ptp(numbers)) if len(numbers) else float("nan")


# Charts ----------------------------------------------------------------------------------------


def _build_charts(results: ResultsByTest) -> tuple[Chart, ...]:
    charts = []
    for who, name in WHO.items():
        lines = [
            Line(f"{ratio} full to partial, {line.name}", line.points)
            for ratio in RATIOS
            for line in build_threshold_lines(results[who, ratio].alarms.precision, (1, 5, 10))
        ]
        title = f"{name}: precision, with more partial matches than in training"
        charts.append(Chart(f"figure-10a-{who}", title, "threshold", "precision", tuple(lines)))
        for letter, test, words in (("b", "1:1", "same distribution"), ("c", "gaussian", "trained on gaussian")):
            alarms = results[who, test].alarms
            for measure, values in (
                ("precision", alarms.precision),
                ("true alarms", alarms.true),
                ("false alarms", alarms.false),
            ):
                key = f"figure-10{letter}-{who}-{measure.replace(' alarms', '')}"
                charts.append(
                    Chart(key, f"{name}: {measure}, {words}", "threshold", measure, build_threshold_lines(values))
                )
    return tuple(charts)


def main() -> None:
    """Print facts and notes."""
    results = measure_figure_10(30, seed=1, say=print)
    print("\n".join([*results.notes, *(f"{name}: {value:.4g}" for name, value in results.facts.items())]))


if __name__ == "__main__":
    main()
