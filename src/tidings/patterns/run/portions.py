"""Patterns over a stream that many hands work on: portions of a pattern set, and buckets of their keys.

Patterns that give their key through the same attributes are one portion; its state is kept by buckets of keys, and a
key is always in the same bucket. Patterns without a key see the whole stream: they are dealt to shards, by a hash of
their names, and each shard is a portion of one bucket. A portion is called by what parts its stream, so that a state
finds its portion again when other patterns have come or gone.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from tidings.kernels.array_types import IntArray
from tidings.model.patterns import Gap, Pattern, Sequence, Timed, walk_conditions, walk_nodes
from tidings.patterns.pattern_set import PatternCatalog, PatternSet, StreamSettings
from tidings.patterns.run.machine import Ways, find_ways, map_filters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.patterns.compile.graph import CompiledPattern


@dataclass(frozen=True)
class Portion:
    """Patterns that divide the stream by the same keys, and the number of buckets that these are hashed to."""

    name: str
    patterns: PatternSet
    ways: Ways
    buckets: int
    symbols: IntArray  # of each filter of the whole set its number here, or -1

    @property
    def has_keys(self) -> bool:
        """Whether state is kept for each key."""
        return self.ways != ((),)

    @cached_property
    def is_contiguous(self) -> bool:
        """Whether a pattern asks for the very next event, so that every event counts."""
        nodes = [node for compiled in self.patterns.patterns for node in walk_nodes(compiled.pattern.root)]
        joints = [joint for node in nodes if isinstance(node, Sequence) for joint in node.joints]
        return any(joint.gap is Gap.NEXT for joint in joints)

    @cached_property
    def has_absence(self) -> bool:
        """Whether a pattern ends with an absence, so that time itself completes it."""
        return any(compiled.pattern.absence is not None for compiled in self.patterns.patterns)

    @cached_property
    def span(self) -> int:
        """How long, in microseconds, a partial match lives that has a bound; 0 when none has."""
        return max((_sum_bounds(compiled.pattern) for compiled in self.patterns.patterns), default=0)

    @cached_property
    def filter_names(self) -> dict[int, str]:
        """The filters in words, by number: `repr`, which is part of states, so it must not change."""
        return {number: repr(tree) for tree, number in self.patterns.filters.items()}

    def name_bucket(self, bucket: int) -> str:
        """Return the name of a bucket, the same in every process and after every restart."""
        return f"{self.name}#{bucket}/{self.buckets}"

    def find_bucket(self, key: Any) -> int:
        """Return the bucket of a key."""
        return compute_stable_hash(format_key(key)) % self.buckets


def split_patterns(pattern_set: PatternSet, *, buckets: int, shards: int) -> list[Portion]:
    """Return the portions of a pattern set."""
    groups: dict[tuple[str, Ways], list[CompiledPattern]] = defaultdict(list)
    for compiled in pattern_set.patterns:
        ways = find_ways(compiled.pattern)
        groups[name_portion(compiled.name, ways, shards), ways].append(compiled)
    return [_build_portion(pattern_set, name, ways, members, buckets) for (name, ways), members in groups.items()]


def name_portion(name: str, ways: Ways, shards: int) -> str:
    """Return the name of the portion of a pattern: what parts its stream, or the shard that its own name falls to."""
    return json.dumps(ways) if ways != ((),) else f"shard {compute_stable_hash(name) % shards} of {shards}"


def _build_portion(
    pattern_set: PatternSet, name: str, ways: Ways, members: Iterable[CompiledPattern], buckets: int
) -> Portion:
    settings = StreamSettings(time=pattern_set.settings.time, partials=pattern_set.settings.partials)
    catalog = PatternCatalog(pattern_set.vocabulary, settings)
    catalog.add_many(compiled.to_written() for compiled in members)
    patterns = catalog.compile()
    symbols = map_filters(pattern_set.filters, patterns.filters)
    return Portion(name, patterns, ways, buckets if ways != ((),) else 1, symbols)


def compute_stable_hash(text: str) -> int:
    """Return 64 bits that are the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def format_key(key: Any) -> str:
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
            return json.dumps([format_key(part) for part in key], ensure_ascii=False)
    return str(key)


def _sum_bounds(pattern: Pattern) -> int:
    """Return all bounds of a pattern together: longer than any bounded part of it can live."""
    conditions = sum(condition.high or 0 for condition in walk_conditions(pattern.root))
    withins = sum(node.within or 0 for node in walk_nodes(pattern.root) if isinstance(node, Timed))
    return conditions + withins + (pattern.absence.span if pattern.absence else 0)
