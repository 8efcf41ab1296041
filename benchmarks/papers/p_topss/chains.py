"""Markov chains over the states of a machine, in plain numpy: the paper's formulas as printed, and first passage.

A `Space` is a deterministic machine. `walk` follows it through a stream, `counted` counts its moves, and the two
estimators make of the counts a table `p[n - 1, state]`: how likely a match is within the next n events.

As printed (section 5.2): `p_ij = N_ij / (all moves that came into i)`, and `p(n)` is the sum of the k-th powers to the
final state for k up to n. That counts matches rather than asking whether there is one, so it may exceed 1. First
passage divides by the moves that left i, and a match ends the count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.p_topss.heat import HOT, STEPS, TEXT
from tidings.concepts import Vocabulary
from tidings.lang import parse_pattern
from tidings.model.patterns import Mode
from tidings.patterns.compile.pattern_automaton import NotDeterministic, determinise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.model import Schema
    from tidings.model.patterns import Pattern

BANDS = (HOT, 20.0, 10.0)
"""The hand-made model tells days apart by these degrees: above 30, above 20, above 10, and the rest."""

UNKNOWN = len(BANDS) + 1
"""The symbol of a day without a reading, for the hand-made model."""


@dataclass(frozen=True, slots=True, eq=False)
class StateSpace:
    """A machine: `after[state, symbol]` follows a state, `final` states are entered with a match, `start` is initial.

    `labels` number the symbols by the name of the filter that such an event satisfies, `*` for none.
    """

    after: NDArray[np.int32]
    final: NDArray[np.bool_]
    start: int = 0
    labels: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many states there are."""
        return len(self.after)

    def to_symbols(self, names: Sequence[str], kinds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the symbols of events, each given by its place among names; names of no filter are anything else."""
        return np.array([self.labels.get(name, self.labels["*"]) for name in names], np.int64)[kinds]

    def walk(self, symbols: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the state after each event of a stream."""
        rows, state, states = self.after.tolist(), self.start, []
        for symbol in symbols.tolist():
            state = rows[state][symbol]
            states.append(state)
        return np.array(states, np.int32)

    def count_moves(self, symbols: NDArray[np.int64], states: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return how often each symbol was read in each state: counts of streams add up."""
        before = np.concatenate([[self.start], states[:-1]])[: len(states)].astype(np.int64)
        kinds = self.after.shape[1]
        return np.bincount(before * kinds + symbols, minlength=self.after.size).reshape(self.after.shape)


def build_space(pattern: Pattern, mode: Mode, schema: Schema | None = None) -> StateSpace:
    """Return a pattern's own automaton: the paper's generated model."""
    automaton = determinise(pattern, mode, Vocabulary(schema))
    if isinstance(automaton, NotDeterministic):
        msg = f"the pattern has no automaton: {automaton.reason}"
        raise TypeError(msg)
    labels = {"+".join(sorted(symbol)) or "*": number for number, symbol in enumerate(automaton.minterms.symbols)}
    return StateSpace(automaton.table, automaton.mark_final_states(), labels=labels)


# The two models of Figure 11 -------------------------------------------------------------------


def generate_space(mode: Mode) -> StateSpace:
    """Return five states and the initial one; the symbols are 0 for any day and 1 for a hot one."""
    return build_space(parse_pattern(TEXT), mode)


def build_hand_made(mode: Mode) -> StateSpace:
    """Return the 1,365 words of up to five days over four bands; the symbols are the bands, and `UNKNOWN`.

    A day without a reading says nothing of the days before it, so the word begins anew: that is what the words of
    fewer than five days are for. In `restart` it begins anew after a match, too.
    """
    bands = range(len(BANDS) + 1)
    words = [word for length in range(STEPS + 1) for word in product(bands, repeat=length)]
    number = {word: place for place, word in enumerate(words)}
    match = (0,) * STEPS
    after = np.zeros((len(words), UNKNOWN + 1), np.int32)  # the column of `UNKNOWN` leads to the empty word, 0
    for place, word in enumerate(words):
        suffix = () if mode is Mode.RESTART and word == match else word
        after[place, :UNKNOWN] = [number[(*suffix, band)[-STEPS:]] for band in bands]
    return StateSpace(after, np.array([word == match for word in words]))


def find_bands(celsius: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the band of each day, 0 the hottest; `UNKNOWN` without a reading."""
    cooler = sum((celsius <= degrees).astype(np.int64) for degrees in BANDS)
    return np.where(np.isnan(celsius), UNKNOWN, cooler)


# Estimators ------------------------------------------------------------------------------------


def compute_printed(space: StateSpace, moves: NDArray[np.int64], most: int) -> NDArray[np.float64]:
    """Return the paper's sum of powers for 1 to `most` events; it may exceed 1, and states never entered have 0."""
    arrived = np.bincount(space.after.ravel(), weights=moves.ravel(), minlength=len(space))
    share = _compute_shares(moves, arrived)
    reach, total, rows = space.final.astype(np.float64), np.zeros(len(space)), []
    for _ in range(most):
        reach = (share * reach[space.after]).sum(axis=1)
        total = total + reach
        rows.append(total)
    return np.array(rows)


def compute_exactly(space: StateSpace, moves: NDArray[np.int64], most: int) -> NDArray[np.float64]:
    """Return the paper's other formula, the n-th power alone: a match after exactly n events."""
    return np.diff(compute_printed(space, moves, most), axis=0, prepend=0.0)


def compute_first_passage(space: StateSpace, moves: NDArray[np.int64], most: int) -> NDArray[np.float64]:
    """Return the probability of a match within 1 to `most` events; states never left have 0."""
    share = _compute_shares(moves, moves.sum(axis=1))
    hit, reached, rows = space.final[space.after], np.zeros(len(space)), []
    for _ in range(most):
        reached = (share * np.where(hit, 1.0, reached[space.after])).sum(axis=1)
        rows.append(np.minimum(reached, 1.0))  # sums of floats may be above 1 by their last digit
    return np.array(rows)


def to_dense(space: StateSpace, moves: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the paper's matrix P, states by states: what its formulas raise to a power."""
    arrived = np.bincount(space.after.ravel(), weights=moves.ravel(), minlength=len(space))
    matrix = np.zeros((len(space), len(space)))
    np.add.at(matrix, (np.arange(len(space))[:, None], space.after), _compute_shares(moves, arrived))
    return matrix


def _compute_shares(moves: NDArray[np.int64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the moves over the totals of their states, 0 where a state has none."""
    return np.divide(moves, totals[:, None], out=np.zeros(moves.shape), where=totals[:, None] > 0)
