"""What one matcher takes: to build, to match one event and a batch, to insert and to delete.

`ids` of matches are made when they are asked for, so matching is timed without them and `to_arrow` by itself.
A slow matcher gets fewer events, as many as fit the budget, and the result says how many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidings.bench.harness import process_memory as memory
from tidings.bench.harness.results import BATCH, Result, Role
from tidings.bench.harness.subscription_forms import loaded, spare, subscriptions_for, texts_for
from tidings.bench.harness.timing import Figure, repeated, scaled, seconds_of
from tidings.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from tidings.bench.harness.subscription_forms import Subscriptions
    from tidings.bench.workloads import Workload

BATCH_SIZE = 1024
"""Events in a batch."""

GROWTH = 8
"""How much larger the next batch is, while it is found out how many events fit."""

US = 1e6
"""Microseconds in a second."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure and how long to take for it; `budget_s` is for each figure."""

    events: int = BATCH_SIZE
    repeat: int = 5
    seed: int = 1
    budget_s: float = 20.0
    from_text: bool = False
    memory: bool = True
    peers: bool = True


@dataclass(frozen=True, slots=True)
class Measured:
    """A matcher's result, its answer to the first events, and the matcher itself."""

    result: Result
    counts: NDArray[np.int64]
    matcher: Matcher


def measured(
    workload: Workload, n: int, *, kind: str | None, settings: Settings, say: Callable[[str], None]
) -> Measured:
    """Measure a matcher of this kind on `n` subscriptions of a workload."""
    extra = spare(n)
    say(f"{n:,} subscriptions")
    material = subscriptions_for(workload, n + extra, kind=kind, seed=settings.seed)
    kept, more = material.cut(0, n), material.cut(n, n + extra)
    name = workload.matcher(kind).kind
    say(f"{name}: warming up")
    loaded(workload, material.cut(0, min(n, 200)).given, kind=kind).match_many(workload.events(8, settings.seed))
    say(f"{name}: building")
    matcher, figures = _built(workload, kept, kind=kind, settings=settings)
    say(f"{name}: matching")
    events = _fitting(matcher, workload.events(settings.events, settings.seed), settings)
    counts = _matched(matcher, events, figures, settings=settings)
    say(f"{name}: inserting and deleting")
    _changed(matcher, more, figures, settings=settings)
    if settings.from_text and kept.form != "text":
        say(f"{name}: building from text")
        texts = texts_for(workload, n, seed=settings.seed)
        figures["build_text"] = Figure("s", (seconds_of(lambda: loaded(workload, texts.given, kind=kind)),))
    note = f"built from {kept.form}"
    note += f" (columns refused: {kept.refusal:.80})" if kept.refusal else ""
    note += f"; {events.num_rows} events" if events.num_rows < settings.events else ""
    if settings.memory:
        say(f"{name}: measuring memory")
        found = memory.measured(workload.key, n, kind=kind, seed=settings.seed)
        if found is not None:
            figures["bytes"] = Figure("B", (found.beside_ids(n),))
            note += f"; bytes: {memory.METHOD}"
    result = Result(workload.key, n, name, Role.MATCHER, events.num_rows, figures, note=note)
    return Measured(result, counts, matcher)


def _built(
    workload: Workload, kept: Subscriptions, *, kind: str | None, settings: Settings
) -> tuple[Matcher, dict[str, Figure]]:
    found: list[Matcher] = []

    def build() -> None:
        found.clear()  # the one before goes first, or two lie in memory
        found.append(loaded(workload, kept.given, kind=kind))

    repeat = min(3, settings.repeat)
    seconds = repeated(build, repeat=repeat, budget_s=settings.budget_s, warm_up=False)
    return found[0], {f"build_{kept.form}": scaled(seconds, "s")}


def _fitting(matcher: Matcher, events: pa.Table, settings: Settings) -> pa.Table:
    """Return as many of the events as the matcher does within the budget, repeats and all.

    Batches grow until that is known: one event alone says little of a matcher whose work is mostly per batch.
    """
    matcher.match_many(events.slice(0, 1))
    allowed, size = settings.budget_s / (settings.repeat + 1), 1
    while size < events.num_rows:
        some = events.slice(0, size)
        once = seconds_of(lambda some=some: matcher.match_many(some))  # type: ignore[misc]
        if once * GROWTH > allowed:
            return events.slice(0, max(size, int(size * allowed / once)))
        size = min(events.num_rows, size * GROWTH)
    return events


def _matched(
    matcher: Matcher, events: pa.Table, figures: dict[str, Figure], *, settings: Settings
) -> NDArray[np.int64]:
    """Time events one by one and in batches, and return how many subscriptions each has."""
    from tidings.bench.workloads import rows_of

    limits = {"repeat": settings.repeat, "budget_s": settings.budget_s}
    count = events.num_rows
    batches = [events.slice(at, BATCH_SIZE) for at in range(0, count, BATCH_SIZE)]
    seconds = repeated(lambda: [matcher.match_many(batch) for batch in batches], **limits)  # type: ignore[arg-type]
    rows = rows_of(events)
    alone = repeated(lambda: [matcher.match(row) for row in rows], **limits)  # type: ignore[arg-type]
    figures["single"] = scaled(alone, "us", by=US / count)
    figures[BATCH] = scaled(seconds, "us", by=US / count)
    # A result may keep the ids it made, so each repeat gets its own; two batches are enough to tell.
    some = batches[:2]
    arrows = [seconds_of(matcher.match_many(batch).to_arrow) for _ in range(settings.repeat) for batch in some]
    figures["to_arrow"] = scaled(arrows, "us", by=US / some[0].num_rows)
    found = [matcher.match_many(batch) for batch in batches]
    counts = [np.bincount(one.event_index, minlength=batch.num_rows) for one, batch in zip(found, batches, strict=True)]
    whole: NDArray[np.int64] = np.concatenate(counts)
    figures["matches"] = Figure("", (float(whole.mean()),))
    return whole


def _changed(matcher: Matcher, more: Subscriptions, figures: dict[str, Figure], *, settings: Settings) -> None:
    """Time inserting some more in bulk and deleting them again, which leaves everything as it was."""
    ids = more.ids
    inserts: list[float] = []
    deletes: list[float] = []
    for _ in range(settings.repeat + 1):
        inserts.append(seconds_of(lambda: matcher.add_many(more.given)))
        deletes.append(seconds_of(lambda: matcher.remove_many(ids)))
        if sum(inserts) + sum(deletes) > settings.budget_s:
            break
    warm = 1 if len(inserts) > 1 else 0
    figures["insert"] = scaled(inserts[warm:], "us", by=US / len(ids))
    figures["delete"] = scaled(deletes[warm:], "us", by=US / len(ids))
