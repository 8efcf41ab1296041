"""The smaller experiments, each in one process: growth with the subscriptions, areas, and the worst case."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

import tidings as td
from benchmarks.papers.classifieds.workload import CARS, build_full_event, count_printed_calls, list_subsets, with_areas
from benchmarks.studies import Chart, Line
from tidings.algebra import Setting
from tidings.bench.harness.timing import US, Clock, Figure, time_repeats, to_figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.matcher import Matcher

KINDS = ("candidates-tree", "filter-tree", "engine")
EVENTS, REPEATS = 200, 3

Points = dict[str, dict[int, Figure]]
"""For each kind and number of subscriptions, the microseconds an event takes."""


def grow_matchers(sizes: tuple[int, ...], *, whole_tree: int, seed: int, say: Callable[[str], None]) -> Points:
    """Measure the time of an event while more and more subscriptions are there."""
    points: Points = {}
    table, events = CARS.columns(sizes[-1], seed), CARS.event_rows(EVENTS, seed)
    for kind in KINDS:
        matcher, loaded = CARS.matcher(kind), 0
        for size in sizes:
            if kind == "filter-tree" and size > whole_tree:
                break
            say(f"growth: {kind}, {size:,} subscriptions")
            matcher.add_many(table.slice(loaded, size - loaded))
            loaded = size
            points.setdefault(kind, {})[size] = time_events(matcher, events)
    return points


def with_polygons(sizes: tuple[int, ...], *, seed: int, say: Callable[[str], None]) -> Points:
    """Measure the same where every subscription has an area."""
    points: Points = {}
    events = CARS.event_rows(EVENTS, seed)
    for size in sizes:
        table = with_areas(size, seed)
        for kind in KINDS:
            say(f"areas: {kind}, {size:,} subscriptions")
            matcher = CARS.matcher(kind)
            matcher.add_many(table)
            points.setdefault(kind, {})[size] = time_events(matcher, events)
    return points


def time_events(matcher: Matcher, events: list[dict[str, Any]]) -> Figure:
    """Return the processor time of an event in a batch, in microseconds, of each repeat."""
    matcher.settle()
    seconds = time_repeats(lambda: matcher.match_many(events), repeat=REPEATS, clock=Clock.PROCESSOR)
    return to_figure(seconds, "us", by=US / len(events))


def fit_exponent(points: dict[int, Figure]) -> float:
    """Return the power of the number of subscriptions that the time grows with, from the least to the most."""
    least, most = min(points), max(points)
    if least == most:
        return math.nan
    return math.log(points[most].median / points[least].median) / math.log(most / least)


def build_chart(points: Points, *, key: str, title: str, note: str = "") -> Chart:
    """Draw the time of an event over the number of subscriptions."""
    lines = tuple(
        Line(kind, tuple((float(size), figure) for size, figure in by.items())) for kind, by in points.items()
    )
    return Chart(key, title, "subscriptions", "time of an event, us", lines, log_x=True, log_y=True, note=note)


# The worst case --------------------------------------------------------------------------------


def count_worst(names: tuple[int, ...], say: Callable[[str], None]) -> tuple[Chart, dict[str, float]]:
    """Count the nodes that an event visits where it descends both ways at each step: as printed, and as corrected."""
    printed, ours = [], []
    for count in names:
        say(f"worst case: {count} names, {2**count - 1:,} filters")
        matcher = td.Matcher("filter-tree")
        matcher.add_many(list_subsets(count).items())
        tree = matcher.backend.algorithm.tree
        ranks = matcher.backend.algorithm.name_order.ranks
        order = tuple(sorted(ranks, key=ranks.__getitem__))
        printed.append(count_printed_calls(tree, tree.root, order))
        setting = Setting(td.Ontology(), CARS.matcher().now)
        reading = matcher.get_view().reader.read(build_full_event(count), setting.now)
        ours.append(len(tree.descend(reading, setting)))
    lines = tuple(
        Line(name, tuple((float(at), Figure("visits", (float(n),))) for at, n in zip(names, counts, strict=True)))
        for name, counts in (
            ("Algorithm 1, `while` read as `if`", printed),
            ("the paper's 2 + 4 + ... + 2^k", [2 ** (k + 1) - 2 for k in names]),
            ("corrected: each node once", ours),
        )
    )
    facts = {
        "worst_calls_of_formula": statistics.mean(n / (2 ** (k + 1) - 2) for n, k in zip(printed, names, strict=True)),
        "worst_visits_of_formula": ours[-1] / (2 ** (names[-1] + 1) - 2),
    }
    return Chart("worst-case", "Visits in the worst case (2.5)", "names", "visits", lines, log_y=True), facts
