"""The report of a micro-batch, what Spark's own progress report adds to it, and the protocol of those that receive it.

Spark's report, `StreamingQuery.lastProgress`, is a dict. It has what we cannot count ourselves: lag, and dropped
duplicates. Offsets in it are JSON, as text or decoded already, and null before the first batch; a source without such
offsets has no known lag.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol, TypeAlias

Query: TypeAlias = Literal["matching", "patterns"]
"""The query of a batch; each of the two numbers its batches from 0."""

KAFKA_PREFIX = "KafkaV2["
"""The beginning of Spark's description of a Kafka source."""

COUNT_FIELDS = {
    "events": "Events read.",
    "matches": "Matches found.",
    "dead_letters": "Events that could not be read.",
    "duplicates": "Events left out because their id came before.",
    "late": "Events that came too late.",
    "over_limit": "Events with more matches than the limit.",
    "changes": "Additions, changes and removals of subscriptions taken in.",
    "refused_subscriptions": "Changes of subscriptions that could not be read.",
    "detections": "Patterns that happened.",
}
"""The fields of a report that are summed over its batches, and what they count."""


def get_utc_now() -> datetime:
    """Return the time, with its zone."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A finished micro-batch. Counts are of this batch alone; subscriptions and lag are as of its end.

    A pipeline with subscriptions and patterns has two queries that read the same events. Reports of the patterns
    are then `beside` those of matching, and sums leave out their events: see `count_for_total`.
    """

    pipeline: str
    batch: int
    started: datetime  # with its zone
    seconds: float = 0.0
    events: int = 0
    matches: int = 0
    dead_letters: int = 0
    duplicates: int = 0  # dropped: their id came before
    late: int = 0
    over_limit: int = 0  # events with more matches than the limit
    subscriptions: int = 0
    version: int | str = 0  # of the subscriptions
    changes: int = 0  # additions, changes and removals of subscriptions that came in with this batch
    refused_subscriptions: int = 0  # changes that could not be read
    lag: Mapping[str, int] = field(default_factory=dict)  # partition -> records behind; empty when unknown
    files_behind: int | None = None
    sequence: int | None = None  # of the change of a store that the subscriptions have
    read_up_to: str | None = None  # the newest file of a service's events that was read; known once Spark has reported
    query: Query = "matching"
    beside: bool = False
    patterns: int = 0
    detections: int = 0
    # Values that filters could not read, since the start, with the subscriptions.
    mismatches: tuple[Mapping[str, Any], ...] = ()

    def count_for_total(self, name: str) -> int:
        """Return a count as it enters sums over all reports of the pipeline."""
        count: int = getattr(self, name)
        return 0 if self.beside and name == "events" else count

    @property
    def finished_at(self) -> datetime:
        """When the batch ended."""
        return self.started + timedelta(seconds=self.seconds)

    def compute_lag_seconds(self) -> float | None:
        """Return how long before the end of the batch its newest file of events was begun, if there is one."""
        number = (self.read_up_to or "").partition("-")[0]
        return round(self.finished_at.timestamp() - int(number) / 1e9, 3) if number.isdigit() else None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the rates of events and matches as JSON values."""
        rates = {
            f"{name}_per_second": getattr(self, name) / self.seconds if self.seconds > 0 else 0.0
            for name in ("events", "matches")
        }
        return {**asdict(self), "started": self.started.isoformat(), **rates}


class Monitor(Protocol):
    """Receives the progress of a pipeline."""

    def show_status(self, text: str) -> None:
        """Receive what the pipeline is doing before the first batch and after the last."""

    def report(self, report: BatchReport) -> None:
        """Receive the report of a finished batch."""

    def warn(self, text: str) -> None:
        """Receive a warning: something that a person should look at, and that does not stop the pipeline."""

    def close(self) -> None:
        """Show the final state and release resources."""


# Spark's progress --------------------------------------------------------------------------------


def compute_lag(progress: Mapping[str, Any]) -> dict[str, int]:
    """Return how many records each partition of the Kafka sources is behind: `{"ads-0": 120}`.

    Names are Kafka's own, the topic and the number. A partition that appeared after the batch was planned counts
    from offset 0, which may be more than Kafka still has.
    """
    lag: dict[str, int] = {}
    for source in progress.get("sources") or ():
        if str(source.get("description", "")).startswith(KAFKA_PREFIX):
            read = _parse_offsets(source.get("endOffset"))
            for name, latest in _parse_offsets(source.get("latestOffset")).items():
                lag[name] = lag.get(name, 0) + max(0, latest - read.get(name, 0))
    return lag


def find_newest_file(progress: Mapping[str, Any]) -> str | None:
    """Return the newest file of a service's events up to the batch, where those are the source.

    >>> find_newest_file({"sources": [{"endOffset": '{"n": 2, "newest": "0170-ab.jsonl"}'}]})
    '0170-ab.jsonl'
    """
    for source in progress.get("sources") or ():
        offset = _decode_offset(source.get("endOffset"))
        if isinstance(newest := offset.get("newest"), str) and newest:
            return newest
    return None


def count_duplicates(progress: Mapping[str, Any]) -> int:
    """Return how many rows were dropped because their id came before."""
    operators = progress.get("stateOperators") or ()
    counts = (dict(step.get("customMetrics") or {}).get("numDroppedDuplicateRows", 0) for step in operators)
    return sum(int(count) for count in counts)


def _parse_offsets(offset: object) -> dict[str, int]:
    """Return `{"ads": {"0": 12}}`, or its JSON text, as `{"ads-0": 12}`; anything else is empty."""
    parts = [(topic, part) for topic, part in _decode_offset(offset).items() if isinstance(part, Mapping)]
    return {f"{topic}-{number}": int(at) for topic, part in parts for number, at in part.items()}


def _decode_offset(offset: object) -> Mapping[str, Any]:
    try:
        decoded = json.loads(offset) if isinstance(offset, str) else offset
    except ValueError:  # PySpark gives the text "None" for a missing offset
        return {}
    return decoded if isinstance(decoded, Mapping) else {}
