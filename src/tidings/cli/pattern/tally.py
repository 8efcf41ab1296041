"""Counts of a run's events: how many came, which were not taken and why, and the messages about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tidings.cli import render
from tidings.cli.match.dead_letters import MAX_SHOWN, describe_kept, describe_rejected, write_dead_letter
from tidings.lang.patterns.durations import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.cli.pattern.event_rows import RejectedRow, RowBatch
    from tidings.forecast import Detector
    from tidings.patterns import Detections

SECOND = 1_000_000
"""Microseconds."""


@dataclass(slots=True)
class EventTally:
    """Counts for the closing messages; events that were not taken are written to `letters`."""

    letters: TextIO | None = None
    file: str = ""  # prefix of line numbers where there are several files
    events: int = 0
    detections: int = 0
    dead: list[str] = field(default_factory=list)  # the first few of each, as messages
    late: list[str] = field(default_factory=list)
    dead_count: int = 0
    late_count: int = 0
    behind: int = 0  # microseconds: with this lateness no event would have been late

    def take(self, batch: RowBatch, detections: Detections, *, before: datetime | None, lateness: int) -> None:
        """Count a batch that a detector has taken, whose latest event before it was at `before`."""
        dead = sorted(
            [*batch.dead, *batch.find_dead(detections.dead_letters)], key=lambda rejected: rejected.row.number
        )
        self.events += len(batch.events) + len(batch.dead)
        self.dead_count += len(dead)
        self.late_count += len(detections.late)
        self._record(dead, self.dead)
        if detections.late:
            dead_indexes = {letter.index for letter in detections.dead_letters}
            late, behind = batch.find_late(dead_indexes, before, lateness)
            self.behind = max(self.behind, behind)
            self._record(late, self.late)

    def _record(self, rows: list[RejectedRow], first: list[str]) -> None:
        for rejected in rows:
            if len(first) < MAX_SHOWN:
                first.append(f"{self.file}{rejected.row.place}: {rejected.reason}")
            if self.letters is not None:
                write_dead_letter(self.letters, rejected.id, rejected.reason, rejected.row)

    @property
    def losses(self) -> str:
        """How many events were not taken, in words."""
        return f"{self.late_count:,} late, {self.dead_count:,} dead letters"

    def warn(self, detector: Detector, kept: Path | None) -> None:
        """Warn of events that were not taken and of partial matches that the detector dropped."""
        if self.dead_count:
            problem = "could not be read and were not taken"
            render.warn(describe_rejected(self.dead, self.dead_count, self.events, problem, describe_kept(kept)))
        if self.late_count:
            hint = f"--lateness {_round_up(self.behind)} would have put them in order"
            problem = "came late and were not taken"
            render.warn(describe_rejected(self.late, self.late_count, self.events, problem, hint))
        for problem in _describe_losses(detector):
            render.warn(problem)


def _round_up(behind: int) -> str:
    """Return a duration as `--lateness` takes it, in whole seconds where it is longer than one."""
    whole = -(-behind // SECOND) * SECOND if behind > SECOND else behind
    return format_duration(whole).replace(" ", "")


def _describe_losses(detector: Detector) -> Iterator[str]:
    if detector.dropped:
        yield (
            f"{detector.dropped:,} partial matches were given up, the oldest of keys that had more than twice"
            f" {detector.partials:,} at one step; `within` bounds them, --partials keeps more"
        )
    if detector.cut:
        yield f"{detector.cut:,} times an event completed more matches than a pattern's limit, which cut them short"
    yield from map(str, detector.mismatches())
