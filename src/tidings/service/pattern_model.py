"""Which patterns the service's model knows, as its file is now: a forecast of any other one is still learning."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tidings.errors import TidingsError
from tidings.forecast.model import Model, make_pattern_key
from tidings.forecast.predicting.probability_table import require_times
from tidings.model.patterns import Mode

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.forecast.predicting.forecaster import ForecastPlan
    from tidings.model.patterns import Pattern


class PatternModel:
    """A model's file, read again when it has changed."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._stamp = path, (0, 0)
        self._model: Model | None = None
        self._lock = threading.Lock()

    def knows(self, pattern: Pattern, mode: str, plan: ForecastPlan) -> bool:
        """Tell whether the model has counted a pattern, and can look as far ahead as the plan says."""
        model = self.read()
        if model is None or make_pattern_key(pattern, Mode(mode)) not in model.patterns:
            return False
        try:
            if plan.horizon is not None:
                require_times(plan.horizon, model.traffic)
        except TidingsError:
            return False
        return True

    def read(self) -> Model | None:
        """Return the model as its file is now; None where there is none, or none that can be read."""
        if self._path is None:
            return None
        with self._lock:
            try:
                status = self._path.stat()
                stamp = status.st_mtime_ns, status.st_size
                if stamp != self._stamp:
                    self._model, self._stamp = Model.load(self._path), stamp
            except (OSError, TidingsError):
                self._model, self._stamp = None, (0, 0)
            return self._model
