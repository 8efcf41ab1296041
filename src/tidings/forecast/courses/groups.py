"""Patterns that divide the stream alike, and the label of each kind of event for each of them.

Exact courses lie end to end in one set of arrays, so that one call takes a batch through all of them; tracked ones
go one by one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from tidings.forecast.courses.course import Course
from tidings.model.patterns import Pattern
from tidings.patterns.run.machine import Partitioning, find_partitioning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.forecast.courses.streams import EventKinds, StreamEntries
    from tidings.kernels.array_types import Int32Array, IntArray
    from tidings.model import Filter

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class CourseMember:
    """A pattern by its name, and its course."""

    name: str
    pattern: Pattern
    course: Course


class CourseGroup:
    """Members that divide the stream alike; `exact` ones come first, then `tracked` ones, with their `trackers`."""

    def __init__(self, parting: Partitioning, members: Sequence[CourseMember], filters: Mapping[Filter, int]) -> None:
        self.partitioning = parting
        self.ways, self.timed = parting
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
        self._labelled = 0
        self._label_tables = [_LabelTable(member) for member in self.exact]
        self._masks: dict[tuple[int, int, int], int] = {}

    def widen(self, kinds: EventKinds) -> None:
        """Compute the labels of new kinds of events for the exact courses."""
        labelled, count = self._labelled, len(kinds)
        if count == labelled:
            return
        if count > self.labels.shape[1]:
            grown = np.zeros((len(self.exact), 2 * count), np.int32)
            grown[:, :labelled] = self.labels[:, :labelled]
            self.labels = grown
        satisfied: dict[int, list[int]] = defaultdict(list)
        for kind in range(labelled, count):
            for number in kinds.members[kind]:
                satisfied[number].append(kind - labelled)
        new_kinds = {number: np.array(places) for number, places in satisfied.items()}
        for row, (member, table) in enumerate(zip(self.exact, self._label_tables, strict=True)):
            numbers = {name: self._filters[member.pattern[name].filter] for name in member.pattern.list_filters()}
            own_kinds = {name: new_kinds[number] for name, number in numbers.items() if number in new_kinds}
            self.labels[row, labelled:count] = table.find_labels(own_kinds, count - labelled)
        self._labelled = count

    def find_masks(self, place: int, entries: StreamEntries, kinds: EventKinds) -> IntArray:
        """Return, for a tracked member, which of its names each entry satisfies, as bits."""
        single = not len(entries.mask)
        codes = entries.kind if single else entries.kind << len(self.ways) | entries.mask
        distinct, places = (np.arange(len(kinds)), codes) if single else np.unique(codes, return_inverse=True)
        pairs = [(code, -1) if single else divmod(code, 1 << len(self.ways)) for code in distinct.tolist()]
        bits = [self._find_mask(place, kind, ways, kinds) for kind, ways in pairs]
        return np.array(bits, np.int64)[places.reshape(-1)] if bits else np.empty(0, np.int64)

    def _find_mask(self, place: int, kind: int, ways: int, kinds: EventKinds) -> int:
        at = (place, kind, ways)
        if at not in self._masks:
            pattern, satisfied, bits = self.tracked[place].pattern, set(kinds.members[kind]), 0
            for bit, name in enumerate(self.trackers[place].names):
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
        self._sets = member.course.sets()
        codes = np.array([sum(self._codes[name] for name in label) % (1 << 64) for label in self._sets], np.uint64)
        self._order = np.argsort(codes)
        self._sorted = codes[self._order]

    def find_labels(self, satisfied: Mapping[str, IntArray], count: int) -> Int32Array:
        """Return the label of each kind; of one that no event should have, the nearest."""
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
    return [CourseGroup(parting, group_members, filters) for parting, group_members in groups.items()]


def _flatten(arrays: list[npt.NDArray[Scalar]], kind: type[Scalar]) -> npt.NDArray[Scalar]:
    return np.concatenate([array.ravel() for array in arrays]).astype(kind) if arrays else np.empty(0, kind)
