"""Where the parts of a pattern stand in its source, and the error that reports mistakes at their places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidings.errors import Mistake, PatternError
from tidings.lang.diagnostics import MAX_LENGTH, refused
from tidings.model.patterns import Absence, NamedFilter, Node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.errors import FilterError, FilterWarning

HOLE = "\x00"
"""The filter of a step that stands where something could not be read; checks pass over it."""

MAX_LEVELS = 50
"""Levels of parentheses that a pattern may have; recursion stays far from Python's own limit."""


@dataclass(frozen=True, slots=True)
class Place:
    """A span of offsets in text, or a path in JSON."""

    start: int | None = None
    end: int | None = None
    path: str | None = None

    def mistake(self, message: str) -> Mistake:
        """Return a mistake at this place."""
        return Mistake(message, self.start, self.end, self.path)


class Places:
    """The places of a pattern's parts, by identity: two equal steps stand in two places."""

    def __init__(self) -> None:
        """Start empty; `mistakes` and `doubts`, the warnings, are those found while reading, with stand-ins."""
        self.mistakes: list[Mistake] = []
        self.doubts: list[FilterWarning] = []
        self._known: dict[int, tuple[Any, tuple[Place, ...]]] = {}

    def note(self, thing: Any, *places: Place) -> None:
        """Remember where a part, and what it names, stands; holding the part keeps its identity its own."""
        self._known[id(thing)] = (thing, places)

    def of(self, thing: Any, index: int = 0) -> Place:
        """Return the place noted under this index, as far as known."""
        places = self._known[id(thing)][1] if id(thing) in self._known else ()
        return places[index] if index < len(places) else Place()

    def refuse(self, message: str, place: Place) -> None:
        """Note a mistake."""
        self.mistakes.append(place.mistake(message))


@dataclass(frozen=True, slots=True)
class Draft:
    """A pattern as it was read, before anybody said that it makes sense."""

    filters: tuple[NamedFilter, ...]
    root: Node | None
    absence: Absence | None
    places: Places


def pattern_error(mistakes: Iterable[Mistake], text: str | None) -> PatternError:
    """Return the error that reports all mistakes together, shown as those of filters are."""
    shown = refused(mistakes, text)
    return PatternError(str(shown), mistakes=shown.mistakes, text=text)


def check_length(text: str) -> None:
    """Refuse a pattern that is too long, and name the limit."""
    if len(text) > MAX_LENGTH:
        mistake = Mistake(f"the pattern has {len(text):,} characters; the limit is {MAX_LENGTH:,}")
        raise pattern_error([mistake], None)


def moved(problem: FilterError, *, by: int = 0, under: str = "$") -> list[Mistake]:
    """Return the mistakes of a filter as those of the pattern it stands in."""
    if not problem.mistakes:
        return [Mistake(str(problem), path=under if under != "$" else None)]
    return [_moved(mistake, by, under) for mistake in problem.mistakes]


def _moved(mistake: Mistake, by: int, under: str) -> Mistake:
    if mistake.path is not None:
        return replace(mistake, path=under + mistake.path.removeprefix("$"))
    if mistake.start is None:
        return mistake
    return replace(mistake, start=mistake.start + by, end=None if mistake.end is None else mistake.end + by)
