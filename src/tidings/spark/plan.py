"""A pattern set as it goes to the workers, which open it once and keep it, and what comes back of it.

What travels is the detector's snapshot: patterns, schema, ontology and regions. A worker compiles each portion when the
first of its buckets comes along; buckets share what is compiled.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidings.errors import CheckpointError
from tidings.patterns import Detector
from tidings.patterns.stream import Portion, portions

if TYPE_CHECKING:
    from collections.abc import Sequence

KEPT = 6
"""Pattern sets that a worker keeps open."""

_open: OrderedDict[tuple[str, int, int], Opened] = OrderedDict()


class Opened:
    """A pattern set in a worker: one detector to read events with, and the portions that take them."""

    def __init__(self, state: bytes, buckets: int, shards: int) -> None:
        """Read the patterns."""
        self.whole = Detector.resume(state)
        self._buckets, self._shards = buckets, shards

    @cached_property
    def portions(self) -> list[Portion]:
        """All portions."""
        return portions(self.whole, buckets=self._buckets, shards=self._shards)

    def portion(self, bucket: str) -> tuple[Portion, int] | None:
        """Return the portion of a bucket's name, and the bucket's number; nothing when its patterns are gone."""
        name, _, place = bucket.rpartition("#")
        number, _, count = place.partition("/")
        for portion in self.portions:
            if portion.name == name:
                if int(count) != portion.buckets:
                    msg = (
                        f"the checkpoint has {count} buckets, not {portion.buckets}; say buckets={count}, or start anew"
                    )
                    raise CheckpointError(msg)
                return portion, int(number)
        return None


@dataclass(frozen=True, slots=True)
class Plan:
    """A pattern set as bytes inside the job, how it is dealt, and the columns that detections tell."""

    state: bytes
    digest: str
    buckets: int
    shards: int
    time: str
    event_id: str
    keep: tuple[str, ...]

    @classmethod
    def of(cls, detector: Detector, *, buckets: int, shards: int, event_id: str, keep: Sequence[str]) -> Plan:
        """Pack a detector; changes made to it later do not travel."""
        state = detector.snapshot()
        digest = hashlib.blake2b(state, digest_size=16).hexdigest()
        return cls(state, digest, buckets, shards, detector.time, event_id, tuple(keep))

    def open(self) -> Opened:
        """Return the patterns, read once in this process."""
        key = (self.digest, self.buckets, self.shards)
        found = _open.pop(key, None)
        _open[key] = Opened(self.state, self.buckets, self.shards) if found is None else found
        while len(_open) > KEPT:
            _open.popitem(last=False)
        return _open[key]

    @property
    def told(self) -> tuple[str, ...]:
        """The columns that a detection tells of its events."""
        return (self.event_id, *self.keep)


def output(frame: StructType, plan: Plan) -> StructType:
    """Return the columns of what comes back."""
    fields = [StructField(name, frame[name].dataType) for name in plan.told]
    events = StructType(fields) if plan.keep else fields[0].dataType
    return StructType(
        [
            StructField("kind", StringType(), nullable=False),
            StructField("pattern", StringType()),
            StructField("key", StringType()),
            StructField("at", TimestampType(), nullable=False),
            StructField("events", ArrayType(events), nullable=False),
            StructField("probability", DoubleType()),
            StructField("horizon", IntegerType()),
            StructField("estimator", StringType()),
        ]
    )
