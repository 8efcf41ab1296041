"""Compiled patterns: `PatternSet`, an immutable value that any number of runs share, and the catalog that builds it.

All filters of all patterns are subscriptions of one matcher, so an event is matched once, whatever the number of
patterns; a filter that two patterns have is there once. Patterns that divide the stream alike are merged into one
graph (`machines`), compiled when a run first needs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidings.concepts.vocabulary import Vocabulary
from tidings.errors import PatternError, TidingsError, UnknownPattern
from tidings.lang import WrittenPattern
from tidings.lang.patterns.durations import parse_duration
from tidings.lang.patterns.tokens import PatternReadError
from tidings.matcher import Matcher
from tidings.model import Filter
from tidings.model.patterns import Mode
from tidings.patterns.compile.derivatives import derive_configurations
from tidings.patterns.compile.graph import CompiledPattern
from tidings.patterns.run.event_reader import EventReader
from tidings.patterns.run.graph_run import LONG_AGO, MOST_PARTIALS
from tidings.patterns.run.machine import Machine, build_machines
from tidings.patterns.run.mismatch_counts import PatternMismatch, PatternMismatchCounts, describe_pattern_mismatches
from tidings.patterns.run.variable_values import VariableReader
from tidings.patterns.tuning import DetectorTuning

if TYPE_CHECKING:
    from tidings.model.patterns import Pattern

LIMIT = 1000
"""The most embeddings that the mode `any` reports at one event, unless the pattern says otherwise."""


def check_pattern(name: Any, pattern: Pattern, mode: str, limit: Any) -> WrittenPattern:
    """Return a pattern as a file would have it; raise `PatternError` for a bad name, mode or limit."""
    if not isinstance(name, str) or not name:
        msg = f"a pattern's name is text, not `{name!r}`"
        raise PatternError(msg)
    if mode not in list(Mode):
        msg = f"a pattern's mode is one of {', '.join(f'`{name_of_mode}`' for name_of_mode in Mode)}, not `{mode}`"
        raise PatternError(msg)
    if limit is not None and type(limit) is not int:
        msg = f"a limit is a whole number, not `{limit!r}`"
        raise PatternError(msg)
    return WrittenPattern(name, pattern, Mode(mode), limit)


def parse_lateness(lateness: timedelta | str | None) -> int:
    """Return a span of time in microseconds: `10 min`, or a timedelta."""
    if lateness is None:
        return 0
    try:
        microseconds = parse_duration(lateness) if isinstance(lateness, str) else lateness // timedelta(microseconds=1)
    except (PatternReadError, TypeError) as problem:
        msg = f"lateness is a span of time such as `10 min`, not `{lateness}`: {problem}"
        raise TidingsError(msg) from problem
    if microseconds < 0:
        msg = f"lateness is a span of time, not `{lateness}`"
        raise TidingsError(msg)
    return microseconds


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How events are read and how much is remembered: see `td.Detector`. `lateness` is in microseconds."""

    time: str = "time"
    event_id: str = "id"
    keep: tuple[str, ...] = ()
    lateness: int = 0
    partials: int = MOST_PARTIALS
    tuning: DetectorTuning = field(default_factory=DetectorTuning)

    def __post_init__(self) -> None:
        if type(self.partials) is not int or self.partials < 1:
            msg = f"partials is how many partial matches are kept, not `{self.partials}`"
            raise TidingsError(msg)


@dataclass(frozen=True, eq=False)
class PatternSet:
    """Patterns in the order they were added, the numbers of their filters in the matcher, and how events are read.

    Nothing of it changes, except that `counts` and the matcher count what patterns could not use of the events: all
    runs over one set count together.
    """

    patterns: tuple[CompiledPattern, ...]
    filters: Mapping[Filter, int]
    vocabulary: Vocabulary
    counts: PatternMismatchCounts
    settings: StreamSettings

    def __len__(self) -> int:
        return len(self.patterns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the patterns."""
        return tuple(pattern.name for pattern in self.patterns)

    @cached_property
    def machines(self) -> list[Machine]:
        """The merged graphs, one for each way of dividing the stream."""
        return build_machines(self.patterns, self.filters)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that give variables their values, sorted."""
        return tuple(sorted({name for compiled in self.patterns for name in compiled.pattern.variable_attributes()}))

    @cached_property
    def reader(self) -> EventReader:
        """Reads events: which filters they satisfy, when they happened, and the values of variables."""
        variables = VariableReader(self.attributes, self.vocabulary)
        settings = self.settings
        return EventReader(self.matcher, variables, settings.time, settings.event_id, settings.keep, self.counts)

    @cached_property
    def matcher(self) -> Matcher:
        """Matches events with the filters: the catalog's matcher while that has these filters, else one of its own."""
        return _build_matcher(self.vocabulary, self.filters)

    def lend_matcher(self, matcher: Matcher | None) -> PatternSet:
        """Lend the set a catalog's matcher, or (`None`) take it back before it changes; if needed, another is built."""
        vars(self).pop("reader", None)
        vars(self).pop("matcher", None)
        vars(self).update({} if matcher is None else {"matcher": matcher})
        return self

    def from_first_event(self) -> PatternSet:
        """Return the set as if no pattern had been added while events came: each sees a new stream from its start."""
        if not any(pattern.born or pattern.since > LONG_AGO for pattern in self.patterns):
            return self
        patterns = tuple(replace(compiled, born=0, since=LONG_AGO) for compiled in self.patterns)
        return replace(self, patterns=patterns).lend_matcher(self.matcher)

    def list_mismatches(self) -> tuple[PatternMismatch, ...]:
        """Return which values and times of the events so far patterns could not use."""
        return tuple(describe_pattern_mismatches(self.counts, self.matcher, self.patterns, time=self.settings.time))


class PatternCatalog:
    """A mutable collection of patterns by name; `compile` returns the immutable set of its current patterns.

    Adding a pattern costs what its own filters cost. Invariant: before the matcher changes, it is taken back from the
    compiled set, or replaced where another catalog shares it; so no compiled set ever sees the change.
    """

    def __init__(self, vocabulary: Vocabulary, settings: StreamSettings) -> None:
        self.vocabulary, self.settings = vocabulary, settings
        self._matcher, self._counts = _build_matcher(vocabulary, {}), PatternMismatchCounts()
        self._patterns: dict[str, CompiledPattern] = {}
        self._filters: dict[Filter, int] = {}
        self._uses: Counter[Filter] = Counter()
        self._next_number = 0
        self._is_shared = False
        self._set: PatternSet | None = None

    def __len__(self) -> int:
        return len(self._patterns)

    def __contains__(self, name: object) -> bool:
        return name in self._patterns

    def __iter__(self) -> Iterator[str]:
        return iter(self._patterns)

    def __getitem__(self, name: str) -> Pattern:
        """Return the pattern of a name; `UnknownPattern` when there is none."""
        if name not in self._patterns:
            msg = f"no pattern is called `{name}`"
            raise UnknownPattern(msg)
        return self._patterns[name].pattern

    @property
    def patterns(self) -> tuple[CompiledPattern, ...]:
        """The patterns with their modes, in the order they were added."""
        return tuple(self._patterns.values())

    def compile(self) -> PatternSet:
        """Return the set of the patterns that are there now; the same object until they change."""
        if self._set is None:
            compiled = PatternSet(self.patterns, dict(self._filters), self.vocabulary, self._counts, self.settings)
            self._set = compiled.lend_matcher(self._matcher)
        return self._set

    def add_many(self, patterns: Iterable[WrittenPattern], *, born: int = 0, since: int = LONG_AGO) -> None:
        """Add patterns or replace those of the same names: all of them or, where one is refused, none.

        They see events from the number `born` on whose times are after `since`; one that is there already, unchanged,
        goes on with what it saw.
        """
        compiled = [self._compile_pattern(pattern, born, since) for pattern in patterns]
        used = (tree for added in compiled for tree in added.list_filters())
        fresh = dict.fromkeys(tree for tree in used if tree not in self._filters)
        numbers = {tree: self._next_number + place for place, tree in enumerate(fresh)}
        self._release_matcher()
        self._matcher.add_many([(number, tree) for tree, number in numbers.items()])
        self._next_number += len(numbers)
        self._filters |= numbers
        for added in compiled:
            self._uses.update(added.list_filters())  # before any old one goes: filters may be the same
        for added in compiled:
            if added.name in self._patterns:
                self._drop(added.name)
            self._patterns[added.name] = added

    def remove(self, name: str) -> None:
        """Remove a pattern; `UnknownPattern` when there is none."""
        self[name]
        self._release_matcher()
        self._drop(name)

    def change_settings(self, settings: StreamSettings) -> None:
        """Read events in another way from now on."""
        self._forget_set()
        self.settings = settings

    def fork(self) -> PatternCatalog:
        """Return a catalog of the same patterns for a stream of its own; both share what is compiled."""
        fork = PatternCatalog(self.vocabulary, self.settings)
        self._is_shared = True
        fork.share(self.compile().from_first_event(), self._uses, self._next_number)
        return fork

    def share(self, patterns: PatternSet, uses: Mapping[Filter, int], next_number: int) -> None:
        """Take the patterns of another catalog, with its matcher."""
        self._patterns = {pattern.name: pattern for pattern in patterns.patterns}
        self._filters, self._uses, self._next_number = dict(patterns.filters), Counter(uses), next_number
        self._matcher, self._counts = patterns.matcher, patterns.counts
        self._set, self._is_shared = patterns, True

    def _compile_pattern(self, written: WrittenPattern, born: int, since: int) -> CompiledPattern:
        """Return a pattern with its configurations; one that is there already, unchanged, keeps its own."""
        old, limit = self._patterns.get(written.name), written.limit or LIMIT
        if old is not None and (old.pattern, old.mode) == (written.pattern, written.mode):
            return replace(old, limit=limit)
        graph = derive_configurations(written.pattern, written.mode)
        return CompiledPattern(written.name, written.pattern, written.mode, limit, born, graph, since)

    def _drop(self, name: str) -> None:
        """Forget a pattern, and the filters that no other pattern has."""
        for tree in self._patterns.pop(name).list_filters():
            self._uses[tree] -= 1
            if not self._uses[tree]:
                del self._uses[tree]
                self._matcher.remove(self._filters.pop(tree))

    def _release_matcher(self) -> None:
        """Make the matcher this catalog's alone, so that it may change, and forget the compiled set."""
        self._forget_set()
        if self._is_shared:
            self._matcher, self._is_shared = _build_matcher(self.vocabulary, self._filters), False

    def _forget_set(self) -> None:
        if self._set is not None and not self._is_shared:  # a shared matcher never changes: the set may keep it
            self._set.lend_matcher(None)
        self._set = None


def _build_matcher(vocabulary: Vocabulary, filters: Mapping[Filter, int]) -> Matcher:
    matcher = Matcher(**vocabulary.to_keywords())
    matcher.add_many([(number, tree) for tree, number in filters.items()])
    return matcher
