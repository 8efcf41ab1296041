"""Training as an observer of a run: a learner counts the events that the run takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.patterns.observer import SilentObserver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.forecast.learning.learner import Learner
    from tidings.kernels.array_types import IntArray
    from tidings.patterns.detections import ReportBatch
    from tidings.patterns.run.event_reader import EncodedEvents
    from tidings.patterns.run.run import Run


class LearningObserver(SilentObserver):
    """Lets a learner take the batches of a run; the model is the learner's, so the observer has no state to dump."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self._run: Run | None = None

    def on_patterns(self, run: Run) -> None:
        """Keep the run: its names number the keys."""
        self._run = run

    def on_batch(self, events: EncodedEvents, reports: Sequence[ReportBatch]) -> None:
        """Count the events."""
        assert self._run is not None
        self.learner.take(events, reports, self._run.position, self._run.names)

    def keys_in_use(self) -> IntArray:
        """Return the keys whose waits are not counted out."""
        return self.learner.keys_in_use()

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each key by its position in `kept`."""
        self.learner.renumber_keys(kept)
