"""Figures 7 and 8 of CTPS: memory and time over subscriptions and height, time over the match rate."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks.papers.ctps.measured import (
    build_from,
    check_answers,
    draw_world,
    measure_engine,
    measure_in_turn,
    measure_megabytes,
    measure_milliseconds,
    measure_public,
)
from benchmarks.papers.ctps.workload import draw_rated
from benchmarks.studies import Chart, Line, Scale, Study
from tidings.bench.harness.process_memory import measure_matcher_memory
from tidings.bench.harness.timing import Figure
from tidings.errors import TidingsError
from tidings.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.papers.ctps.measured import BoundConcepts

TITLE = "CTPS: concept trees in publish/subscribe (Zhang, Wang, Huang, Yung 2022), Figures 7 and 8"

CTPS, RIVALS = "ctps", ("g-topss", "mic", "ops")
KINDS = (CTPS, *RIVALS)
ENGINE, ENGINE_COLUMNS = "engine, from readings", "engine, from columns"
HEIGHTS = (1, 2, 3, 4, 5)
LOW, HIGH = HEIGHTS[0], HEIGHTS[-1]

STEADY_RATE = 0.01
"""The match rate at which heights are compared: the number of answers must not differ between them."""


@dataclass(frozen=True, slots=True)
class CtpsSizes:
    """The sizes of one scale: `most` subscriptions where only something else varies, `mic` at most for MIC high up."""

    ns: tuple[int, ...]
    most: int
    mic: int
    events: int
    rates: tuple[float, ...]
    repeat: int
    turns: int
    large: tuple[int, ...] = ()


SIZES = {
    Scale.QUICK: CtpsSizes((500, 2_000, 10_000), 10_000, 500, 200, (0.001, 0.05, 0.2, 0.5), 3, 15),
    Scale.USUAL: CtpsSizes(
        (500, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000), 10_000, 2_000, 1_000, (0.001, 0.01, 0.1, 0.2, 0.4, 0.6, 0.8),
        3, 15, (100_000,),
    ),
    Scale.FULL: CtpsSizes(
        (500, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 10_000), 10_000, 10_000, 1_000,
        (0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), 5, 25, (100_000, 1_000_000),
    ),
}  # fmt: skip
"""Table 1's ranges; `large` sizes are ours, for the engine beside CTPS."""


class _CtpsResults:
    """Curves and facts as they come."""

    def __init__(self) -> None:
        self.curves: dict[str, dict[str, dict[float, Figure]]] = {}
        self.facts: dict[str, float] = {}

    def put(self, figure: str, name: str, x: float, value: Figure | None) -> None:
        """Add a point, if there is one."""
        if value is not None:
            self.curves.setdefault(figure, {}).setdefault(name, {})[x] = value

    def get_median(self, figure: str, name: str, x: float) -> float:
        """Return a point's median."""
        return self.curves[figure][name][x].median

    def list_lines(self, figure: str) -> tuple[Line, ...]:
        """Return the curves of a figure."""
        return tuple(Line(name, tuple(points.items())) for name, points in self.curves.get(figure, {}).items())


def study(scale: Scale, *, seed: int, say: Callable[[str], None]) -> Study:
    """Measure all figures at a scale."""
    sizes, results = SIZES[scale], _CtpsResults()
    for height in (LOW, HIGH):
        for n in sizes.ns:
            say(f"figures 7 and 8: {n:,} subscriptions, height {height}")
            concepts = draw_world(n, height=height, events=sizes.events, seed=seed)
            _measure_over_subscriptions(results, concepts, height, sizes, seed=seed)
    _measure_engine_facts(results, sizes, seed=seed, say=say)
    _measure_over_height(results, sizes, seed=seed, say=say)
    for rate in sizes.rates:
        say(f"figure 8d: {rate:.1%} of {sizes.most:,} subscriptions match")
        pairs = draw_rated(sizes.most, height=HIGH, rate=rate, seed=seed)
        concepts = draw_world(sizes.most, height=HIGH, events=sizes.events, seed=seed, pairs=pairs)
        algorithm = build_from(CTPS, concepts)
        share = fmean(map(len, algorithm.match_many(concepts.readings, concepts.setting))) / sizes.most
        results.put("8d", CTPS, 100 * share, measure_milliseconds(algorithm, concepts, repeat=sizes.repeat))
    _compute_facts(results, sizes)
    return Study(TITLE, _build_charts(results, sizes), results.facts, NOTES)


def _measure_over_subscriptions(
    results: _CtpsResults, concepts: BoundConcepts, height: int, sizes: CtpsSizes, *, seed: int
) -> None:
    n = len(concepts.pairs)
    ours = build_from(CTPS, concepts)
    for kind in KINDS:
        if kind == "mic" and height > LOW and n > sizes.mic:
            continue
        results.put(f"7-{height}", kind, n, measure_megabytes(kind, concepts))
        try:
            algorithm = ours if kind == CTPS else build_from(kind, concepts)
        except TidingsError:
            continue
        if not check_answers(algorithm, ours, concepts):
            msg = f"`{kind}` and `ctps` give different answers at {n:,} subscriptions, height {height}"
            raise TidingsError(msg)
        results.put(f"8-{height}", kind, n, measure_milliseconds(algorithm, concepts, repeat=sizes.repeat))
        _note_sizes(results, kind, algorithm.explain(), n=n, height=height)
    engine = measure_engine(concepts, repeat=sizes.repeat)
    results.put(f"8-{height}", ENGINE, n, engine.readings)
    results.put(f"8-{height}", ENGINE_COLUMNS, n, engine.columns)
    if n == sizes.most:
        whole = measure_matcher_memory(f"concepts:height={height}", n, kind=None, seed=seed)
        figure = None if whole is None else Figure("MB", (whole.whole / 1e6,))
        results.put(f"7-{height}", "engine (resident, with what was written)", n, figure)
        results.facts[f"engine_public_ms_{height}"] = engine.public.median
        matcher = Matcher(CTPS, ontology=concepts.ontology)
        matcher.add_many(concepts.pairs)
        results.facts[f"ctps_public_ms_{height}"] = measure_public(matcher, concepts, repeat=1).median


def _note_sizes(results: _CtpsResults, kind: str, explanation: dict[str, Any], *, n: int, height: int) -> None:
    """Keep the sizes that an index reports of itself."""
    if kind == "mic":
        results.facts[f"mic_entries_{height}"] = float(explanation["entries for each constraint"])
    if kind == "ops":
        results.facts[f"ops_index_bytes_{height}_{n}"] = float(explanation["bytes of possible edges"])
    if kind == CTPS:
        results.facts[f"ctps_bit_megabytes_{height}"] = float(explanation["bytes of bit arrays"]) / 1e6


def _measure_engine_facts(results: _CtpsResults, sizes: CtpsSizes, *, seed: int, say: Callable[[str], None]) -> None:
    """Compare the engine with CTPS at the paper's largest size, and beyond."""
    for n in sizes.large:
        say(f"the engine beside CTPS: {n:,} subscriptions, height {HIGH}")
        concepts = draw_world(n, height=HIGH, events=min(sizes.events, 200), seed=seed)
        algorithm = build_from(CTPS, concepts)
        results.put(f"8-{HIGH}-large", CTPS, n, measure_milliseconds(algorithm, concepts, repeat=sizes.repeat))
        del algorithm
        engine = measure_engine(concepts, repeat=sizes.repeat)
        results.put(f"8-{HIGH}-large", ENGINE, n, engine.readings)
        results.put(f"8-{HIGH}-large", ENGINE_COLUMNS, n, engine.columns)
        ours = results.get_median(f"8-{HIGH}-large", CTPS, n)
        results.facts[f"engine_faster_{n}"] = ours / engine.readings.median
        results.facts[f"engine_columns_faster_{n}"] = ours / engine.columns.median
    n = sizes.most
    ours = results.get_median(f"8-{HIGH}", CTPS, n)
    results.facts["engine_faster"] = ours / results.get_median(f"8-{HIGH}", ENGINE, n)
    results.facts["engine_columns_faster"] = ours / results.get_median(f"8-{HIGH}", ENGINE_COLUMNS, n)


def _measure_over_height(results: _CtpsResults, sizes: CtpsSizes, *, seed: int, say: Callable[[str], None]) -> None:
    """Measure CTPS at all heights in turn, once with equal numbers of answers, once as in Table 1."""
    steady, table, rivals = [], [], []
    for height in HEIGHTS:
        say(f"time over height: height {height}, {sizes.most:,} subscriptions")
        pairs = draw_rated(sizes.most, height=height, rate=STEADY_RATE, seed=seed)
        equal = draw_world(sizes.most, height=height, events=sizes.events, seed=seed, pairs=pairs)
        plain = draw_world(sizes.most, height=height, events=sizes.events, seed=seed)
        steady.append((float(height), build_from(CTPS, equal), equal))
        rivals.append((float(height), build_from("g-topss", equal), equal))
        table.append((float(height), build_from(CTPS, plain), plain))
        results.put("height-ops", "ops", height, Figure("MB", (_measure_ops_index(plain) / 1e6,)))
    curves = {"ctps, 1 % match": steady, "ctps, Table 1": table, "g-topss, 1 % match": rivals}
    for name, settings in curves.items():
        times = measure_in_turn(settings, repeat=sizes.turns if settings is not rivals else sizes.repeat)
        for x, figure in times.items():
            results.put("height", name, x, figure)
    results.facts["height_spread"] = _spread(results, "ctps, 1 % match")
    results.facts["height_spread_table"] = _spread(results, "ctps, Table 1")
    low, high = (results.get_median("height", "g-topss, 1 % match", height) for height in (LOW, HIGH))
    results.facts["g_topss_growth"] = high / low


def _spread(results: _CtpsResults, name: str) -> float:
    """Return how far the heights lie apart, as a share of their mean."""
    medians = [results.get_median("height", name, height) for height in HEIGHTS]
    return (max(medians) - min(medians)) / fmean(medians)


def _measure_ops_index(concepts: BoundConcepts) -> float:
    return float(build_from("ops", concepts).explain()["bytes of possible edges"])  # type: ignore[arg-type]


def _compute_facts(results: _CtpsResults, sizes: CtpsSizes) -> None:
    facts, n, few = results.facts, sizes.most, sizes.ns[0]
    for height in (LOW, HIGH):
        ours = results.get_median(f"8-{height}", CTPS, n)
        for rival in RIVALS:
            if n in results.curves[f"8-{height}"].get(rival, {}):
                facts[f"faster_than_{rival.replace('-', '_')}_{height}"] = (
                    results.get_median(f"8-{height}", rival, n) / ours
                )
        facts[f"ctps_megabytes_{height}"] = results.get_median(f"7-{height}", CTPS, n)
        facts[f"memory_of_g_topss_{height}"] = results.get_median(f"7-{height}", CTPS, n) / results.get_median(
            f"7-{height}", "g-topss", n
        )
        if few in results.curves[f"7-{height}"].get("mic", {}):
            mic = results.get_median(f"7-{height}", "mic", few)
            facts[f"mic_megabytes_{height}"] = mic
            facts[f"mic_blow_up_{height}"] = mic / results.get_median(f"7-{height}", CTPS, few)
    facts["mic_growth"] = results.get_median(f"7-{HIGH}", "mic", few) / results.get_median(f"7-{LOW}", "mic", few)
    facts["ops_index_growth"] = results.get_median("height-ops", "ops", HIGH) / results.get_median(
        "height-ops", "ops", LOW
    )
    index = [facts[f"ops_index_bytes_{HIGH}_{size}"] for size in (few, n)]
    facts["ops_index_over_subscriptions"] = index[1] / index[0]
    rates = sorted(results.curves["8d"][CTPS].items())
    facts["rate_growth"] = rates[-1][1].median / rates[0][1].median
    over = [results.get_median(f"8-{HIGH}", CTPS, size) for size in (few, n)]
    facts["growth_over_subscriptions"] = over[1] / over[0]


def _build_charts(results: _CtpsResults, sizes: CtpsSizes) -> tuple[Chart, ...]:
    number, time, memory = "subscriptions", "ms for 1,000 events", "MB"
    charts = [
        Chart("figure-7a", f"Memory, height {LOW}", number, memory, results.list_lines(f"7-{LOW}"), log_y=True),
        Chart("figure-7b", f"Memory, height {HIGH}", number, memory, results.list_lines(f"7-{HIGH}"), log_y=True),
        Chart(
            "figure-7-ops", "OPS: its index over height", "height", memory, results.list_lines("height-ops"), log_y=True
        ),
        Chart("figure-8ab", f"Time, height {LOW}", number, time, results.list_lines(f"8-{LOW}"), log_y=True),
        Chart("figure-8c", f"Time, height {HIGH}", number, time, results.list_lines(f"8-{HIGH}"), log_y=True),
        Chart("figure-8d", f"CTPS over the match rate, {sizes.most:,}", "% that match", time, results.list_lines("8d")),
        Chart("height", f"Time over height, {sizes.most:,}", "height", time, results.list_lines("height"), log_y=True),
    ]
    if sizes.large:
        large = results.list_lines(f"8-{HIGH}-large")
        charts.append(Chart("large", f"Time, height {HIGH}", number, time, large, log_x=True, log_y=True))
    return tuple(charts)


NOTES = (
    "Subscriptions and events are the workload `concepts`: a name and a concept of any level, a number's one end.",
    "Events are read beforehand: the times are those of matching, with the ids of all answers.",
    "The engine is told from readings, as the others, and from the columns that it makes of them.",
    "Memory is what the algorithm allocated, beside filters and ids (tracemalloc); the engine's is a process's growth.",
    "A grid has 10 x 10 cells: the paper prints T = 5 in an example only.",
    "Figure 8d and the time over height use subscriptions of a chosen match rate (workload.py).",
)
