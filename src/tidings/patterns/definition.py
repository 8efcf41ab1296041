"""The law of patterns: which events match, and what each mode reports. Everything else is tested against it.

Written for reading, straight from docs/language.md: all ways to place a pattern on a stream are listed, and
those that break a time condition, a variable or a `not` are struck out. Nothing is merged, pruned or
forgotten, so the cost grows with the number of matches: this is for short streams and for tests.

Events are known by their index in the stream, which is in the order of time; times are whole microseconds. An event
without a time stands where it came, and is not there at all for a pattern that asks for times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, groupby, pairwise, product
from typing import Any

from tidings.errors import BadEvent, PatternError
from tidings.model import patterns as tree
from tidings.model.patterns import Gap, Mode, Pattern, Step, Which
from tidings.patterns.definition_events import Seen, seen
from tidings.patterns.pattern_input import asks_for_time

__all__ = ["Embedding", "Report", "Seen", "embeddings", "reports", "seen"]


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


def embeddings(pattern: Pattern, stream: Sequence[Seen], *, until: int | None = None) -> list[Embedding]:
    """Return all matches, by completion and then first event; an absence counts once time find_last_event its deadline.

    Time has come as far as `until`, or else as far as the last event.
    """
    matches = [embedding for part in split_stream(pattern, stream) for embedding in part.embeddings(until)]
    return sorted(matches, key=sort_key)


def reports(pattern: Pattern, stream: Sequence[Seen], mode: Mode | str, *, until: int | None = None) -> list[Report]:
    """Return what a run in this mode reports, by completion and then first event; `any` knows no limit here."""
    groups = [
        (part, group) for part in split_stream(pattern, stream) for group in group_reports(part, until, mode=Mode(mode))
    ]
    return [
        Report(
            group[0].at,
            part.find_last_event(group[0]),
            group[0].key,
            frozenset(embedding.events for embedding in group),
        )
        for part, group in sorted(groups, key=lambda pair: sort_key(pair[1][0]))
    ]


def sort_key(embedding: Embedding) -> tuple[int, int, int, tuple[int, ...]]:
    """Order by completion (a deadline's ties by the last event), then by first event."""
    return embedding.at, embedding.last, embedding.first, embedding.events


def group_reports(part: _Substream, until: int | None, *, mode: Mode) -> Iterator[list[Embedding]]:
    """Yield the matches that each report of one key chooses from."""
    matches = sorted(part.embeddings(until), key=sort_key)
    completions = [list(group) for _, group in groupby(matches, key=lambda embedding: (embedding.at, embedding.last))]
    match mode:
        case Mode.RESTART:
            yield from _restarting(part, completions)
        case Mode.OVERLAP:
            yield from map(_latest, completions)
        case Mode.NEXT:
            yield from _once_each(completions)
        case Mode.ANY:
            yield from ([embedding] for embedding in matches)


def _restarting(part: _Substream, completions: list[list[Embedding]]) -> Iterator[list[Embedding]]:
    """Yield what is made of events after the report before alone; a report spends all that was processed."""
    spent = -1
    for completed in completions:
        fresh = [embedding for embedding in completed if embedding.first > spent]
        if fresh:
            yield _latest(fresh)
            spent = part.find_last_event(fresh[0])


def _latest(completed: list[Embedding]) -> list[Embedding]:
    """Keep those that begin last."""
    beginning = max(embedding.first for embedding in completed)
    return [embedding for embedding in completed if embedding.first == beginning]


def _once_each(completions: list[list[Embedding]]) -> Iterator[list[Embedding]]:
    """Yield for each beginning what it completes first."""
    reported: set[int] = set()
    for completed in completions:
        for beginning in sorted({embedding.first for embedding in completed} - reported):
            yield [embedding for embedding in completed if embedding.first == beginning]
            reported.add(beginning)


def split_stream(pattern: Pattern, stream: Sequence[Seen]) -> Iterator[_Substream]:
    """Yield the part of the stream that each key sees; without key variables that is all of it."""
    _refuse_unclear(pattern)
    _refuse_unordered(stream)
    carried = [_keys_of(event, pattern) if event.timed or not asks_for_time(pattern) else [] for event in stream]
    done: list[dict[str, Any]] = []
    for key in chain.from_iterable(carried):
        if not any(_agree(key, other) for other in done):
            places = (index for index, keys in enumerate(carried) if any(_agree(key, own_key) for own_key in keys))
            yield _Substream(pattern, stream, key, tuple(places))
            done.append(key)


def _keys_of(event: Seen, pattern: Pattern) -> list[dict[str, Any]]:
    """Return the keys that an event carries, through each filter's attributes, whether it satisfies it or not."""
    bindings = [_bind_variables(pattern[name], event) for name in pattern.list_filters()]
    keys = [{variable: binding[variable] for variable in pattern.key_variables()} for binding in bindings]
    return [key for key in keys if _agree(key, {})]


def _fits(named: tree.NamedFilter, event: Seen, bound: Mapping[str, Any]) -> bool:
    """Tell whether an event satisfies a named filter and agrees with what is bound already."""
    return named.name in event.names and _agree(_bind_variables(named, event), bound)


def _bind_variables(named: tree.NamedFilter, event: Seen) -> dict[str, Any]:
    """Return the values that an event binds to the filter's variables; `None` where the attribute is absent."""
    return {variable: event.values.get(attribute) for attribute, variable in named.variables}


def _agree(binding: Mapping[str, Any], bound: Mapping[str, Any]) -> bool:
    """Tell whether every variable has a value, and each variable that is bound already the same one."""
    return all(
        value is not None and (variable not in bound or _same(value, bound[variable]))
        for variable, value in binding.items()
    )


def _same(first: Any, two: Any) -> bool:
    """Compare two values; Python's `True == 1` must not count."""
    return isinstance(first, bool) == isinstance(two, bool) and bool(first == two)


@dataclass(frozen=True, slots=True)
class _Quiet:
    """Strictly between two events, none that satisfies one of these filters."""

    after: int
    before: int
    without: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to place a part of a pattern: steps with their events, in the order they are written.

    A repeated step stands there once for each of its events. Conditions and `not`s wait here until all is placed.
    """

    pairs: tuple[tuple[Step, int], ...]
    conditions: tuple[tree.Elapsed, ...] = ()
    quiet: tuple[_Quiet, ...] = ()

    @property
    def events(self) -> tuple[int, ...]:
        """The events, in the order the steps are written."""
        return tuple(index for _, index in self.pairs)

    @property
    def first(self) -> int:
        """The earliest event."""
        return min(self.events)

    @property
    def last(self) -> int:
        """The latest event."""
        return max(self.events)

    def when(self, moment: tree.Moment) -> int | None:
        """Return the event that a moment refers to, or `None` when its step is not part of the match."""
        events = [index for step, index in self.pairs if step.name == moment.label]
        pick = min if moment.which is Which.FIRST else max
        return pick(events, default=None)


def _join_ways(ways: tuple[_Way, ...], *quiet: _Quiet) -> _Way:
    """Put ways of several parts together, in the order they are written."""
    return _Way(
        tuple(pair for way in ways for pair in way.pairs),
        tuple(condition for way in ways for condition in way.conditions),
        (*(stretch for way in ways for stretch in way.quiet), *quiet),
    )


@dataclass(frozen=True, slots=True)
class _Substream:
    """The events of one key, as places in the whole stream, and the matches among them."""

    pattern: Pattern
    stream: Sequence[Seen]
    key: Mapping[str, Any]
    places: tuple[int, ...]

    def embeddings(self, until: int | None) -> Iterator[Embedding]:
        """Yield the key's matches, in no order."""
        now = self.stream[-1].time if until is None else until
        for way in self.ways(self.pattern.root, -1):
            bound = self.bindings(way)
            if bound is None or not self.is_allowed(way, bound) or not self.over(way, bound, now=now):
                continue
            key, bindings = tuple(self.key.values()), tuple(sorted(bound.items()))
            yield Embedding(way.events, way.first, way.last, self.completion(way), key, bindings)

    def find_last_event(self, embedding: Embedding) -> int:
        """Return the last event processed when a match completes: its own, or the last before its deadline."""
        if self.pattern.absence is None:
            return embedding.last
        return max(index for index, event in enumerate(self.stream) if event.time < embedding.at)

    def ways(self, node: tree.Node, after: int) -> Iterator[_Way]:
        """Yield the ways to place a node on later events; conditions, `not`s and most variables are judged last."""
        match node:
            case Step():
                yield from (_Way(((node, index),)) for index in self.serving(node, after))
            case tree.Repeat():
                yield from self.repetitions(node, after)
            case tree.Sequence():
                yield from self.sequences(node, after)
            case tree.Both(parts):
                together = product(*(list(self.ways(part, after)) for part in parts))
                yield from (_join_ways(ways) for ways in together if _disjoint(ways))
            case tree.Either(parts):
                yield from (way for part in parts for way in self.ways(part, after))
            case tree.Timed(part, conditions, within):
                placed = (way for way in self.ways(part, after) if within is None or self.lasts(way) <= within)
                yield from (replace(way, conditions=way.conditions + conditions) for way in placed)

    def serving(self, step: Step, after: int) -> list[int]:
        """Return the later events that satisfy a step and carry the key through the step's own attributes."""
        named = self.pattern[step.filter]
        return [index for index in self.places if index > after and _fits(named, self.stream[index], self.key)]

    def repetitions(self, node: tree.Repeat, after: int) -> Iterator[_Way]:
        """Yield every choice of so many events, each in the order of the stream."""
        events = self.serving(node.step, after)
        most = len(events) if node.most is None else node.most
        for count in range(node.least, most + 1):
            yield from (_Way(tuple((node.step, index) for index in chosen)) for chosen in combinations(events, count))

    def sequences(self, node: tree.Sequence, after: int) -> Iterator[_Way]:
        """Yield the ways where each part reads only what comes after the last event of the parts before it."""
        head, *rest = node.parts
        ways = list(self.ways(head, after))
        for joint, part in zip(node.joints, rest, strict=True):
            ways = [
                _join_ways((before, later), _Quiet(before.last, later.first, joint.without))
                for before in ways
                for later in self.ways(part, before.last)
                if joint.gap is Gap.LATER or not self.between(before.last, later.first)
            ]
        yield from ways

    def between(self, after: int, before: int) -> list[int]:
        """Return the events of the key that lie strictly between two events."""
        return [index for index in self.places if after < index < before]

    def lasts(self, way: _Way) -> int:
        """Return the time from the first event to the last."""
        return self.stream[way.last].time - self.stream[way.first].time

    def bindings(self, way: _Way) -> dict[str, Any] | None:
        """Return the variables' values, or `None` when two events disagree."""
        bound = dict(self.key)
        for step, index in way.pairs:
            named, event = self.pattern[step.filter], self.stream[index]
            if not _fits(named, event, bound):
                return None
            bound = _bind_variables(named, event) | bound
        return bound

    def is_allowed(self, way: _Way, bound: Mapping[str, Any]) -> bool:
        """Tell whether every condition holds and every `not` between two parts is kept."""
        return all(self.holds(condition, way) for condition in way.conditions) and not any(
            self.forbidden(index, quiet.without, bound=bound)
            for quiet in way.quiet
            for index in self.between(quiet.after, quiet.before)
        )

    def holds(self, condition: tree.Elapsed, way: _Way) -> bool:
        """Judge a condition; one on a step that is not taken is false."""
        late, early = way.when(condition.late), way.when(condition.early)
        if late is None or early is None:
            return False
        return condition.holds(self.stream[late].time, self.stream[early].time)

    def forbidden(self, index: int, without: tuple[str, ...], *, bound: Mapping[str, Any]) -> bool:
        """Tell whether an event satisfies one of the filters and agrees with the match."""
        return any(_fits(self.pattern[name], self.stream[index], bound) for name in without)

    def completion(self, way: _Way) -> int:
        """Return the time of the last event, or the deadline of the absence after it."""
        absence = self.pattern.absence
        return self.stream[way.last].time + (absence.span if absence else 0)

    def over(self, way: _Way, bound: Mapping[str, Any], *, now: int) -> bool:
        """Tell whether time reached the deadline of an absence and no forbidden event came before."""
        absence, deadline = self.pattern.absence, self.completion(way)
        if absence is None:
            return True
        meanwhile = [i for i in self.places if i > way.last and self.stream[i].time < deadline]
        return deadline <= now and not any(self.forbidden(i, absence.without, bound=bound) for i in meanwhile)


def _disjoint(ways: Iterable[_Way]) -> bool:
    """Tell whether no event serves two of the ways."""
    events = [index for way in ways for index in way.events]
    return len(set(events)) == len(events)


def _refuse_unclear(pattern: Pattern) -> None:
    called = [step.name for step in pattern.steps()]
    for condition in tree.conditions_of(pattern.root):
        for label in (condition.late.label, condition.early.label):
            if called.count(label) != 1:
                msg = f"`t({label})` must mean exactly one step; give the step a label of its own: `one:{label}`"
                raise PatternError(msg)


def _refuse_unordered(stream: Sequence[Seen]) -> None:
    if any(event.time < before.time for before, event in pairwise(stream)):
        msg = "an event is earlier than the one before it; sort the stream by time"
        raise BadEvent(msg)
