"""The course of a pattern: the cells it may be in before it completes, and how events move it between them.

A cell is a state of the pattern's automaton together with the last few symbols; a symbol (label) is a minterm, the
named filters that an event satisfies. Contexts shorten until the cells are few enough, whatever the data: so counts
of two histories always fit together. Attributes are taken to have one value; an event that has several counts as
the minterm that comes nearest.
Cost: cells times labels, once for each pattern.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.algebra import infer_schema
from tidings.errors import TidingsError
from tidings.kernels.array_types import BoolArray, Int32Array, IntArray
from tidings.model import Schema
from tidings.model.patterns import Mode, Pattern
from tidings.patterns.compile.automaton import NotDeterministic, PatternAutomaton, determinise
from tidings.patterns.run.machine import find_ways

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_CELLS = 1024
"""Cells of one pattern: more context than that is not counted."""

MOST_MOVES = 1 << 17
"""Cells times labels of one pattern."""


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """`table[cell, label]` is the next cell, and `hits` tells where the pattern is matched on the way there.

    `groups[j, cell]` numbers the cells that share their state and the last j labels: row 0 is the state, the last
    row the cell itself. The chain may be coarser than the cells: `chain` tells each cell's place in it.
    """

    approximate: bool
    states: tuple[str, ...]  # what each state is called
    labels: tuple[str, ...]
    table: Int32Array
    hits: BoolArray
    groups: Int32Array
    idle: BoolArray  # nothing has begun
    chain: Int32Array
    start: int
    depth: int  # how many labels a cell remembers
    automaton: PatternAutomaton | None = None
    tracker: Any = None  # of a tracked course: what follows it

    def sets(self) -> list[frozenset[str]]:
        """Return the filters that make up each label of an exact course."""
        return [frozenset(label.split("+")) if label != "*" else frozenset() for label in self.labels]

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.chain)


def build_course(
    pattern: Pattern, mode: Mode, *, context: int, most_moves: int = MOST_MOVES, **surroundings: Any
) -> Course:
    """Return a pattern's course: by its automaton where it has one, else by what its run shows of it.

    `surroundings` are schema, ontology and regions; an automaton of more than `most_moves` moves is not used.
    """
    automaton = _automaton(pattern, mode, most_moves, **surroundings)
    if isinstance(automaton, PatternAutomaton):
        return _build_product(automaton, context)
    from tidings.forecast.courses.tracked_course import build_tracked_course

    return build_tracked_course(pattern, mode, context=context)  # by the pattern alone: a file holds no more of it


def _automaton(
    pattern: Pattern, mode: Mode, most_moves: int, **surroundings: Any
) -> PatternAutomaton | NotDeterministic:
    if len(find_ways(pattern)) > 1:
        return NotDeterministic("its operands give the key through different attributes")
    run_mode = Mode.OVERLAP if mode is Mode.ANY else mode  # some embedding ends at an event, or none does
    if surroundings.get("schema") is None:
        surroundings = surroundings | {"schema": infer_single_values(pattern, **surroundings)}
    automaton = determinise(pattern, run_mode, **surroundings)
    if isinstance(automaton, PatternAutomaton) and automaton.table.size > most_moves:
        return NotDeterministic(
            f"{automaton.table.shape[0]:,} states with {automaton.table.shape[1]:,} symbols are too many"
        )
    return automaton


def infer_single_values(pattern: Pattern, **surroundings: Any) -> Any:
    """Return a schema in which every attribute has one value: filters for two values then exclude each other."""
    filters = [pattern[name].filter for name in pattern.list_filters()]
    try:
        schema = infer_schema(filters, ontology=surroundings.get("ontology"))
    except TidingsError:
        return None
    return Schema({name: replace(schema[name], several=False) for name in schema})


def _build_product(automaton: PatternAutomaton, context: int) -> Course:
    """Return the automaton with the last labels; one label fewer as long as the cells are too many."""
    codes, depth = None, context
    while codes is None:
        codes = _find_reachable(automaton, depth)
        if codes is None or len(codes) * len(automaton.minterms) > MOST_MOVES:
            if depth == 0:
                codes = np.arange(len(automaton.states), dtype=np.int64)
                break
            codes, depth = None, depth - 1
    width = len(automaton.minterms)
    span = width**depth
    state, word = codes // span, codes % span
    following = automaton.table[state].astype(np.int64) * span
    following += ((word * width)[:, None] + np.arange(width)) % span
    groups = [np.unique(state * width**j + word % width**j, return_inverse=True)[1] for j in range(depth + 1)]
    states, names = _name_states(automaton), automaton.minterms.symbols
    return Course(
        approximate=False,
        states=states,
        labels=tuple("+".join(sorted(symbol)) or "*" for symbol in names),
        table=np.searchsorted(codes, following).astype(np.int32),
        hits=automaton.reports[state],
        groups=np.array(groups, np.int32).reshape(depth + 1, len(codes)),
        idle=np.array([automaton.states[number] == frozenset({0}) for number in state.tolist()]),
        chain=np.arange(len(codes), dtype=np.int32),
        start=int(np.searchsorted(codes, 0)),
        depth=depth,
        automaton=automaton,
    )


def _find_reachable(automaton: PatternAutomaton, depth: int) -> IntArray | None:
    """Return the pairs of state and last labels that can be reached, ascending; `None` when they are too many.

    Before the first event the context is one of `*` alone.
    """
    width = len(automaton.minterms)
    span = width**depth
    if depth == 0:
        return np.arange(len(automaton.states), dtype=np.int64)
    reached = front = np.zeros(1, np.int64)
    labels = np.arange(width, dtype=np.int64)
    while len(front):
        state, word = front // span, front % span
        after = automaton.table[state].astype(np.int64) * span + ((word * width)[:, None] + labels) % span
        front = np.setdiff1d(after, reached)
        reached = np.union1d(reached, front)
        if len(reached) > MOST_CELLS:
            return None
    return reached


def _name_states(automaton: PatternAutomaton) -> tuple[str, ...]:
    """Call each state by a shortest word that leads there."""
    return tuple(format_word(word) for word in automaton.words())


def format_word(word: Iterable[str]) -> str:
    """Return a word as text, with repetitions as patterns write them.

    >>> format_word(["fail", "fail", "enter"]), format_word([])
    ('fail{2} enter', 'start')
    """
    runs = [(name, len(list(run))) for name, run in groupby(word)]
    return " ".join(name if count == 1 else f"{name}{{{count}}}" for name, count in runs) or "start"
