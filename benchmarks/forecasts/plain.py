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
class Plain:
    """Where each pattern stands; `told` counts the forecasts that crossed the threshold."""

    tables: list[list[list[int]]]
    labels: list[dict[str, int]]
    chances: list[list[float]]
    cells: list[int]
    threshold: float
    told: int = 0

    @classmethod
    def of(cls, detector: Detector, horizon: int, threshold: float) -> Plain:
        """Take courses and probabilities from a detector with a model."""
        forecaster = detector.prepare_forecasting().forecaster
        known = list(forecaster.patterns.values())
        chances = [forecaster.table(one.name, detector.horizons()[one.name]).chances[:, 0].tolist() for one in known]
        labels = [{label: number for number, label in enumerate(one.course.labels)} for one in known]
        cells = [one.course.start for one in known]
        assert all(plan.amount == horizon for plan in detector.horizons().values())
        return cls([one.course.table.tolist() for one in known], labels, chances, cells, threshold)

    def take(self, types: Sequence[str], *, every: list[float] | None = None) -> None:
        """Take events; `every` gathers the probability of the first pattern at each."""
        above = [self.chances[number][cell] > self.threshold for number, cell in enumerate(self.cells)]
        for kind in types:
            for number, table in enumerate(self.tables):
                cell = self.cells[number] = table[self.cells[number]][self.labels[number].get(kind, 0)]
                now = self.chances[number][cell] > self.threshold
                if now and not above[number]:
                    self.told += 1
                above[number] = now
            if every is not None:
                every.append(self.chances[0][self.cells[0]])
