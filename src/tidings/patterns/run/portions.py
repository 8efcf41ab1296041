"""Patterns over a stream that many hands work on: portions of a pattern set, and buckets of their keys.

Patterns that give their key through the same attributes are one portion; its state is kept by buckets of keys, and a
key is always in the same bucket. Patterns without a key see the whole stream: they are dealt to shards, by a hash of
their names, and each shard is a portion of one bucket. A portion is called by what parts its stream, so that a state
finds its portion again when other patterns have come or gone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.kernels.patterns.reports import O_AT, O_KEY, O_PATTERN
from tidings.lang import WrittenPattern
from tidings.model.patterns import Gap, Mode, Sequence, Timed, children_of, conditions_of
from tidings.patterns.detections import Detections
from tidings.patterns.detector import Detector
from tidings.patterns.pattern_input import variable_attributes
from tidings.patterns.run.event_archive import unite_numbers
from tidings.patterns.run.machine import find_ways

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.model.patterns import Node, Pattern
    from tidings.patterns.compile.graph import CompiledPattern
    from tidings.patterns.run.event_reader import EncodedEvents

Ways = tuple[tuple[str, ...], ...]
"""The attributes that give a key, one set of them for each way."""


@dataclass(frozen=True)
class Portion:
    """Patterns that part the stream alike, and into how many buckets; its detector is forked, and never fed."""

    name: str
    detector: Detector
    ways: Ways
    buckets: int
    symbols: np.ndarray  # of each filter of the whole set its number here, or -1

    @property
    def is_keyed(self) -> bool:
        """Whether keys part the stream."""
        return self.ways != ((),)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that give variables their values."""
        return tuple(sorted({name for told in self.detector.watched for name in variable_attributes(told.pattern)}))

    @cached_property
    def is_contiguous(self) -> bool:
        """Whether a pattern asks for the very next event, so that every event counts."""
        return any(_has_contiguous_joint(told.pattern.root) for told in self.detector.watched)

    @cached_property
    def has_absence(self) -> bool:
        """Whether a pattern ends with an absence, so that time itself completes it."""
        return any(told.pattern.absence is not None for told in self.detector.watched)

    @cached_property
    def span(self) -> int:
        """How long, in microseconds, a partial match lives that has a bound; 0 when none has."""
        return max((_total_bounds(told.pattern) for told in self.detector.watched), default=0)

    def name_bucket(self, bucket: int) -> str:
        """Return the name of a bucket, the same in every process and after every restart."""
        return f"{self.name}#{bucket}/{self.buckets}"

    def bucket_of(self, key: Any) -> int:
        """Return the bucket of a key."""
        return stable_hash(key_text(key)) % self.buckets


def split_patterns(whole: Detector, *, buckets: int, shards: int) -> list[Portion]:
    """Return the portions of a detector's patterns."""
    groups: dict[tuple[str, Ways], list[CompiledPattern]] = {}
    for told in whole.watched:
        ways = find_ways(told.pattern)
        name = json.dumps(ways) if ways != ((),) else f"shard {stable_hash(told.name) % shards} of {shards}"
        groups.setdefault((name, ways), []).append(told)
    return [_build_portion(whole, name, ways, told, buckets) for (name, ways), told in groups.items()]


def _build_portion(whole: Detector, name: str, ways: Ways, watched: Iterable[CompiledPattern], buckets: int) -> Portion:
    made = Detector(time=whole.time, partials=whole.partials, **whole._around)
    made.add_many(map(written, watched))
    symbols = np.full(whole._numbered, -1, np.int64)
    for told, number in made._filters.items():
        symbols[whole._filters[told]] = number
    return Portion(name, made, ways, buckets if ways != ((),) else 1, symbols)


def written(told: CompiledPattern) -> WrittenPattern:
    """Return a pattern as it was added."""
    return WrittenPattern(told.name, told.pattern, told.mode, told.limit if told.mode is Mode.ANY else None)


# Time -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReportColumns:
    """Reports in the order they completed, as columns; `values` says what the numbers of keys stand for.

    The ids of the events are end to end: those of report `i` are `events[ends[i]:ends[i + 1]]`.
    """

    patterns: np.ndarray
    keys: np.ndarray
    values: list[Any]
    at: np.ndarray
    events: np.ndarray
    ends: np.ndarray


def advance(detector: Detector, events: EncodedEvents | None, until: int) -> ReportColumns:
    """Take events, which are in order and whose ids are integers, and let time pass to `until`."""
    runs, names = detector._runs(), detector._names
    parts = detector._taken(events, runs, until=until)
    detector._latest = max(detector._latest, until)
    found = Detections(parts, list(detector), detector._archive)
    told, ends = found._gather_events()
    order = found._sort_reports()
    patterns = found._column(lambda part: part.layout.places[part.reports.rows[:, O_PATTERN]])[order]
    keys, at = (found._column(lambda part, at=at: part.reports.rows[:, at])[order] for at in (O_KEY, O_AT))
    ids = np.asarray(told.ids, np.int64)
    detector._tidied()
    return ReportColumns(patterns, keys, names.values, at, ids, ends)


def held(detector: Detector) -> np.ndarray:
    """Return the ids of the events that reports may still name, ascending; ids must be the numbers of the events."""
    return unite_numbers([run.events_in_use() for _, run in detector._runs()])


# Keys -----------------------------------------------------------------------------------------------


def stable_hash(text: str) -> int:
    """Return 64 bits that are the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def key_text(key: Any) -> str:
    """Return a key's value as text; equal values have equal texts, and several are a JSON list."""
    match key:
        case bool():
            return "true" if key else "false"
        case float() if key.is_integer():
            return str(int(key))
        case Decimal() if key == key.to_integral_value():
            return str(int(key))
        case Decimal():
            return repr(float(key)) if Decimal(float(key)) == key else str(key)
        case datetime():
            aware = key if key.tzinfo else key.replace(tzinfo=UTC)
            return aware.astimezone(UTC).isoformat()
        case date():
            return datetime(key.year, key.month, key.day, tzinfo=UTC).isoformat()
        case tuple():
            return json.dumps([key_text(part) for part in key], ensure_ascii=False)
    return str(key)


# Patterns -------------------------------------------------------------------------------------------


def _has_contiguous_joint(node: Node) -> bool:
    joints = node.joints if isinstance(node, Sequence) else ()
    return any(joint.gap is Gap.NEXT for joint in joints) or any(map(_has_contiguous_joint, children_of(node)))


def _total_bounds(pattern: Pattern) -> int:
    """Return all bounds of a pattern together: longer than any bounded part of it can live."""
    bounds = [condition.high or 0 for condition in conditions_of(pattern.root)] + [*_withins(pattern.root)]
    return sum(bounds) + (pattern.absence.span if pattern.absence else 0)


def _withins(node: Node) -> Iterable[int]:
    if isinstance(node, Timed) and node.within is not None:
        yield node.within
    for part in children_of(node):
        yield from _withins(part)
