"""Models: counts of patterns over histories, from which probabilities are computed; they merge, and files keep them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import FileError, StateError, TidingsError, UnknownPattern
from tidings.forecast.courses.exact_course import build_course
from tidings.forecast.learning.counts import CountedPattern, Counts, Traffic
from tidings.forecast.learning.group_counter import HalfLife
from tidings.forecast.model_file import read_model, save_bytes, write_model
from tidings.forecast.model_text import format_model
from tidings.forecast.predicting.estimates import ESTIMATORS, Estimates
from tidings.lang import render, render_pattern
from tidings.lang.patterns.durations import parse_duration
from tidings.lang.patterns.tokens import PatternReadError
from tidings.patterns.run.machine import is_keyed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.concepts import Vocabulary
    from tidings.forecast.courses.course import Course
    from tidings.forecast.horizon import HorizonLike
    from tidings.kernels.array_types import FloatArray
    from tidings.model.patterns import Mode, Pattern
    from tidings.patterns.compile.graph import CompiledPattern


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model counts, and how it computes probabilities."""

    context: int = 3
    smoothing: float = 0.5
    half_life: HalfLife | None = None
    estimator: str = "both"

    def __post_init__(self) -> None:
        """Raise `TidingsError` for a value out of range."""
        smoothing: Any = self.smoothing
        if type(self.context) is not int or not 0 <= self.context <= 16:
            msg = f"context is how many symbols are looked back, 0 to 16, not `{self.context}`"
            raise TidingsError(msg)
        if isinstance(smoothing, bool) or not isinstance(smoothing, int | float) or not 0 <= smoothing < float("inf"):
            msg = f"smoothing is a number from 0 up, not `{smoothing}`"
            raise TidingsError(msg)
        if self.estimator not in ESTIMATORS:
            msg = f"an estimator is one of {', '.join(f'`{name}`' for name in ESTIMATORS)}, not `{self.estimator}`"
            raise TidingsError(msg)
        object.__setattr__(self, "smoothing", float(smoothing))


def _parse_half_life(value: object) -> HalfLife | None:
    if value is None:
        return None
    half_life = value if isinstance(value, HalfLife) else None
    if isinstance(value, timedelta):
        half_life = HalfLife(value // timedelta(microseconds=1), timed=True)
    elif type(value) is int or (isinstance(value, str) and value.isdecimal()):
        half_life = HalfLife(int(value), timed=False)
    elif isinstance(value, str):
        with suppress(PatternReadError):
            half_life = HalfLife(parse_duration(value), timed=True)
    if half_life is None or half_life.amount < 1:
        msg = f"a half-life is a number of events, or a span of time such as `7 days`, not `{value}`"
        raise TidingsError(msg)
    return half_life


class Model:
    """Counts of patterns over a history, and how probabilities are computed from them.

    `td.train` makes one. `Model(context=2)` without counts is a beginning: a detector that learns goes on from it.
    Models of two histories add up (`merge`); a file keeps one (`save`, `load`).
    """

    def __init__(
        self,
        *,
        context: int = 3,
        smoothing: float = 0.5,
        half_life: timedelta | str | int | HalfLife | None = None,
        estimator: str = "both",
    ) -> None:
        self.settings = ModelSettings(context, smoothing, _parse_half_life(half_life), estimator)
        self.patterns: dict[str, CountedPattern] = {}
        self.traffic = Traffic()
        self.now = (0, 0)  # how many events it has seen, and the time of the latest

    # What it knows -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.patterns)

    def __iter__(self) -> Iterator[str]:
        return (counted.name for counted in self.patterns.values())

    def __getitem__(self, name: str) -> CountedPattern:
        for counted in self.patterns.values():
            if counted.name == name:
                return counted
        msg = f"the model knows no pattern called `{name}`; it knows {_list_names(self)}"
        raise UnknownPattern(msg)

    def __repr__(self) -> str:
        return f"<Model: {len(self):,} patterns, {self.now[0]:,} events, {self.settings.estimator}>"

    def recall_pattern(
        self, compiled: CompiledPattern, vocabulary: Vocabulary | None = None, *, spans: Iterable[int] = ()
    ) -> CountedPattern:
        """Return the counts of a pattern; those of a new pattern are zero."""
        key = make_pattern_key(compiled.pattern, compiled.mode)
        counted = self.patterns.get(key)
        if counted is None:
            course = build_course(compiled.pattern, compiled.mode, vocabulary, context=self.settings.context)
            counts = Counts.make_empty(course, spans, keyed=is_keyed(compiled.pattern))
            return CountedPattern(compiled.name, compiled.pattern, compiled.mode, course, counts)
        missing = [span for span in spans if span not in counted.counts.spans]
        more = Counts.make_empty(counted.course, missing, keyed=is_keyed(counted.pattern)).spans
        counts = replace(counted.counts, spans=counted.counts.spans | more)
        return replace(counted, name=compiled.name, counts=counts)

    def estimates(self, counted: CountedPattern) -> Estimates:
        """Return the estimates of a pattern, from which its probabilities are computed."""
        prior = compute_label_prior(counted, self.traffic, self.settings.smoothing)
        return Estimates(counted.course, counted.counts, prior, self.settings.smoothing, self.settings.estimator)

    # Together ----------------------------------------------------------------------------------

    def merge(self, other: Model) -> Model:
        """Return the model of both histories."""
        if not isinstance(other, Model):
            msg = f"a model is merged with another td.Model, not with `{other!r}`"
            raise TidingsError(msg)
        if (mine := replace(self.settings, estimator="both")) != (theirs := replace(other.settings, estimator="both")):
            msg = f"models with different settings do not add up: {mine} and {theirs}"
            raise TidingsError(msg)
        timed = self.settings.half_life is not None and self.settings.half_life.timed
        latest = max(self.now[1], other.now[1])
        own, others = (model.fade(latest) if timed else model for model in (self, other))
        patterns = others.patterns | own.patterns
        for key in own.patterns.keys() & others.patterns.keys():
            first, second = own.patterns[key], others.patterns[key]
            if not is_same_course(first.course, second.course):
                msg = f"the models count `{first.name}` in different ways; train both with one schema"
                raise TidingsError(msg)
            patterns[key] = replace(first, counts=first.counts.plus(second.counts))
        traffic, seen = own.traffic.plus(others.traffic), self.now[0] + other.now[0]
        return self.with_counts(patterns=patterns, traffic=traffic, now=(seen, latest))

    def __add__(self, other: Model) -> Model:
        return self.merge(other)

    def using(self, *, estimator: str | None = None, smoothing: float | None = None) -> Model:
        """Return the same counts with another estimator or smoothing."""
        model = self.with_counts(patterns=dict(self.patterns), traffic=self.traffic)
        smoothing = self.settings.smoothing if smoothing is None else smoothing
        model.settings = replace(self.settings, smoothing=smoothing, estimator=estimator or self.settings.estimator)
        return model

    def fade(self, now: int) -> Model:
        """Return the model with its counts as much weaker as its half-life makes them until a time."""
        assert self.settings.half_life is not None
        by = self.settings.half_life.compute_fading(self.now, (0, now))
        patterns = {key: replace(counted, counts=counted.counts.scale(by)) for key, counted in self.patterns.items()}
        return self.with_counts(patterns=patterns, traffic=self.traffic.scale(by))

    def with_counts(
        self, *, patterns: dict[str, CountedPattern], traffic: Traffic, now: tuple[int, int] | None = None
    ) -> Model:
        """Return a model of the same settings with other counts."""
        model = Model()
        model.settings, model.patterns, model.traffic = self.settings, patterns, traffic
        model.now = self.now if now is None else now
        return model

    # Files -------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the model as a file holds it."""
        return write_model(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """Return the model of such bytes; `StateError` when they are none."""
        stored = read_model(data)
        model = cls(**stored.settings)
        patterns = {make_pattern_key(counted.pattern, counted.mode): counted for counted in stored.patterns}
        return model.with_counts(patterns=patterns, traffic=stored.traffic, now=stored.now)

    def save(self, path: str | Path) -> None:
        """Write a file, at once or not at all."""
        save_bytes(self.to_bytes(), Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a file."""
        try:
            data = Path(path).read_bytes()
        except OSError as problem:
            msg = f"{path}: cannot be read: {problem.strerror}"
            raise FileError(msg) from problem
        try:
            return cls.from_bytes(data)
        except StateError as problem:
            msg = f"{path}: {problem}"
            raise StateError(msg) from problem

    def show(self, name: str | None = None, *, horizon: HorizonLike | None = None) -> str:
        """Return states, counts and probabilities as text: of one pattern, or of all."""
        return format_model(self, name, horizon=horizon)


def make_pattern_key(pattern: Pattern, mode: Mode) -> str:
    """Return the key of a pattern in a model: its mode and tree, whatever its name."""
    return f"{mode} {json.dumps(json.loads(render_pattern(pattern, 'json')), sort_keys=True)}"


def is_same_course(course: Course, other: Course) -> bool:
    """Tell whether counts of two courses can be added."""
    same = course.labels == other.labels and course.table.shape == other.table.shape and course.cells == other.cells
    return same and bool((course.table == other.table).all() and (course.groups == other.groups).all())


def compute_label_prior(counted_pattern: CountedPattern, traffic: Traffic, smoothing: float) -> FloatArray:
    """Return the probability of each label from the share of events that satisfied each filter; uniform where unknown.

    With smoothing, a filter that no event has satisfied yet is not impossible.
    """
    course, pattern = counted_pattern.course, counted_pattern.pattern
    shares: dict[str, float] = {}
    for name in pattern.list_filters():
        names = make_filter_key(pattern, name)
        counted, judged = traffic.filters.get(names), traffic.asked.get(names, traffic.seen)
        if counted is not None and judged > 0:
            shares[name] = min(1.0, (counted + smoothing) / (judged + 2 * smoothing))
    if course.tracker is not None:
        guess = 1 / (len(pattern.list_filters()) + 1)
        return course.tracker.guess_prior({name: shares.get(name, guess) for name in pattern.list_filters()})
    size, sets = len(course.labels), course.list_filter_sets()
    if len(shares) < len(pattern.list_filters()):
        return np.full(size, 1 / size)
    if all(len(names) <= 1 for names in sets):
        prior = np.array([sum(shares[name] for name in names) if names else 0.0 for names in sets])
        prior[[not names for names in sets]] = max(0.0, 1 - prior.sum())
    else:  # as if filters were independent
        chances = [[share if name in names else 1 - share for name, share in shares.items()] for names in sets]
        prior = np.prod(chances, axis=1)
    return prior / prior.sum() if prior.sum() > 0 else np.full(size, 1 / size)


def make_filter_key(pattern: Pattern, name: str) -> str:
    """Return the key of a named filter in a model: its text."""
    return render(pattern[name].filter)


def _list_names(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(f"`{name}`" for name in ordered[:5]) + (" and others" if len(ordered) > 5 else "") or "none"
