"""Which patterns hold many partial matches of a run: in a merged graph, nobody's rows are one pattern's alone.

A row counts for each pattern that has its place and could still report it: its match began after the pattern did, and
not longer ago than the pattern's window. The places of a pattern are those of a graph of this pattern alone, by their
stable names. Nothing is computed while a graph has fewer rows than are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.patterns import layout
from tidings.patterns.compile.graph import MergedGraph
from tidings.patterns.state.graph_bytes import GraphNames

if TYPE_CHECKING:
    from tidings.patterns.compile.graph import CompiledPattern
    from tidings.patterns.run.graph_run import GraphRun
    from tidings.patterns.run.machine import Machine
    from tidings.patterns.run.run import Run


def find_heavy_patterns(run: Run, most: int) -> list[str]:
    """Return the names of the patterns that hold more than `most` partial matches."""
    heavy = []
    for machine, graph_run in run.prepare_graph_runs():
        if graph_run.rows > most:
            counts = count_partials(machine, graph_run)
            heavy += [name for name, count in counts.items() if count > most]
    return heavy


def count_partials(machine: Machine, graph_run: GraphRun) -> dict[str, int]:
    """Return how many partial matches of a graph's run each of its patterns holds."""
    rows = graph_run.state.pool[: graph_run.rows]
    node_of_row = machine.graph.edges[rows[:, layout.EDGE], layout.TARGET]
    began, now = rows[:, layout.FIRST_TIME], int(graph_run.state.registers[layout.NOW])
    node_of_name = machine.stable_names.node_of
    counts = {}
    for place, compiled in enumerate(machine.merged.patterns):
        nodes = [node_of_name[name] for name in _list_places(compiled, machine) if name in node_of_name]
        within, since = machine.graph.patterns[place, [layout.P_WITHIN, layout.P_SINCE]].tolist()
        is_alive = (began > since) & (began >= now - within)
        counts[compiled.name] = int((np.isin(node_of_row, nodes) & is_alive).sum())
    return counts


def _list_places(compiled: CompiledPattern, machine: Machine) -> list[str]:
    """Return the stable names of a pattern's nodes, without the one where it begins."""
    alone = MergedGraph(ways=dict(machine.merged.ways))
    alone.add(compiled)
    return GraphNames(alone).nodes[1:]
