"""Figures 8 to 10: events at a steady and then a rising rate, on one node and on two shards; the claims in words."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.papers.classifieds.cluster import Cluster
from benchmarks.papers.classifieds.small import build_chart, count_worst, fit_exponent, grow_matchers, with_polygons
from benchmarks.papers.classifieds.stream import Able, StreamRun, feed_events, measure_capacity
from benchmarks.papers.classifieds.workload import CARS, SIZES, ClassifiedsSizes, spread_arrivals
from benchmarks.studies import Chart, Line, Scale, Study
from tidings.bench.harness.timing import Figure

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "Streaming matching of events (classifieds): rate and latency on a node and on two shards"

DISTINCT = 1000
"""The stream repeats so many events."""

STEADY, OVERLOAD = 0.4, 1.6
"""The rates that are fed, as shares of what was measured: the steady one of one node's, the last one of its own."""

OURS = "candidates-tree"


@dataclass(frozen=True, slots=True)
class Fed:
    """The measurements of one cluster in the three phases."""

    kind: str
    shards: int
    steady: StreamRun
    changing: StreamRun
    rising: StreamRun
    able: Able
    updates_per_s: float
    wrong: int
    wrong_changing: int

    @property
    def stress(self) -> float:
        """Events answered in a second under stress: of the last third of the seconds."""
        last = self.rising.seconds[-max(1, len(self.rising.seconds) // 3) :]
        return statistics.median(second.answered for second in last)

    @property
    def steady_p50(self) -> float:
        """The typical latency at a steady rate, in milliseconds; NaN where nothing was answered in time."""
        return statistics.median([second.p50 for second in self.steady.seconds if second.answered] or [math.nan])


def study(scale: Scale, *, seed: int, say: Callable[[str], None]) -> Study:
    """Feed the streams, then make the smaller experiments."""
    sizes, reference, rates = SIZES[scale], dict[int, set[str]](), dict[str, float]()
    kinds = ["engine", OURS, *(["filter-tree"] if sizes.subscriptions <= sizes.whole_tree else [])]
    runs = [
        _run(kind, shards, sizes, seed=seed, reference=reference, rates=rates, say=say)
        for kind in kinds
        for shards in (1, 2)
    ]
    growth = grow_matchers(sizes.growth, whole_tree=sizes.whole_tree, seed=seed, say=say)
    areas = with_polygons(sizes.polygons, seed=seed, say=say)
    worst_case, counted = count_worst(sizes.names, say)
    most = max(sizes.polygons)
    facts = {
        **_stream_facts({(run.kind, run.shards): run for run in runs}),
        "growth_exponent": fit_exponent(growth[OURS]),
        "growth_exponent_filter_tree": fit_exponent(growth["filter-tree"]),
        "areas_filter_tree_of_candidates_tree": areas["filter-tree"][most].median / areas[OURS][most].median,
        **counted,
    }
    charts = (
        *_build_figures(runs, sizes),
        build_chart(growth, key="growth", title="Time of an event as subscriptions grow (2.5)"),
        build_chart(areas, key="areas", title="Time of an event, an area in every filter (2.6)"),
        worst_case,
    )
    return Study(TITLE, charts, facts, _write_notes(runs, sizes))


def _run(
    kind: str,
    shards: int,
    sizes: ClassifiedsSizes,
    *,
    seed: int,
    reference: dict[int, set[str]],
    rates: dict[str, float],
    say: Callable[[str], None],
) -> Fed:
    """Load a cluster, hold its answers to those of the first one, and feed it."""
    events = CARS.event_rows(DISTINCT, seed)
    say(f"{kind}, {shards} shard(s): loading {sizes.subscriptions:,} subscriptions")
    with Cluster(kind, shards=shards, subscriptions=sizes.subscriptions, seed=seed) as cluster:
        wrong = _count_wrong(_ask_at_rest(cluster, events), reference)
        able = measure_capacity(cluster, events, sizes.warm_s)
        steady_rate = STEADY * rates.setdefault(kind, able.rate)
        say(f"{kind}, {shards} shard(s): {able.rate:,.0f} events/s; feeding {steady_rate:,.0f} events/s")
        times = spread_arrivals(steady_rate, steady_rate, sizes.steady_s)
        steady = feed_events(cluster, events, times, seconds=sizes.steady_s)
        cluster.change(on=True)
        times = spread_arrivals(steady_rate, steady_rate, sizes.changing_s)
        changing = feed_events(cluster, events, times, seconds=sizes.changing_s)
        changes = sum(cluster.change(on=False))
        say(f"{kind}, {shards} shard(s): {changes:,} changes meanwhile; now a rising rate")
        times = spread_arrivals(STEADY * able.rate, OVERLOAD * able.rate, sizes.rising_s)
        rising = feed_events(cluster, events, times, seconds=sizes.rising_s)
        wrong += _count_wrong(steady.answers + rising.answers, reference) + _count_wrong(
            _ask_at_rest(cluster, events), reference
        )
    amid = [(at, [id for id in ids if not id.startswith("x-")]) for at, ids in changing.answers]
    return Fed(
        kind, shards, steady, changing, rising, able, changes / sizes.changing_s, wrong, _count_wrong(amid, reference)
    )


def _ask_at_rest(cluster: Cluster, events: list[dict[str, Any]]) -> list[tuple[int, list[str]]]:
    lists = [cluster.ask(events[at : at + 100]) for at in range(0, len(events), 100)]
    return list(enumerate(ids for some in lists for ids in some))


def _count_wrong(answers: list[tuple[int, list[str]]], reference: dict[int, set[str]]) -> int:
    """Count the answers that differ from the first answer to the same event, or have an id twice."""
    wrong = 0
    for at, ids in answers:
        answer = set(ids)
        wrong += reference.setdefault(at, answer) != answer or len(answer) != len(ids)
    return wrong


def _stream_facts(runs: dict[tuple[str, int], Fed]) -> dict[str, float]:
    single, double, engine = runs[OURS, 1], runs[OURS, 2], runs["engine", 1]
    rate, latency = _compute_ratio(double.stress, single.stress), _compute_ratio(single.steady_p50, double.steady_p50)
    tails = [second.p99 for second in single.steady.seconds if second.answered]
    return {
        "shards_throughput_gain": rate,
        "shards_latency_gain": latency,
        "shards_gain": max(rate, latency),
        "shards_work_gain": _compute_ratio(single.able.busiest_us, double.able.busiest_us),
        "wrong_answers": float(sum(run.wrong for run in runs.values())),
        "wrong_answers_while_changing": float(sum(run.wrong_changing for run in runs.values())),
        "updates_per_s": single.updates_per_s,
        "steady_p99_s": max(tails, default=math.nan) / 1e3,
        "events_per_s_candidates_tree": single.stress,
        "events_per_s_engine": engine.stress,
        "engine_of_candidates_tree": _compute_ratio(engine.stress, single.stress),
    }


def _compute_ratio(numerator: float, denominator: float) -> float:
    """Return how many times the second the first is; NaN of nothing, as on a machine that stood still for a second."""
    return numerator / denominator if denominator else math.nan


# Charts ----------------------------------------------------------------------------------------


def _build_figures(runs: list[Fed], sizes: ClassifiedsSizes) -> list[Chart]:
    calm = {(run.kind, run.shards): _merge_changes(run, sizes) for run in runs}
    stress = {(run.kind, run.shards): run.rising for run in runs}
    note = f"{sizes.subscriptions:,} subscriptions; from second {sizes.steady_s} on, subscriptions come and go"
    kinds = list(dict.fromkeys(run.kind for run in runs))
    charts = _pair("figure-8", "Events matching on a cluster of two, steady rate", {k: calm[k, 2] for k in kinds}, note)
    charts += _pair("figure-8-node", "The same on one node", {k: calm[k, 1] for k in kinds}, note)
    note = f"{sizes.subscriptions:,} subscriptions; the rate rises from 0.4 to 1.6 of what was measured"
    charts += _pair("figure-9", "Events matching throughput, two shards", {k: stress[k, 2] for k in kinds}, note)
    charts += _pair("figure-10", "Events matching throughput on a node", {k: stress[k, 1] for k in kinds}, note)
    return charts


def _merge_changes(run: Fed, sizes: ClassifiedsSizes) -> StreamRun:
    """One run of the steady phase and the one with changes after it."""
    later = [replace(second, at=second.at + sizes.steady_s) for second in run.changing.seconds]
    return StreamRun([*run.steady.seconds, *later])


def _pair(key: str, title: str, runs: dict[str, StreamRun], note: str) -> list[Chart]:
    rates = [_build_line(name, run, "answered", "events/s") for name, run in runs.items()]
    rates += [_build_line(f"{name}, offered", run, "came", "events/s") for name, run in runs.items()]
    late = [_build_line(f"{name}, {p}", run, p, "ms") for name, run in runs.items() for p in ("p50", "p99")]
    return [
        Chart(f"{key}-rate", f"{title}: rate", "second", "events/s", tuple(rates), log_y=True, note=note),
        Chart(f"{key}-latency", f"{title}: latency", "second", "latency, ms", tuple(late), log_y=True, note=note),
    ]


def _build_line(name: str, run: StreamRun, figure: str, unit: str) -> Line:
    seen = [second for second in run.seconds if second.answered]
    return Line(name, tuple((float(second.at), Figure(unit, (float(getattr(second, figure)),))) for second in seen))


def _write_notes(runs: list[Fed], sizes: ClassifiedsSizes) -> tuple[str, ...]:
    lines = [
        f"{run.kind} on {run.shards}: {run.stress:,.0f} events/s under stress, p50 {run.steady_p50:.2f} ms at a steady"
        f" rate, {run.able.busiest_us:.0f} us of processor time an event on the busiest instance,"
        f" {run.updates_per_s:.0f} subscriptions/s came or went"
        for run in runs
    ]
    return (
        f"{sizes.subscriptions:,} subscriptions of `classifieds`; the paper has 300,000 of its own.",
        "Both shards, and what feeds them, share this machine; the paper's instances have machines of their own.",
        "The paper's figures are pictures without numbers in the text; two of them it calls `Figure ???`.",
        *lines,
    )
