"""Machines: patterns that divide the stream alike, merged into one graph.

Patterns whose operands all give the same variables through the same attributes share a machine, and their state is
kept for each key; patterns without such variables share another one, which sees the whole stream. Patterns that ask
for times have machines of their own: these do not see the events that have none.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.array_types import IntArray
from tidings.kernels.patterns.layout import EventArrays, GraphArrays
from tidings.kernels.patterns.symbol_lists import rename_symbols
from tidings.patterns.compile.graph import CompiledPattern, MergedGraph, number_other_variables
from tidings.patterns.compile.graph_arrays import build_graph_arrays
from tidings.patterns.detections import ReportBatch, ReportLayout
from tidings.patterns.run.graph_run import LONG_AGO, GraphRun
from tidings.patterns.state.graph_bytes import GraphNames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.model import Filter
    from tidings.model.patterns import Pattern
    from tidings.patterns.pattern_set import StreamSettings
    from tidings.patterns.run.event_reader import EncodedEvents
    from tidings.patterns.run.variable_values import ValueNumbers


Ways = tuple[tuple[str, ...], ...]
"""Tuples of attributes whose values form a key: one tuple for each way in which an operand names its key."""

Partitioning = tuple[Ways, bool]
"""How a pattern divides the stream: the attributes that form its key, and whether it sees only events with a time."""


def find_partitioning(pattern: Pattern) -> Partitioning:
    """Return how a pattern divides the stream."""
    return find_ways(pattern), pattern.asks_for_time()


def find_ways(pattern: Pattern) -> Ways:
    """Return the tuples of attributes from which operands take the pattern's key; `((),)` without a key."""
    if not any(named.variables for named in pattern.filters):
        return ((),)
    key = pattern.key_variables()
    ways = []
    for name in pattern.list_filters():
        attributes = {variable: attribute for attribute, variable in pattern[name].variables}
        ways.append(tuple(attributes[variable] for variable in key))
    return tuple(sorted(set(ways)))


def is_keyed(pattern: Pattern) -> bool:
    """Tell whether every key has a stream of its own."""
    return find_ways(pattern) != ((),)


@dataclass(frozen=True)
class Machine:
    """The merged graph of some patterns, and how it reads events; it holds no state."""

    merged: MergedGraph
    graph: GraphArrays
    ways: Ways
    timed: bool  # sees only events that have a time
    symbols: IntArray  # of each filter its number here, or -1
    layout: ReportLayout

    @property
    def partitioning(self) -> Partitioning:
        """How its patterns divide the stream."""
        return self.ways, self.timed

    @property
    def has_keys(self) -> bool:
        """Whether state is kept for each key."""
        return self.ways != ((),)

    @cached_property
    def stable_names(self) -> GraphNames:
        """Stable names of nodes, edges and patterns, for states."""
        return GraphNames(self.merged)

    def start(self, settings: StreamSettings) -> GraphRun:
        """Return a run before its first event."""
        buffers = settings.tuning.buffers
        return GraphRun(self.graph, keyed=self.has_keys, most=settings.partials, buffers=buffers)

    def feed(
        self, run: GraphRun, events: EncodedEvents, value_numbers: ValueNumbers, base: int, *, until: int = LONG_AGO
    ) -> list[ReportBatch]:
        """Let a run take events, numbered from `base`, and time pass to `until`."""
        symbols_at, symbols = rename_symbols(events.symbols_at, events.symbols, self.symbols)
        count = len(events)
        keys = np.zeros((count, 1), np.int64)
        if self.has_keys:
            keys = np.stack([compute_keys(way, events, value_numbers) for way in self.merged.ways], axis=1)
        if self.timed and events.timed is not None:
            keys[~events.timed] = -1  # in no stream at all
        columns = [events.values[name] for name in self.merged.columns]
        values = np.stack(columns, axis=1) if columns else np.zeros((count, 0), np.int64)
        batch = EventArrays(events.times, symbols_at, symbols, np.ascontiguousarray(keys), np.ascontiguousarray(values))
        reports_of_run = run.feed(batch, base, keys=len(value_numbers), until=until)
        return [ReportBatch(reports, self.layout, value_numbers.values) for reports in reports_of_run]


def compute_keys(way: tuple[str, ...], events: EncodedEvents, value_numbers: ValueNumbers) -> IntArray:
    """Return the number of each event's key, formed by some attributes; -1 where it has none."""
    columns = [events.values[attribute] for attribute in way]
    return columns[0] if len(columns) == 1 else value_numbers.number_tuples(columns)


def map_filters(all_numbers: Mapping[Filter, int], own_numbers: Mapping[Filter, int]) -> IntArray:
    """Return, by the number of a filter in the whole set, its own number in a part; -1 where it has none."""
    numbers = np.full(max(all_numbers.values(), default=-1) + 1, -1, np.int64)
    for tree, number in own_numbers.items():
        numbers[all_numbers[tree]] = number
    return numbers


def build_machines(patterns: Sequence[CompiledPattern], filters: Mapping[Filter, int]) -> list[Machine]:
    """Return one machine for each way of dividing the stream; `filters` has the number of each filter."""
    groups: dict[Partitioning, list[int]] = defaultdict(list)
    for index, compiled in enumerate(patterns):
        groups[find_partitioning(compiled.pattern)].append(index)
    machines = []
    for (ways, timed), indexes in groups.items():
        merged = MergedGraph(ways={way: number for number, way in enumerate(ways)})
        for index in indexes:
            merged.add(patterns[index])
        variables = [(c.pattern.key_variables(), tuple(number_other_variables(c.pattern))) for c in merged.patterns]
        layout = ReportLayout(np.array(indexes, np.int64), tuple(variables))
        symbols = map_filters(filters, merged.symbols)
        machines.append(Machine(merged, build_graph_arrays(merged), ways, timed, symbols, layout))
    return machines
