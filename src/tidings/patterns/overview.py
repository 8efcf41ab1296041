"""What a detector watches, in numbers: each pattern's states, which of them it shares, and whether they could be fewer.

A state is a place where a match may stand: the start, each place that waits, and the end. Patterns that begin alike
share states, so all of them together have fewer than one by one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.model.patterns import Mode
from tidings.patterns.compile.pattern_automaton import PatternAutomaton, determinise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.concepts.vocabulary import Vocabulary
    from tidings.patterns.compile.graph import CompiledPattern, EdgeKey, MergedGraph
    from tidings.patterns.pattern_set import PatternSet

MOST_AUTOMATA = 50
"""Patterns up to which automata are built by default; ten steps over ten filters take a third of a second."""


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

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        counts = {"steps": self.steps, "key": list(self.key), "states": self.states, "shared": self.shared}
        return {"pattern": self.name, "mode": str(self.mode), **counts, "automaton": self.automaton, "why": self.reason}


@dataclass(frozen=True, slots=True)
class Overview:
    """All patterns, and how many states they have together and one by one."""

    patterns: tuple[Summary, ...]
    together: int
    apart: int


def build_overview(patterns: PatternSet, *, automata: bool | None = None) -> Overview:
    r"""Return the numbers of a pattern set; `automata` tells whether to build them, by default if the patterns are few.

    >>> from tidings import Detector
    >>> watch = Detector()
    >>> watch.add("ab", "a = kind = 'a'\nb = kind = 'b'\na ; b")
    >>> watch.add("ac", "a = kind = 'a'\nc = kind = 'c'\na ; c")
    >>> numbers = build_overview(watch.compile())
    >>> numbers.together, numbers.apart, [summary.shared for summary in numbers.patterns]
    (4, 5, [1, 1])
    """
    automata = len(patterns) <= MOST_AUTOMATA if automata is None else automata
    graphs = [machine.merged for machine in patterns.machines]
    counts = {name: (own, shared) for merged in graphs for name, own, shared in _count_states(merged)}
    vocabulary = patterns.vocabulary if automata else None
    summaries = tuple(_summarise(compiled, *counts[compiled.name], vocabulary) for compiled in patterns.patterns)
    together = sum(len(merged.nodes) + len(set(_find_ends(merged).values())) for merged in graphs)
    return Overview(summaries, together, sum(merged.unmerged for merged in graphs))


def _summarise(compiled: CompiledPattern, states: int, shared: int, vocabulary: Vocabulary | None) -> Summary:
    pattern, mode, size, reason = compiled.pattern, compiled.mode, None, None
    if vocabulary is not None:
        automaton = determinise(pattern, mode, vocabulary)
        if isinstance(automaton, PatternAutomaton):
            size = len(automaton.states)
        else:
            reason = automaton.reason
    return Summary(compiled.name, mode, len(pattern.steps()), pattern.key_variables(), states, shared, size, reason)


def _count_states(merged: MergedGraph) -> Iterator[tuple[str, int, int]]:
    """Yield of each pattern how many states it has, and how many of them, beside the start, others have too."""
    places = _find_places(merged)
    uses = Counter(place for mine in places for place in mine)
    ends = _find_ends(merged)
    ended = Counter(ends.values())
    for number, (compiled, mine) in enumerate(zip(merged.patterns, places, strict=True)):
        end = ends.get(number)  # the end of an absence is the place that waits for it
        shared = sum(uses[place] > 1 for place in mine - {0}) + (end is not None and ended[end] > 1)
        yield compiled.name, len(mine) + (end is not None), shared


def _find_ends(merged: MergedGraph) -> dict[int, frozenset[EdgeKey]]:
    """Return the edges that complete each pattern, which are its end; patterns with equal edges share one end."""
    edges: dict[int, list[EdgeKey]] = defaultdict(list)
    for key, completed in merged.edges.items():
        for number in completed:
            edges[number].append(key)
    return {number: frozenset(keys) for number, keys in edges.items()}


def _find_places(merged: MergedGraph) -> list[set[int]]:
    """Return the nodes of each pattern, from its end back to the start.

    Nodes are one only if the same edges lead there from nodes that are one: the way back never strays into another
    pattern.
    """
    into: dict[int, list[int]] = defaultdict(list)
    last: list[set[int]] = [set() for _ in merged.patterns]
    for key, completed in merged.edges.items():
        into[key.target].append(key.source)
        for number in completed:
            last[number].add(key.source)
    for place, node in enumerate(merged.nodes):
        for number in node.ends:
            last[number].add(place)
    return [_trace_back(into, places) for places in last]


def _trace_back(into: dict[int, list[int]], places: set[int]) -> set[int]:
    reached = set(places)
    for place in (queue := list(places)):  # grows while it is read
        fresh = set(into[place]) - reached
        reached |= fresh
        queue += fresh
    return reached
