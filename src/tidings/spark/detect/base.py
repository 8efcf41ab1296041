"""What buckets and steps ask of a plan: the patterns that apply, and the columns of their events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tidings.spark.detect.worker_plan import OpenPatterns


class WorkerPlan(Protocol):
    """A pattern set inside a job: as bytes (`DetectPlan`), or as a folder that is followed (`FollowedPlan`)."""

    @property
    def keep(self) -> tuple[str, ...]:
        """The columns of its events that a detection has beside the id."""

    @property
    def reported_columns(self) -> tuple[str, ...]:
        """The columns of its events that a detection has: the id, then those of `keep`."""

    def open(self) -> OpenPatterns:
        """Return the patterns that apply in the running task, compiled once in this process."""
