"""Which events a subscription would match, and why: for `:try`, `why` and `:estimate`, without anything being stored.

A trial asks the same matcher and detector that pipelines ask, for the one subscription and for the bound of its owner.
An event beyond the bound does not match, and is said to be beyond it; what the bound asks for is not shown. What a
trial may take is bounded (`trial_bounds`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidings.engine.explain.report import pluralize
from tidings.errors import BadEvent
from tidings.forecast.detector import Detector
from tidings.matcher.loading.documents import find_value, strip_payload, to_id, to_moment
from tidings.matcher.matcher import Matcher
from tidings.matcher.why import Explanation
from tidings.model.patterns import Pattern
from tidings.service.events.trial_bounds import (
    TrialTooLarge,
    TrialTuning,
    TrialWatch,
    count_tests,
    shorten_explanation,
    show_value,
)
from tidings.service.owner_bounds import bind_pattern_to_owner, bind_to_owner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from tidings.concepts import Vocabulary
    from tidings.model import Filter
    from tidings.patterns import Detection
    from tidings.service.events.cloud_events import EventFields

_BOUND = "bound"
_WHOLE = "subscription"

PORTION, DETECTED_PORTION = 1_000, 50
"""Events that are matched, and in which a pattern is detected, before the time is looked at."""


@dataclass(frozen=True, slots=True)
class TestedFilter:
    """A filter of a subscription on one event: whether it accepts it, and the tests that decided."""

    name: str
    explanation: Explanation

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"filter": self.explanation.filter, "matches": self.explanation.matched, **self.list_reasons()}

    def list_reasons(self) -> dict[str, Any]:
        """Return the reasons as JSON, and how many `more` there are."""
        reasons = [
            {"test": reason.test, "holds": reason.holds, "seen": list(reason.seen)}
            for reason in self.explanation.reasons
        ]
        return {"reasons": reasons} | ({"more": self.explanation.more} if self.explanation.more else {})


@dataclass(frozen=True, slots=True)
class EventVerdict:
    """What a subscription makes of one event; of a pattern, `tests` has each of its filters."""

    matches: bool
    tests: tuple[TestedFilter, ...]
    is_beyond: bool = False
    """Whether the owner may not see the event."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON: of a filter its reasons, of a pattern those of every filter by its name."""
        verdict: dict[str, Any] = {"matches": self.matches, "text": self.text}
        if self.is_beyond:
            verdict["beyond"] = True
        if [test.name for test in self.tests] == [_WHOLE]:
            return verdict | self.tests[0].list_reasons()
        return verdict | {"steps": [{"name": test.name, **test.to_dict()} for test in self.tests]}

    @property
    def text(self) -> str:
        """Why, in lines for a person."""
        lines = ["the event is not among those that this owner may see"] if self.is_beyond else []
        for test in self.tests:
            lines += str(test.explanation).splitlines()
        return "\n".join(lines)


class SubscriptionTrial:
    """A filter or a pattern, and what bounds its owner, ready to be tried on events."""

    def __init__(
        self, tree: Filter | Pattern, bound: Filter | None, vocabulary: Vocabulary, *, tuning: TrialTuning | None = None
    ) -> None:
        """Admit the filters; they were checked before."""
        self._tree, self._bound, self._vocabulary, self._tuning = tree, bound, vocabulary, tuning or TrialTuning()
        filters = _name_filters(tree)
        self._names, self._tests = tuple(filters), sum(map(count_tests, filters.values()))
        self._matcher = Matcher(**vocabulary.to_keywords())
        self._matcher.add_many([(f"{_WHOLE} {name}", filter) for name, filter in filters.items()])
        self._view: Matcher | None = None
        if bound is not None:
            self._view = Matcher(**vocabulary.to_keywords())
            self._view.add(_BOUND, bound)

    @property
    def is_pattern(self) -> bool:
        """Whether it asks for several events."""
        return isinstance(self._tree, Pattern)

    def watch(self) -> TrialWatch:
        """Return a watch that begins now."""
        return TrialWatch(self._tuning)

    def may_see(self, event: Mapping[str, Any], now: datetime) -> bool:
        """Tell whether an event is within the bound; one that cannot be read is within none."""
        try:
            return self._view is None or bool(self._view.match(strip_payload(event), now=now))
        except BadEvent:
            return False

    def list_seen(self, events: Sequence[dict[str, Any]], now: datetime) -> list[dict[str, Any]]:
        """Return the events that the owner may see."""
        if self._view is None:
            return list(events)
        return [events[index] for index in sorted(self._match(self._view, events, now))]

    def judge_many(self, events: Sequence[Mapping[str, Any]], now: datetime) -> Iterator[EventVerdict | BadEvent]:
        """Yield what the subscription makes of each event; `TrialTooLarge` where they are too many at once."""
        most = max(1, self._tuning.tests // max(1, self._tests))
        if len(events) > most:
            subject = f"a {'pattern' if self.is_pattern else 'filter'} of {self._tests:,} tests"
            msg = (
                f"{subject} is tried on {pluralize(most, 'event')} at once, not on {len(events):,}: send fewer of them"
            )
            raise TrialTooLarge(msg)
        watch, reasons = self.watch(), self._tuning.all_reasons // max(1, len(events) * len(self._names))
        for index, event in enumerate(events):
            watch.check(index, len(events))
            try:
                yield self.judge(event, now, reasons=max(1, min(reasons, self._tuning.reasons)))
            except BadEvent as problem:
                yield problem

    def judge(self, event: Mapping[str, Any], now: datetime, *, reasons: int | None = None) -> EventVerdict:
        """Return what the subscription makes of an event; `BadEvent` where it cannot be read."""
        seen, most = strip_payload(event), self._tuning.reasons if reasons is None else reasons
        tests = tuple(TestedFilter(name, self._explain(seen, name, now, most)) for name in self._names)
        is_beyond = not self.may_see(seen, now)
        accepted = any(test.explanation.matched for test in tests)
        return EventVerdict(accepted and not is_beyond, tests, is_beyond)

    def _explain(self, event: Mapping[str, Any], name: str, now: datetime, most: int) -> Explanation:
        explanation = self._matcher.why(event, f"{_WHOLE} {name}", now=now, most=most)
        return shorten_explanation(replace(explanation, subscription=name))

    def select(self, events: Sequence[Mapping[str, Any]], now: datetime) -> list[int]:
        """Return the indexes of events that a filter matches; those that cannot be read match nothing."""
        assert not isinstance(self._tree, Pattern)
        matcher = Matcher(**self._vocabulary.to_keywords())
        matcher.add(_WHOLE, bind_to_owner(self._tree, self._bound))
        return self._match(matcher, events, now)

    def _match(self, matcher: Matcher, events: Sequence[Mapping[str, Any]], now: datetime) -> list[int]:
        watch, indexes = self.watch(), []
        for begin in range(0, len(events), PORTION):
            watch.check(begin, len(events))
            portion = [strip_payload(event) for event in events[begin : begin + PORTION]]
            indexes += [begin + index for index, _ in matcher.match_many(portion, on_error="collect", now=now)]
        return indexes

    def detect(self, events: Iterable[Mapping[str, Any]], mode: str, fields: EventFields) -> list[Detection]:
        """Return what a pattern detects in events, which are put in the order of their times."""
        assert isinstance(self._tree, Pattern)
        detector = Detector(time=fields.time, event_id=fields.id, **self._vocabulary.to_keywords())
        detector.add(_WHOLE, bind_pattern_to_owner(self._tree, self._bound), mode=mode)
        ordered, watch = sort_by_time(events, fields), self.watch()
        detections: list[Detection] = []
        for begin in range(0, len(ordered), DETECTED_PORTION):
            watch.check(begin, len(ordered))
            detections += detector.detect_many(ordered[begin : begin + DETECTED_PORTION], on_error="collect")
            if len(detections) > self._tuning.detections:
                many = f"the pattern matches more than {self._tuning.detections:,} times in {len(ordered):,} events"
                msg = f"{many}, which is too much to count; give it a `within`, or a mode other than `{mode}`"
                raise TrialTooLarge(msg)
        return detections


def sort_by_time(events: Iterable[Mapping[str, Any]], fields: EventFields) -> list[dict[str, Any]]:
    """Return events in the order of their times, with ids that are texts; those without a time are left out."""
    timed = []
    for event in events:
        moment, id = to_moment(find_value(event, fields.time)), find_value(event, fields.id)
        if moment is not None:
            timed.append((moment, {**strip_payload(event), fields.id: to_id(id), fields.time: moment}))
    return [event for _, event in sorted(timed, key=lambda pair: pair[0])]


def describe_detection(detection: Detection) -> dict[str, Any]:
    """Return a detection as JSON."""
    bindings = {name: show_value(value) for name, value in detection.bindings.items()}
    return {"events": list(detection.events), "at": detection.at, "bindings": bindings}


def _name_filters(tree: Filter | Pattern) -> dict[str, Filter]:
    if isinstance(tree, Pattern):
        return {named.name: named.filter for named in tree.filters if named.name in tree.list_filters()}
    return {_WHOLE: tree}
