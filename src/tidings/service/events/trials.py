"""Which events a subscription would match, and why: for `:try`, `why` and `:estimate`, without anything being stored.

A trial asks the same matcher and detector that pipelines ask, for the one subscription and for the bound of its owner.
An event beyond the bound does not match, and is said to be beyond it; what the bound asks for is not shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidings.errors import BadEvent
from tidings.forecast.detector import Detector
from tidings.matcher.loading.documents import find_value, strip_payload, to_id, to_moment
from tidings.matcher.matcher import Matcher
from tidings.matcher.why import Explanation
from tidings.model.patterns import Pattern
from tidings.service.owner_bounds import bind_pattern_to_owner, bind_to_owner

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from tidings.concepts import Vocabulary
    from tidings.model import Filter
    from tidings.patterns import Detection
    from tidings.service.events.cloud_events import EventFields

_BOUND = "bound"
_WHOLE = "subscription"


@dataclass(frozen=True, slots=True)
class TestedFilter:
    """A filter of a subscription on one event: whether it accepts it, and the tests that decided."""

    name: str
    explanation: Explanation

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        reasons = [
            {"test": reason.test, "holds": reason.holds, "seen": [_show(value) for value in reason.seen]}
            for reason in self.explanation.reasons
        ]
        return {"filter": self.explanation.filter, "matches": self.explanation.matched, "reasons": reasons}


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
            return verdict | {"reasons": self.tests[0].to_dict()["reasons"]}
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

    def __init__(self, tree: Filter | Pattern, bound: Filter | None, vocabulary: Vocabulary) -> None:
        """Admit the filters; they were checked before."""
        self._tree, self._bound, self._vocabulary = tree, bound, vocabulary
        filters = _name_filters(tree)
        self._names = tuple(filters)
        self._matcher = Matcher(**vocabulary.to_keywords())
        self._matcher.add_many([(f"{_WHOLE} {name}", filter) for name, filter in filters.items()])
        if bound is not None:
            self._matcher.add(_BOUND, bound)

    @property
    def is_pattern(self) -> bool:
        """Whether it asks for several events."""
        return isinstance(self._tree, Pattern)

    def may_see(self, event: Mapping[str, Any], now: datetime) -> bool:
        """Tell whether an event is within the bound; one that cannot be read is within none."""
        if self._bound is None:
            return True
        try:
            return self._matcher.why(strip_payload(event), _BOUND, now=now).matched
        except BadEvent:
            return False

    def judge(self, event: Mapping[str, Any], now: datetime) -> EventVerdict:
        """Return what the subscription makes of an event; `BadEvent` where it cannot be read."""
        seen = strip_payload(event)
        tests = tuple(TestedFilter(name, self._explain(seen, name, now)) for name in self._names)
        is_beyond = not self.may_see(seen, now)
        accepted = any(test.explanation.matched for test in tests)
        return EventVerdict(accepted and not is_beyond, tests, is_beyond)

    def _explain(self, event: Mapping[str, Any], name: str, now: datetime) -> Explanation:
        explanation = self._matcher.why(event, f"{_WHOLE} {name}", now=now)
        return replace(explanation, subscription=name)

    def select(self, events: Sequence[Mapping[str, Any]], now: datetime) -> list[int]:
        """Return the indexes of events that a filter matches; those that cannot be read match nothing."""
        assert not isinstance(self._tree, Pattern)
        matcher = Matcher(**self._vocabulary.to_keywords())
        matcher.add(_WHOLE, bind_to_owner(self._tree, self._bound))
        matches = matcher.match_many([strip_payload(event) for event in events], on_error="collect", now=now)
        return [index for index, _ in matches]

    def detect(self, events: Iterable[Mapping[str, Any]], mode: str, fields: EventFields) -> list[Detection]:
        """Return what a pattern detects in events, which are put in the order of their times."""
        assert isinstance(self._tree, Pattern)
        detector = Detector(time=fields.time, event_id=fields.id, **self._vocabulary.to_keywords())
        detector.add(_WHOLE, bind_pattern_to_owner(self._tree, self._bound), mode=mode)
        ordered = sort_by_time(events, fields)
        return list(detector.detect_many(ordered, on_error="collect"))


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
    bindings = {name: _show(value) for name, value in detection.bindings.items()}
    return {"events": list(detection.events), "at": detection.at, "bindings": bindings}


def _name_filters(tree: Filter | Pattern) -> dict[str, Filter]:
    if isinstance(tree, Pattern):
        return {named.name: named.filter for named in tree.filters if named.name in tree.list_filters()}
    return {_WHOLE: tree}


def _show(value: object) -> Any:
    """Return a value that a test saw as JSON."""
    if value is None or isinstance(value, str | bool | float) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    return str(value)
