"""Poset, forest and counting against the number of filters and of covering pairs; interfaces; deadlines."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.papers.poset import workload
from benchmarks.studies import Chart, Line, Scale, Study
from tidings.algebra import AttributeReader, Setting, collect_requirements
from tidings.bench.harness.timing import Figure, measure_seconds, time_repeats, to_figure
from tidings.concepts import Ontology, Vocabulary
from tidings.matcher import Matcher
from tidings.matcher.algorithm import Algorithm
from tidings.matcher.brute import Brute
from tidings.papers.posets.counting import Counting
from tidings.papers.posets.forest import Forest, SkipMode
from tidings.papers.posets.poset import Poset

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "Poset-based matching: forest, poset and counting"

SIZES = {
    Scale.QUICK: (250, 500, 1000, 2000),
    Scale.USUAL: (500, 1000, 2000, 4000, 8000),
    Scale.FULL: (500, 1000, 2000, 4000, 8000, 16_000, 32_000),
}
"""Numbers of filters; the text prints none."""

POSETS = {Scale.QUICK: 2000, Scale.USUAL: 4000, Scale.FULL: 16_000}
"""Posets take so many filters at most: placing one looks at many others."""

NESTINGS = (0.0, 0.25, 0.5, 0.75, 0.95)
"""Shares of filters that are narrowed from others."""

NESTED = 0.75
"""The share where the number of filters varies."""

INTERFACES = (2, 4, 8, 16, 32, 64)
DEADLINES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Shares of the tests of a full walk after which time is up."""

REPEAT, BUDGET_S = 5, 2.0
SETTING = Setting(Ontology(), datetime(2026, 1, 1, tzinfo=UTC))

MAKERS: dict[str, Callable[[], Algorithm]] = {
    "brute force": Brute,
    "forest": lambda: Forest(SETTING.ontology),
    "poset": lambda: Poset(SETTING.ontology),
    "counting": Counting,
    "counting, nothing eliminated": lambda: Counting(access=False),
}
ENGINE = "engine"


@dataclass
class CurveLines:
    """Curves that grow point by point."""

    points: dict[str, list[tuple[float, Figure]]] = field(default_factory=dict)

    def add(self, name: str, x: float, figure: Figure) -> None:
        """Put a point at the end of a curve."""
        self.points.setdefault(name, []).append((x, figure))

    def list_lines(self) -> tuple[Line, ...]:
        """Return the curves."""
        return tuple(Line(name, tuple(points)) for name, points in self.points.items())

    def sum_medians(self, name: str) -> float:
        """Return the sum of a curve's medians."""
        return sum(figure.median for _, figure in self.points[name])

    def get_last(self, name: str) -> float:
        """Return the last median of a curve."""
        return self.points[name][-1][1].median


@dataclass
class Market:
    """Filters, events as filters see them, and every matcher filled with the filters."""

    ends: Any
    trees: list[Any]
    events: list[dict[str, Any]]
    readings: list[Any]
    made: dict[str, Algorithm]
    build: dict[str, Figure]
    engine: Matcher


def build_market(n: int, nested: float, *, seed: int, posets: int) -> Market:
    """Draw filters and events and fill the matchers, with the time it took."""
    ends = workload.draw_spans(n, nested, np.random.default_rng([seed, 1]))
    trees = workload.build_filters(ends)
    events = workload.draw_events(np.random.default_rng([seed, 2]))
    reader = AttributeReader(collect_requirements(trees, Vocabulary(ontology=SETTING.ontology)), SETTING.ontology)
    algorithms: dict[str, Algorithm] = {}
    build: dict[str, Figure] = {}
    for name, make in MAKERS.items():
        if name == "poset" and n > posets:
            continue
        algorithms[name] = algorithm = make()
        compiled = ((at, algorithm.compile_filter(tree)) for at, tree in enumerate(trees))
        build[name] = to_figure([measure_seconds(partial(algorithm.add_many, compiled))], "us a filter", by=1e6 / n)
    engine = Matcher()
    engine.add_many(enumerate(trees))
    engine.compact()
    return Market(ends, trees, events, [reader.read(event, SETTING.now) for event in events], algorithms, build, engine)


def time_matching(work: Callable[[], object], events: int) -> Figure:
    """Return the time for one event."""
    return to_figure(time_repeats(work, repeat=REPEAT, budget_s=BUDGET_S), "us an event", by=1e6 / events)


def measure_times(filled: Market) -> dict[str, Figure]:
    """Measure every matcher, and hold every answer to the engine's."""
    wanted = [set(ids) for ids in filled.engine.match_many(filled.events).by_event()]
    figures = {}
    for name, algorithm in filled.made.items():
        answers = algorithm.match_many(filled.readings, SETTING)
        assert [set(ids) for ids in answers] == wanted, name
        figures[name] = time_matching(partial(algorithm.match_many, filled.readings, SETTING), len(filled.readings))
    figures[ENGINE] = time_matching(partial(filled.engine.match_many, filled.events), len(filled.events))
    return figures


def count_tests(filled: Market) -> dict[str, Figure]:
    """Count the tests made for each event."""
    count = len(filled.trees)
    figures = {"brute force": Figure("tests an event", (float(count),))}
    for name in ("forest", "poset"):
        algorithm = filled.made.get(name)
        if isinstance(algorithm, Forest):
            tests = [algorithm.match_until(reading, SETTING, deadline=1.0).tests for reading in filled.readings]
            figures[name] = Figure("tests an event", (mean(tests),))
    return figures


def measure_by_size(scale: Scale, facts: dict[str, float], *, seed: int, say: Callable[[str], None]) -> list[Chart]:
    """Measure against the number of filters."""
    time, tests, build = CurveLines(), CurveLines(), CurveLines()
    for n in SIZES[scale]:
        say(f"{n:,} filters, {NESTED:.0%} of them narrowed from others")
        filled = build_market(n, NESTED, seed=seed, posets=POSETS[scale])
        measured = measure_times(filled)
        for lines, figures in ((time, measured), (tests, count_tests(filled)), (build, filled.build)):
            for name, figure in figures.items():
                lines.add(name, n, figure)
        for name in ("forest", "counting", ENGINE):
            facts[f"{name}_of_brute_time"] = measured[name].median / measured["brute force"].median
        facts["counting_of_forest_time"] = measured["counting"].median / measured["forest"].median
        facts["eliminating_of_plain_time"] = (
            measured["counting"].median / measured["counting, nothing eliminated"].median
        )
        facts["engine_of_counting_time"] = measured[ENGINE].median / measured["counting"].median
        if "poset" in measured:
            facts["poset_of_forest_build"] = filled.build["poset"].median / filled.build["forest"].median
            facts["poset_of_forest_time"] = measured["poset"].median / measured["forest"].median
    x = "filters"
    return [
        Chart(
            "time", "Time against the number of filters", x, "us an event", time.list_lines(), log_x=True, log_y=True
        ),
        Chart(
            "tests",
            "Tests against the number of filters",
            x,
            "tests an event",
            tests.list_lines(),
            log_x=True,
            log_y=True,
        ),
        Chart("build", "Placing a filter", x, "us a filter", build.list_lines(), log_x=True, log_y=True),
    ]


def measure_by_nesting(scale: Scale, facts: dict[str, float], *, seed: int, say: Callable[[str], None]) -> list[Chart]:
    """Measure against the number of covering pairs."""
    time, tests, n = CurveLines(), CurveLines(), SIZES[scale][-2 if scale is Scale.QUICK else 2]
    for nested in NESTINGS:
        filled = build_market(n, nested, seed=seed, posets=POSETS[scale])
        pairs = max(1, workload.count_covering_pairs(filled.ends))
        say(f"{n:,} filters with {pairs:,} covering pairs")
        counted = count_tests(filled)
        for lines, figures in ((time, measure_times(filled)), (tests, counted)):
            for name, figure in figures.items():
                lines.add(name, pairs, figure)
        facts["forest_of_brute_tests"] = counted["forest"].median / n
        facts["poset_of_forest_tests"] = counted["poset"].median / counted["forest"].median
        if nested == 0.0:
            facts["flat_forest_of_brute_tests"] = facts["forest_of_brute_tests"]
    x = "covering pairs"
    return [
        Chart(
            "pairs-time",
            f"Time against covering pairs, {n:,} filters",
            x,
            "us an event",
            time.list_lines(),
            log_x=True,
            log_y=True,
        ),
        Chart(
            "pairs-tests",
            f"Tests against covering pairs, {n:,} filters",
            x,
            "tests an event",
            tests.list_lines(),
            log_x=True,
        ),
    ]


def measure_by_interfaces(
    scale: Scale, facts: dict[str, float], *, seed: int, say: Callable[[str], None]
) -> list[Chart]:
    """Measure routes to few and many interfaces, with each way to skip."""
    time, tests, n = CurveLines(), CurveLines(), SIZES[scale][2]
    filled = build_market(n, NESTED, seed=seed, posets=0)
    rng = np.random.default_rng([seed, 3])
    for count in INTERFACES:
        say(f"{count} interfaces")
        owners: dict[int | str, int] = dict(enumerate(rng.integers(count, size=n).tolist()))
        forest = Forest(SETTING.ontology, interfaces=owners)
        forest.add_many(enumerate(filled.trees))
        wanted = [{owners[id] for id in ids} for ids in filled.made["counting"].match_many(filled.readings, SETTING)]
        for skip in SkipMode:
            routes = [forest.route(reading, SETTING, skip=skip) for reading in filled.readings]
            assert [set(route.ids) for route in routes] == wanted
            tests.add(skip.value, count, Figure("tests an event", (mean(route.tests for route in routes),)))
            walk = partial(_walk_routes, forest, filled.readings, skip)
            time.add(skip.value, count, time_matching(walk, len(filled.readings)))
    for skip in (SkipMode.TESTS, SkipMode.SUBTREES):
        facts[f"skip_{skip.value}_of_time"] = time.sum_medians(skip.value) / time.sum_medians(SkipMode.NOTHING.value)
        facts[f"skip_{skip.value}_of_tests"] = tests.sum_medians(skip.value) / tests.sum_medians(SkipMode.NOTHING.value)
    x = "interfaces"
    return [
        Chart(
            "interfaces-time",
            f"Routes of {n:,} filters, by what is skipped",
            x,
            "us an event",
            time.list_lines(),
            log_x=True,
        ),
        Chart(
            "interfaces-tests",
            f"Tests of {n:,} filters, by what is skipped",
            x,
            "tests an event",
            tests.list_lines(),
            log_x=True,
        ),
    ]


def _walk_routes(forest: Forest, readings: list[Any], skip: SkipMode) -> None:
    for reading in readings:
        forest.route(reading, SETTING, skip=skip)


class Tests:
    """A clock that counts how often it was looked at: time in tests, the same on every machine."""

    def __init__(self) -> None:
        """Start before the first test."""
        self.looks = -1

    def __call__(self) -> float:
        """Return the number of tests made so far."""
        self.looks += 1
        return self.looks


def measure_by_deadline(scale: Scale, facts: dict[str, float], *, seed: int, say: Callable[[str], None]) -> list[Chart]:
    """Measure how many false positives a deadline costs; misses are counted, and there must be none."""
    n = SIZES[scale][2]
    say(f"deadlines of {n:,} filters")
    filled = build_market(n, NESTED, seed=seed, posets=n)
    false, misses = CurveLines(), 0
    for name in ("forest", "poset"):
        algorithm = filled.made[name]
        assert isinstance(algorithm, Forest)
        whole = [algorithm.match_until(reading, SETTING, deadline=1.0) for reading in filled.readings]
        for share in DEADLINES:
            extra = []
            for reading, full in zip(filled.readings, whole, strict=True):
                result = algorithm.match_until(reading, SETTING, deadline=share * full.tests, clock=Tests())
                wanted = set(full.ids)
                misses += len(wanted - set(result.ids))
                extra.append((len(result.ids) - len(wanted)) / (n - len(wanted)))
            false.add(name, share, Figure("share of what does not match", (mean(extra),)))
            if share == 0.5:
                facts[f"{name}_false_at_half"] = mean(extra)
    facts["deadline_misses"] = float(misses)
    facts["forest_false_at_end"] = false.get_last("forest")
    return [
        Chart(
            "deadline",
            f"What a deadline costs, {n:,} filters",
            "deadline, as a share of the tests of a full walk",
            "false positives, as a share of what does not match",
            false.list_lines(),
            note="Misses: none at any deadline.",
        )
    ]


def study(scale: Scale, *, seed: int, say: Callable[[str], None]) -> Study:
    """Run all of it."""
    facts: dict[str, float] = {}
    charts = [
        chart
        for part in (measure_by_size, measure_by_nesting, measure_by_interfaces, measure_by_deadline)
        for chart in part(scale, facts, seed=seed, say=say)
    ]
    notes = (
        "The text prints no figures and no workload; filters are ranges and kinds, some narrowed from others.",
        "Matchers are given events that were read once; the engine's time includes reading them.",
        "A deadline is measured in tests, so that the curve is the same on every machine.",
    )
    return Study(TITLE, tuple(charts), facts, notes)
