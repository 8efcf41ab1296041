"""The figures of one matcher: to build, to match one event and a batch, to insert and to delete.

Ids of matches are made on demand, so matching is timed without them and `to_arrow` by itself. A slow matcher gets
fewer events, as many as fit the budget, and the note of its result says how many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tidings.bench.harness import process_memory
from tidings.bench.harness.results import BATCH, Result, Role
from tidings.bench.harness.subscription_forms import count_spare, load_matcher, make_subscriptions
from tidings.bench.harness.timing import (
    US,
    Clock,
    Figure,
    measure_seconds,
    plan_repeats,
    time_events,
    time_repeats,
    to_figure,
)
from tidings.bench.workloads import rows_of
from tidings.kernels.array_types import IntArray
from tidings.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from tidings.bench.harness.subscription_forms import WorkloadSubscriptions
    from tidings.bench.workloads import Workload

BATCH_SIZE = 1024
"""Events in a batch."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure, and how much work to spend on it.

    `budget_s` limits each figure, or in the scoreboard each subject. Answers to the first `checked` events are
    compared where ids or a peer's counts are checked; `warm_up` subscriptions are loaded first, which compiles kernels.
    """

    events: int = BATCH_SIZE
    repeat: int = 5
    seed: int = 1
    budget_s: float = 20.0
    from_text: bool = False
    memory: bool = True
    peers: bool = True
    checked: int = 64
    warm_up: int = 200
    clock: Clock = Clock.WALL


@dataclass(frozen=True, slots=True)
class MeasuredMatcher:
    """A matcher's result, its number of matches for each of the first events, and the matcher itself."""

    result: Result
    counts: IntArray
    matcher: Matcher


def measure_matcher(
    workload: Workload, n: int, *, kind: str | None, settings: Settings, say: Callable[[str], None]
) -> MeasuredMatcher:
    """Measure a matcher of this kind on `n` subscriptions of a workload; `say` is called with each step."""
    spare = count_spare(n)
    say(f"{n:,} subscriptions")
    subscriptions = make_subscriptions(workload, n + spare, kind=kind, seed=settings.seed)
    base, additions = subscriptions.slice(0, n), subscriptions.slice(n, n + spare)
    name = workload.matcher(kind).kind
    say(f"{name}: warming up")
    few = subscriptions.slice(0, min(n, settings.warm_up))
    load_matcher(workload, few.source, kind=kind).match_many(workload.events(8, settings.seed))
    say(f"{name}: building")
    matcher, figures = _time_building(workload, base, kind=kind, settings=settings)
    say(f"{name}: matching")
    events = _select_events(matcher, workload.events(settings.events, settings.seed), settings)
    counts = _time_matching(matcher, events, figures, settings=settings)
    say(f"{name}: inserting and deleting")
    _time_changes(matcher, additions, figures, settings=settings)
    if settings.from_text and base.form != "text":
        say(f"{name}: building from text")
        texts = workload.texts(n, settings.seed)
        seconds = measure_seconds(lambda: load_matcher(workload, texts, kind=kind), settings.clock)
        figures["build_text"] = Figure("s", (seconds,))
    if settings.memory:
        say(f"{name}: measuring memory")
        figures |= _measure_memory(workload, n, kind=kind, seed=settings.seed)
    note = _describe(base, figures, events=events.num_rows, wanted=settings.events)
    result = Result(workload.key, n, name, Role.MATCHER, events.num_rows, figures, note=note)
    return MeasuredMatcher(result, counts, matcher)


def _describe(subscriptions: WorkloadSubscriptions, figures: dict[str, Figure], *, events: int, wanted: int) -> str:
    note = f"built from {subscriptions.form}"
    note += f" (columns refused: {subscriptions.refusal:.80})" if subscriptions.refusal else ""
    note += f"; {events} events" if events < wanted else ""
    return note + (f"; bytes: {process_memory.METHOD}" if "bytes" in figures else "")


def _measure_memory(workload: Workload, n: int, *, kind: str | None, seed: int) -> dict[str, Figure]:
    memory = process_memory.measure_matcher_memory(workload.key, n, kind=kind, seed=seed)
    return {"bytes": Figure("B", ((memory.whole - memory.ids) / n,))} if memory else {}


def _time_building(
    workload: Workload, subscriptions: WorkloadSubscriptions, *, kind: str | None, settings: Settings
) -> tuple[Matcher, dict[str, Figure]]:
    matchers: list[Matcher] = []

    def build() -> None:
        matchers.clear()  # the matcher of the repeat before goes first, or two are in memory
        matchers.append(load_matcher(workload, subscriptions.source, kind=kind))

    repeat = min(3, settings.repeat)
    seconds = time_repeats(build, repeat=repeat, budget_s=settings.budget_s, warm_up=False, clock=settings.clock)
    return matchers[0], {f"build_{subscriptions.form}": to_figure(seconds, "s")}


def _select_events(matcher: Matcher, events: pa.Table, settings: Settings) -> pa.Table:
    """Return as many of the events as the matcher handles within the budget, all repeats included."""
    matcher.match_many(events.slice(0, 1))
    plan = plan_repeats(
        lambda count: matcher.match_many(events.slice(0, count)),
        events.num_rows,
        repeat=settings.repeat,
        allowed_s=settings.budget_s,
        clock=settings.clock,
    )
    return events.slice(0, plan.events)


def _time_matching(matcher: Matcher, events: pa.Table, figures: dict[str, Figure], *, settings: Settings) -> IntArray:
    """Time events one by one and in batches, and return how many subscriptions each event matches."""
    repeat, clock, count = settings.repeat, settings.clock, events.num_rows
    timed = partial(time_events, count=count, repeat=repeat, budget_s=settings.budget_s, clock=clock)
    batches = [events.slice(begin, BATCH_SIZE) for begin in range(0, count, BATCH_SIZE)]
    in_batches = timed(lambda: [matcher.match_many(batch) for batch in batches])
    rows = rows_of(events)
    figures["single"] = timed(lambda: [matcher.match(row) for row in rows]).figure
    figures[BATCH] = in_batches.figure
    # A result may cache the ids it made, so each repeat gets its own; two batches are enough to tell.
    first_batches = batches[:2]
    arrows = [
        measure_seconds(matcher.match_many(batch).to_arrow, clock) for _ in range(repeat) for batch in first_batches
    ]
    figures["to_arrow"] = to_figure(arrows, "us", by=US / first_batches[0].num_rows)
    counts = [np.bincount(matcher.match_many(batch).event_index, minlength=batch.num_rows) for batch in batches]
    whole: IntArray = np.concatenate(counts)
    figures["matches"] = Figure("", (float(whole.mean()),))
    return whole


def _time_changes(
    matcher: Matcher, spare: WorkloadSubscriptions, figures: dict[str, Figure], *, settings: Settings
) -> None:
    """Time inserting spare subscriptions in bulk and deleting them again, which restores the matcher."""
    ids = spare.ids
    inserts: list[float] = []
    deletes: list[float] = []
    for _ in range(settings.repeat + 1):
        inserts.append(measure_seconds(lambda: matcher.add_many(spare.source), settings.clock))
        deletes.append(measure_seconds(lambda: matcher.remove_many(ids), settings.clock))
        if sum(inserts) + sum(deletes) > settings.budget_s:
            break
    warm = 1 if len(inserts) > 1 else 0
    figures["insert"] = to_figure(inserts[warm:], "us", by=US / len(ids))
    figures["delete"] = to_figure(deletes[warm:], "us", by=US / len(ids))
