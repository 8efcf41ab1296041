"""The streams that patterns read: the whole one, or one for each key; and the patterns that read one stream together.

A kind is the set of filters that an event satisfies. There are few, so each is translated to a pattern's labels once.
Exact courses of a group lie end to end in one set of arrays, so that one call takes a batch through all of them;
tracked ones go one by one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from tidings.forecast.courses.course import Course
from tidings.kernels.array_types import FloatArray, Int32Array, IntArray
from tidings.kernels.forecast.forecasts import SILENCES, hash_symbol_sets, update_mean_gaps
from tidings.model.patterns import Pattern
from tidings.patterns.run.machine import Partitioning, compute_keys, find_partitioning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.model import Filter
    from tidings.patterns.run.event_reader import EncodedEvents
    from tidings.patterns.run.variable_values import ValueNumbers

Scalar = TypeVar("Scalar", bound=np.generic)

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
    """Events of streams, key by key: entries `starts[s]:starts[s + 1]` are of key `keys[s]`, in their order.

    Bit i of `way_mask`: the event gives this key by the i-th of the ways (tuples of key attributes) of the group; it is
    empty where there is one way alone.
    """

    event: IntArray  # the place of the event among those given
    kind: IntArray
    way_mask: IntArray
    starts: IntArray
    keys: IntArray

    def __len__(self) -> int:
        return len(self.event)

    def list_keys(self) -> IntArray:
        """Return the key of each entry."""
        return np.repeat(self.keys, np.diff(self.starts))


def build_entries(
    events: EncodedEvents, kinds: IntArray, partitioning: Partitioning, value_numbers: ValueNumbers
) -> StreamEntries:
    """Return the entries of events, key by key; without keys, all of one stream, numbered 0.

    Where the patterns ask for times, events without one have no entry.
    """
    (ways, timed), no_masks = partitioning, np.empty(0, np.int64)
    seen = np.full(len(events), True) if not timed or events.timed is None else events.timed
    if ways == ((),):
        event = np.flatnonzero(seen)
        return StreamEntries(event, kinds[event], no_masks, np.array([0, len(event)]), np.zeros(1, np.int64))
    keys_by_way = [np.where(seen, compute_keys(way, events, value_numbers), -1) for way in ways]
    if len(ways) == 1:
        event = np.flatnonzero(keys_by_way[0] >= 0)
        return group_by_key(event, keys_by_way[0][event], kinds[event], no_masks)
    event = np.concatenate([np.flatnonzero(keys >= 0) for keys in keys_by_way])
    key = np.concatenate([keys[keys >= 0] for keys in keys_by_way])
    pairs = np.unique(np.column_stack([event, key]), axis=0)
    way_mask = np.zeros(len(pairs), np.int64)
    for way, keys in enumerate(keys_by_way):
        way_mask |= (keys[pairs[:, 0]] == pairs[:, 1]).astype(np.int64) << way
    return group_by_key(pairs[:, 0], pairs[:, 1], kinds[pairs[:, 0]], way_mask)


def group_by_key(event: IntArray, key: IntArray, kind: IntArray, way_mask: IntArray) -> StreamEntries:
    """Return entries key by key; those of one key stay in their order."""
    order = np.argsort(key, kind="stable")
    keys, starts = np.unique(key[order], return_index=True)
    way_mask = way_mask[order] if len(way_mask) else way_mask
    return StreamEntries(event[order], kind[order], way_mask, np.append(starts, len(key)), keys)


def find_following(
    keys: IntArray, moments: IntArray, wanted_keys: IntArray, wanted: IntArray, *, strictly: bool = False
) -> IntArray:
    """Return, for pairs of a key and a moment, the place of the first entry of that key which is not before it.

    Where there is none it is -1. The entries lie key by key, each in the order of their moments; `strictly` asks for
    one after the moment.
    """
    if not len(keys) or not len(wanted):
        return np.full(len(wanted), -1, np.int64)
    first, last = min(moments.min(), wanted.min()), max(moments.max(), wanted.max())
    if max(int(keys[-1]), int(wanted_keys.max())) * (int(last - first) + 1) >= 1 << 62:  # codes might overflow
        ranks = np.sort(np.concatenate([moments, wanted]))
        moments, wanted = np.searchsorted(ranks, moments), np.searchsorted(ranks, wanted)
        first, last = np.int64(0), np.int64(len(ranks))
    span = last - first + 1
    codes, wanted_codes = keys * span + (moments - first), wanted_keys * span + (wanted - first)
    at = np.minimum(np.searchsorted(codes, wanted_codes, side="right" if strictly else "left"), len(keys) - 1)
    is_after = codes[at] > wanted_codes if strictly else codes[at] >= wanted_codes
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
        """Return what `update_gaps` does, for entries of events that begin at a position of the stream."""
        return self.update_gaps(entries, position + entries.event, times[entries.event])

    def update_gaps(self, entries: StreamEntries, positions: IntArray, times: IntArray) -> FloatArray:
        """Update the gaps of keys; return, at each entry, the mean gaps (two rows), of how many, and the latest gaps.

        Where a key has no gap yet they are nan.
        """
        gaps = np.full((5, len(entries)), np.nan)
        if self.is_keyed and len(entries):
            self.widen(int(entries.keys.max()) + 1)
            moments = np.stack([positions, times])
            state = self.last, self.mean, self.count
            update_mean_gaps((entries.starts, entries.keys), moments, RECENT, state, gaps)
        return gaps

    def select(self, rows: IntArray) -> KeyGaps:
        """Return those of some keys, numbered by their places."""
        selected = KeyGaps(keyed=self.is_keyed)
        selected.last, selected.mean, selected.count = self.last[:, rows], self.mean[:, rows], self.count[rows]
        return selected

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each key by its position in `kept`."""
        if self.is_keyed:
            self.widen(int(kept.max(initial=-1)) + 1)
            self.last, self.mean, self.count = self.last[:, kept], self.mean[:, kept], self.count[kept]


def bin_gaps(gaps: FloatArray) -> IntArray:
    """Return the bins of mean gaps, in two rows: events by powers of 2, microseconds by powers of 4 seconds.

    Where there is none, it is the last bin.
    """
    return np.stack([np.searchsorted(edges, row) for edges, row in zip(_EDGES, gaps[:2], strict=True)])


# Patterns that read one stream ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CourseMember:
    """A pattern and its course; `name` is the pattern's, or in learning its key (`make_pattern_key`)."""

    name: str
    pattern: Pattern
    course: Course


class CourseGroup:
    """Members that divide the stream alike; `exact` ones come first, then `tracked` ones, with their `trackers`."""

    def __init__(
        self, partitioning: Partitioning, members: Sequence[CourseMember], filters: Mapping[Filter, int]
    ) -> None:
        self.partitioning = partitioning
        self.ways, self.timed = partitioning
        self.keyed = self.ways != ((),)
        self.exact = [member for member in members if member.course.tracker is None]
        self.tracked = [member for member in members if member.course.tracker is not None]
        self.trackers = [member.course.tracker for member in members if member.course.tracker is not None]
        self.members = [*self.exact, *self.tracked]
        self._filters = filters
        courses = [member.course for member in self.exact]
        self.widths = np.array([len(course.labels) for course in courses], np.int64)
        self.cell_at = np.append(0, np.cumsum([course.cells for course in courses])).astype(np.int64)
        self.move_at = np.append(0, np.cumsum([course.table.size for course in courses])).astype(np.int64)
        self.table = _flatten([course.table for course in courses], np.int32)
        self.hits = _flatten([course.hits for course in courses], np.bool_)
        self.idle = _flatten([course.idle for course in courses], np.bool_)
        self.starts = np.array([course.start for course in courses], np.int32)
        self.labels = np.zeros((len(self.exact), 0), np.int32)
        self.accepts = np.zeros((len(self.members), 0), np.bool_)
        self._labelled = 0
        self._label_tables = [_LabelTable(member) for member in self.exact]
        self._masks: dict[tuple[int, int, int], int] = {}

    def label_new_kinds(self, kinds: EventKinds) -> None:
        """Compute the labels of new kinds of events for the exact courses, and which patterns accept them."""
        labelled, count = self._labelled, len(kinds)
        if count == labelled:
            return
        if count > self.labels.shape[1]:
            more = 2 * count - self.labels.shape[1]
            self.labels = np.pad(self.labels, ((0, 0), (0, more)))
            self.accepts = np.pad(self.accepts, ((0, 0), (0, more)))
        satisfied: dict[int, list[int]] = defaultdict(list)
        for kind in range(labelled, count):
            for number in kinds.members[kind]:
                satisfied[number].append(kind - labelled)
        new_kinds = {number: np.array(places) for number, places in satisfied.items()}
        for row, member in enumerate(self.members):
            numbers = {name: self._filters[member.pattern[name].filter] for name in member.pattern.list_filters()}
            own_kinds = {name: new_kinds[number] for name, number in numbers.items() if number in new_kinds}
            for places in own_kinds.values():
                self.accepts[row, labelled + places] = True
            if row < len(self.exact):
                self.labels[row, labelled:count] = self._label_tables[row].find_labels(own_kinds, count - labelled)
        self._labelled = count

    def find_filter_masks(self, place: int, entries: StreamEntries, kinds: EventKinds) -> IntArray:
        """Return, for a tracked member, which of its filters each entry satisfies, as bits."""
        single = not len(entries.way_mask)
        codes = entries.kind if single else entries.kind << len(self.ways) | entries.way_mask
        distinct, places = (np.arange(len(kinds)), codes) if single else np.unique(codes, return_inverse=True)
        pairs = [(code, -1) if single else divmod(code, 1 << len(self.ways)) for code in distinct.tolist()]
        bits = [self._find_filter_mask(place, kind, ways, kinds) for kind, ways in pairs]
        return np.array(bits, np.int64)[places.reshape(-1)] if bits else np.empty(0, np.int64)

    def _find_filter_mask(self, place: int, kind: int, ways: int, kinds: EventKinds) -> int:
        at = (place, kind, ways)
        if at not in self._masks:
            pattern, satisfied, bits = self.tracked[place].pattern, set(kinds.members[kind]), 0
            for bit, name in enumerate(self.trackers[place].filter_names):
                attributes = {variable: attribute for attribute, variable in pattern[name].variables}
                way = tuple(attributes[variable] for variable in pattern.key_variables())
                through = ways < 0 or bool(ways >> self.ways.index(way) & 1)
                bits |= int(through and self._filters[pattern[name].filter] in satisfied) << bit
            self._masks[at] = bits
        return self._masks[at]


class _LabelTable:
    """The labels of a course by the names that make them up."""

    def __init__(self, member: CourseMember) -> None:
        """Give every name a random number: the sum over the names that an event satisfies identifies them."""
        names = member.pattern.list_filters()
        rng = np.random.default_rng(len(names))
        self._codes = dict(zip(names, rng.integers(1, 1 << 62, len(names)).tolist(), strict=True))
        self._sets = member.course.list_filter_sets()
        codes = np.array([sum(self._codes[name] for name in label) % (1 << 64) for label in self._sets], np.uint64)
        self._order = np.argsort(codes)
        self._sorted = codes[self._order]

    def find_labels(self, satisfied: Mapping[str, IntArray], count: int) -> Int32Array:
        """Return the label of each kind of event; one thought impossible gets that of its largest subset."""
        codes = np.zeros(count, np.uint64)
        for name, kinds in satisfied.items():
            codes[kinds] += np.uint64(self._codes[name])
        at = np.minimum(np.searchsorted(self._sorted, codes), len(self._sorted) - 1)
        labels = self._order[at]
        for kind in np.flatnonzero(self._sorted[at] != codes).tolist():
            names = {name for name, kinds in satisfied.items() if kind in kinds}
            labels[kind] = int(np.argmax([len(label) if label <= names else -1 for label in self._sets]))
        return labels.astype(np.int32)


def build_groups(members: Sequence[CourseMember], filters: Mapping[Filter, int]) -> list[CourseGroup]:
    """Return the members in groups, by how they part the stream."""
    groups: dict[Partitioning, list[CourseMember]] = defaultdict(list)
    for member in members:
        groups[find_partitioning(member.pattern)].append(member)
    return [CourseGroup(partitioning, group_members, filters) for partitioning, group_members in groups.items()]


def _flatten(arrays: list[npt.NDArray[Scalar]], kind: type[Scalar]) -> npt.NDArray[Scalar]:
    return np.concatenate([array.ravel() for array in arrays]).astype(kind) if arrays else np.empty(0, kind)
