"""What is counted of a pattern: which label came in which cell, and how long the next match then took.

All counts are sums, so counts of two histories add up. With a half-life they are weights, not whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tidings.errors import TidingsError
from tidings.forecast.courses.course import Course
from tidings.kernels.array_types import FloatArray
from tidings.kernels.forecast.forecasts import SILENCES
from tidings.model.patterns import Mode, Pattern

if TYPE_CHECKING:
    from collections.abc import Iterable


_SMALL = [*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 125, 150, 200, 250, 300, 400, 500, 600, 800, 1000]

EDGES = np.array(_SMALL, np.int64)
"""The upper edges of the bins of waiting times, in events; between two of them they are spread evenly."""

LONGEST_WAIT = int(EDGES[-1])
"""The longest wait that is counted."""

BINS = np.searchsorted(EDGES, np.arange(LONGEST_WAIT + 1)).astype(np.int64)
"""The bin of each waiting time."""

CODES = 2 * len(EDGES) + 1
"""A wait ended in one of the bins, or was cut off after so many of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """`moves[chain cell, label]`, `waits[cell, code]`, and of each span of time `[cell, (yes, unknown, no)]`.

    For patterns with a key, `later` counts waits in events of the whole stream. `later` and `spans` then have a row for
    each cell and bin of the key's mean gap, since that says much about when its next event comes.
    """

    moves: FloatArray
    waits: FloatArray
    later: FloatArray
    spans: dict[int, FloatArray] = field(default_factory=dict)

    @classmethod
    def make_empty(cls, course: Course, spans: Iterable[int] = (), *, keyed: bool = False) -> Counts:
        """Return counts of zero."""
        lines = course.cells * (SILENCES if keyed else 1)
        return cls(
            np.zeros(course.table.shape),
            np.zeros((course.cells, CODES)),
            np.zeros((lines if keyed else 0, CODES)),
            {span: np.zeros((lines, 3)) for span in spans},
        )

    def copy(self) -> Counts:
        """Return the same in arrays of their own."""
        spans = {span: span_counts.copy() for span, span_counts in self.spans.items()}
        return Counts(self.moves.copy(), self.waits.copy(), self.later.copy(), spans)

    def scale(self, by: float) -> Counts:
        """Return the counts with less weight."""
        spans = {span: span_counts * by for span, span_counts in self.spans.items()}
        return Counts(self.moves * by, self.waits * by, self.later * by, spans)

    def plus(self, other: Counts) -> Counts:
        """Return the sum."""
        if self.moves.shape != other.moves.shape or self.waits.shape != other.waits.shape:
            msg = "the models count one pattern in different ways; train both with the same schema and context"
            raise TidingsError(msg)
        spans = dict(self.spans)
        for span, span_counts in other.spans.items():
            spans[span] = spans[span] + span_counts if span in spans else span_counts
        return Counts(self.moves + other.moves, self.waits + other.waits, self.later + other.later, spans)


@dataclass(frozen=True, slots=True, eq=False)
class CountedPattern:
    """A pattern with its course and counts."""

    name: str
    pattern: Pattern
    mode: Mode
    course: Course
    counts: Counts


@dataclass(frozen=True, slots=True)
class Traffic:
    """What all patterns of a model share: how many events came, how many satisfied each filter, and how fast they came.

    `filters` counts by a filter's text, and `asked` how many events it was matched with; a filter without an entry was
    matched with all. `own` has sums over the gaps between events of one key, by the ways that give the key: how many
    (`... gaps`), and how long in events of the stream (`... events`) and in microseconds (`... time`).
    """

    seen: float = 0.0
    filters: dict[str, float] = field(default_factory=dict)
    gaps: float = 0.0
    elapsed: float = 0.0  # microseconds, over the gaps
    own: dict[str, float] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)

    def scale(self, by: float) -> Traffic:
        """Return it with less weight."""
        sums = self.filters, self.own, self.asked
        filters, own, asked = ({name: total * by for name, total in by_name.items()} for by_name in sums)
        return Traffic(self.seen * by, filters, self.gaps * by, self.elapsed * by, own, asked)

    def plus(self, other: Traffic) -> Traffic:
        """Return the sum."""
        return Traffic(
            self.seen + other.seen,
            _add(self.filters, other.filters),
            self.gaps + other.gaps,
            self.elapsed + other.elapsed,
            _add(self.own, other.own),
            _add(self.asked, other.asked),
        )

    def estimate_pace(self, ways: object) -> tuple[float, float]:
        """Return the mean gap between events of one key, in events and in microseconds; a guess without counts."""
        count = self.own.get(f"{ways} gaps", 0.0)
        if count > 0:
            return max(1.0, self.own[f"{ways} events"] / count), max(1.0, self.own[f"{ways} time"] / count)
        return 1.0, 1 / self.rate if self.rate else 1e6

    @property
    def rate(self) -> float | None:
        """Events in a microsecond; `None` where no time has passed."""
        return self.gaps / self.elapsed if self.elapsed > 0 else None


def _add(first: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: first.get(name, 0.0) + other.get(name, 0.0) for name in sorted({*first, *other})}
