"""What bounds a trial, so that nobody's keeps the others waiting: how many tests, reasons, matches and seconds.

A filter may have thousands of tests, an event values of a megabyte, and a pattern a thousand matches at each event. So
what is asked for is refused where it is too much at once, and what is answered is cut where a person reads no further,
with how much was left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from tidings.engine.explain.report import pluralize
from tidings.errors import TidingsError
from tidings.matcher.why import Reason
from tidings.model.filters import list_scalars, walk_tests

if TYPE_CHECKING:
    from tidings.matcher.why import Explanation
    from tidings.model import Filter

MOST_CHARACTERS = 300
"""Characters of a test or a filter in an explanation, and of a value, at most."""

MOST_SEEN = 10
"""Values that a test saw, in an explanation at most."""


class TrialTooLarge(TidingsError):
    """A trial would take too long."""


@dataclass(frozen=True, slots=True)
class TrialTuning:
    """What one trial may take."""

    tests: int = 100_000
    """Tests of the filters, times events, that are explained at once: about a second's worth."""
    reasons: int = 50
    """Reasons of one filter at one event."""
    all_reasons: int = 5_000
    """Reasons of a whole answer, though at least one of each filter at each event."""
    detections: int = 100_000
    """Matches of a pattern that are counted."""
    seconds: float = 5.0
    clock: Callable[[], float] = monotonic
    """Tells seconds."""


class TrialWatch:
    """How long a trial has taken."""

    def __init__(self, tuning: TrialTuning) -> None:
        self._tuning, self._begin = tuning, tuning.clock()

    def check(self, done: int, total: int) -> None:
        """Raise `TrialTooLarge` where the time is up before `total` events are done."""
        if done < total and self._tuning.clock() - self._begin > self._tuning.seconds:
            pace = f"it got through {done:,} of {pluralize(total, 'event')} in {self._tuning.seconds:g} s"
            msg = f"this takes too long to try: {pace}; ask for what fewer events are, or give a pattern a `within`"
            raise TrialTooLarge(msg)


def count_tests(filter: Filter) -> int:
    """Return how many tests a filter has, where a list of values is a test for each."""
    return sum(max(1, len(list_scalars(test.condition))) for _, test in walk_tests(filter))


def shorten_explanation(explanation: Explanation) -> Explanation:
    """Return an explanation as a person reads it: of long texts the beginning, of many values the first."""
    reasons = tuple(_shorten_reason(reason) for reason in explanation.reasons)
    return replace(explanation, filter=shorten_text(explanation.filter), reasons=reasons)


def _shorten_reason(reason: Reason) -> Reason:
    seen = tuple(show_value(value) for value in reason.seen[:MOST_SEEN])
    if len(reason.seen) > MOST_SEEN:
        seen += (f"… and {len(reason.seen) - MOST_SEEN:,} more",)
    return Reason(shorten_text(reason.test), reason.holds, seen)


def shorten_text(text: str) -> str:
    """Return a text, or its beginning and how much was left out.

    >>> shorten_text("short"), shorten_text("x" * 1_300)[-25:]
    ('short', 'xxx… (1,000 more letters)')
    """
    left_out = len(text) - MOST_CHARACTERS
    return text if left_out <= 0 else f"{text[:MOST_CHARACTERS]}… ({left_out:,} more letters)"


def show_value(value: object) -> Any:
    """Return a value that a test saw as JSON, shortened."""
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    return shorten_text(value if isinstance(value, str) else str(value))
