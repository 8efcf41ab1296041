"""The streams that patterns read: the whole one, or one for each key; and the kinds of events in them.

A kind is the set of filters that an event satisfies. There are few, so each is translated to a pattern's labels once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.array_types import FloatArray, IntArray
from tidings.kernels.forecast.forecasts import SILENCES, hash_symbol_sets, update_mean_gaps
from tidings.patterns.run.machine import Partitioning, compute_keys

if TYPE_CHECKING:
    from tidings.patterns.run.event_reader import EncodedEvents
    from tidings.patterns.run.value_numbers import ValueNumbers

RECENT = 16
"""Gaps that a running mean is made of."""

_EDGES = (2.0 ** np.arange(SILENCES - 1), 4.0 ** np.arange(SILENCES - 1) * 1e6)


class EventKinds:
    """The sets of filters that events satisfied, numbered as they came."""

    def __init__(self) -> None:
        self.members: list[tuple[int, ...]] = []
        self._numbers: dict[int, int] = {}
        self._codes = np.empty(0, np.uint64)

    def __len__(self) -> int:
        return len(self.members)

    def number_kinds(self, events: EncodedEvents) -> IntArray:
        """Return the kind of each event."""
        self._widen(int(events.symbols.max(initial=-1)) + 1)
        codes, firsts, places = np.unique(
            hash_symbol_sets(events.symbols_at, events.symbols, self._codes), return_index=True, return_inverse=True
        )
        numbers = np.empty(len(codes), np.int64)
        for place in np.argsort(firsts).tolist():  # in the order they came, however the stream is cut
            code, first = int(codes[place]), int(firsts[place])
            if code not in self._numbers:
                self._numbers[code] = len(self.members)
                satisfied = events.symbols[events.symbols_at[first] : events.symbols_at[first + 1]]
                self.members.append(tuple(sorted(satisfied.tolist())))
            numbers[place] = self._numbers[code]
        return numbers[places.reshape(-1)]

    def restore(self, members: list[tuple[int, ...]]) -> None:
        """Take the kinds of a state; two that have become equal keep both their numbers."""
        self.members, self._codes = members, np.empty(0, np.uint64)
        self._widen(max((number for kind in members for number in kind), default=-1) + 1)

    def _widen(self, symbols: int) -> None:
        """Give every filter a random number of its own: the sum over a set identifies it."""
        if symbols > len(self._codes):
            self._codes = np.random.default_rng(1).integers(0, 1 << 63, 2 * symbols, np.uint64) * np.uint64(2)
            self._codes += np.uint64(1)
            with np.errstate(over="ignore"):
                codes = [int(self._codes[list(members)].sum(dtype=np.uint64)) for members in self.members]
            self._numbers = {code: number for number, code in enumerate(codes)}


@dataclass(frozen=True, slots=True)
class StreamEntries:
    """Events of streams, key by key: entries `starts[s]:starts[s + 1]` are of key `rows[s]`, in their order.

    `mask` tells through which ways an event gives this key; it is empty where there is one way alone.
    """

    event: IntArray  # the place of the event among those given
    kind: IntArray
    mask: IntArray
    starts: IntArray
    rows: IntArray

    def __len__(self) -> int:
        return len(self.event)

    def keys(self) -> IntArray:
        """Return the key of each entry."""
        return np.repeat(self.rows, np.diff(self.starts))


def build_entries(events: EncodedEvents, kinds: IntArray, parting: Partitioning, names: ValueNumbers) -> StreamEntries:
    """Return the entries of some events: of one stream where there are no keys; where times count, of timed ones."""
    (ways, timed), none = parting, np.empty(0, np.int64)
    seen = np.full(len(events), True) if not timed or events.timed is None else events.timed
    if ways == ((),):
        event = np.flatnonzero(seen)
        return StreamEntries(event, kinds[event], none, np.array([0, len(event)]), np.zeros(1, np.int64))
    keys_by_way = [np.where(seen, compute_keys(way, events, names), -1) for way in ways]
    if len(ways) == 1:
        event = np.flatnonzero(keys_by_way[0] >= 0)
        return group_by_key(event, keys_by_way[0][event], kinds[event], none)
    event = np.concatenate([np.flatnonzero(keys >= 0) for keys in keys_by_way])
    key = np.concatenate([keys[keys >= 0] for keys in keys_by_way])
    pairs = np.unique(np.column_stack([event, key]), axis=0)
    mask = np.zeros(len(pairs), np.int64)
    for way, keys in enumerate(keys_by_way):
        mask |= (keys[pairs[:, 0]] == pairs[:, 1]).astype(np.int64) << way
    return group_by_key(pairs[:, 0], pairs[:, 1], kinds[pairs[:, 0]], mask)


def group_by_key(event: IntArray, key: IntArray, kind: IntArray, mask: IntArray) -> StreamEntries:
    """Return entries key by key; those of one key stay in their order."""
    order = np.argsort(key, kind="stable")
    rows, starts = np.unique(key[order], return_index=True)
    return StreamEntries(
        event[order], kind[order], mask[order] if len(mask) else mask, np.append(starts, len(key)), rows
    )


def find_following(
    keys: IntArray, moments: IntArray, wanted_keys: IntArray, wanted: IntArray, *, strictly: bool = False
) -> IntArray:
    """Return, for pairs of a key and a moment, the place of the first entry of that key which is not before it.

    Where there is none it is -1. The entries lie key by key, each in the order of their moments; `strictly` asks for
    one after the moment.
    """
    if not len(keys) or not len(wanted):
        return np.full(len(wanted), -1, np.int64)
    ranks = np.unique(np.concatenate([moments, wanted]))  # codes of keys and moments themselves might overflow
    codes = keys * len(ranks) + np.searchsorted(ranks, moments)
    asked = wanted_keys * len(ranks) + np.searchsorted(ranks, wanted)
    at = np.minimum(np.searchsorted(codes, asked, side="right" if strictly else "left"), len(keys) - 1)
    is_after = codes[at] > asked if strictly else codes[at] >= asked
    return np.where(is_after & (keys[at] == wanted_keys), at, -1)


class KeyGaps:
    """The gaps between events of each key, in events of the stream and in microseconds, as running means.

    The mean of the first few gaps, then one that forgets: keys come in bursts, and the last gaps say most.
    """

    def __init__(self, *, keyed: bool) -> None:
        self.is_keyed = keyed
        self.last = np.empty((2, 0), np.int64)  # position and time of each key's latest event
        self.mean = np.empty((2, 0))
        self.count = np.empty(0, np.int64)  # events of each key

    def widen(self, keys: int) -> None:
        """Make room for keys."""
        more = keys - len(self.count)
        if self.is_keyed and more > 0:
            self.last = np.concatenate([self.last, np.zeros((2, more), np.int64)], axis=1)
            self.mean = np.concatenate([self.mean, np.full((2, more), np.nan)], axis=1)
            self.count = np.append(self.count, np.zeros(more, np.int64))

    def take(self, entries: StreamEntries, times: IntArray, position: int) -> FloatArray:
        """Return what is known at entries, whose first event is at a position: see `carried`."""
        return self.update_gaps(entries, position + entries.event, times[entries.event])

    def update_gaps(self, entries: StreamEntries, positions: IntArray, times: IntArray) -> FloatArray:
        """Return the mean gaps at entries in two rows, of how many, and the latest gaps; a first event has none."""
        gaps = np.full((5, len(entries)), np.nan)
        if self.is_keyed and len(entries):
            self.widen(int(entries.rows.max()) + 1)
            moments = np.stack([positions, times])
            update_mean_gaps(entries.starts, entries.rows, moments, RECENT, self.last, self.mean, self.count, gaps)
        return gaps

    def select(self, rows: IntArray) -> KeyGaps:
        """Return those of some keys, numbered by their places."""
        made = KeyGaps(keyed=self.is_keyed)
        made.last, made.mean, made.count = self.last[:, rows], self.mean[:, rows], self.count[rows]
        return made

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each key by its position in `kept`."""
        if self.is_keyed:
            self.widen(int(kept.max(initial=-1)) + 1)
            selected = self.select(kept)
            self.last, self.mean, self.count = selected.last, selected.mean, selected.count


def bin_gaps(gaps: FloatArray) -> IntArray:
    """Return the bins of mean gaps, in two rows: events by powers of 2, microseconds by powers of 4 seconds.

    Where there is none, it is the last bin.
    """
    return np.stack([np.searchsorted(edges, row) for edges, row in zip(_EDGES, gaps[:2], strict=True)])
