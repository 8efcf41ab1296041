"""Figures 5-10 of HEM: matching over N, M and delta, insertion, deletion, and its plan against the best one."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.papers.hem.measured import (
    ENGINE,
    HEM,
    HTREE,
    INDEXES,
    LINKED,
    REIN,
    TAMA,
    measure_engine,
    measure_index,
    measure_plans,
)
from benchmarks.papers.hem.workload import draw_ranges, measure_swapped
from benchmarks.studies import Chart, Line, Scale, Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.papers.hem.measured import IndexCost
    from tidings.bench.harness.timing import Figure

TITLE = "HEM: hybrid event matching (Fan, Liu, Tang 2016), Figures 5-10"

M, DELTA = 10, 0.5
"""The fixed number of attributes and width of ranges."""


@dataclass(frozen=True, slots=True)
class HemSizes:
    """The sizes of one scale; `fixed` is the number of subscriptions of Figures 6, 7 and 10."""

    ns: tuple[int, ...]
    fixed: int
    ms: tuple[int, ...]
    deltas: tuple[float, ...]
    events: int
    repeat: int


SIZES = {
    Scale.QUICK: HemSizes((10_000, 30_000, 100_000), 30_000, (3, 5, 10, 17), (0.05, 0.2, 0.5, 0.8), 30, 3),
    Scale.USUAL: HemSizes(
        (100_000, 300_000, 500_000), 100_000, (3, 5, 7, 9, 11, 13, 15, 17), (0.05, 0.2, 0.35, 0.5, 0.65, 0.8), 60, 3
    ),
    Scale.FULL: HemSizes(
        tuple(range(100_000, 1_700_001, 200_000)),
        900_000,
        tuple(range(3, 18, 2)),
        (0.05, 0.2, 0.35, 0.5, 0.65, 0.8),
        500,
        1,
    ),
}
"""Table 1's ranges are reached by `--full`."""


class _HemSweep:
    """Figures of all indexes over one parameter."""

    def __init__(self, repeat: int) -> None:
        self._repeat = repeat
        self.costs: dict[str, dict[float, IndexCost]] = {name: {} for name in INDEXES}
        self.engine: dict[float, Figure] = {}

    def measure_at(self, x: float, *, n: int, m: int, delta: float, events: int, seed: int) -> None:
        """Measure all indexes at one point."""
        ranges = draw_ranges(n, m=m, delta=delta, events=events, seed=seed)
        for name in INDEXES:
            cost = measure_index(name, ranges, repeat=self._repeat)
            if cost is not None:
                self.costs[name][x] = cost
        self.engine[x] = measure_engine(ranges, repeat=self._repeat)

    def list_lines(self, field: str = "match") -> tuple[Line, ...]:
        """Return a curve for each, and the engine's beside matching."""
        lines = [
            Line(name, tuple((x, getattr(cost, field)) for x, cost in at.items())) for name, at in self.costs.items()
        ]
        return (*lines, Line(ENGINE, tuple(self.engine.items()))) if field == "match" else tuple(lines)

    def list_medians(self, name: str, field: str = "match") -> dict[float, float]:
        """Return the medians of one curve."""
        return {x: getattr(cost, field).median for x, cost in self.costs[name].items()}

    def share(self, numerator: str, denominator: str) -> float:
        """Return the mean ratio of one index's time to another's, where both were measured."""
        mine, other = self.list_medians(numerator), self.list_medians(denominator)
        return fmean(mine[x] / other[x] for x in mine if x in other)


def study(scale: Scale, *, seed: int, say: Callable[[str], None]) -> Study:
    """Measure all figures at a scale."""
    sizes = SIZES[scale]
    by_n, by_m, by_delta = (_HemSweep(sizes.repeat) for _ in range(3))
    for n in sizes.ns:
        say(f"figures 5, 8, 9: {n:,} subscriptions")
        by_n.measure_at(n, n=n, m=M, delta=DELTA, events=sizes.events, seed=seed)
    for m in sizes.ms:
        say(f"figure 6: {m} attributes, {sizes.fixed:,} subscriptions")
        by_m.measure_at(m, n=sizes.fixed, m=m, delta=DELTA, events=sizes.events, seed=seed)
    for delta in sizes.deltas:
        say(f"figure 7: ranges of {delta}, {sizes.fixed:,} subscriptions")
        by_delta.measure_at(delta, n=sizes.fixed, m=M, delta=delta, events=sizes.events, seed=seed)
    plans: dict[str, dict[float, Figure]] = {}
    for m in sizes.ms:
        say(f"figure 10: plans for {m} attributes")
        ranges = draw_ranges(sizes.fixed, m=m, delta=DELTA, events=min(sizes.events, 100), seed=seed)
        for name, figure in measure_plans(ranges, repeat=sizes.repeat).items():
            plans.setdefault(name, {})[m] = figure
    charts = _build_charts(sizes, by_n, by_m, by_delta, plans)
    facts = {
        **_compute_facts(by_n, by_m, by_delta),
        **_plan_facts(plans),
        "swapped": measure_swapped(0.05, draws=200_000, seed=seed),
    }
    return Study(TITLE, charts, facts, _write_notes(sizes, by_n))


def _build_charts(
    sizes: HemSizes, by_n: _HemSweep, by_m: _HemSweep, by_delta: _HemSweep, plans: dict[str, dict[float, Figure]]
) -> tuple[Chart, ...]:
    per_event, per_row = "milliseconds per event", "microseconds per subscription"
    fixed = f"{sizes.fixed:,} subscriptions"
    over_n = f"Matching over N (M = {M}, delta = {DELTA})"
    lines = tuple(Line(name, tuple(at.items())) for name, at in plans.items())
    return (
        Chart("figure-5", over_n, "subscriptions", per_event, by_n.list_lines(), log_y=True),
        Chart("figure-6", f"Matching over M ({fixed})", "attributes", per_event, by_m.list_lines(), log_y=True),
        Chart(
            "figure-7",
            f"Matching over delta ({fixed})",
            "width of ranges",
            per_event,
            by_delta.list_lines(),
            log_y=True,
        ),
        Chart("figure-8", "Insertion", "subscriptions", per_row, by_n.list_lines("insert"), log_y=True),
        Chart("figure-9", "Deletion", "subscriptions", per_row, by_n.list_lines("delete"), log_y=True),
        Chart("figure-10", f"HEM's plans ({fixed})", "attributes", per_event, lines),
    )


def _compute_facts(by_n: _HemSweep, by_m: _HemSweep, by_delta: _HemSweep) -> dict[str, float]:
    """Return the facts that decide the claims of Figures 5-9."""
    facts: dict[str, float] = {}
    for word, hem in (("hem", HEM), ("linked", LINKED)):
        for other in (TAMA, HTREE, REIN):
            key = other.lower().replace("-", "")
            facts[f"{word}_of_{key}"] = by_n.share(hem, other)
            facts[f"{word}_of_{key}_at_largest"] = _compute_last_ratio(by_n.list_medians(hem), by_n.list_medians(other))
        facts[f"{word}_over_m"] = _compute_rise(by_m.list_medians(hem).values())
        facts[f"{word}_over_delta"] = _spread(by_delta.list_medians(hem).values())
        facts[f"engine_times_{word}"] = fmean(
            by_n.list_medians(hem)[n] / figure.median for n, figure in by_n.engine.items()
        )
    for other in (TAMA, HTREE, REIN):
        key = other.lower().replace("-", "")
        facts[f"gap_to_{key}_grows"] = _compute_gap_growth(by_n.list_medians(HEM), by_n.list_medians(other))
        facts[f"{key}_over_delta"] = _compute_rise(by_delta.list_medians(other).values())
    for name in INDEXES:
        key = name.lower().replace("-", "").replace(", ", "_")
        for change in ("insert", "delete"):
            facts[f"{key}_{change}_us"] = fmean(by_n.list_medians(name, change).values())
    facts["tama_false_positives"] = fmean(cost.extra for cost in by_n.costs[TAMA].values())
    return facts


def _plan_facts(plans: dict[str, dict[float, Figure]]) -> dict[str, float]:
    near, best, whole = (list(at.values()) for at in plans.values())
    return {
        "near_over_optimal": fmean(quick.median / other.median for quick, other in zip(near, best, strict=True)),
        "near_over_optimal_at_most_attributes": near[-1].median / best[-1].median,
        "search_at_most_attributes": whole[-1].median / best[-1].median,
    }


def _compute_rise(values: Iterable[float]) -> float:
    """Return how many times the first value the last one is."""
    numbers = list(values)
    return numbers[-1] / numbers[0]


def _spread(values: Iterable[float]) -> float:
    """Return how many times the least value the greatest one is."""
    numbers = list(values)
    return max(numbers) / min(numbers)


def _compute_last_ratio(mine: dict[float, float], other: dict[float, float]) -> float:
    at = max(x for x in mine if x in other)
    return mine[at] / other[at]


def _compute_gap_growth(mine: dict[float, float], other: dict[float, float]) -> float:
    """Return how much wider the gap is at the most subscriptions than at the fewest."""
    xs = sorted(x for x in mine if x in other)
    first, last = (other[x] - mine[x] for x in (xs[0], xs[-1]))
    return last / first if first > 0 else float("nan")


def _write_notes(sizes: HemSizes, by_n: _HemSweep) -> tuple[str, ...]:
    refused = [f"{name} at {n:,}" for name, at in by_n.costs.items() for n in sizes.ns if n not in at]
    return (
        "high = low + delta, where the text draws both ends by themselves (fact `swapped`: low above high at .05)",
        f"{sizes.events} events; Figures 6, 7 and 10 with {sizes.fixed:,} subscriptions (the paper: 500 and 900,000)",
        "TAMA as printed is approximate; the others are exact, and all were held to a scan in this run",
        "the engine's time includes reading the events from Arrow and writing the matches; the others' does not",
        *(["refused for memory: " + ", ".join(refused)] if refused else []),
    )
