"""`bench`: a workload at one or more sizes, with its baselines, the peers that can do it, and the matchers.

The number of matches of each event must be the same for matcher and baseline, or the run ends with an error; where a
peer is wrong, its result says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidings.bench.harness import peers
from tidings.bench.harness.baselines import Expressions, Law, Scan
from tidings.bench.harness.measure import MeasuredMatcher, Settings, measure_matcher
from tidings.bench.harness.results import BATCH, Result, Role
from tidings.bench.harness.subscription_forms import count_spare
from tidings.bench.harness.timing import US, Figure, count_fitting, measure_seconds, time_repeats, to_figure
from tidings.bench.workloads import Baseline, Workload
from tidings.bench.workloads import workload as find_workload
from tidings.errors import TidingsError
from tidings.kernels.array_types import IntArray
from tidings.kernels.baselines import write_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.bench.harness.baselines import MatchCounter

SAMPLE = 2000
"""Filters that are evaluated one by one are so many at most; their time is scaled to all."""


def bench(
    key: str,
    sizes: Iterable[int],
    *,
    kinds: Iterable[str | None] = (None,),
    settings: Settings | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Result]:
    """Measure matchers on a workload at these sizes, the usual matcher where no kinds are named.

    `say` is called with each step. An answer that differs from the baseline's raises `TidingsError`.
    """
    workload, settings, kinds = find_workload(key), settings or Settings(), list(kinds)
    run = _WorkloadRun(workload, settings, workload.events(settings.events, settings.seed), say)
    return [result for n in sizes for result in run.measure_size(n, kinds)]


@dataclass(frozen=True, slots=True)
class _TimedCounts:
    """Matches of each answered event, and the seconds of each repeat over the first `events` of them."""

    counts: IntArray
    events: int
    seconds: list[float]

    def to_figures(self, scale: float = 1.0) -> dict[str, Figure]:
        """Return time and matches of an event, both multiplied by `scale`, which makes up for a sample."""
        return {
            BATCH: to_figure(self.seconds, "us", by=US / self.events * scale),
            "matches": Figure("", (float(self.counts.mean()) * scale,)),
        }


@dataclass(frozen=True, slots=True)
class _WorkloadRun:
    """One workload under one set of settings."""

    workload: Workload
    settings: Settings
    events: pa.Table
    say: Callable[[str], None]

    def measure_size(self, n: int, kinds: list[str | None]) -> list[Result]:
        """Measure baselines, peers and matchers at one size; results of the matchers come first."""
        is_scan = self.workload.baseline is Baseline.SCAN
        baselines, counts = self._measure_scan(n) if is_scan else self._measure_sample(n)
        others = baselines + (self._measure_peers(n) if self.settings.peers and is_scan else [])
        results: list[Result] = []
        for kind in kinds:
            measured = measure_matcher(self.workload, n, kind=kind, settings=self.settings, say=self.say)
            own = measured.counts if is_scan else self._count_in_sample(measured, len(counts))
            _require_same(measured.result.subject, own, baselines[0], counts)
            results.append(replace(measured.result, ratios=_compute_ratios(measured.result, others)))
            del measured  # or two matchers are in memory
        return [*results, *others]

    def _time_counter(self, counter: MatchCounter, *, allowed_s: float, slices: int = 1) -> _TimedCounts:
        """Count the matches of as many events as fit `allowed_s`, then time one of so many slices of them, repeated."""
        events = self.events
        first = counter.prepare_events(events.slice(0, 1))
        counter.count_matches(first)
        once_s = measure_seconds(lambda: counter.count_matches(first))
        fitting = count_fitting(once_s, events.num_rows, allowed_s=allowed_s)
        prepared = counter.prepare_events(events.slice(0, fitting))
        counts = counter.count_matches(prepared)
        count = max(1, fitting // slices)
        timed = prepared if count == fitting else counter.prepare_events(events.slice(0, count))
        repeat, budget_s = self.settings.repeat, self.settings.budget_s
        work = partial(counter.count_matches, timed)
        return _TimedCounts(counts, count, time_repeats(work, repeat=repeat, budget_s=budget_s, warm_up=False))

    @property
    def _share_s(self) -> float:
        """The time of one repeat when the budget holds all repeats and one run before them."""
        return self.settings.budget_s / (self.settings.repeat + 1)

    def _make_columns(self, n: int) -> pa.Table:
        """Return the subscriptions that a matcher of `n` gets, which are drawn together with its spare ones."""
        return self.workload.columns(n + count_spare(n), self.settings.seed).slice(0, n)

    # Baselines -------------------------------------------------------------------------------------

    def _measure_scan(self, n: int) -> tuple[list[Result], IntArray]:
        """Measure the scan and, where matches are many, writing them down."""
        settings, key = self.settings, self.workload.key
        self.say("scan: encoding")
        scan = Scan(self._make_columns(n))
        self.say("scan: matching")
        # Every event that fits is checked, and the repeats share the events among them: scans are slow.
        timed = self._time_counter(scan, allowed_s=settings.budget_s, slices=settings.repeat)
        note = "early-exit scan of all conjunctions, event by event"
        results = [Result(key, n, "scan", Role.BASELINE, timed.events, timed.to_figures(), note=note)]
        if self.workload.writes:
            count = len(timed.counts)
            pairs = scan.find_pairs(scan.prepare_events(self.events.slice(0, count)))
            write = partial(write_pairs, pairs.starts, pairs.rows)
            seconds = time_repeats(write, repeat=2 * settings.repeat, budget_s=settings.budget_s)
            figures = {BATCH: to_figure(seconds, "us", by=US / count)}
            note = "knows the matches and only writes (event, row)"
            results.append(Result(key, n, "write", Role.BASELINE, count, figures, note=note))
        return results, timed.counts

    def _measure_sample(self, n: int) -> tuple[list[Result], IntArray]:
        """Evaluate a sample of the filters one by one, and scale the time to all of them."""
        is_text = self.workload.baseline is Baseline.EXPRESSIONS
        name = "every expression" if is_text else "law"
        size = min(n, SAMPLE)
        self.say(f"{name}: {size:,} filters")
        pairs = list(islice(self.workload.pairs(n + count_spare(n), self.settings.seed), size))
        counter: MatchCounter = Expressions(pairs, "title") if is_text else Law(self.workload, pairs)
        timed = self._time_counter(counter, allowed_s=self._share_s)
        events = f"{timed.events:,} events"
        note = f"{size:,} filters and {events}, scaled to all filters" if size < n else events
        figures = timed.to_figures(n / size)
        return [Result(self.workload.key, n, name, Role.BASELINE, timed.events, figures, note=note)], timed.counts

    def _count_in_sample(self, measured: MeasuredMatcher, most: int) -> IntArray:
        """Return how many of the sampled subscriptions the matcher finds for each event."""
        ids = {f"s{number}" for number in range(min(measured.result.n, SAMPLE))}
        events = self.events.slice(0, min(most, measured.result.events))
        counts = np.zeros(events.num_rows, np.int64)
        for event, id in measured.matcher.match_many(events):
            counts[event] += id in ids
        return counts

    # Peers -----------------------------------------------------------------------------------------

    def _measure_peers(self, n: int) -> list[Result]:
        names = [name for name in self.workload.peers if peers.is_installed(name)]
        if not names:
            return []
        results, columns = [], peers.select_expressible(self._make_columns(n))
        for name in names:
            size = min(self.workload.peers[name], len(columns))
            self.say(f"{name}: loading {size:,} subscriptions")
            results.append(self._measure_peer(name, columns.slice(0, size)))
        return results

    def _measure_peer(self, name: str, columns: pa.Table) -> Result:
        counters: list[MatchCounter] = []
        build_s = measure_seconds(lambda: counters.append(peers.PEERS[name](columns)))
        self.say(f"{name}: matching")
        timed = self._time_counter(counters[0], allowed_s=self._share_s)
        figures = {"build_columns": Figure("s", (build_s,)), **timed.to_figures()}
        wrong, checked = self._count_mistakes(timed, columns)
        note = f"one thread; wrong on {wrong} of {checked} events, so no ratio" if wrong else "one thread"
        key, n = self.workload.key, len(columns)
        return Result(key, n, name, Role.PEER, timed.events, figures, note=note, right=not wrong)

    def _count_mistakes(self, timed: _TimedCounts, columns: pa.Table) -> tuple[int, int]:
        """Return on how many events a peer differs from the scan, of how many that were checked.

        That ends no run. mokaccino 0.9.1 misses matches where one percolator has queries with `<` and others with `>=`
        on one field (seen with that package alone), as `classifieds` does; with both in every query it is right.
        """
        scan, checked = Scan(columns), min(timed.events, self.settings.checked)
        right = scan.count_matches(scan.prepare_events(self.events.slice(0, checked)))
        return int(np.count_nonzero(timed.counts[: len(right)] != right)), len(right)


# Comparing -------------------------------------------------------------------------------------


def _require_same(subject: str, counts: IntArray, baseline: Result, right: IntArray) -> None:
    """Raise an error if two subjects disagree on how many matches an event has."""
    size = min(len(counts), len(right))
    wrong = np.flatnonzero(counts[:size] != right[:size])
    if len(wrong):
        event = int(wrong[0])
        msg = (
            f"`{subject}` and `{baseline.subject}` disagree on {len(wrong):,} of {size:,} events of"
            f" `{baseline.workload}`: event {event} has {counts[event]:,} and {right[event]:,} matches;"
            " figures of a wrong answer mean nothing"
        )
        raise TidingsError(msg)


def _compute_ratios(result: Result, others: list[Result]) -> dict[str, float]:
    """Return how many times longer the others take for an event; a subject that is linear in n is scaled to it."""
    own = result.figures[BATCH].median
    return {
        other.subject: other.figures[BATCH].median * result.n / other.n / own
        for other in others
        if other.right and (other.n == result.n or other.subject in peers.LINEAR)
    }
