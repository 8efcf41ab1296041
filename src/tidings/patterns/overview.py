"""What a detector watches, in numbers: each pattern's states, which of them it shares, and whether they could be fewer.

A state is a place where a match may stand: the start, each place that waits, and the end. Patterns that begin alike
share states, so all of them together have fewer than one by one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.model.patterns import Mode
from tidings.patterns.compile.automaton import PatternAutomaton, determinise
from tidings.patterns.run.event_times import datetime_of
from tidings.patterns.run.graph_run import LONG_AGO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tidings.patterns.compile.graph import MergedGraph, CompiledPattern
    from tidings.patterns.detector import Detector

MOST_AUTOMATA = 50
"""Patterns up to which automata are made unless told otherwise; ten steps over ten filters take a third of a second."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One pattern; `automaton` is how many states it has as an automaton, or `reason` says why there is none."""

    name: str
    mode: Mode
    steps: int
    key: tuple[str, ...]
    states: int
    shared: int
    automaton: int | None
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        counts = {"steps": self.steps, "key": list(self.key), "states": self.states, "shared": self.shared}
        return {"pattern": self.name, "mode": str(self.mode), **counts, "automaton": self.automaton, "why": self.reason}


@dataclass(frozen=True, slots=True)
class Overview:
    """All patterns, and how many states they have together and one by one."""

    patterns: tuple[Summary, ...]
    together: int
    apart: int


def overview(detector: Detector, *, automata: bool | None = None) -> Overview:
    r"""Return what a detector watches; `automata` tells whether to make them, by default if the patterns are few.

    >>> from tidings.patterns import Detector
    >>> watch = Detector()
    >>> watch.add("ab", "a = kind = 'a'\nb = kind = 'b'\na ; b")
    >>> watch.add("ac", "a = kind = 'a'\nc = kind = 'c'\na ; c")
    >>> found = overview(watch)
    >>> found.together, found.apart, [one.shared for one in found.patterns]
    (4, 5, [1, 1])
    """
    automata = len(detector) <= MOST_AUTOMATA if automata is None else automata
    graphs = [machine.merged for machine, _ in detector._runs()]
    counts = {name: (mine, shared) for merged in graphs for name, mine, shared in _counts(merged)}
    patterns = tuple(_summary(told, *counts[told.name], detector if automata else None) for told in detector.watched)
    together = sum(len(merged.nodes) + len(set(_ends(merged).values())) for merged in graphs)
    return Overview(patterns, together, sum(merged.unmerged for merged in graphs))


def around(detector: Detector) -> dict[str, Any]:
    """Return what says what names mean to a detector, as the keywords that everything takes."""
    return detector._around


def latest(detector: Detector) -> datetime | None:
    """Return the time up to which a detector's events have come; nothing before the first that has one."""
    return None if detector._latest <= LONG_AGO else datetime_of(detector._latest)


def has_begun(detector: Detector) -> bool:
    """Tell whether a detector has been given events."""
    return detector._arrived > 0


def _summary(told: CompiledPattern, states: int, shared: int, detector: Detector | None) -> Summary:
    pattern, size, reason = told.pattern, None, None
    if detector is not None:
        made = determinise(pattern, told.mode, **around(detector))
        size, reason = (len(made.states), None) if isinstance(made, PatternAutomaton) else (None, made.reason)
    return Summary(told.name, told.mode, len(pattern.steps()), pattern.key_variables(), states, shared, size, reason)


def _counts(merged: MergedGraph) -> Iterator[tuple[str, int, int]]:
    """Yield of each pattern how many states it has, and how many of them, beside the start, others have too."""
    places = _places(merged)
    held = Counter(place for mine in places for place in mine)
    ends = _ends(merged)
    ended = Counter(ends.values())
    for number, (told, mine) in enumerate(zip(merged.patterns, places, strict=True)):
        end = ends.get(number)  # the end of an absence is the place that waits for it
        shared = sum(held[place] > 1 for place in mine - {0}) + (end is not None and ended[end] > 1)
        yield told.name, len(mine) + (end is not None), shared


def _ends(merged: MergedGraph) -> dict[int, frozenset[Any]]:
    """Return by which edges each pattern ends; two that end by the same have one end."""
    found: dict[int, list[Any]] = {}
    for key in merged.edge_keys():
        for number in merged.edge(key):
            found.setdefault(number, []).append(key)
    return {number: frozenset(keys) for number, keys in found.items()}


def _places(merged: MergedGraph) -> list[set[int]]:
    """Return the places of each pattern, from its end back to the start.

    Places are one only if the same edges lead there from places that are one: the way back never strays into another
    pattern.
    """
    into: dict[int, list[int]] = {}
    last: list[set[int]] = [set() for _ in merged.patterns]
    for key in merged.edge_keys():
        into.setdefault(key[6], []).append(key[0])
        for number in merged.edge(key):
            last[number].add(key[0])
    for place, node in enumerate(merged.nodes):
        for number in node.ends:
            last[number].add(place)
    return [_back(into, places) for places in last]


def _back(into: dict[int, list[int]], places: set[int]) -> set[int]:
    found, waiting = set(places), list(places)
    while waiting:
        for source in into.get(waiting.pop(), ()):
            if source not in found:
                found.add(source)
                waiting.append(source)
    return found
