"""The course of a pattern: the cells it may be in before it completes, and how events move it between them.

A course cell is a state of the pattern's automaton and the last few event labels; a label is a minterm, the named
filters that an event satisfies. Contexts shorten until the cells are few enough, whatever the data: so counts
of two histories always fit together. Attributes are taken to have one value; an event that has several counts as
the minterm that comes nearest. The course of a pattern without an automaton is what a `Tracker` shows of its run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.algebra import infer_schema
from tidings.errors import TidingsError
from tidings.kernels.array_types import BoolArray, FloatArray, Int32Array, IntArray
from tidings.kernels.forecast import tracking
from tidings.model import Schema
from tidings.patterns.compile.derivatives import Edge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidings.concepts import Ontology
    from tidings.model.patterns import Pattern
    from tidings.patterns.compile.terms import StepMoment

MOST_CELLS = 1024
"""Cells of one pattern: more context than that is not counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """A chain that labels move: `table[state, label]` is the next state, `hits` whether a match completes on the way.

    Rows are chain states. For exact courses these are the cells. A tracked course has coarser ones, because its cells
    also tell the last labels apart: `chain_state_of[cell]` is the state that a cell belongs to. `groups[j, cell]`
    numbers the cells that share their state and the last j labels: row 0 is the state, the last row the cell itself.
    """

    approximate: bool
    states: tuple[str, ...]  # what each state is called
    labels: tuple[str, ...]  # of a tracked course its chain states, then `match`: where an event leads
    table: Int32Array
    hits: BoolArray
    groups: Int32Array
    idle: BoolArray  # nothing has begun
    chain_state_of: Int32Array
    start: int
    depth: int  # how many labels a cell remembers
    tracker: Tracker | None = None  # what follows an approximate course

    def list_filter_sets(self) -> list[frozenset[str]]:
        """Return the filters that make up each label of an exact course."""
        return [frozenset(label.split("+")) if label != "*" else frozenset() for label in self.labels]

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.chain_state_of)


class TrackedPlace(NamedTuple):
    """Where a partial match may be: a configuration, or (`span`) the wait for an absence."""

    number: int = 0  # of the configuration; -1: the wait for an absence, 0: nothing has begun
    distance: tuple[int, int] = (0, 0)  # events to the end, at least and at most
    moments: tuple[StepMoment, ...] = ()  # the moments of its row
    contiguous: bool = False
    guards: tuple[str, ...] = ()
    limits: tuple[tuple[int, int], ...] = ()  # a moment of the row, and how long it may lie back
    prefers_earlier: bool = False  # of two rows the one with the earlier moments stays
    span: int = 0
    age_moment: int = 0  # the place in the row of the moment that age is counted from
    age_limit: int = 0  # the span of time that age is a fraction of; 0: it has no age
    bins: int = 1
    name: str = "start"

    @property
    def width(self) -> int:
        """How many numbers its row has; where nothing has begun there is none."""
        return 0 if self.number == 0 else 2 if self.span else 1 + len(self.moments)


@dataclass(frozen=True, slots=True)
class TrackedMap:
    """Places, nearest to the end first and the one where nothing has begun last, and the edges between them."""

    places: tuple[TrackedPlace, ...]
    leaving: tuple[tuple[tuple[int | None, Edge], ...], ...]  # of each place: targets (`None`: the end) and edges
    first: tuple[int, ...]  # of each place its first chain state
    chain_states: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tracker:
    """Follows keys through a course. Bit j of an event's mask tells that it satisfies `filter_names[j]`.

    A key's state is `width` numbers, made by `make_state`, moved on by `walk`. A pattern of more than 62 filters, or
    one whose rows need too much room, has no filters and one cell: its course then tells how often it is matched, not
    when.
    """

    filter_names: tuple[str, ...]
    width: int
    map: TrackedMap
    tables: tracking.TrackedTables

    def make_state(self) -> IntArray:
        """Return the state of a key before its first event."""
        return np.append(np.full(self.width - 1, tracking.DEAD, np.int64), 0)

    def walk(
        self, states: IntArray, rows: IntArray, starts: IntArray, masks: IntArray, times: IntArray, hits: BoolArray
    ) -> Int32Array:
        """Move states on and return the cell after each event.

        Entries `starts[s]:starts[s + 1]` are of the key whose state is `states[rows[s]]`. `hits` tells where the
        pattern was reported for the key: at this event, or (absence) at a deadline since the event before.
        """
        out = np.empty(len(masks), np.int32)
        rows, starts, masks, times = (np.ascontiguousarray(array, np.int64) for array in (rows, starts, masks, times))
        hits = np.ascontiguousarray(hits, np.bool_)
        # A plain tuple: Numba looks up the class of a named one at every call from Python.
        tracking.walk(tuple(self.tables), states, (starts, rows), masks, times, hits, out)
        return out

    def find_cell(self, state: IntArray, now: int) -> int:
        """Return the cell of a key at a moment when no event came; rows that have expired by then do not count."""
        return int(tracking.find_cell(self.tables.nodes, self.tables.lists, self.tables.settings, state, now))

    def guess_prior(self, filter_rates: Mapping[str, float]) -> FloatArray:
        """Guess, before anything was counted, where an event leads from each chain state, or to a match (last).

        `filter_rates` tells how often an event satisfies each filter. Time conditions are taken to hold.
        """
        size = len(self.map.chain_states)
        prior, share = np.zeros((size, size + 1)), np.zeros(size)
        for number, place in enumerate(self.map.places):
            for age in range(place.bins):
                cell = self.map.first[number] + age
                share[cell] += 1
                for target, chance in self._guess_moves(number, age, filter_rates):
                    prior[cell, target] += chance
        return np.asarray(prior / share[:, None])

    def _guess_moves(self, number: int, age: int, filter_rates: Mapping[str, float]) -> list[tuple[int, float]]:
        """Return where an event may lead from a place, with chances that make 1 together."""
        place, first, match = self.map.places[number], self.map.first, len(self.map.chain_states)
        moves = [(0, filter_rates.get(name, 0.0)) for name in place.guards]
        for target, edge in self.map.leaving[number]:
            # A step to a place that is less far is not seen while the source waits on.
            if target is None or target < number or place.contiguous:
                moves.append((match if target is None else first[target], filter_rates.get(edge.filter, 0.0)))
        total = sum(chance for _, chance in moves)
        if total > 1:
            return [(cell, chance / total) for cell, chance in moves]
        rest, stays = 1.0 - total, 0 if place.contiguous else first[number] + age
        if not place.span:
            return [*moves, (stays, rest)]
        # Nothing is known of time here: say that every other event finds the wait a quarter further.
        next_bin = stays + 1 if age + 1 < place.bins else match
        return [*moves, (stays, rest / 2), (next_bin, rest / 2)]


def infer_single_valued_schema(pattern: Pattern, ontology: Ontology | None = None) -> Schema | None:
    """Return a schema in which every attribute has one value: filters for two values then exclude each other."""
    try:
        schema = infer_schema([pattern[name].filter for name in pattern.list_filters()], ontology=ontology)
    except TidingsError:
        return None
    return Schema({name: replace(schema[name], several=False) for name in schema})


def format_word(word: Iterable[str]) -> str:
    """Return a word as text, with repetitions as patterns write them.

    >>> format_word(["fail", "fail", "enter"]), format_word([])
    ('fail{2} enter', 'start')
    """
    runs = [(name, len(list(run))) for name, run in groupby(word)]
    return " ".join(name if count == 1 else f"{name}{{{count}}}" for name, count in runs) or "start"
