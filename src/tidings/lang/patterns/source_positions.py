"""Source positions of a pattern's parts, and the error that reports mistakes at their positions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidings.errors import Mistake, PatternError
from tidings.lang.diagnostics import MAX_LENGTH, build_filter_error
from tidings.model.patterns import Absence, NamedFilter, Node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.errors import FilterError, FilterWarning

HOLE = "\x00"
"""The filter's name in a step that replaces a part which could not be read; checks ignore it."""

MAX_LEVELS = 50
"""Levels of parentheses in a pattern at most; recursion stays far from Python's own limit."""


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """A span of offsets in text, or a path in JSON."""

    start: int | None = None
    end: int | None = None
    path: str | None = None

    def make_mistake(self, message: str) -> Mistake:
        """Return a mistake at this position."""
        return Mistake(message, self.start, self.end, self.path)


class PatternSourceMap:
    """The positions of a pattern's parts, by identity: two equal steps have two positions."""

    def __init__(self) -> None:
        """Start empty; `mistakes` and `filter_warnings` are those found while reading."""
        self.mistakes: list[Mistake] = []
        self.filter_warnings: list[FilterWarning] = []
        self._spans: dict[int, tuple[Any, tuple[SourceSpan, ...]]] = {}

    def record(self, thing: Any, *spans: SourceSpan) -> None:
        """Record the positions of a part and of its names; the map refers to the part, so its `id` stays valid."""
        self._spans[id(thing)] = (thing, spans)

    def locate(self, thing: Any, index: int = 0) -> SourceSpan:
        """Return the position recorded under this index; an empty one if there is none."""
        spans = self._spans[id(thing)][1] if id(thing) in self._spans else ()
        return spans[index] if index < len(spans) else SourceSpan()

    def refuse(self, message: str, place: SourceSpan) -> None:
        """Note a mistake."""
        self.mistakes.append(place.make_mistake(message))


@dataclass(frozen=True, slots=True)
class PatternDraft:
    """A pattern that was read but not yet checked."""

    filters: tuple[NamedFilter, ...]
    root: Node | None
    absence: Absence | None
    source_map: PatternSourceMap


def build_pattern_error(mistakes: Iterable[Mistake], text: str | None) -> PatternError:
    """Return the error that reports all mistakes together, formatted as those of filters are."""
    error = build_filter_error(mistakes, text)
    return PatternError(str(error), mistakes=error.mistakes, text=text)


def check_length(text: str) -> None:
    """Refuse a pattern of more than `MAX_LENGTH` characters."""
    if len(text) > MAX_LENGTH:
        mistake = Mistake(f"the pattern has {len(text):,} characters; the limit is {MAX_LENGTH:,}")
        raise build_pattern_error([mistake], None)


def shift_mistakes(problem: FilterError, *, offset: int = 0, under: str = "$") -> list[Mistake]:
    """Return a filter's mistakes with positions in the pattern: offset by `offset`, or below the path `under`."""
    if not problem.mistakes:
        return [Mistake(str(problem), path=under if under != "$" else None)]
    return [_shift_mistake(mistake, offset, under) for mistake in problem.mistakes]


def _shift_mistake(mistake: Mistake, offset: int, under: str) -> Mistake:
    if mistake.path is not None:
        return replace(mistake, path=under + mistake.path.removeprefix("$"))
    if mistake.start is None:
        return mistake
    return replace(mistake, start=mistake.start + offset, end=None if mistake.end is None else mistake.end + offset)
