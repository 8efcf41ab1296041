"""Memory of one matcher in one setting, and its time for a thousand events.

The four algorithms are measured by themselves: filters are parsed and bound, events are read beforehand. The engine is
measured in three ways: with the same readings, with the columns that it makes of them, and as a user calls it.

Times are the process's own, so that what else the machine does counts little; nothing here runs in several threads.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidings.algebra import AttributeReader, Reading, Setting, collect_requirements
from tidings.bench.harness.timing import Clock, Figure, time_repeats, to_figure
from tidings.bench.workloads import workload
from tidings.concepts import Ontology, Vocabulary
from tidings.engine.events.event_source import ReadEvents
from tidings.errors import Unsupported
from tidings.matcher import Matcher
from tidings.matcher.registry import build_algorithm
from tidings.model import Filter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidings.matcher.algorithm import Algorithm

NOW = datetime(2024, 5, 1, tzinfo=UTC)
CHECKED = 20
"""Answers to so many events are compared with those of CTPS."""

EVENTS = 1000
"""Times are told for so many events, as in the paper."""


@dataclass(frozen=True, slots=True)
class BoundConcepts:
    """Bound subscriptions over the trees, and events as mappings and as readings."""

    ontology: Ontology
    pairs: list[tuple[str, Filter]]
    readings: Sequence[Reading]
    events: list[dict[str, Any]]
    setting: Setting


def draw_world(
    n: int, *, height: int, events: int, seed: int, pairs: list[tuple[str, Any]] | None = None
) -> BoundConcepts:
    """Return `n` subscriptions of the workload `concepts` at a height, or these `pairs`, and events for them."""
    chosen = workload(f"concepts:height={height}")
    assert chosen.make_ontology is not None
    ontology = chosen.make_ontology()
    subscriptions: list[tuple[str, Any]] = list(chosen.pairs(n, seed)) if pairs is None else pairs
    reader = AttributeReader(
        collect_requirements([tree for _, tree in subscriptions], Vocabulary(ontology=ontology)), ontology
    )
    rows = chosen.event_rows(events, seed)
    return BoundConcepts(ontology, subscriptions, [reader.read(row, NOW) for row in rows], rows, Setting(ontology, NOW))


def measure_own_seconds(work: Callable[[], object], *, repeat: int, budget_s: float = 10.0) -> list[float]:
    """Return the processor's seconds of up to `repeat` runs; once the budget is spent, no more are made."""
    return time_repeats(work, repeat=repeat, budget_s=budget_s, warm_up=False, clock=Clock.PROCESSOR)


def build_from(kind: str, concepts: BoundConcepts) -> Algorithm:
    """Return the algorithm with the world's subscriptions; it may refuse them."""
    algorithm = build_algorithm(kind, concepts.ontology)
    algorithm.add_many((id, algorithm.compile_filter(tree)) for id, tree in concepts.pairs)
    return algorithm


def measure_megabytes(kind: str, concepts: BoundConcepts) -> Figure | None:
    """Return the memory of the algorithm without filters and ids; None where it refuses them."""
    build_from(kind, BoundConcepts(concepts.ontology, concepts.pairs[:50], (), [], concepts.setting)).match_many(
        concepts.readings[:2], concepts.setting
    )
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        algorithm = build_from(kind, concepts)
        algorithm.match_many(concepts.readings[:2], concepts.setting)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    except Unsupported:
        return None
    finally:
        tracemalloc.stop()
    return Figure("MB", ((after - before) / 1e6,))


def measure_milliseconds(algorithm: Algorithm, concepts: BoundConcepts, *, repeat: int) -> Figure:
    """Return the time of a thousand events, read beforehand, with the ids of all matches."""
    algorithm.match_many(concepts.readings[:5], concepts.setting)
    seconds = measure_own_seconds(lambda: algorithm.match_many(concepts.readings, concepts.setting), repeat=repeat)
    return to_figure(seconds, "ms", by=1e3 * EVENTS / len(concepts.readings))


def measure_in_turn(all_kept: Iterable[tuple[float, Algorithm, BoundConcepts]], *, repeat: int) -> dict[float, Figure]:
    """Measure several settings in turn, so that other load of the machine affects all alike."""
    settings = [*all_kept]
    medians: dict[float, list[float]] = {x: [] for x, _, _ in settings}
    for _ in range(repeat):
        for x, algorithm, concepts in settings:
            medians[x].append(measure_milliseconds(algorithm, concepts, repeat=1).median)
    return {x: Figure("ms", tuple(times)) for x, times in medians.items()}


def check_answers(algorithm: Algorithm, other: Algorithm, concepts: BoundConcepts) -> bool:
    """Tell whether two algorithms answer the first events alike."""
    some = concepts.readings[:CHECKED]
    answers = [[set(ids) for ids in each.match_many(some, concepts.setting)] for each in (algorithm, other)]
    return answers[0] == answers[1]


@dataclass(frozen=True, slots=True)
class EngineTaken:
    """Milliseconds for a thousand events: from readings, from columns, and with reading them."""

    readings: Figure
    columns: Figure
    public: Figure


class _Ready(ReadEvents):
    """Readings whose columns are made once."""

    def __init__(self, readings: Sequence[Reading], setting: Setting) -> None:
        super().__init__(readings, setting)
        self._made: dict[Any, Any] = {}

    def select_columns(self, wanted: Any, automata: Any) -> Any:
        key = tuple(wanted)
        if key not in self._made:
            self._made[key] = super().select_columns(key, automata)
        return self._made[key]


def measure_engine(concepts: BoundConcepts, *, repeat: int) -> EngineTaken:
    """Measure the engine in its three ways."""
    engine = Matcher(ontology=concepts.ontology, now=NOW)
    engine.add_many(concepts.pairs)
    engine.settle()
    engine.compact()
    engine.match_many(concepts.events[:50])
    state = engine.get_view().state  # the engine by itself has no public face
    match = engine.backend.match
    by = 1e3 * EVENTS / len(concepts.readings)
    ways: list[Figure] = []
    for arrivals in (ReadEvents(concepts.readings, concepts.setting), _Ready(concepts.readings, concepts.setting)):
        match(arrivals, state)
        seconds = measure_own_seconds(lambda arrivals=arrivals: match(arrivals, state), repeat=repeat)  # type: ignore[misc]
        ways.append(to_figure(seconds, "ms", by=by))
    return EngineTaken(ways[0], ways[1], measure_public(engine, concepts, repeat=1))


def measure_public(matcher: Matcher, concepts: BoundConcepts, *, repeat: int) -> Figure:
    """Return the time of `match_many`, which reads the events."""
    seconds = measure_own_seconds(lambda: matcher.match_many(concepts.events), repeat=repeat)
    return to_figure(seconds, "ms", by=1e3 * EVENTS / len(concepts.events))
