"""What a running pipeline tells of itself after each micro-batch, and who may listen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeAlias

Query: TypeAlias = Literal["matching", "patterns"]
"""Whose batch it is; each of the two counts its own from 0."""

SHARED_FIELDS = ("events",)
"""Counts that both queries of a pipeline have, of the same events."""


@dataclass(frozen=True, slots=True)
class Report:
    """A micro-batch that is done. Counts are of this batch alone; subscriptions and lag are as they stand after it.

    A pipeline with subscriptions and patterns has two queries that read the same events. Reports of the patterns
    are then `beside` those of matching, and sums leave out what matching counts as well: see `counted`.
    """

    pipeline: str
    batch: int
    started: datetime  # with its zone
    seconds: float
    events: int
    matches: int
    dead_letters: int = 0
    duplicates: int = 0  # left out: their id came before
    late: int = 0
    over_limit: int = 0  # events with more matches than the limit
    subscriptions: int = 0
    version: int | str = 0  # of the subscriptions
    changes: int = 0  # additions, changes and removals of subscriptions that came in with this batch
    refused_subscriptions: int = 0  # changes that could not be read
    lag: Mapping[str, int] = field(default_factory=dict)  # partition -> records behind; empty when unknown
    files_behind: int | None = None
    query: Query = "matching"
    beside: bool = False
    patterns: int = 0
    detections: int = 0
    mismatches: tuple[Mapping[str, Any], ...] = ()  # values that filters could not read, since the start, with who asks

    @property
    def events_per_second(self) -> float:
        """How quickly this batch went through its events."""
        return self.events / self.seconds if self.seconds > 0 else 0.0

    @property
    def matches_per_second(self) -> float:
        """How quickly matches came out of this batch."""
        return self.matches / self.seconds if self.seconds > 0 else 0.0

    def count_for_total(self, name: str) -> int:
        """Return a count as it is summed up over all reports of the pipeline."""
        count: int = getattr(self, name)
        return 0 if self.beside and name in SHARED_FIELDS else count

    @property
    def finished_at(self) -> datetime:
        """When it was done."""
        return self.started + timedelta(seconds=self.seconds)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it, the rates included."""
        rates = {"events_per_second": self.events_per_second, "matches_per_second": self.matches_per_second}
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields["mismatches"] = [dict(mismatch) for mismatch in self.mismatches]
        return {**fields, "started": self.started.isoformat(), "lag": dict(self.lag), **rates}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Report:
        """Return what `to_dict` wrote; names that a newer version added are left out."""
        values = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        values["mismatches"] = tuple(fields.get("mismatches", ()))
        return cls(**{**values, "started": datetime.fromisoformat(fields["started"])})


class Monitor(Protocol):
    """Somebody who is told how a pipeline does."""

    def status(self, text: str) -> None:
        """Hear what is being done, before the first batch and after the last."""

    def report(self, report: Report) -> None:
        """Hear of a batch that is done."""

    def warn(self, text: str) -> None:
        """Hear of something that a person should look at, and that does not stop the pipeline."""

    def close(self) -> None:
        """Say the last word and let go of what is held."""
