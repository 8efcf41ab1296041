"""Figures 9, 10 and 11 of P-ToPSS: what matching costs and what forecasts are worth; then real logins and trades."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, get_args

import numpy as np

from benchmarks.papers.p_topss import figure_10, figure_11, forecasts_logins, logins, ticks
from benchmarks.papers.p_topss.measured import (
    MachineCost,
    States,
    build_detector,
    build_machine,
    count_our_states,
    count_paper_states,
    measure_ours,
    measure_paper,
    stream_of,
)
from benchmarks.studies import Chart, Line, Scale, Study
from tidings.bench.harness.timing import Figure
from tidings.bench.workloads.composites import Shape, composites
from tidings.bench.workloads.real_data import data_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import tidings as td
    from tidings.papers.p_topss.paper_machine import PaperMachine

TITLE = "P-ToPSS: predictive publish/subscribe matching (Muthusamy, Liu, Jacobsen 2010), Figures 9 to 11"

PAPER, OURS = "the paper's machine", "ours"
WHO = {"paper": PAPER, "ours": OURS}
"""Facts begin with these."""

PAPER_REPEAT, REPEAT = 2, 7
"""How often the events are fed again, where time is taken; ours takes milliseconds, so that it needs more."""

SHAPES: tuple[Shape, ...] = get_args(Shape)


@dataclass(frozen=True, slots=True)
class PTopssSizes:
    """The sizes of one scale; the axes of the paper's figures are not in its text, so that the ranges are chosen."""

    ns: tuple[int, ...]
    n: int
    small: int
    large: int
    laters: tuple[int, ...]
    lengths: tuple[int, ...]
    pools: tuple[int, ...]
    quota: int
    events: int
    trades: int | None
    logins: int
    forecast: int = 4


LATERS, LENGTHS = (0, 2, 4, 6, 9), (2, 4, 6, 8, 10, 15, 20)
SIZES = {
    Scale.QUICK: PTopssSizes(
        (100, 200, 300, 400), 300, 50, 200, LATERS, LENGTHS, (25, 50, 100, 200), 2, 30_000, 300_000, 100_000, 30
    ),
    Scale.USUAL: PTopssSizes(
        (200, 400, 600, 800, 1000),
        1000,
        50,
        200,
        LATERS,
        LENGTHS,
        (25, 50, 100, 200, 400),
        5,
        100_000,
        None,
        500_000,
        100,
    ),
    Scale.FULL: PTopssSizes(
        tuple(range(500, 5001, 500)),
        1000,
        50,
        500,
        tuple(range(10)),
        LENGTHS,
        (25, 50, 100, 200, 400, 800),
        20,
        1_000_000,
        None,
        1_000_000,
        300,
    ),
}
"""`quota` is N_pm and N_fm (the paper: 20). Time is taken on so many first events, transitions on the whole stream.

`forecast` is how many subscriptions Figure 10 has; its quotas are the paper's at every scale.
"""


@dataclass
class _MachineSweep:
    """Figures of both over one parameter, for each workload."""

    states: dict[tuple[str, str], dict[float, States]] = field(default_factory=dict)
    costs: dict[tuple[str, str], dict[float, MachineCost]] = field(default_factory=dict)

    def count(self, workload: str, x: float, machine: PaperMachine, detector: td.Detector) -> None:
        """Count the states of both, which merge the same prefixes: they must have as many."""
        paper, ours = count_paper_states(machine), count_our_states(detector)
        if paper != ours:
            msg = f"{workload}, {x}: the paper's machine has {paper}, ours {ours}"
            raise RuntimeError(msg)
        for who, states in (("paper", paper), ("ours", ours)):
            self.states.setdefault((who, workload), {})[x] = states

    def note(self, who: str, workload: str, x: float, cost: MachineCost) -> None:
        """Keep the time of an event."""
        self.costs.setdefault((who, workload), {})[x] = cost

    def map_merged(self, who: str, workload: str) -> dict[float, float]:
        """Return states after merging."""
        return {x: float(states.merged) for x, states in self.states[who, workload].items()}

    def get_commonality(self, who: str, workload: str) -> dict[float, float]:
        """Return the commonality."""
        return {x: states.commonality for x, states in self.states[who, workload].items()}

    def get_times(self, who: str, workload: str) -> dict[float, float]:
        """Return microseconds an event."""
        return {x: cost.each.median for x, cost in self.costs[who, workload].items()}

    def get_transitions(self, who: str, workload: str) -> dict[float, float]:
        """Return transitions of the whole stream."""
        return {x: float(cost.transitions) for x, cost in self.costs[who, workload].items()}


def study(scale: Scale, *, seed: int, say: Callable[[str], None]) -> Study:
    """Measure all figures at a scale."""
    sizes = SIZES[scale]
    _warm(seed)
    by_n, by_later = _measure_over_n(sizes, seed, say), _measure_over_later(sizes, seed, say)
    by_length, by_pool = _measure_over_length(sizes, seed, say), _measure_over_pool(sizes, seed, say)
    facts = {
        **_compute_facts_n(by_n, sizes),
        **_compute_facts_later(by_later),
        **_compute_facts_length(by_length),
        **_compute_facts_pool(by_pool),
    }
    notes, real = _write_notes(sizes), data_folder() is not None
    ten = figure_10.measure_figure_10(sizes.forecast, seed=seed, say=say)
    eleven = figure_11.measure_figure_11(seed=seed, say=say, real=real)
    if real:
        say("logins and trades")
        notes += [
            *logins.format_report(sizes.logins),
            *forecasts_logins.format_report(),
            *ticks.format_report(sizes.trades),
        ]
    else:
        notes.append("no real data here (set TIDINGS_DATA): logins and trades were left out")
    charts = _build_charts(sizes, by_n, by_later, by_length, by_pool)
    for more in (ten, eleven):
        charts, facts, notes = (*charts, *more.charts), facts | more.facts, [*notes, *more.notes]
    return Study(TITLE, charts, facts, tuple(notes))


def _warm(seed: int) -> None:
    """Let kernels be loaded before anything is timed."""
    patterns = composites(10, seed=seed)
    measure_ours(build_detector(patterns), stream_of(patterns, pool=50, quota=1, seed=seed))


# The sweeps ------------------------------------------------------------------------------------


def _measure_over_n(sizes: PTopssSizes, seed: int, say: Callable[[str], None]) -> _MachineSweep:
    sweep = _MachineSweep()
    for n in sizes.ns:
        say(f"figures 9 a, b: {n:,} subscriptions")
        for pool in (sizes.small, sizes.large):
            for shape in SHAPES:
                patterns = composites(n, pool=pool, shape=shape, seed=seed)
                stream = stream_of(patterns, pool=pool, quota=sizes.quota, seed=seed + 1)
                machine, detector, workload = (
                    build_machine(patterns),
                    build_detector(patterns),
                    _name_workload(shape, pool),
                )
                sweep.count(workload, n, machine, detector)
                sweep.note("paper", workload, n, measure_paper(machine, stream, most=sizes.events, repeat=PAPER_REPEAT))
                sweep.note("ours", workload, n, measure_ours(detector, stream, most=sizes.events, repeat=REPEAT))
    return sweep


def _measure_over_later(sizes: PTopssSizes, seed: int, say: Callable[[str], None]) -> _MachineSweep:
    sweep = _MachineSweep()
    for later in sizes.laters:
        say(f"figure 9 c: {later} non-contiguous operators")
        patterns = composites(sizes.n, later=later, seed=seed)
        stream = stream_of(patterns, pool=50, quota=sizes.quota, seed=seed + 1)
        sweep.note(
            "paper",
            "uniform",
            later,
            measure_paper(build_machine(patterns), stream, most=sizes.events, repeat=PAPER_REPEAT),
        )
        sweep.note(
            "ours", "uniform", later, measure_ours(build_detector(patterns), stream, most=sizes.events, repeat=REPEAT)
        )
    return sweep


def _measure_over_length(sizes: PTopssSizes, seed: int, say: Callable[[str], None]) -> _MachineSweep:
    sweep = _MachineSweep()
    for length in sizes.lengths:
        say(f"figure 9 d: subscriptions of {length}")
        for shape in SHAPES:
            patterns = composites(sizes.n, length=length, later=min(2, length - 1), shape=shape, seed=seed)
            sweep.count(shape, length, build_machine(patterns), build_detector(patterns))
    return sweep


def _measure_over_pool(sizes: PTopssSizes, seed: int, say: Callable[[str], None]) -> _MachineSweep:
    sweep = _MachineSweep()
    for pool in sizes.pools:
        say(f"figures 9 e, f: a pool of {pool}")
        for shape in SHAPES:
            patterns = composites(sizes.n, pool=pool, shape=shape, seed=seed)
            for published in SHAPES:
                machine, detector = build_machine(patterns), build_detector(patterns)
                sweep.count(shape, pool, machine, detector)
                stream = stream_of(patterns, pool=pool, quota=sizes.quota, seed=seed + 1, shape=published)
                workload = _pair(shape, published)
                sweep.note("paper", workload, pool, measure_paper(machine, stream))
                sweep.note("ours", workload, pool, measure_ours(detector, stream))
    return sweep


def _name_workload(shape: str, pool: int) -> str:
    return f"{shape}, pool {pool}"


def _pair(shape: str, published: str) -> str:
    return f"{shape}_cs, {published}_pub"


# Facts -----------------------------------------------------------------------------------------


def _compute_facts_n(sweep: _MachineSweep, sizes: PTopssSizes) -> dict[str, float]:
    """Return the facts that decide the claims of Figures 9 a and b; of several workloads, the least favourable."""
    facts: dict[str, float] = {}
    small, large = sizes.small, sizes.large
    for who in WHO:
        states = {
            (shape, pool): sweep.map_merged(who, _name_workload(shape, pool))
            for shape in SHAPES
            for pool in (small, large)
        }
        each = {
            (shape, pool): sweep.get_times(who, _name_workload(shape, pool))
            for shape in SHAPES
            for pool in (small, large)
        }
        facts[f"{who}_states_linear"] = min(_measure_straightness(line) for line in states.values())
        facts[f"{who}_slope_of_small_pool"] = max(
            _fit_slope(states[s, small]) / _fit_slope(states[s, large]) for s in SHAPES
        )
        facts[f"{who}_gaussian_states"] = max(
            _compute_mean_ratio(states["gaussian", pool], states["uniform", pool]) for pool in (small, large)
        )
        facts[f"{who}_time_over_n"] = min(_compute_rise(line.values()) for line in each.values())
        facts[f"{who}_time_of_small_pool"] = min(_compute_mean_ratio(each[s, small], each[s, large]) for s in SHAPES)
        facts[f"{who}_gaussian_time"] = min(
            _compute_mean_ratio(each["gaussian", pool], each["uniform", pool]) for pool in (small, large)
        )
    facts["ours_times_faster"] = fmean(
        _compute_mean_ratio(sweep.get_times("paper", workload), line)
        for (who, workload), line in ((key, sweep.get_times(*key)) for key in sweep.costs)
        if who == "ours"
    )
    return facts


def _compute_facts_later(sweep: _MachineSweep) -> dict[str, float]:
    return {f"{who}_time_over_later": _compute_rise(sweep.get_times(who, "uniform").values()) for who in WHO}


def _compute_facts_length(sweep: _MachineSweep) -> dict[str, float]:
    facts = {}
    for who in WHO:
        lines = [list(sweep.get_commonality(who, shape).values()) for shape in SHAPES]
        facts[f"{who}_commonality_over_length"] = max(_compute_rise(line) for line in lines)
        facts[f"{who}_commonality_rises"] = max(_find_largest_step(line) for line in lines)
    return facts


def _compute_facts_pool(sweep: _MachineSweep) -> dict[str, float]:
    facts = {}
    for who in WHO:
        states = {shape: sweep.map_merged(who, shape) for shape in SHAPES}
        facts[f"{who}_states_over_pool"] = min(_compute_rise(line.values()) for line in states.values())
        facts[f"{who}_gaussian_states_over_pool"] = max(
            states["gaussian"][pool] / states["uniform"][pool] for pool in states["uniform"]
        )
        transitions = {(s, p): sweep.get_transitions(who, _pair(s, p)) for s in SHAPES for p in SHAPES}
        facts[f"{who}_transitions_over_pool"] = max(_compute_rise(line.values()) for line in transitions.values())
        facts[f"{who}_gaussian_publications"] = max(
            _compute_mean_ratio(transitions[s, "gaussian"], transitions[s, "uniform"]) for s in SHAPES
        )
    return facts


def _compute_rise(values: Iterable[float]) -> float:
    """Return how many times the first value the last one is."""
    numbers = list(values)
    return numbers[-1] / numbers[0] if numbers[0] else float("nan")


def _find_largest_step(values: list[float]) -> float:
    """Return how many times the value before a value is, where that is most."""
    steps = [after / before for before, after in pairwise(values) if before]
    return max(steps, default=float("nan"))


def _compute_mean_ratio(mine: dict[float, float], other: dict[float, float]) -> float:
    return fmean(mine[x] / other[x] for x in mine)


def _fit_slope(line: dict[float, float]) -> float:
    return float(np.polyfit(list(line), list(line.values()), 1)[0])


def _measure_straightness(line: dict[float, float]) -> float:
    """Return how much of a line's change a straight one explains (the square of the correlation)."""
    return float(np.corrcoef(list(line), list(line.values()))[0, 1] ** 2)


# Charts ----------------------------------------------------------------------------------------


def _build_charts(
    sizes: PTopssSizes, by_n: _MachineSweep, by_later: _MachineSweep, by_length: _MachineSweep, by_pool: _MachineSweep
) -> tuple[Chart, ...]:
    n, per_event = f"{sizes.n:,} subscriptions", "microseconds per event"
    shapes = [(who, shape) for who in WHO for shape in SHAPES]
    return (
        Chart(
            "figure-9a",
            "States over N",
            "subscriptions",
            "states",
            _build_lines(by_n.map_merged, by_n.states, "states"),
        ),
        Chart("figure-9b", "Time over N", "subscriptions", per_event, _build_time_lines(by_n), log_y=True),
        Chart(
            "figure-9c",
            f"Time over non-contiguous operators ({n})",
            "non-contiguous operators",
            per_event,
            _build_time_lines(by_later),
            log_y=True,
        ),
        Chart(
            "figure-9d",
            f"Commonality ({n})",
            "length",
            "share",
            _build_lines(by_length.get_commonality, shapes, "share"),
        ),
        Chart(
            "figure-9e",
            f"States over the pool ({n})",
            "pool",
            "states",
            _build_lines(by_pool.map_merged, shapes, "states"),
        ),
        Chart(
            "figure-9f",
            f"Transitions over the pool ({n})",
            "pool",
            "transitions",
            _build_lines(by_pool.get_transitions, by_pool.costs, "transitions"),
        ),
    )


def _build_time_lines(sweep: _MachineSweep) -> tuple[Line, ...]:
    return tuple(
        Line(f"{WHO[who]}, {workload}", tuple((x, cost.each) for x, cost in line.items()))
        for (who, workload), line in sweep.costs.items()
    )


def _build_lines(
    of: Callable[[str, str], dict[float, float]], keys: Iterable[tuple[str, str]], unit: str
) -> tuple[Line, ...]:
    return tuple(
        Line(f"{WHO[who]}, {workload}", tuple((x, Figure(unit, (y,))) for x, y in of(who, workload).items()))
        for who, workload in keys
    )


def _write_notes(sizes: PTopssSizes) -> list[str]:
    return [
        f"N_pm = N_fm = {sizes.quota} (the paper: 20); time on the first {sizes.events:,} events, fed again"
        f" {REPEAT} times (to the paper's machine {PAPER_REPEAT} times)",
        "both machines report at each event that completes a match and go on (`overlap`); they differ where"
        " `tidings.papers.p_topss.paper_machine` says so",
        "our time includes reading Arrow columns and asking the filters; the paper's machine is handed its symbols",
        "the ranges of the figures, the Gaussians and the small and large pools are chosen: the text has none of them",
    ]
