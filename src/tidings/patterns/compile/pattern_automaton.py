"""Deterministic automata: all configurations a run may be in, as one state; one table look-up for each event.

The subset construction over minterms. A state is the set of configurations that are alive, and whether the event that
led here reported. That second half keeps the final state apart from the one that a run goes on from, so a sequence of
m steps over filters that exclude each other has m + 1 states, as the paper counts; without it `restart` would need m.
Time conditions, absences and variables outside the key ask for more than a state can hold; such patterns are refused.
Cost: states times minterms, once; `budget` bounds the states before Hopcroft's algorithm merges equal ones.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tidings.errors import PatternError, TooLarge
from tidings.kernels.array_types import BoolArray, Int32Array
from tidings.model.patterns import Mode, Pattern, Timed, walk_nodes
from tidings.patterns.compile.derivatives import Configurations, derive_configurations
from tidings.patterns.compile.minterms import Minterms, build_minterms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.concepts import Vocabulary

BUDGET = 4096
"""The most states before equal ones are merged."""

_SubsetKey: TypeAlias = tuple[int, bool]
"""The configurations alive, as bits, and whether the event that led here reported."""


@dataclass(frozen=True, slots=True)
class NotDeterministic:
    """Why a pattern has no automaton; runs follow its configurations instead."""

    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class PatternAutomaton:
    """State 0 is the initial one; `table[state, minterm]` follows it, and `reports` tells where a match completes.

    `states` are the configurations alive in each; where equal states were merged, those of the first one found.
    """

    mode: Mode
    states: tuple[frozenset[int], ...]
    minterms: Minterms
    table: Int32Array
    reports: BoolArray

    def mark_final_states(self) -> BoolArray:
        """Tell of each state whether it is entered with a report."""
        entered = np.zeros(len(self.states), dtype=np.bool_)
        entered[self.table[self.reports]] = True
        return entered

    def list_shortest_words(self) -> list[tuple[str, ...]]:
        """Return for each state a shortest sequence of events leading to it: the filters each satisfies, or `*`."""
        names = ["+".join(sorted(symbol)) or "*" for symbol in self.minterms.symbols]
        words: dict[int, tuple[str, ...]] = {0: ()}
        for state in (queue := [0]):  # grows while it is read
            for name, target in zip(names, self.table[state].tolist(), strict=True):
                if target not in words:
                    words[target] = (*words[state], name)
                    queue.append(target)
        return [words[state] for state in range(len(self.states))]


def determinise(
    pattern: Pattern, mode: Mode = Mode.RESTART, vocabulary: Vocabulary | None = None, *, budget: int = BUDGET
) -> PatternAutomaton | NotDeterministic:
    """Return the smallest automaton that reports where the pattern does, or why there is none.

    A keyed pattern's automaton reads the events of one key. The vocabulary decides which filters exclude each other:
    see `build_minterms`.
    """
    reason = _find_hindrance(pattern, mode)
    if reason is not None:
        return NotDeterministic(reason)
    try:
        alphabet = build_minterms([pattern[name] for name in pattern.list_filters()], vocabulary)
        graph = derive_configurations(pattern, mode, budget=budget)
    except (TooLarge, PatternError) as problem:
        return NotDeterministic(str(problem))
    subsets = _build_subsets(_SubsetMoves(graph, alphabet), mode, budget)
    return NotDeterministic(f"more than {budget:,} states") if subsets is None else _minimise(*subsets, alphabet, mode)


def _find_hindrance(pattern: Pattern, mode: Mode) -> str | None:
    """Return what asks for more than a finite state."""
    free = {variable for name in pattern.list_filters() for _, variable in pattern[name].variables}
    free -= set(pattern.key_variables())
    if mode not in (Mode.RESTART, Mode.OVERLAP):
        return f"mode `{mode}` tells beginnings apart, of which there is no end"
    if any(isinstance(node, Timed) for node in walk_nodes(pattern.root)):
        return "it has time conditions"
    if pattern.absence is not None:
        return "it ends with an absence, which time alone completes"
    return f"variable `{min(free)}` is not given by every operand" if free else None


# The subset construction ----------------------------------------------------------------------------


class _SubsetMoves:
    """Sets of configurations as numbers, a bit for each (`done` is the highest), and where minterms lead from them."""

    def __init__(self, graph: Configurations, alphabet: Minterms) -> None:
        self.symbols = alphabet.symbols
        self.done = 1 << len(graph.nodes)
        self.waiting = sum(1 << place for place, node in enumerate(graph.nodes) if not node.contiguous)
        self.guarded: dict[str, int] = defaultdict(int)
        for place, node in enumerate(graph.nodes):
            for name in node.guards:
                self.guarded[name] |= 1 << place
        self.edges: list[list[tuple[str, int, frozenset[str]]]] = [[] for _ in graph.nodes]
        for edge in graph.edges:
            bit = self.done if edge.target is None else 1 << edge.target
            self.edges[edge.source].append((edge.filter, bit, edge.forbid))

    def follow_minterms(self, alive: int) -> Iterator[int]:
        """Yield what is alive after an event of each minterm."""
        plain: dict[str, int] = defaultdict(int)
        guarded = []
        for place in _list_bits(alive):
            for name, bit, forbid in self.edges[place]:
                if forbid:
                    guarded.append((name, bit, forbid))
                else:
                    plain[name] |= bit
        for symbol in self.symbols:
            # What waits on: not contiguous, and none of its guards is satisfied.
            reached = alive & self.waiting
            for name in symbol:
                reached &= ~self.guarded.get(name, 0)
            for name in symbol:
                reached |= plain.get(name, 0)
            for name, bit, forbid in guarded:
                reached |= bit if name in symbol and not forbid & symbol else 0
            yield reached


def _build_subsets(moves: _SubsetMoves, mode: Mode, budget: int) -> tuple[list[_SubsetKey], Int32Array] | None:
    """Return all states and where each minterm leads from each; `None` when there are more than `budget` states."""
    numbers: dict[_SubsetKey, int] = {(1, False): 0}
    keys, rows = [(1, False)], []
    for alive, _ in keys:  # grows while it is read
        row = []
        for reached in moves.follow_minterms(alive):
            key = (reached, False)
            if reached & moves.done:  # a report spends everything in `restart`, and nothing in `overlap`
                key = (1 if mode is Mode.RESTART else reached & ~moves.done, True)
            if key not in numbers:
                if len(keys) >= budget:
                    return None
                numbers[key] = len(keys)
                keys.append(key)
            row.append(numbers[key])
        rows.append(row)
    return keys, np.array(rows, dtype=np.int32)


def _list_bits(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


# Minimisation ---------------------------------------------------------------------------------------


def _minimise(keys: list[_SubsetKey], table: Int32Array, alphabet: Minterms, mode: Mode) -> PatternAutomaton:
    """Merge equal states; each class is numbered by its first state, so the initial one stays 0."""
    final = np.array([reported for _, reported in keys], dtype=np.bool_)
    classes = np.array(_find_classes(table, final))
    kept = np.sort(np.unique(classes, return_index=True)[1])
    renumbered = np.empty(len(kept), dtype=np.int32)
    renumbered[classes[kept]] = np.arange(len(kept))
    states = tuple(frozenset(_list_bits(keys[place][0])) for place in kept)
    followed = table[kept]
    return PatternAutomaton(mode, states, alphabet, renumbered[classes[followed]], final[followed])


def _find_classes(table: Int32Array, final: BoolArray) -> list[int]:
    """Return the class of each state by Hopcroft's algorithm: no minterm leads two of a class to different classes."""
    sources = _list_sources(table)
    blocks = [set(np.flatnonzero(part).tolist()) for part in (~final, final) if part.any()]
    block_of = [0 if len(blocks) < 2 else int(value) for value in final]
    waiting = set(range(len(blocks)))
    while waiting:
        for arriving in _list_arriving(blocks[waiting.pop()], sources):
            for place, inside in _split_by_block(arriving, block_of).items():
                if len(inside) == len(blocks[place]):
                    continue
                blocks[place] -= inside
                blocks.append(inside)
                for state in inside:
                    block_of[state] = len(blocks) - 1
                # The smaller half is enough, unless the whole still waits: that makes it n log n.
                smaller = place if len(blocks[place]) < len(inside) else len(blocks) - 1
                waiting.add(len(blocks) - 1 if place in waiting else smaller)
    return block_of


def _list_sources(table: Int32Array) -> list[dict[int, list[int]]]:
    """Return, for each state, the states from which each minterm leads to it."""
    sources: list[dict[int, list[int]]] = [defaultdict(list) for _ in table]
    for state, row in enumerate(table.tolist()):
        for symbol, target in enumerate(row):
            sources[target][symbol].append(state)
    return sources


def _list_arriving(block: set[int], sources: list[dict[int, list[int]]]) -> list[list[int]]:
    """Return, for each minterm that leads into the block, the states from which it does."""
    sources_by_symbol: dict[int, list[int]] = defaultdict(list)
    for state in block:
        for symbol, before in sources[state].items():
            sources_by_symbol[symbol] += before
    return list(sources_by_symbol.values())


def _split_by_block(states: list[int], block_of: list[int]) -> dict[int, set[int]]:
    states_by_block: dict[int, set[int]] = defaultdict(set)
    for state in states:
        states_by_block[block_of[state]].add(state)
    return states_by_block
