"""A plain loop that forecasts: one pattern after the other, one event after the other, a dictionary for each cell.

It is handed the courses and the probabilities, so it neither reads columns nor learns: what is left is the work that
an engine without shared arrays does at every event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.forecast.detector import Detector


@dataclass
class PlainForecastLoop:
    """The state of each pattern; `told` counts the forecasts that crossed the threshold."""

    tables: list[list[list[int]]]
    labels: list[dict[str, int]]
    chances: list[list[float]]
    cells: list[int]
    threshold: float
    forecasts: int = 0

    @classmethod
    def of(cls, detector: Detector, horizon: int, threshold: float) -> PlainForecastLoop:
        """Build the loop from the courses and probabilities of a detector with a model."""
        forecaster = detector.prepare_forecasting().forecaster
        patterns = list(forecaster.patterns.values())
        chances = [
            forecaster.get_table(pattern.name, detector.horizons()[pattern.name]).probabilities[:, 0].tolist()
            for pattern in patterns
        ]
        labels = [{label: number for number, label in enumerate(pattern.course.labels)} for pattern in patterns]
        cells = [pattern.course.start for pattern in patterns]
        assert all(plan.amount == horizon for plan in detector.horizons().values())
        return cls([pattern.course.table.tolist() for pattern in patterns], labels, chances, cells, threshold)

    def take(self, types: Sequence[str], *, every: list[float] | None = None) -> None:
        """Process events; the probability of the first pattern after each is appended to `every`."""
        above = [self.chances[number][cell] > self.threshold for number, cell in enumerate(self.cells)]
        for kind in types:
            for number, table in enumerate(self.tables):
                cell = self.cells[number] = table[self.cells[number]][self.labels[number].get(kind, 0)]
                now = self.chances[number][cell] > self.threshold
                if now and not above[number]:
                    self.forecasts += 1
                above[number] = now
            if every is not None:
                every.append(self.chances[0][self.cells[0]])
