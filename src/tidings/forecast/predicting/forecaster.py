"""A forecaster: follows the patterns of a set through their courses, and emits forecasts by each pattern's plan.

Probabilities depend on the model and the horizon alone, so they are tables that are computed once and looked up at
every event. A forecaster that learns computes them anew when enough events have come since the last time.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from datetime import timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import TidingsError
from tidings.forecast.courses.streams import CourseMember, EventKinds, build_entries, build_groups
from tidings.forecast.forecasts import Forecast, ForecastBatch
from tidings.forecast.horizon import Horizon
from tidings.forecast.learning.counts import LONGEST_WAIT
from tidings.forecast.learning.group_counter import select_reports
from tidings.forecast.learning.learner import Learner
from tidings.forecast.model import Model, make_pattern_key
from tidings.forecast.predicting.following import POLICIES, AlarmRule, GroupFollower
from tidings.forecast.predicting.probability_table import QUANTILES, ProbabilityTable, build_table, require_times
from tidings.patterns.run.event_archive import unite_numbers
from tidings.patterns.run.machine import is_keyed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.forecast.tuning import ForecastTuning
    from tidings.kernels.array_types import FloatArray, IntArray
    from tidings.patterns.detections import ReportBatch
    from tidings.patterns.pattern_set import PatternSet
    from tidings.patterns.run.event_reader import EncodedEvents
    from tidings.patterns.run.variable_values import ValueNumbers

FIRST_REFRESH = 16
"""Events after which probabilities are first computed anew from the counts; later, a tenth of all events so far."""


@dataclass(frozen=True, slots=True)
class ForecastPlan:
    """Which forecasts of a pattern are emitted: how far ahead, above which threshold, by which policy.

    With `own`, only at events that a filter of the pattern accepts: others may be none of its owner's business.
    """

    horizon: Horizon | None = None
    threshold: float = 0.5
    tell: str = "crossing"
    step: float = 0.1
    own: bool = False

    @classmethod
    def of(cls, *, horizon: Any, threshold: Any, tell: Any, step: Any) -> ForecastPlan:
        """Return the plan of a caller's values; `TidingsError` for a value out of range."""
        for name, value in (("threshold", threshold), ("step", step)):
            if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
                msg = f"a {name} is a probability from 0 to 1, not `{value}`"
                raise TidingsError(msg)
        if tell not in POLICIES:
            msg = f"forecasts are told on {', '.join(f'`{policy}`' for policy in POLICIES)}; not `{tell}`"
            raise TidingsError(msg)
        return cls(None if horizon is None else Horizon.of(horizon), float(threshold), tell, float(step))

    def to_alarm_rule(self) -> AlarmRule:
        """Return the plan as kernels read it."""
        if self.horizon is None:
            return AlarmRule()
        return AlarmRule(POLICIES[self.tell], self.step if self.tell == "change" else self.threshold, self.own)


class Forecaster:
    """Follows some patterns with a model, and with `learns` keeps the model up to date."""

    def __init__(
        self,
        model: Model,
        pattern_set: PatternSet,
        plans: Mapping[str, ForecastPlan],
        *,
        learns: bool,
        stream_share: float = 1.0,
        tuning: ForecastTuning | None = None,
    ) -> None:
        """`stream_share` is the fraction of the stream's events that come here: 1, or less in a Spark bucket."""
        self.model, self.pattern_set, self.plans = model, pattern_set, dict(plans)
        self._stream_share = stream_share
        self.kinds = EventKinds()
        compiled, vocabulary = pattern_set.patterns, pattern_set.vocabulary
        self.patterns = {pattern.name: model.recall_pattern(pattern, vocabulary) for pattern in compiled}
        members = [CourseMember(name, pattern.pattern, pattern.course) for name, pattern in self.patterns.items()]
        self.followers = [GroupFollower(group) for group in build_groups(members, pattern_set.filters)]
        self._places = {name: place for place, name in enumerate(pattern_set.names)}
        spans = {plan.horizon.amount for plan in plans.values() if plan.horizon and plan.horizon.unit == "time"}
        self.learner = Learner(model, pattern_set, spans=spans, tuning=tuning) if learns else None
        self._tables: dict[tuple[str, Horizon], ProbabilityTable] = {}
        self._curves: dict[ProbabilityTable, FloatArray] = {}
        self._arrange()
        self.first_event = model.now[0]  # where this set of patterns began to learn
        self.next_refresh = self.first_event + FIRST_REFRESH

    def take(
        self, events: EncodedEvents, parts: Sequence[ReportBatch], base: int, value_numbers: ValueNumbers
    ) -> list[ForecastBatch]:
        """Take events with the reports that they completed; return forecasts, each made before its event is learned."""
        tracked = [[self._places[member.name] for member in follower.group.tracked] for follower in self.followers]
        reports = [[select_reports(parts, place) for place in places] for places in tracked]
        batches: list[ForecastBatch] = []
        if self.learner is None:
            return self._follow(events, reports, base, value_numbers)
        self.learner.add_reports(parts, base, events.times)
        begin = 0
        while begin < len(events):
            end = min(len(events), begin + max(1, self.next_refresh - self.learner.now[0]))
            piece = events if end - begin == len(events) else events.slice(begin, end)
            completed = _split_reports(reports, base + end, int(piece.times[-1]))
            batches += self._follow(piece, completed, base + begin, value_numbers)
            self.learner.take(piece, (), base + begin, value_numbers)
            begin = end
            if self.learner.now[0] >= self.next_refresh:
                self.refresh_tables()
        return batches

    def refresh_tables(self) -> None:
        """Compute the probabilities anew from the counts so far, and set `next_refresh`."""
        assert self.learner is not None
        self.model = self.learner.build_model()
        compiled, counted = self.pattern_set.patterns, self.model.patterns
        keys = {pattern.name: make_pattern_key(pattern.pattern, pattern.mode) for pattern in compiled}
        self.patterns = {name: replace(counted[key], name=name) for name, key in keys.items()}
        self._tables.clear()
        self._curves.clear()
        self._arrange()
        now = self.model.now[0]
        self.next_refresh = now + max(FIRST_REFRESH, (now - self.first_event) // 10)

    def _follow(
        self, events: EncodedEvents, reports: list[list[IntArray]], base: int, value_numbers: ValueNumbers
    ) -> list[ForecastBatch]:
        kinds = self.kinds.number_kinds(events)
        batches = []
        for follower, own_reports in zip(self.followers, reports, strict=True):
            entries = build_entries(events, kinds, follower.group.partitioning, value_numbers)
            rows = follower.take(entries, events.times, base, own_reports, self.kinds)
            if rows is not None:
                members, tables = tuple(member.name for member in follower.group.members), tuple(follower.tables)
                seen = follower.group.keyed, events.records, events.times, value_numbers.values, base
                batches.append(ForecastBatch(rows, members, tables, *seen))
        return batches

    def _arrange(self) -> None:
        for follower in self.followers:
            plans = [self.plans.get(member.name, ForecastPlan()) for member in follower.group.members]
            tables = [
                None if plan.horizon is None else self.get_table(member.name, plan.horizon)
                for member, plan in zip(follower.group.members, plans, strict=True)
            ]
            pace = self.model.traffic.estimate_pace(follower.group.ways)
            follower.arrange(
                [plan.to_alarm_rule() for plan in plans], tables, stream_share=self._stream_share, pace=pace
            )

    def get_table(self, name: str, horizon: Horizon) -> ProbabilityTable:
        """Return the probabilities of a pattern's cells."""
        at = (name, horizon)
        if at not in self._tables:
            counted = self.patterns[name]
            estimates, traffic = self.model.estimates(counted), self.model.traffic
            self._tables[at] = build_table(estimates, horizon, keyed=is_keyed(counted.pattern), traffic=traffic)
        return self._tables[at]

    def list_forecasts(self, name: str, horizon: Horizon | None, values: list[Any], now: int) -> list[Forecast]:
        """Return a forecast for each key that has a partial match, and one for all others; keys number `values`."""
        horizon = horizon or self.plans.get(name, ForecastPlan()).horizon
        if horizon is None:
            msg = f"how far ahead? forecast({name!r}, horizon=10) looks at the next ten events"
            raise TidingsError(msg)
        if self.learner is None:
            require_times(horizon, self.model.traffic)
        follower, number = self.find_member(name)
        table, keyed = self.get_table(name, horizon), follower.group.keyed
        forecasts = []
        for key in [*follower.list_live_keys(number, now), None] if keyed else [None]:
            # What has begun nothing is at the start; without keys there is one stream, numbered 0.
            is_idle = keyed and key is None
            cell = follower.group.members[number].course.start if is_idle else follower.find_cell(number, key or 0, now)
            places, silence = follower.locate_key(key, now)
            probability, waiting = table.look_up(cell, places, silence), self._find_quantiles(table, cell, places)
            value, ahead = None if key is None else values[key], horizon.value
            forecasts.append(Forecast(name, value, probability, ahead, table.name_estimator(cell), waiting))
        return forecasts

    def _find_quantiles(
        self, table: ProbabilityTable, cell: int, places: FloatArray
    ) -> dict[float, int | timedelta | None]:
        """Return quantiles of the waiting time: the first of some horizons at which they are reached."""
        horizon, quantiles = table.horizon, dict[float, int | timedelta | None]()
        if table not in self._curves:
            self._curves[table] = table.estimates.compute_curve(LONGEST_WAIT)[0]
        scale = 1.0  # of the horizon's measure, for one of the own events
        if table.grid > 1:
            scale = float(2 ** (places[int(horizon.unit == "time")] / 2))
        elif horizon.unit == "time":
            scale = 1 / (self.model.traffic.rate or 1.0)
        for level in QUANTILES:
            own = int(np.searchsorted(self._curves[table][:, cell], level))
            if own > LONGEST_WAIT:
                quantiles[level] = None
            elif horizon.unit == "time":
                quantiles[level] = timedelta(microseconds=round(own * scale))
            else:
                quantiles[level] = max(own, round(own * scale))
        return quantiles

    def find_member(self, name: str) -> tuple[GroupFollower, int]:
        """Return the follower of a pattern's group, and the pattern's number in it."""
        for follower in self.followers:
            for number, member in enumerate(follower.group.members):
                if member.name == name:
                    return follower, number
        raise AssertionError(name)

    def copy_without_learner(self) -> Forecaster:
        """Return a forecaster with a copy of this one's state that does not learn; the tables are shared."""
        other = copy(self)
        other.followers, other.learner = [follower.copy() for follower in self.followers], None
        return other

    def find_used_keys(self, now: int, most_idle: int) -> IntArray:
        """Return the keys with partial matches, and the `most_idle` busiest of the others."""
        keys = [follower.find_used_keys(now, most_idle) for follower in self.followers]
        return unite_numbers(keys if self.learner is None else [*keys, self.learner.find_used_keys()])

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each key by its position in `kept`, which has all that are in use."""
        for follower in self.followers:
            follower.renumber_keys(kept)
        if self.learner is not None:
            self.learner.renumber_keys(kept)


def _split_reports(reports: list[list[IntArray]], end: int, time: int) -> list[list[IntArray]]:
    """Remove the reports up to an event and its time from the lists, and return them."""
    first_parts = []
    for group_reports in reports:
        group_parts = []
        for place, rows in enumerate(group_reports):
            is_complete = (rows[:, 1] < end) & (rows[:, 2] <= time)
            group_parts.append(rows[is_complete])
            group_reports[place] = rows[~is_complete]
        first_parts.append(group_parts)
    return first_parts
