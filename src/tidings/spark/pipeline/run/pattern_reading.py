"""Pattern and forecast subscriptions of a store as patterns of a version: parsed, bound to their owner, and checked.

Whatever is refused here never reaches a worker, so nobody's pattern can stop a micro-batch: it is parsed, compiled
within a bound, and added to a catalog of the same vocabulary as the workers' own.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidings.forecast.predicting.forecaster import ForecastPlan
from tidings.lang import render_pattern
from tidings.matcher.snapshot.vocabulary_files import dump_vocabulary
from tidings.patterns import PatternCatalog, StreamSettings
from tidings.service.owner_bounds import parse_bound
from tidings.service.training import read_written
from tidings.spark.detect.followed.pattern_versions import FollowedPattern
from tidings.spark.detect.pattern_source import add_key, check_variables
from tidings.version import __version__

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from tidings.concepts import Vocabulary
    from tidings.lang import WrittenPattern
    from tidings.model import Filter
    from tidings.service.pattern_model import PatternModel
    from tidings.service.store.base import RunningSubscription
    from tidings.spark.query_context import Unknown


@dataclass(frozen=True, slots=True)
class ForecastDefaults:
    """What forecasts are told by where a subscription does not say."""

    threshold: float = 0.5
    tell: str = "crossing"
    step: float = 0.1


class PatternReading:
    """Reads subscriptions by one vocabulary; with `frame`, variables must have columns that give their values."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        model: PatternModel,
        *,
        frame: StructType | None = None,
        unknown: Unknown = "absent",
        key: str | None = None,
        defaults: ForecastDefaults | None = None,
    ) -> None:
        self._vocabulary, self._model, self._key = vocabulary, model, key
        self._frame, self._unknown, self._defaults = frame, unknown, defaults or ForecastDefaults()
        self._bound: tuple[str | None, Filter | None] | None = None  # subscriptions come by owner, mostly
        files = sorted(dump_vocabulary(vocabulary).items())
        columns = None if frame is None else frame.json()
        self._context = _sign((__version__, files, columns, unknown, key, self._defaults))

    def sign_source(self, subscription: RunningSubscription) -> str:
        """Return what stands for a subscription as it is asked for, and behind a colon for what it is read by."""
        return f"{_sign(subscription)}:{self._context}"

    def is_asked_for(self, pattern: FollowedPattern, subscription: RunningSubscription) -> bool:
        """Tell whether a pattern is what its owner still asks for, whatever it would be read as now."""
        return pattern.source.partition(":")[0] == _sign(subscription)

    def read(self, subscription: RunningSubscription) -> FollowedPattern:
        """Return a subscription as it is put into a version; `TidingsError` says why it cannot be."""
        written, is_forecast = self._read_written(subscription), subscription.kind == "forecast"
        tree = json.loads(render_pattern(written.pattern, "json"))
        source, mode = self.sign_source(subscription), written.mode.value
        pattern = FollowedPattern(written.name, tree, mode, 0, written.limit, forecasts_only=is_forecast, source=source)
        if not is_forecast:
            return pattern
        threshold = self._defaults.threshold if subscription.threshold is None else subscription.threshold
        tell, step = self._defaults.tell, self._defaults.step
        plan = ForecastPlan.of(horizon=subscription.horizon, threshold=threshold, tell=tell, step=step)
        wanted, horizon = str(plan.horizon), self._find_horizon(written, plan)
        return replace(pattern, threshold=threshold, tell=tell, step=step, wanted=wanted, horizon=horizon)

    def renew_forecast(self, pattern: FollowedPattern) -> FollowedPattern:
        """Return a pattern that is forecast if the model that is there now knows it."""
        if pattern.wanted is None:
            return pattern
        plan = replace(pattern, horizon=pattern.wanted).plan
        assert plan is not None
        return replace(pattern, horizon=self._find_horizon(pattern.to_written(), plan))

    def _find_horizon(self, written: WrittenPattern, plan: ForecastPlan) -> str | None:
        return str(plan.horizon) if self._model.knows(written.pattern, written.mode, plan) else None

    def _read_written(self, subscription: RunningSubscription) -> WrittenPattern:
        written = read_written(subscription, self._vocabulary, self._parse_bound(subscription.only))
        if self._key is not None:
            written = add_key(written, self._key)
        catalog = PatternCatalog(self._vocabulary, StreamSettings())
        catalog.add_many([written])
        if self._frame is not None:
            check_variables(written.pattern.variable_attributes(), self._frame, self._vocabulary, self._unknown)
        return written

    def _parse_bound(self, only: str | None) -> Filter | None:
        if self._bound is None or self._bound[0] != only:
            self._bound = only, parse_bound(only, self._vocabulary)
        return self._bound[1]


def _sign(value: object) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()[:24]
