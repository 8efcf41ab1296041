"""Figures 9, 10 and 11 of P-ToPSS: what matching costs and what forecasts are worth; then real logins and trades."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, get_args

import numpy as np

from benchmarks.papers.p_topss import figure_10, figure_11, forecasts_logins, logins, ticks
from benchmarks.papers.p_topss.measured import (
    States,
    Taken,
    detector_of,
    machine_of,
    our_states,
    our_taken,
    paper_states,
    paper_taken,
    stream_of,
)
from tidings.bench.harness.studies import Chart, Line, Scale, Study
from tidings.bench.harness.timing import Figure
from tidings.bench.workloads.composites import Shape, composites
from tidings.bench.workloads.real_data import data_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import tidings as td
    from tidings.papers.p_topss.machine import PaperMachine

TITLE = "P-ToPSS: predictive publish/subscribe matching (Muthusamy, Liu, Jacobsen 2010), Figures 9 to 11"

PAPER, OURS = "the paper's machine", "ours"
WHO = {"paper": PAPER, "ours": OURS}
"""Facts begin with these."""

PAPER_REPEAT, REPEAT = 2, 7
"""How often the events are fed again, where time is taken; ours takes milliseconds, so that it needs more."""

SHAPES: tuple[Shape, ...] = get_args(Shape)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What one scale measures; the axes of the paper's figures are not in its text, so that the ranges are chosen."""

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
    Scale.QUICK: Sizes(
        (100, 200, 300, 400), 300, 50, 200, LATERS, LENGTHS, (25, 50, 100, 200), 2, 30_000, 300_000, 100_000, 30
    ),
    Scale.USUAL: Sizes(
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
    Scale.FULL: Sizes(
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
class _Sweep:
    """Figures of both over one parameter, for each workload."""

    states: dict[tuple[str, str], dict[float, States]] = field(default_factory=dict)
    taken: dict[tuple[str, str], dict[float, Taken]] = field(default_factory=dict)

    def count(self, workload: str, x: float, machine: PaperMachine, detector: td.Detector) -> None:
        """Count the states of both, which merge the same prefixes: they must have as many."""
        paper, ours = paper_states(machine), our_states(detector)
        if paper != ours:
            msg = f"{workload}, {x}: the paper's machine has {paper}, ours {ours}"
            raise RuntimeError(msg)
        for who, states in (("paper", paper), ("ours", ours)):
            self.states.setdefault((who, workload), {})[x] = states

    def note(self, who: str, workload: str, x: float, found: Taken) -> None:
        """Keep what events cost."""
        self.taken.setdefault((who, workload), {})[x] = found

    def merged(self, who: str, workload: str) -> dict[float, float]:
        """Return states after merging."""
        return {x: float(found.merged) for x, found in self.states[who, workload].items()}

    def common(self, who: str, workload: str) -> dict[float, float]:
        """Return the commonality."""
        return {x: found.commonality for x, found in self.states[who, workload].items()}

    def each(self, who: str, workload: str) -> dict[float, float]:
        """Return microseconds an event."""
        return {x: found.each.median for x, found in self.taken[who, workload].items()}

    def transitions(self, who: str, workload: str) -> dict[float, float]:
        """Return transitions of the whole stream."""
        return {x: float(found.transitions) for x, found in self.taken[who, workload].items()}


def study(scale: Scale, *, seed: int, say: Callable[[str], None]) -> Study:
    """Measure all figures at a scale."""
    sizes = SIZES[scale]
    _warm(seed)
    by_n, by_later = _over_n(sizes, seed, say), _over_later(sizes, seed, say)
    by_length, by_pool = _over_length(sizes, seed, say), _over_pool(sizes, seed, say)
    facts = {
        **_facts_n(by_n, sizes),
        **_facts_later(by_later),
        **_facts_length(by_length),
        **_facts_pool(by_pool),
    }
    notes, real = _notes(sizes), data_folder() is not None
    ten = figure_10.measured(sizes.forecast, seed=seed, say=say)
    eleven = figure_11.measured(seed=seed, say=say, real=real)
    if real:
        say("logins and trades")
        notes += [*logins.told(sizes.logins), *forecasts_logins.told(), *ticks.told(sizes.trades)]
    else:
        notes.append("no real data here (set TIDINGS_DATA): logins and trades were left out")
    charts = _charts(sizes, by_n, by_later, by_length, by_pool)
    for more in (ten, eleven):
        charts, facts, notes = (*charts, *more.charts), facts | more.facts, [*notes, *more.notes]
    return Study(TITLE, charts, facts, tuple(notes))


def _warm(seed: int) -> None:
    """Let kernels be loaded before anything is timed."""
    patterns = composites(10, seed=seed)
    our_taken(detector_of(patterns), stream_of(patterns, pool=50, quota=1, seed=seed))


# The sweeps ------------------------------------------------------------------------------------


def _over_n(sizes: Sizes, seed: int, say: Callable[[str], None]) -> _Sweep:
    found = _Sweep()
    for n in sizes.ns:
        say(f"figures 9 a, b: {n:,} subscriptions")
        for pool in (sizes.small, sizes.large):
            for shape in SHAPES:
                patterns = composites(n, pool=pool, shape=shape, seed=seed)
                stream = stream_of(patterns, pool=pool, quota=sizes.quota, seed=seed + 1)
                machine, detector, workload = machine_of(patterns), detector_of(patterns), _workload(shape, pool)
                found.count(workload, n, machine, detector)
                found.note("paper", workload, n, paper_taken(machine, stream, most=sizes.events, repeat=PAPER_REPEAT))
                found.note("ours", workload, n, our_taken(detector, stream, most=sizes.events, repeat=REPEAT))
    return found


def _over_later(sizes: Sizes, seed: int, say: Callable[[str], None]) -> _Sweep:
    found = _Sweep()
    for later in sizes.laters:
        say(f"figure 9 c: {later} non-contiguous operators")
        patterns = composites(sizes.n, later=later, seed=seed)
        stream = stream_of(patterns, pool=50, quota=sizes.quota, seed=seed + 1)
        found.note(
            "paper", "uniform", later, paper_taken(machine_of(patterns), stream, most=sizes.events, repeat=PAPER_REPEAT)
        )
        found.note("ours", "uniform", later, our_taken(detector_of(patterns), stream, most=sizes.events, repeat=REPEAT))
    return found


def _over_length(sizes: Sizes, seed: int, say: Callable[[str], None]) -> _Sweep:
    found = _Sweep()
    for length in sizes.lengths:
        say(f"figure 9 d: subscriptions of {length}")
        for shape in SHAPES:
            patterns = composites(sizes.n, length=length, later=min(2, length - 1), shape=shape, seed=seed)
            found.count(shape, length, machine_of(patterns), detector_of(patterns))
    return found


def _over_pool(sizes: Sizes, seed: int, say: Callable[[str], None]) -> _Sweep:
    found = _Sweep()
    for pool in sizes.pools:
        say(f"figures 9 e, f: a pool of {pool}")
        for shape in SHAPES:
            patterns = composites(sizes.n, pool=pool, shape=shape, seed=seed)
            for published in SHAPES:
                machine, detector = machine_of(patterns), detector_of(patterns)
                found.count(shape, pool, machine, detector)
                stream = stream_of(patterns, pool=pool, quota=sizes.quota, seed=seed + 1, shape=published)
                workload = _pair(shape, published)
                found.note("paper", workload, pool, paper_taken(machine, stream))
                found.note("ours", workload, pool, our_taken(detector, stream))
    return found


def _workload(shape: str, pool: int) -> str:
    return f"{shape}, pool {pool}"


def _pair(shape: str, published: str) -> str:
    return f"{shape}_cs, {published}_pub"


# Facts -----------------------------------------------------------------------------------------


def _facts_n(found: _Sweep, sizes: Sizes) -> dict[str, float]:
    """Return what is held to the claims of Figures 9 a and b; of several workloads the one that keeps them least."""
    facts: dict[str, float] = {}
    small, large = sizes.small, sizes.large
    for who in WHO:
        states = {
            (shape, pool): found.merged(who, _workload(shape, pool)) for shape in SHAPES for pool in (small, large)
        }
        each = {(shape, pool): found.each(who, _workload(shape, pool)) for shape in SHAPES for pool in (small, large)}
        facts[f"{who}_states_linear"] = min(_straight(line) for line in states.values())
        facts[f"{who}_slope_of_small_pool"] = max(_slope(states[s, small]) / _slope(states[s, large]) for s in SHAPES)
        facts[f"{who}_gaussian_states"] = max(
            _mean_ratio(states["gaussian", pool], states["uniform", pool]) for pool in (small, large)
        )
        facts[f"{who}_time_over_n"] = min(_rise(line.values()) for line in each.values())
        facts[f"{who}_time_of_small_pool"] = min(_mean_ratio(each[s, small], each[s, large]) for s in SHAPES)
        facts[f"{who}_gaussian_time"] = min(
            _mean_ratio(each["gaussian", pool], each["uniform", pool]) for pool in (small, large)
        )
    facts["ours_times_faster"] = fmean(
        _mean_ratio(found.each("paper", workload), line)
        for (who, workload), line in ((key, found.each(*key)) for key in found.taken)
        if who == "ours"
    )
    return facts


def _facts_later(found: _Sweep) -> dict[str, float]:
    return {f"{who}_time_over_later": _rise(found.each(who, "uniform").values()) for who in WHO}


def _facts_length(found: _Sweep) -> dict[str, float]:
    facts = {}
    for who in WHO:
        lines = [list(found.common(who, shape).values()) for shape in SHAPES]
        facts[f"{who}_commonality_over_length"] = max(_rise(line) for line in lines)
        facts[f"{who}_commonality_rises"] = max(_largest_step(line) for line in lines)
    return facts


def _facts_pool(found: _Sweep) -> dict[str, float]:
    facts = {}
    for who in WHO:
        states = {shape: found.merged(who, shape) for shape in SHAPES}
        facts[f"{who}_states_over_pool"] = min(_rise(line.values()) for line in states.values())
        facts[f"{who}_gaussian_states_over_pool"] = max(
            states["gaussian"][pool] / states["uniform"][pool] for pool in states["uniform"]
        )
        made = {(s, p): found.transitions(who, _pair(s, p)) for s in SHAPES for p in SHAPES}
        facts[f"{who}_transitions_over_pool"] = max(_rise(line.values()) for line in made.values())
        facts[f"{who}_gaussian_publications"] = max(
            _mean_ratio(made[s, "gaussian"], made[s, "uniform"]) for s in SHAPES
        )
    return facts


def _rise(values: Iterable[float]) -> float:
    """Return how many times the first value the last one is."""
    found = list(values)
    return found[-1] / found[0] if found[0] else float("nan")


def _largest_step(values: list[float]) -> float:
    """Return how many times the value before a value is, where that is most."""
    steps = [after / before for before, after in pairwise(values) if before]
    return max(steps, default=float("nan"))


def _mean_ratio(mine: dict[float, float], other: dict[float, float]) -> float:
    return fmean(mine[x] / other[x] for x in mine)


def _slope(line: dict[float, float]) -> float:
    return float(np.polyfit(list(line), list(line.values()), 1)[0])


def _straight(line: dict[float, float]) -> float:
    """Return how much of a line's change a straight one explains (the square of the correlation)."""
    return float(np.corrcoef(list(line), list(line.values()))[0, 1] ** 2)


# Charts ----------------------------------------------------------------------------------------


def _charts(sizes: Sizes, by_n: _Sweep, by_later: _Sweep, by_length: _Sweep, by_pool: _Sweep) -> tuple[Chart, ...]:
    n, per_event = f"{sizes.n:,} subscriptions", "microseconds per event"
    shapes = [(who, shape) for who in WHO for shape in SHAPES]
    return (
        Chart("figure-9a", "States over N", "subscriptions", "states", _lines(by_n.merged, by_n.states, "states")),
        Chart("figure-9b", "Time over N", "subscriptions", per_event, _timed(by_n), log_y=True),
        Chart(
            "figure-9c",
            f"Time over non-contiguous operators ({n})",
            "non-contiguous operators",
            per_event,
            _timed(by_later),
            log_y=True,
        ),
        Chart("figure-9d", f"Commonality ({n})", "length", "share", _lines(by_length.common, shapes, "share")),
        Chart("figure-9e", f"States over the pool ({n})", "pool", "states", _lines(by_pool.merged, shapes, "states")),
        Chart(
            "figure-9f",
            f"Transitions over the pool ({n})",
            "pool",
            "transitions",
            _lines(by_pool.transitions, by_pool.taken, "transitions"),
        ),
    )


def _timed(found: _Sweep) -> tuple[Line, ...]:
    return tuple(
        Line(f"{WHO[who]}, {workload}", tuple((x, taken.each) for x, taken in line.items()))
        for (who, workload), line in found.taken.items()
    )


def _lines(
    of: Callable[[str, str], dict[float, float]], keys: Iterable[tuple[str, str]], unit: str
) -> tuple[Line, ...]:
    return tuple(
        Line(f"{WHO[who]}, {workload}", tuple((x, Figure(unit, (y,))) for x, y in of(who, workload).items()))
        for who, workload in keys
    )


def _notes(sizes: Sizes) -> list[str]:
    return [
        f"N_pm = N_fm = {sizes.quota} (the paper: 20); time on the first {sizes.events:,} events, fed again"
        f" {REPEAT} times (to the paper's machine {PAPER_REPEAT} times)",
        "both machines report at each event that completes a match and go on (`overlap`); they differ where"
        " `tidings.papers.p_topss.machine` says so",
        "our time includes reading Arrow columns and asking the filters; the paper's machine is handed its symbols",
        "the ranges of the figures, the Gaussians and the small and large pools are chosen: the text has none of them",
    ]
