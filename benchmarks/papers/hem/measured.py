"""Time of one index in one setting to insert, to match and to delete, and the engine beside it.

Indexes are measured by themselves: the subscriptions lie in a table, the event is a vector. The engine is measured
as a user calls it, with an Arrow batch of the same events; its time includes reading them and writing the matches.
All times are of the processor, so other work on the machine counts for little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.papers.hem.workload import BATCH, find_accepted
from tidings.bench.harness.timing import Clock, Figure, measure_seconds, time_repeats, to_figure
from tidings.errors import TidingsError
from tidings.kernels.papers.hem import MatchPlan
from tidings.papers.hem.hem import Hem
from tidings.papers.hem.htree import HTree
from tidings.papers.hem.range_table import RangeTable
from tidings.papers.hem.rein import Rein
from tidings.papers.hem.tama import Tama

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from benchmarks.papers.hem.workload import Ranges
    from tidings.papers.hem.range_matcher import RangeIndex

HEM, LINKED, REIN, TAMA, HTREE, ENGINE = "HEM", "HEM, linked", "REIN", "TAMA", "H-Tree", "Tidings engine"
"""Who is measured; `HEM, linked` has its candidates in the paper's linked list, the other in an array."""

INDEXES: dict[str, Callable[[], RangeIndex]] = {
    HEM: Hem,
    LINKED: lambda: Hem(candidates="linked"),
    REIN: Rein,
    TAMA: lambda: Tama(exact=False),
    HTREE: HTree,
}

APPROXIMATE = {TAMA}
"""These may give too many, never too few."""

CHECKED = 5
"""Answers to so many events are compared with a plain scan."""


@dataclass(frozen=True, slots=True)
class IndexCost:
    """Milliseconds for an event, microseconds to insert and to delete a subscription, and false positives."""

    match: Figure
    insert: Figure
    delete: Figure
    extra: float = 0.0


def measure_index(name: str, ranges: Ranges, *, repeat: int) -> IndexCost | None:
    """Measure an index; return None if it refuses this number of subscriptions."""
    table = RangeTable.from_ends(ranges.lows, ranges.highs, ranges.ends)
    rows = np.arange(ranges.count, dtype=np.int32)
    _warm(name, ranges)
    core = INDEXES[name]()
    try:
        insert = measure_seconds(lambda: core.insert(table, rows), Clock.PROCESSOR)
    except (MemoryError, TidingsError):
        return None
    extra = _check_answers(name, core, table, ranges)
    seconds = _time_by_processor(lambda: [core.match(table, event) for event in ranges.events], repeat)
    order = np.random.default_rng(0).permutation(rows)
    delete = measure_seconds(lambda: core.delete(table, order), Clock.PROCESSOR)
    by, each = 1e3 / len(ranges.events), 1e6 / ranges.count
    changes = [to_figure([spent], "us", by=each) for spent in (insert, delete)]
    return IndexCost(to_figure(seconds, "ms", by=by), *changes, extra)


def _time_by_processor(work: Callable[[], object], repeat: int) -> list[float]:
    return time_repeats(work, repeat=repeat, budget_s=math.inf, warm_up=False, clock=Clock.PROCESSOR)


def _warm(name: str, ranges: Ranges) -> None:
    """Compile, on a few rows."""
    few = slice(0, 500)
    table = RangeTable.from_ends(ranges.lows[:, few].copy(), ranges.highs[:, few].copy(), ranges.ends[:, few].copy())
    core, rows = INDEXES[name](), np.arange(table.rows, dtype=np.int32)
    core.insert(table, rows)
    core.match(table, ranges.events[0])
    core.delete(table, rows[:10].copy())


def _check_answers(name: str, core: RangeIndex, table: RangeTable, ranges: Ranges) -> float:
    """Compare answers with the scan's; return the share of false positives in an approximate index's answers."""
    total = extra = 0
    for event in ranges.events[:CHECKED]:
        mine, right = set(core.match(table, event).tolist()), set(find_accepted(ranges, event).tolist())
        if not right <= mine or (mine != right and name not in APPROXIMATE):
            msg = f"{name} is wrong: {len(mine - right)} too many, {len(right - mine)} missed"
            raise TidingsError(msg)
        total, extra = total + len(mine), extra + len(mine - right)
    return extra / total if total else 0.0


def measure_engine(ranges: Ranges, *, repeat: int) -> Figure:
    """Measure the engine on the same subscriptions and events, in one batch; milliseconds for an event."""
    from tidings.matcher import Matcher
    from tidings.model import Schema

    names = [f"a{m}" for m in range(len(ranges.lows))]
    matcher = Matcher(schema=Schema(dict.fromkeys(names, "number")))
    matcher.add_many(_to_columns(ranges, names))
    matcher.settle()
    events = _to_event_table(ranges.batch, names)
    for at, event in enumerate(ranges.events[:CHECKED]):
        ids = matcher.match_many(events.slice(at, 1)).ids
        if sorted(ids) != find_accepted(ranges, event).tolist():
            msg = f"the engine is wrong on event {at}"
            raise TidingsError(msg)
    matcher.match_many(events)
    seconds = _time_by_processor(lambda: matcher.match_many(events), repeat)
    return to_figure(seconds, "ms", by=1e3 / BATCH)


def _to_columns(ranges: Ranges, names: list[str]) -> Any:
    import pyarrow as pa

    columns: dict[str, Any] = {"id": pa.array(np.arange(ranges.count))}
    for name, low, high, ends in zip(names, ranges.lows, ranges.highs, ranges.ends, strict=True):
        columns[f"{name}_from"] = pa.array(low, mask=(ends & 1) != 0)
        columns[f"{name}_above"] = pa.array(low, mask=(ends & 1) == 0)
        columns[f"{name}_to"] = pa.array(high, mask=(ends & 2) != 0)
        columns[f"{name}_below"] = pa.array(high, mask=(ends & 2) == 0)
    return pa.table(columns)


def _to_event_table(events: NDArray[np.float64], names: list[str]) -> Any:
    import pyarrow as pa

    return pa.table(
        {name: pa.array(np.ascontiguousarray(values)) for name, values in zip(names, events.T, strict=True)}
    )


def measure_plans(ranges: Ranges, *, repeat: int) -> dict[str, Figure]:
    """Measure HEM by its near-optimal plan, by the optimal one, and by the optimal one with the search for it."""
    table = RangeTable.from_ends(ranges.lows, ranges.highs, ranges.ends)
    rows = np.arange(ranges.count, dtype=np.int32)
    fast, best = Hem(), Hem(plan="optimal")
    fast.insert(table, rows)
    best.insert(table, rows)
    best.match(table, ranges.events[0])
    plans = [MatchPlan(*(part.copy() for part in best.plan(event))) for event in ranges.events]
    work = {
        "near-optimal": lambda: [fast.match(table, event) for event in ranges.events],
        "optimal, without its search": lambda: [
            best.run(table, event, plan) for event, plan in zip(ranges.events, plans, strict=True)
        ],
        "optimal, with its search": lambda: [best.match(table, event) for event in ranges.events],
    }
    by = 1e3 / len(ranges.events)
    turns: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeat):  # by turns, so that what disturbs the machine disturbs all of them
        for name, act in work.items():
            turns[name].append(measure_seconds(act, Clock.PROCESSOR))
    return {name: to_figure(seconds, "ms", by=by) for name, seconds in turns.items()}
