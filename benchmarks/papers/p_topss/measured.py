"""One point of Figure 9: the paper's machine and our detector with the same subscriptions on the same events.

Both report at each event that completes a match and go on (`overlap`), which is what the paper's machine does. Ours
reads an Arrow table, and that is timed too; the paper's machine is handed the filter that an event satisfies.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

import tidings as td
from tidings.bench.harness.timing import Clock, Figure, measure_seconds
from tidings.bench.workloads.composites import SECOND, publications
from tidings.lang import WrittenPattern
from tidings.model.patterns import Mode
from tidings.papers.p_topss.paper_machine import PaperMachine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tidings.bench.workloads.composites import PublicationStream, Shape
    from tidings.model.patterns import Pattern


@dataclass(frozen=True, slots=True)
class States:
    """Numbers of states without the initial one: shared by two subscriptions, after merging, and before it."""

    shared: int
    merged: int
    unmerged: int

    @property
    def commonality(self) -> float:
        """The paper's measure: shared states after merging over all states before it."""
        return self.shared / self.unmerged


@dataclass(frozen=True, slots=True)
class MachineCost:
    """What events cost: microseconds for one, and the transitions of all of them."""

    each: Figure
    transitions: int


def build_machine(patterns: list[Pattern]) -> PaperMachine:
    """Return the paper's machine."""
    machine = PaperMachine()
    for number, pattern in enumerate(patterns):
        machine.add(str(number), pattern)
    return machine


def build_detector(patterns: list[Pattern]) -> td.Detector:
    """Return ours, compiled."""
    detector = td.Detector()
    detector.add_many(
        [WrittenPattern(str(number), pattern, Mode.OVERLAP, None) for number, pattern in enumerate(patterns)]
    )
    detector.detect_many([])
    return detector


def count_paper_states(machine: PaperMachine) -> States:
    """Count the states of the paper's machine."""
    return States(machine.tally.states_shared, machine.tally.states, machine.tally.states_unmerged)


def count_our_states(detector: td.Detector) -> States:
    """Count the places of ours; each way in which matches end is one too, as the paper's last states are."""
    ((machine, _),) = detector.run.prepare_graph_runs()
    merged = machine.merged
    edges = [(key.source, key.target, len(completed)) for key, completed in merged.edges.items()]
    before = {target: source for source, target, _ in edges if target >= 0}  # sequences: one way to each place
    ends = [(source, users) for source, target, users in edges if target < 0]
    users: Counter[int] = Counter()
    for source, count in ends:
        place = source
        while place:
            users[place] += count
            place = before[place]
    shared = sum(count > 1 for count in users.values()) + sum(count > 1 for _, count in ends)
    return States(shared, len(merged.nodes) - 1 + len(ends), merged.unmerged - 1)


def stream_of(
    patterns: list[Pattern], *, pool: int, quota: int, seed: int, shape: Shape = "uniform"
) -> PublicationStream:
    """Return publications that match each subscription so often fully and so often in part."""
    return publications(patterns, shape=shape, partial=quota, full=quota, pool=pool, seed=seed)


def measure_paper(
    machine: PaperMachine, stream: PublicationStream, *, most: int | None = None, repeat: int = 0
) -> MachineCost:
    """Feed the paper's machine the first events of a stream, or all, then so many times again, which is timed.

    Transitions are those of the first time; without repeats it is the time of that, too.
    """
    names = stream.names()[:most]
    seconds, transitions = [], 0
    for turn in range(repeat + 1):
        times = _shift_times(stream, turn)[: len(names)].tolist()
        seconds.append(measure_seconds(lambda times=times: _feed(machine, names, times), Clock.PROCESSOR))
        transitions = transitions or machine.tally.transitions
    return MachineCost(_to_figure(seconds[bool(repeat) :], len(names)), transitions)


def measure_ours(
    detector: td.Detector, stream: PublicationStream, *, most: int | None = None, repeat: int = 0
) -> MachineCost:
    """Feed our detector the same, in one table."""
    table = stream.table().slice(0, most)
    seconds, transitions = [], 0
    for turn in range(repeat + 1):
        times = pa.array(_shift_times(stream, turn)[: table.num_rows], table.schema.field("time").type)
        events = table.set_column(1, "time", times)
        seconds.append(measure_seconds(lambda events=events: len(detector.detect_many(events)), Clock.PROCESSOR))
        transitions = transitions or detector.transitions
    return MachineCost(_to_figure(seconds[bool(repeat) :], table.num_rows), transitions)


def _feed(machine: PaperMachine, names: list[str], times: list[int]) -> None:
    for name, at in zip(names, times, strict=True):
        machine.on_event((name,), at)


def _shift_times(stream: PublicationStream, turn: int) -> NDArray[np.int64]:
    return stream.times + turn * (len(stream) * SECOND)


def _to_figure(seconds: list[float], events: int) -> Figure:
    return Figure("us", tuple(second * 1e6 / events for second in seconds))
