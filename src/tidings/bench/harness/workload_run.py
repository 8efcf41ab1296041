"""A run: a workload at one or more sizes, its baselines, the peers that can do it, and the matchers, all compared.

The matches of each event must be the same for matcher and baseline, or the run ends with an error; where a peer is
wrong, its result says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidings.bench.harness import peers as others
from tidings.bench.harness.baselines import Expressions, Law, Scan, written
from tidings.bench.harness.measure import US, Measured, Settings, measured
from tidings.bench.harness.results import BATCH, Result, Role
from tidings.bench.harness.subscription_forms import sampled, spare
from tidings.bench.harness.timing import Figure, repeated, scaled, seconds_of
from tidings.bench.workloads import Baseline, rows_of, workload
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa
    from numpy.typing import NDArray

    from tidings.bench.workloads import Workload

SAMPLE = 2000
"""Filters that are asked one by one are so many at most; their time is scaled to all."""

CHECKED = 64
"""A peer's answers to so many events are checked."""


def bench(
    key: str,
    sizes: Iterable[int],
    *,
    kinds: Iterable[str | None] = (None,),
    settings: Settings | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Result]:
    """Measure the matchers of these kinds on a workload at these sizes; the usual one, if none is named."""
    chosen, kinds = workload(key), list(kinds)
    results: list[Result] = []
    for n in sizes:
        results += _at(chosen, n, kinds, settings=settings or Settings(), say=say)
    return results


def _at(
    chosen: Workload, n: int, kinds: list[str | None], *, settings: Settings, say: Callable[[str], None]
) -> list[Result]:
    scanned = chosen.baseline is Baseline.SCAN
    judges = (_baselines if scanned else _sample)(chosen, n, settings=settings, say=say)
    rivals = _peers(chosen, n, settings=settings, say=say) if settings.peers and scanned else []
    beside = [result for result, _ in judges] + rivals
    mine: list[Result] = []
    for kind in kinds:
        found = measured(chosen, n, kind=kind, settings=settings, say=say)
        if scanned:
            _agree(found.result.subject, found.counts, *judges[0])
        else:
            _agree_on_sample(found, *judges[0], chosen, settings=settings)
        mine.append(replace(found.result, ratios=_ratios(found.result, beside)))
        del found  # or two matchers lie in memory
    return [*mine, *beside]


# Baselines -------------------------------------------------------------------------------------


def _baselines(
    chosen: Workload, n: int, *, settings: Settings, say: Callable[[str], None]
) -> list[tuple[Result, NDArray[np.int64]]]:
    """Measure the scan and, where matches are many, writing them down."""
    say("scan: encoding")
    scan = Scan(chosen.columns(n + spare(n), settings.seed).slice(0, n))
    cells = scan.cells(chosen.events(settings.events, settings.seed))
    scan.pairs(cells[:1])
    say("scan: matching")
    once = seconds_of(lambda: scan.pairs(cells[:1]))
    fits = max(1, min(len(cells), int(settings.budget_s / max(once, 1e-9))))
    pairs = scan.pairs(cells[:fits])
    few = cells[: max(1, fits // settings.repeat)]
    seconds = repeated(lambda: scan.pairs(few), repeat=settings.repeat, budget_s=settings.budget_s, warm_up=False)
    figures = {BATCH: scaled(seconds, "us", by=US / len(few)), "matches": Figure("", (float(pairs.counts.mean()),))}
    note = "early-exit scan of all conjunctions, event by event"
    found = [(Result(chosen.key, n, "scan", Role.BASELINE, len(few), figures, note=note), pairs.counts)]
    if chosen.writes:
        seconds = repeated(lambda: written(pairs), repeat=2 * settings.repeat, budget_s=settings.budget_s)
        figures = {BATCH: scaled(seconds, "us", by=US / fits)}
        note = "knows the matches and only writes (event, row)"
        found.append((Result(chosen.key, n, "write", Role.BASELINE, fits, figures, note=note), pairs.counts))
    return found


def _sample(
    chosen: Workload, n: int, *, settings: Settings, say: Callable[[str], None]
) -> list[tuple[Result, NDArray[np.int64]]]:
    """Ask a sample of the filters one by one, and scale the time to all of them."""
    name = "every expression" if chosen.baseline is Baseline.EXPRESSIONS else "law"
    size = min(n, SAMPLE)
    say(f"{name}: {size:,} filters")
    whole = n + spare(n)
    pairs = sampled(chosen, whole, first=size, seed=settings.seed)
    asked = Expressions(pairs, "title") if chosen.baseline is Baseline.EXPRESSIONS else Law(chosen, pairs)
    rows = rows_of(chosen.events(settings.events, settings.seed))
    once = seconds_of(lambda: asked.counts(rows[:1]))
    rows = rows[: max(1, min(len(rows), int(settings.budget_s / (settings.repeat + 1) / max(once, 1e-9))))]
    counts = asked.counts(rows)
    seconds = repeated(lambda: asked.counts(rows), repeat=settings.repeat, budget_s=settings.budget_s, warm_up=False)
    figures = {
        BATCH: scaled(seconds, "us", by=US / len(rows) * n / size),
        "matches": Figure("", (float(counts.mean()) * n / size,)),
    }
    note = f"{size:,} filters and {len(rows):,} events, scaled to all filters" if size < n else f"{len(rows):,} events"
    return [(Result(chosen.key, n, name, Role.BASELINE, len(rows), figures, note=note), counts)]


# Peers -----------------------------------------------------------------------------------------


def _peers(chosen: Workload, n: int, *, settings: Settings, say: Callable[[str], None]) -> list[Result]:
    found = []
    whole: pa.Table | None = None
    for name, most in chosen.peers.items():
        if not others.installed(name):
            continue
        if whole is None:
            whole = others.sayable(chosen.columns(n + spare(n), settings.seed).slice(0, n))
        say(f"{name}: loading {min(most, len(whole)):,} subscriptions")
        found.append(_peer(chosen, name, whole.slice(0, min(most, len(whole))), settings=settings, say=say))
    return found


def _peer(chosen: Workload, name: str, columns: pa.Table, *, settings: Settings, say: Callable[[str], None]) -> Result:
    made: list[others.Peer] = []
    build = seconds_of(lambda: made.append(others.PEERS[name](columns)))
    peer, events = made[0], chosen.events(settings.events, settings.seed)
    say(f"{name}: matching")
    one = peer.prepared(events.slice(0, 1))
    peer.counts(one)
    once = seconds_of(lambda: peer.counts(one))
    events = events.slice(0, max(1, min(len(events), int(settings.budget_s / (settings.repeat + 1) / max(once, 1e-9)))))
    ready = peer.prepared(events)
    counts = peer.counts(ready)
    seconds = repeated(lambda: peer.counts(ready), repeat=settings.repeat, budget_s=settings.budget_s, warm_up=False)
    figures = {
        "build_columns": Figure("s", (build,)),
        BATCH: scaled(seconds, "us", by=US / len(events)),
        "matches": Figure("", (float(counts.mean()),)),
    }
    wrong, checked = _mistakes(counts, columns, events)
    note = f"one thread; wrong on {wrong} of {checked} events, so no ratio" if wrong else "one thread"
    return Result(chosen.key, len(columns), name, Role.PEER, len(events), figures, note=note, right=not wrong)


def _mistakes(counts: NDArray[np.int64], columns: pa.Table, events: pa.Table) -> tuple[int, int]:
    """Return on how many events a peer is wrong, of how many that were looked at.

    That ends no run. mokaccino 0.9.1 misses matches where one percolator has queries with `<` and others with `>=`
    on one field (seen with that package alone), as `classifieds` does; with both in every query it is right.
    """
    scan = Scan(columns)
    right = scan.pairs(scan.cells(events.slice(0, CHECKED))).counts
    return int(np.count_nonzero(counts[: len(right)] != right)), len(right)


# Comparing -------------------------------------------------------------------------------------


def _agree(subject: str, counts: NDArray[np.int64], judge: Result, right: NDArray[np.int64]) -> None:
    """Refuse a run in which two answers differ."""
    size = min(len(counts), len(right))
    wrong = np.flatnonzero(counts[:size] != right[:size])
    if len(wrong):
        event = int(wrong[0])
        msg = (
            f"`{subject}` and `{judge.subject}` disagree on {len(wrong):,} of {size:,} events of `{judge.workload}`:"
            f" event {event} has {counts[event]:,} and {right[event]:,} matches; figures of a wrong answer mean nothing"
        )
        raise TidingsError(msg)


def _agree_on_sample(
    found: Measured, sample: Result, right: NDArray[np.int64], chosen: Workload, *, settings: Settings
) -> None:
    """Hold the matcher's matches among the sampled subscriptions to the baseline's."""
    size = min(found.result.n, SAMPLE)
    known = {f"s{number}" for number in range(size)}
    events = chosen.events(settings.events, settings.seed).slice(0, min(len(right), found.result.events))
    counts = np.zeros(events.num_rows, np.int64)
    for event, id in found.matcher.match_many(events):
        counts[event] += id in known
    _agree(found.result.subject, counts, sample, right)


def _ratios(mine: Result, beside: list[Result]) -> dict[str, float]:
    """Say how many times longer the others take for an event; what visits every subscription is scaled to as many."""
    own = mine.figures[BATCH].median
    found = {}
    for other in beside:
        if other.right and (other.n == mine.n or other.subject in others.LINEAR):
            found[other.subject] = other.figures[BATCH].median * mine.n / other.n / own
    return found
