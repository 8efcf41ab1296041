"""Figure 11 of P-ToPSS: heat waves in 324 cities, `python -m benchmarks.papers.p_topss.figure_11`.

Forecast of five days above 30 C in a row, by the generated model (the pattern's own states), the hand-made one (1,365
words of temperature bands) and ours. Every city is forecast by a model of cities of other folds. The paper's pictures
are not in its text: its sentences are the claims; lookaheads of 1 to 10 days and thresholds up to 0.95 are chosen.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from benchmarks.papers.p_topss import heat
from benchmarks.papers.p_topss.chains import to_dense
from benchmarks.papers.p_topss.folds import (
    FORMULAS,
    GROUPS,
    MODES,
    FoldResult,
    build_models,
    deal_cities,
    validate_model,
)
from benchmarks.papers.p_topss.ours import ENTRANTS, OURS, follow_cities
from benchmarks.papers.p_topss.predicting import LOOKAHEADS, THRESHOLDS, build_threshold_lines, compute_skill
from benchmarks.studies import Chart, Line, Study
from tidings.bench.harness.timing import Clock, Figure, measure_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from benchmarks.papers.p_topss.folds import Walked
    from benchmarks.papers.p_topss.predicting import Alarms
    from tidings.model.patterns import Mode

FoldResults: TypeAlias = dict[tuple[str, str], list[FoldResult]]
"""The five folds of an entrant in a group of cities."""

TITLE = "P-ToPSS, Figure 11"
GENERATED, HAND_MADE = "generated, as printed", "hand-made, as printed"
FAR = slice(5, None)
"""Lookaheads of six days and more: the paper's "longer"."""

CLAIMED = (
    "true_alarms",
    "false_alarms",
    "silent_from",
    "true_above_09",
    "true_above_09_exactly",
    "precision",
    "skill_of_base",
    "skill_of_training_base",
    "skill_of_printed",
)
"""What is claimed in each mode."""

FACTS = (*(f"heat_{mode}_{name}" for mode in MODES for name in CLAIMED), "heat_states", "heat_time")


def measure_figure_11(*, seed: int, say: Callable[[str], None], real: bool = True) -> Study:
    """Return charts, facts and notes; without the archive, or without real data, the facts are NaN."""
    if not real or not heat.is_present():
        facts = dict.fromkeys(FACTS, float("nan"))
        return Study(TITLE, (), facts, ("no temperatures here (set TIDINGS_DATA): Figure 11 was left out",))
    cities, cleaning = heat.read()
    parts = deal_cities(cities, seed=seed)
    charts: list[Chart] = []
    facts = {}
    notes = [f"temperatures: {line.strip()}" for line in cleaning.format_lines()]
    for mode in MODES:
        say(f"figure 11: `{mode}`")
        paper = build_models(parts, mode)
        results = {**_describe_paper(paper), **follow_cities(parts, mode)}
        charts += _build_charts(results, mode)
        facts |= {f"heat_{mode}_{name}": value for name, value in _compute_facts(results).items()}
        notes += _write_notes(results, mode)
    return Study(TITLE, tuple(charts), {**facts, **_compare_costs(paper)}, tuple(notes))


def _describe_paper(paper: dict[str, Walked]) -> FoldResults:
    return {
        (f"{name}, {formula}", group): validate_model(model, estimate, group)
        for name, model in paper.items()
        for formula, estimate in FORMULAS.items()
        for group in GROUPS
    }


# Facts -----------------------------------------------------------------------------------------


def _compute_facts(results: FoldResults) -> dict[str, float]:
    """Return the facts that decide the claims; of several folds and groups, the least favourable."""
    generated, hand_made = (pool_alarms(results, name) for name in (GENERATED, HAND_MADE))
    powers = [pool_alarms(results, f"{model}, n-th power alone") for model in ("generated", "hand-made")]
    return {
        "true_alarms": _compute_ratio(generated.true, hand_made.true),
        "false_alarms": _compute_ratio(generated.false, hand_made.false),
        "silent_from": _find_silence(hand_made) - _find_silence(generated),
        "true_above_09": float(max(alarms.true[:, -1].max() for alarms in (generated, hand_made))),
        "true_above_09_exactly": float(max(alarms.true[:, -1].max() for alarms in powers)),
        "precision": _compute_mean_precision(generated) - _compute_mean_precision(hand_made),
        "skill_of_base": min(
            float(compute_skill(fold.errors, fold.base_of_test).min()) for fold in _list_folds(results, OURS)
        ),
        "skill_of_training_base": min(
            float(compute_skill(fold.errors, fold.base_of_training).min()) for fold in _list_folds(results, OURS)
        ),
        "skill_of_printed": min(compute_overall_skill(own, other) for own, other in pair_with_printed(results, OURS)),
    }


def pool_alarms(results: FoldResults, name: str) -> Alarms:
    """Return the alarms in all cities: each was forecast once, by a model of cities of its own group and the other."""
    return reduce(add, (fold.alarms for fold in results[name, "together"]))


def _list_folds(results: FoldResults, name: str) -> Iterator[FoldResult]:
    for group in GROUPS:
        yield from results[name, group]


def pair_with_printed(results: FoldResults, name: str) -> Iterator[tuple[FoldResult, FoldResult]]:
    """Yield each fold of an entrant beside that of the generated model with the formulas as printed."""
    yield from zip(_list_folds(results, name), _list_folds(results, GENERATED), strict=True)


def compute_overall_skill(mine: FoldResult, other: FoldResult) -> float:
    """Return the skill of one against another, the errors of all lookaheads added up."""
    return float(compute_skill(mine.errors.sum(), other.errors.sum()))


def _compute_ratio(mine: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return how many times another's alarms these are, over all lookaheads and thresholds above 0."""
    return float(mine[:, 1:].sum() / other[:, 1:].sum())


def _find_silence(alarms: Alarms) -> float:
    """Return the mean threshold from which no alarm is raised, over the longer lookaheads; 1 where one always is."""
    steps = np.append(THRESHOLDS, 1.0)
    return float(np.mean([steps[np.flatnonzero(np.append(row, 0) == 0)[0]] for row in alarms.all[FAR]]))


def _compute_mean_precision(alarms: Alarms) -> float:
    """Return the mean precision over the longer lookaheads and thresholds above 0, where there are alarms."""
    return float(np.nanmean(alarms.precision[FAR, 1:]))


def _compare_costs(paper: dict[str, Walked]) -> dict[str, float]:
    """Return how many times the states and the time of the generated model the hand-made one has.

    The time is that of the sum of ten powers of P, as the paper multiplies them: whole matrices.
    """
    seconds = []
    for model in paper.values():
        matrix = to_dense(model.space, model.sum_counts(list(model.counts)))
        times = 1 if len(matrix) > 100 else 100  # six states take microseconds
        seconds.append(
            min(measure_seconds(lambda matrix=matrix: _compute_powers(matrix), Clock.PROCESSOR) for _ in range(times))
        )
    sizes = [len(model.space) for model in paper.values()]
    return {"heat_states": sizes[1] / sizes[0], "heat_time": seconds[1] / max(seconds[0], 1e-9)}


def _compute_powers(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    power = total = matrix
    for _ in LOOKAHEADS[1:]:
        power = power @ matrix
        total = total + power
    return total


# Charts ----------------------------------------------------------------------------------------


def _build_charts(results: FoldResults, mode: Mode) -> list[Chart]:
    charts = []
    for letters, name in (("abc", GENERATED), ("def", HAND_MADE), ("ghi", OURS)):
        alarms = pool_alarms(results, name)
        for letter, measure, values in zip(
            letters,
            ("false alarms", "true alarms", "precision"),
            (alarms.false, alarms.true, alarms.precision),
            strict=True,
        ):
            title = f"{name}, `{mode}`: {measure}"
            charts.append(
                Chart(f"figure-11{letter}-{mode}", title, "threshold", measure, build_threshold_lines(values))
            )
    charts += [_list_skills(results, mode, group) for group in GROUPS]
    return charts


def _list_skills(results: FoldResults, mode: Mode, group: str) -> Chart:
    """Return Brier skill against the base rate over the lookahead, its bars from the worst fold to the best."""
    lines = []
    for name, where in results:
        if where == group and "power" not in name:
            folds = np.array([compute_skill(fold.errors, fold.base_of_test) for fold in results[name, where]])
            lines.append(Line(name, tuple((n, Figure("", tuple(folds[:, n - 1].tolist()))) for n in LOOKAHEADS)))
    title = f"Brier skill against the base rate of the cities forecast, `{mode}`, {group}: median of five folds"
    return Chart(f"figure-11-skill-{mode}-{group.lower()}", title, "days ahead", "skill", tuple(lines))


def _write_notes(results: FoldResults, mode: Mode) -> list[str]:
    """Return a line for each entrant of ours and group: the skill of each fold against the formulas as printed."""
    notes = []
    for name in ENTRANTS:
        for group in GROUPS:
            pairs = list(zip(results[name, group], results[GENERATED, group], strict=True))
            skills = ", ".join(f"{compute_overall_skill(*pair):+.3f}" for pair in pairs)
            notes.append(f"heat, `{mode}`, {group}: {name} against the generated model as printed, by fold: {skills}")
    return notes


def main() -> None:
    """Print facts and notes."""
    study = measure_figure_11(seed=1, say=print)
    print("\n".join([*study.notes, *(f"{name}: {value:.4g}" for name, value in study.facts.items())]))


if __name__ == "__main__":
    main()
