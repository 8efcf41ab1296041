"""What else may happen to the events that a run takes: forecasts, learning, evaluation.

A run tells its observers about each batch after its own partial matches have moved on. Keys are numbers that the run
gives out and, when few of them are still in use, gives out anew; so an observer that stores keys names those it needs
and renumbers them with the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.kernels.array_types import IntArray
    from tidings.patterns.detections import ReportBatch
    from tidings.patterns.run.event_reader import EncodedEvents
    from tidings.patterns.run.run import Run
    from tidings.patterns.state.graph_bytes import Arrays, Header, State

NO_KEYS: IntArray = np.empty(0, np.int64)
"""What an observer without keys returns."""


class Observer:
    """Follows a run. By itself it stores no keys and has no state: a class that inherits overrides what it needs.

    `run` is set with the patterns: `patterns`, `value_numbers`, `position` and `latest` tell what it has taken so far.
    """

    run: Run | None = None

    def on_patterns(self, run: Run) -> None:
        """Take the run's patterns: called before the first batch and again when they are others."""
        self.run = run

    def on_batch(self, events: EncodedEvents, reports: Sequence[ReportBatch]) -> None:
        """Take events and what they completed; the first of them has the number `run.position`."""

    def find_used_keys(self) -> IntArray:
        """Return the numbers of keys and values that are still needed, ascending."""
        return NO_KEYS

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each number by its position in `kept`, which has all numbers that are in use."""

    def dump(self, kept: IntArray) -> State:  # noqa: ARG002 - stateless
        """Return the observer's state as a header (JSON) and arrays; keys are positions in `kept`."""
        return {}, {}

    def load(self, header: Header, arrays: Arrays) -> None:
        """Continue from such a state; header and arrays have the state of the run and of other observers too."""
