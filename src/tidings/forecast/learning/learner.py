"""A learner: counts the events of a run, which it follows as an observer, and returns the model that they make.

Events are gathered and counted many at a time; the model is the same however the stream is cut into batches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidings.forecast.courses.streams import CourseMember, EventKinds, build_entries, build_groups
from tidings.forecast.learning.counts import CountedPattern, Traffic
from tidings.forecast.learning.group_counter import GroupCounter, count_traffic
from tidings.forecast.model import Model, make_filter_key, make_pattern_key
from tidings.forecast.tuning import ForecastTuning
from tidings.patterns.observer import Observer
from tidings.patterns.run.event_archive import unite_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.kernels.array_types import IntArray
    from tidings.patterns.detections import ReportBatch
    from tidings.patterns.pattern_set import PatternSet
    from tidings.patterns.run.event_reader import EncodedEvents
    from tidings.patterns.run.machine import Ways
    from tidings.patterns.run.variable_values import ValueNumbers


class Learner:
    """Counts for the patterns of a set, on top of the counts of a model."""

    def __init__(
        self, model: Model, patterns: PatternSet, *, spans: Iterable[int] = (), tuning: ForecastTuning | None = None
    ) -> None:
        """Go on from a model; `spans` are horizons in microseconds that are counted directly."""
        self._model, self.kinds, self.filters = model, EventKinds(), patterns.filters
        self._tuning = tuning or ForecastTuning()
        self.patterns: dict[str, CountedPattern] = {}
        self.places: dict[str, int] = {}
        vocabulary = patterns.vocabulary
        for place, compiled in enumerate(patterns.patterns):
            key = make_pattern_key(compiled.pattern, compiled.mode)
            if key not in self.patterns:
                self.patterns[key] = model.recall_pattern(compiled, vocabulary, spans=spans)
                self.places[key] = place
        self.arrange()
        counted = [pattern.pattern for pattern in self.patterns.values()]
        used = [(pattern, name) for pattern in counted for name in pattern.list_filters()]
        self._filter_keys = {
            self.filters[pattern[name].filter]: make_filter_key(pattern, name) for pattern, name in used
        }
        self.traffic = model.traffic
        self.last_time: int | None = None
        self.now = model.now
        self.gathered = 0  # events since they were last counted

    @property
    def needs_reports(self) -> bool:
        """Whether some pattern is tracked: then the learner needs the reports of the run."""
        return any(counter.group.tracked for counter in self.counters)

    def arrange(self, together: Iterable[Sequence[str]] = ()) -> None:
        """Build the counters, one for each group of patterns that read one stream.

        Patterns whose names stand in one list of `together` are not grouped with any others.
        """
        left = {key: CourseMember(key, pattern.pattern, pattern.course) for key, pattern in self.patterns.items()}
        groups = []
        for names in together:
            groups += build_groups([left.pop(name) for name in names if name in left], self.filters)
        groups += build_groups(list(left.values()), self.filters)
        self.counters: list[GroupCounter] = []
        for group in groups:
            counts = [self.patterns[pattern.name].counts.copy() for pattern in group.members]
            counter = GroupCounter(group, counts, self._model.settings.half_life, most=self._tuning.pending_waits)
            counter.now = self._model.now
            self.counters.append(counter)

    def continue_from(self, old: Learner, ways: Iterable[Ways]) -> None:
        """Take over position, events to be counted and traffic of `old`, except what its counters hand over themselves.

        Those are the sums of gaps between events of one key, of the counters whose ways are in `ways`.
        """
        self.now, self.last_time = old.now, old.last_time
        self.traffic = old.traffic.plus(Traffic(own=old.sum_own_gaps(but=ways)))
        self.gathered, self.kinds = old.gathered, old.kinds

    def add_reports(self, parts: Sequence[ReportBatch], base: int, times: IntArray) -> None:
        """Take the reports of the events that come next; `base` is the run's number of the first of them."""
        for counter in self.counters:
            places = [self.places[member.name] for member in counter.group.members]
            counter.add_reports(parts, places, base, self.now[0], times)

    def take(self, events: EncodedEvents, parts: Sequence[ReportBatch], base: int, value_numbers: ValueNumbers) -> None:
        """Count events with the reports that they completed."""
        self.add_reports(parts, base, events.times)
        if not len(events):  # time alone may have completed something
            return
        kinds = self.kinds.number_kinds(events)
        latest = int(events.times[-1])  # before the first event no time has been, not even that of 1970
        now = (self.now[0] + len(events), max(self.now[1], latest) if self.now[0] else latest)
        at = np.arange(self.now[0], now[0])
        half_life, weights = self._model.settings.half_life, np.ones(len(events))
        if half_life is not None:
            weights = half_life.compute_weights(at, events.times, now)
            self.traffic = self.traffic.scale(half_life.compute_fading(self.now, now))
        more = count_traffic(kinds, events.times, self.last_time, weights, self._filter_keys, self.kinds)
        self.traffic, self.last_time = self.traffic.plus(more), int(events.times[-1])
        for counter in self.counters:
            entries = build_entries(events, kinds, counter.group.partitioning, value_numbers)
            counter.take(entries, events.times, self.now[0])
        self.now = now
        self.gathered += len(events)
        if self.gathered >= self._tuning.counted_at_once:
            self.count_pending()

    def find_used_keys(self) -> IntArray:
        """Return the keys that are still needed."""
        self.count_pending()
        return unite_numbers([counter.find_used_keys() for counter in self.counters])

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each key by its position in `kept`, which has all that are in use."""
        for counter in self.counters:
            counter.renumber_keys(kept)

    def count_pending(self) -> None:
        """Count the events that were gathered."""
        for counter in self.counters:
            counter.count_pending(self.kinds, self.now)
        self.gathered = 0

    def sum_own_gaps(self, but: Iterable[Ways] = ()) -> dict[str, float]:
        """Return the sums of gaps between events of one key, for each set of ways except `but`."""
        sums: dict[str, float] = {}
        for counter in self.counters:
            ways = counter.group.ways
            if counter.group.keyed and ways not in but and counter.own[0] > sums.get(f"{ways} gaps", -1.0):
                measures = zip(("gaps", "events", "time"), counter.own.tolist(), strict=True)
                sums |= {f"{ways} {name}": total for name, total in measures}  # one that came later has heard fewer
        return sums

    def build_model(self) -> Model:
        """Return the model so far; waits that have not ended are cut off at this point."""
        self.count_pending()
        traffic = self.traffic.plus(Traffic(own=self.sum_own_gaps()))
        patterns = dict(self._model.patterns)
        half_life = self._model.settings.half_life
        if half_life is not None:  # what is not watched now fades all the same
            by = half_life.compute_fading(self._model.now, self.now)
            patterns = {key: replace(counted, counts=counted.counts.scale(by)) for key, counted in patterns.items()}
        for counter in self.counters:
            for member, counts in zip(counter.group.members, counter.close_counts(self.kinds), strict=True):
                patterns[member.name] = replace(self.patterns[member.name], counts=counts)
        return self._model.with_counts(patterns=patterns, traffic=traffic, now=self.now)


class LearningObserver(Observer):
    """Lets a learner take the batches of a run; the model is the learner's, so the observer has no state to dump."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    def on_batch(self, events: EncodedEvents, reports: Sequence[ReportBatch]) -> None:
        """Count the events."""
        assert self.run is not None
        self.learner.take(events, reports, self.run.position, self.run.value_numbers)

    def find_used_keys(self) -> IntArray:
        """Return the keys whose waits are not counted out."""
        return self.learner.find_used_keys()

    def renumber_keys(self, kept: IntArray) -> None:
        """Replace each key by its position in `kept`."""
        self.learner.renumber_keys(kept)
