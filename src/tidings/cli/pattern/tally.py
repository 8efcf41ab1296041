"""What became of the events of a run: how many there were, which could not be taken, and the words about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tidings.cli import render
from tidings.lang.patterns.durations import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.cli.pattern.event_rows import Left, Read
    from tidings.patterns import Detections, Detector

SHOWN = 5
"""Bad and late events told in words, of each kind; all of them go to the file of `--dead-letters`."""

SECOND = 1_000_000
"""Microseconds."""


@dataclass(slots=True)
class Tally:
    """What was done, for the closing words; events that were not taken go to `letters`."""

    letters: TextIO | None = None
    file: str = ""  # where lines are to be looked for, if there are several files
    events: int = 0
    detections: int = 0
    dead: list[str] = field(default_factory=list)  # the first few of each, in words
    late: list[str] = field(default_factory=list)
    dead_count: int = 0
    late_count: int = 0
    behind: int = 0  # microseconds: the lateness that would have taken all

    def take(self, read: Read, found: Detections, *, before: datetime | None, lateness: int) -> None:
        """Count a batch that was read and given to a detector, whose latest event was at `before`."""
        dead = sorted([*read.dead, *read.refused(found.dead_letters)], key=lambda left: left.row.number)
        self.events += len(read.events) + len(read.dead)
        self.dead_count += len(dead)
        self.late_count += len(found.late)
        self._leave(dead, self.dead)
        if found.late:
            lost = {letter.index for letter in found.dead_letters}
            late, behind = read.late(lost, before, lateness)
            self.behind = max(self.behind, behind)
            self._leave(late, self.late)

    def _leave(self, left: list[Left], first: list[str]) -> None:
        for one in left:
            if len(first) < SHOWN:
                first.append(f"{self.file}{one.row.place}: {one.reason}")
            if self.letters is not None:
                letter = {"event": one.id, "reason": one.reason, "row": one.row.raw}
                self.letters.write(render.as_json(letter) + "\n")

    @property
    def left(self) -> str:
        """Say how many events were not taken."""
        return f"{self.late_count:,} late, {self.dead_count:,} dead letters"

    def warn(self, detector: Detector, kept: Path | None) -> None:
        """Say on standard error what was not taken and what a detector gave up."""
        where = f"they are in `{kept}`" if kept else "--dead-letters FILE keeps them all"
        if self.dead_count:
            render.warning("\n".join([*_about(self.dead, self.dead_count, self.events, "could not be read"), where]))
        if self.late_count:
            way_out = f"--lateness {_rounded(self.behind)} would have put them in order"
            render.warning("\n".join([*_about(self.late, self.late_count, self.events, "came late"), way_out]))
        for problem in _losses(detector):
            render.warning(problem)


def _about(first: list[str], count: int, events: int, what: str) -> Iterator[str]:
    yield f"{count:,} of {events:,} events {what} and were not taken"
    yield from (f"  {reason}" for reason in first)
    if count > len(first):
        yield f"  and {count - len(first):,} more"


def _rounded(behind: int) -> str:
    """Return a span that may be typed as it stands, in whole seconds where it is longer than one."""
    whole = -(-behind // SECOND) * SECOND if behind > SECOND else behind
    return format_duration(whole).replace(" ", "")


def _losses(detector: Detector) -> Iterator[str]:
    if detector.dropped:
        yield (
            f"{detector.dropped:,} partial matches were given up, the oldest of keys that had more than twice"
            f" {detector.partials:,} at one step; `within` bounds them, --partials keeps more"
        )
    if detector.cut:
        yield f"{detector.cut:,} times an event completed more matches than a pattern's limit, which cut them short"
    yield from map(str, detector.mismatches())
