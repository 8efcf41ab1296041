"""The law of patterns: which events match, and what each mode reports. Everything else is tested against it.

Written for reading, straight from docs/language.md: all placements of a pattern on a stream are listed, and those that
break a time condition, a variable or a `not` are struck out. Nothing is merged, pruned or forgotten, so the cost grows
with the number of matches: this is for short streams and for tests.

Events are known by their index in the stream, which is in the order of time; times are whole microseconds. An event
without a time stands where it came, and is not there at all for a pattern that asks for times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, groupby, pairwise, product
from typing import Any

from tidings.errors import BadEvent, PatternError
from tidings.model import patterns
from tidings.model.patterns import Mode, Pattern, Step
from tidings.patterns.definition_events import SeenEvent, judge_events

__all__ = ["Embedding", "Report", "SeenEvent", "judge_events", "list_embeddings", "list_reports"]


@dataclass(frozen=True, slots=True)
class Embedding:
    """One match: its events in the order the steps are written, and `at`, when it was complete.

    `first` and `last` are its earliest and its latest event. `at` is the time of the last event, or the
    deadline of an absence. Two matches that give the same events to different steps are two, and look alike here.
    """

    events: tuple[int, ...]
    first: int
    last: int
    at: int
    key: tuple[Any, ...]
    bindings: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """One report: when, after which event of the stream, of which key; a run may show any one of the choices."""

    at: int
    after: int
    key: tuple[Any, ...]
    choices: frozenset[tuple[int, ...]]


def list_embeddings(pattern: Pattern, stream: Sequence[SeenEvent], *, until: int | None = None) -> list[Embedding]:
    """Return all matches, by completion and then first event; an absence counts once time has reached its deadline.

    Time has come as far as `until`, or else as far as the last event.
    """
    matches = [embedding for part in split_stream(pattern, stream) for embedding in part.iterate_embeddings(until)]
    return sorted(matches, key=sort_key)


def list_reports(
    pattern: Pattern, stream: Sequence[SeenEvent], mode: Mode | str, *, until: int | None = None
) -> list[Report]:
    """Return what a run in this mode reports, by completion and then first event; `any` knows no limit here."""
    parts = split_stream(pattern, stream)
    groups = [(part, group) for part in parts for group in group_reports(part, until, mode=Mode(mode))]
    reported = []
    for part, group in sorted(groups, key=lambda pair: sort_key(pair[1][0])):
        first, choices = group[0], frozenset(embedding.events for embedding in group)
        reported.append(Report(first.at, part.find_last_event(first), first.key, choices))
    return reported


def sort_key(embedding: Embedding) -> tuple[int, int, int, tuple[int, ...]]:
    """Order by completion (a deadline's ties by the last event), then by first event."""
    return embedding.at, embedding.last, embedding.first, embedding.events


def group_reports(part: _Substream, until: int | None, *, mode: Mode) -> Iterator[list[Embedding]]:
    """Yield the matches that each report of one key chooses from."""
    matches = sorted(part.iterate_embeddings(until), key=sort_key)
    completions = [list(group) for _, group in groupby(matches, key=lambda embedding: (embedding.at, embedding.last))]
    match mode:
        case Mode.RESTART:
            yield from _report_restarting(part, completions)
        case Mode.OVERLAP:
            yield from map(_keep_latest, completions)
        case Mode.NEXT:
            yield from _report_once_each(completions)
        case Mode.ANY:
            yield from ([embedding] for embedding in matches)


def _report_restarting(part: _Substream, completions: list[list[Embedding]]) -> Iterator[list[Embedding]]:
    """Yield matches whose events all come after the previous report; a report consumes everything processed so far."""
    spent = -1
    for completed in completions:
        fresh = [embedding for embedding in completed if embedding.first > spent]
        if fresh:
            yield _keep_latest(fresh)
            spent = part.find_last_event(fresh[0])


def _keep_latest(completed: list[Embedding]) -> list[Embedding]:
    beginning = max(embedding.first for embedding in completed)
    return [embedding for embedding in completed if embedding.first == beginning]


def _report_once_each(completions: list[list[Embedding]]) -> Iterator[list[Embedding]]:
    """Yield for each beginning what it completes first."""
    reported: set[int] = set()
    for completed in completions:
        for beginning in sorted({embedding.first for embedding in completed} - reported):
            yield [embedding for embedding in completed if embedding.first == beginning]
            reported.add(beginning)


def split_stream(pattern: Pattern, stream: Sequence[SeenEvent]) -> Iterator[_Substream]:
    """Yield the part of the stream that each key sees; without key variables that is all of it."""
    _refuse_unclear(pattern)
    if any(event.time < before.time for before, event in pairwise(stream)):
        msg = "an event is earlier than the one before it; sort the stream by time"
        raise BadEvent(msg)
    carried = [_list_keys(event, pattern) if event.timed or not pattern.asks_for_time() else [] for event in stream]
    done: list[dict[str, Any]] = []
    for key in chain.from_iterable(carried):
        if not any(_agrees(key, other) for other in done):
            places = (index for index, keys in enumerate(carried) if any(_agrees(key, own_key) for own_key in keys))
            yield _Substream(pattern, stream, key, tuple(places))
            done.append(key)


def _list_keys(event: SeenEvent, pattern: Pattern) -> list[dict[str, Any]]:
    """Return the keys that an event carries, through each filter's attributes, whether it satisfies it or not."""
    bindings = [_bind_variables(pattern[name], event) for name in pattern.list_filters()]
    keys = [{variable: binding[variable] for variable in pattern.key_variables()} for binding in bindings]
    return [key for key in keys if _agrees(key, {})]


def _fits(named: patterns.NamedFilter, event: SeenEvent, bound: Mapping[str, Any]) -> bool:
    """Tell whether an event satisfies a named filter and agrees with what is bound already."""
    return named.name in event.names and _agrees(_bind_variables(named, event), bound)


def _bind_variables(named: patterns.NamedFilter, event: SeenEvent) -> dict[str, Any]:
    """Return the values that an event binds to the filter's variables; `None` where the attribute is absent."""
    return {variable: event.values.get(attribute) for attribute, variable in named.variables}


def _agrees(binding: Mapping[str, Any], bound: Mapping[str, Any]) -> bool:
    """Tell whether every variable has a value, and each variable that is bound already the same one."""
    return all(
        value is not None and (variable not in bound or _is_same(value, bound[variable]))
        for variable, value in binding.items()
    )


def _is_same(value: Any, other: Any) -> bool:
    """Compare two values; Python's `True == 1` must not count."""
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A demand on events strictly between two others: none satisfies one of these filters."""

    after: int
    before: int
    without: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Placement:
    """A placement of a part of a pattern: steps with their events, in the order they are written.

    A repeated step stands there once for each of its events. Conditions and `not`s wait here until all is placed.
    """

    pairs: tuple[tuple[Step, int], ...]
    conditions: tuple[patterns.Elapsed, ...] = ()
    quiet: tuple[_Stretch, ...] = ()

    @property
    def events(self) -> tuple[int, ...]:
        return tuple(index for _, index in self.pairs)

    @property
    def first(self) -> int:
        return min(self.events)

    @property
    def last(self) -> int:
        return max(self.events)

    def find_event(self, moment: patterns.Moment) -> int | None:
        """Return the event that a moment refers to, or `None` when its step is not part of the match."""
        events = [index for step, index in self.pairs if step.name == moment.label]
        pick = min if moment.which is patterns.Which.FIRST else max
        return pick(events, default=None)


def _join_placements(placements: tuple[_Placement, ...], *quiet: _Stretch) -> _Placement:
    return _Placement(
        tuple(pair for placement in placements for pair in placement.pairs),
        tuple(condition for placement in placements for condition in placement.conditions),
        (*(stretch for placement in placements for stretch in placement.quiet), *quiet),
    )


@dataclass(frozen=True, slots=True)
class _Substream:
    """The events of one key, as places in the whole stream, and the matches among them."""

    pattern: Pattern
    stream: Sequence[SeenEvent]
    key: Mapping[str, Any]
    places: tuple[int, ...]

    def iterate_embeddings(self, until: int | None) -> Iterator[Embedding]:
        """Yield the key's matches, in no order."""
        now = self.stream[-1].time if until is None else until
        for placement in self.place(self.pattern.root, -1):
            bound = self.bind_variables(placement)
            if bound is None or not self.is_allowed(placement, bound) or not self.is_over(placement, bound, now=now):
                continue
            at, key, bindings = self.find_completion(placement), tuple(self.key.values()), tuple(sorted(bound.items()))
            yield Embedding(placement.events, placement.first, placement.last, at, key, bindings)

    def find_last_event(self, embedding: Embedding) -> int:
        """Return the last event processed when a match completes: its own, or the last before its deadline."""
        if self.pattern.absence is None:
            return embedding.last
        return max(index for index, event in enumerate(self.stream) if event.time < embedding.at)

    def place(self, node: patterns.Node, after: int) -> Iterator[_Placement]:
        """Yield the placements of a node on later events; conditions, `not`s and most variables are judged last."""
        match node:
            case Step():
                yield from (_Placement(((node, index),)) for index in self.list_serving(node, after))
            case patterns.Repeat():
                yield from self.place_repeat(node, after)
            case patterns.Sequence():
                yield from self.place_sequence(node, after)
            case patterns.Conjunction(parts):
                together = product(*(list(self.place(part, after)) for part in parts))
                yield from (_join_placements(placements) for placements in together if _are_disjoint(placements))
            case patterns.Disjunction(parts):
                yield from (placement for part in parts for placement in self.place(part, after))
            case patterns.Timed(part, conditions, within):
                for placement in self.place(part, after):
                    span = self.stream[placement.last].time - self.stream[placement.first].time
                    if within is None or span <= within:
                        yield replace(placement, conditions=placement.conditions + conditions)

    def list_serving(self, step: Step, after: int) -> list[int]:
        """Return the later events that satisfy a step and carry the key through the step's own attributes."""
        named = self.pattern[step.filter]
        return [index for index in self.places if index > after and _fits(named, self.stream[index], self.key)]

    def place_repeat(self, node: patterns.Repeat, after: int) -> Iterator[_Placement]:
        """Yield every choice of so many events, each in the order of the stream."""
        events = self.list_serving(node.step, after)
        most = len(events) if node.most is None else node.most
        for count in range(node.least, most + 1):
            for chosen in combinations(events, count):
                yield _Placement(tuple((node.step, index) for index in chosen))

    def place_sequence(self, node: patterns.Sequence, after: int) -> Iterator[_Placement]:
        """Yield the placements where each part reads only what comes after the last event of the parts before it."""
        head, *rest = node.parts
        placements = list(self.place(head, after))
        for joint, part in zip(node.joints, rest, strict=True):
            placements = [
                _join_placements((before, later), _Stretch(before.last, later.first, joint.without))
                for before in placements
                for later in self.place(part, before.last)
                if joint.gap is patterns.Gap.LATER or not self.list_between(before.last, later.first)
            ]
        yield from placements

    def list_between(self, after: int, before: int) -> list[int]:
        return [index for index in self.places if after < index < before]

    def bind_variables(self, placement: _Placement) -> dict[str, Any] | None:
        """Return the variables' values, or `None` when two events disagree."""
        bound = dict(self.key)
        for step, index in placement.pairs:
            named, event = self.pattern[step.filter], self.stream[index]
            if not _fits(named, event, bound):
                return None
            bound = _bind_variables(named, event) | bound
        return bound

    def is_allowed(self, placement: _Placement, bound: Mapping[str, Any]) -> bool:
        """Tell whether every condition holds and every `not` between two parts is kept."""
        return all(self.is_true(condition, placement) for condition in placement.conditions) and not any(
            self.is_forbidden(index, quiet.without, bound=bound)
            for quiet in placement.quiet
            for index in self.list_between(quiet.after, quiet.before)
        )

    def is_true(self, condition: patterns.Elapsed, placement: _Placement) -> bool:
        """Judge a condition; one on a step that is not taken is false."""
        late, early = placement.find_event(condition.late), placement.find_event(condition.early)
        if late is None or early is None:
            return False
        return condition.holds(self.stream[late].time, self.stream[early].time)

    def is_forbidden(self, index: int, without: tuple[str, ...], *, bound: Mapping[str, Any]) -> bool:
        """Tell whether an event satisfies one of the filters and agrees with the match."""
        return any(_fits(self.pattern[name], self.stream[index], bound) for name in without)

    def find_completion(self, placement: _Placement) -> int:
        """Return the time of the last event, or the deadline of the absence after it."""
        absence = self.pattern.absence
        return self.stream[placement.last].time + (absence.span if absence else 0)

    def is_over(self, placement: _Placement, bound: Mapping[str, Any], *, now: int) -> bool:
        """Tell whether time reached the deadline of an absence and no forbidden event came before."""
        absence, deadline = self.pattern.absence, self.find_completion(placement)
        if absence is None:
            return True
        meanwhile = [i for i in self.places if i > placement.last and self.stream[i].time < deadline]
        return deadline <= now and not any(self.is_forbidden(i, absence.without, bound=bound) for i in meanwhile)


def _are_disjoint(placements: Iterable[_Placement]) -> bool:
    events = [index for placement in placements for index in placement.events]
    return len(set(events)) == len(events)


def _refuse_unclear(pattern: Pattern) -> None:
    called = [step.name for step in pattern.steps()]
    for condition in patterns.walk_conditions(pattern.root):
        for label in (condition.late.label, condition.early.label):
            if called.count(label) != 1:
                msg = f"`t({label})` must mean exactly one step; give the step a label of its own: `one:{label}`"
                raise PatternError(msg)
