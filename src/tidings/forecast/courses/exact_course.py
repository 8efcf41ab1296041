"""The course of a pattern: by its automaton, where it has one. Cost: cells times labels, once for each pattern."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidings.concepts import Vocabulary
from tidings.forecast.courses.course import MOST_CELLS, Course, format_word, infer_single_valued_schema
from tidings.forecast.courses.tracked_course import build_tracked_course
from tidings.model.patterns import Mode, Pattern
from tidings.patterns.compile.pattern_automaton import PatternAutomaton, determinise
from tidings.patterns.run.machine import find_ways

if TYPE_CHECKING:
    from tidings.kernels.array_types import IntArray

MOST_MOVES = 1 << 17
"""Cells times labels of one pattern."""


def build_course(
    pattern: Pattern, mode: Mode, vocabulary: Vocabulary | None = None, *, context: int, most_moves: int = MOST_MOVES
) -> Course:
    """Return a pattern's course: by its automaton where it has one, else by what its run shows of it.

    Without a schema, attributes have one value. An automaton of more than `most_moves` moves is not used.
    """
    if len(find_ways(pattern)) == 1:  # else its operands give the key through different attributes
        vocabulary = vocabulary or Vocabulary()
        if vocabulary.schema is None:
            vocabulary = replace(vocabulary, schema=infer_single_valued_schema(pattern, vocabulary.ontology))
        run_mode = Mode.OVERLAP if mode is Mode.ANY else mode  # some embedding ends at an event, or none does
        automaton = determinise(pattern, run_mode, vocabulary)
        if isinstance(automaton, PatternAutomaton) and automaton.table.size <= most_moves:
            return _build_product(automaton, context)
    return build_tracked_course(pattern, mode, context=context)  # by the pattern alone: a file holds no more of it


def _build_product(automaton: PatternAutomaton, context: int) -> Course:
    """Return the course whose cells are pairs of a state and the last `context` labels.

    While the cells are too many, one label fewer is remembered.
    """
    depth = context
    while (codes := _find_reachable(automaton, depth)) is None:
        depth -= 1
    width = len(automaton.minterms)
    state, word = np.divmod(codes, width**depth)
    groups = [np.unique(state * width**j + word % width**j, return_inverse=True)[1] for j in range(depth + 1)]
    return Course(
        approximate=False,
        states=tuple(map(format_word, automaton.list_shortest_words())),
        labels=tuple("+".join(sorted(symbol)) or "*" for symbol in automaton.minterms.symbols),
        table=np.searchsorted(codes, _follow_labels(automaton, codes, depth)).astype(np.int32),
        hits=automaton.reports[state],
        groups=np.array(groups, np.int32).reshape(depth + 1, len(codes)),
        idle=np.array([automaton.states[number] == frozenset({0}) for number in state.tolist()]),
        chain_state_of=np.arange(len(codes), dtype=np.int32),
        start=int(np.searchsorted(codes, 0)),
        depth=depth,
    )


def _find_reachable(automaton: PatternAutomaton, depth: int) -> IntArray | None:
    """Return the pairs of state and last labels that can be reached, ascending; `None` when they are too many.

    A pair is one number, the labels its last digits. Before the first event the context is one of `*` alone.
    """
    if depth == 0:
        return np.arange(len(automaton.states), dtype=np.int64)
    reached = front = np.zeros(1, np.int64)
    while len(front):
        front = np.setdiff1d(_follow_labels(automaton, front, depth), reached)
        reached = np.union1d(reached, front)
        if len(reached) > MOST_CELLS:
            return None
    return reached if len(reached) * len(automaton.minterms) <= MOST_MOVES else None


def _follow_labels(automaton: PatternAutomaton, codes: IntArray, depth: int) -> IntArray:
    """Return the pair that each label leads to from each pair: a row for each of `codes`, a column for each label."""
    width = len(automaton.minterms)
    state, word = np.divmod(codes, width**depth)
    words = ((word * width)[:, None] + np.arange(width)) % width**depth
    return np.asarray(automaton.table[state].astype(np.int64) * width**depth + words)
