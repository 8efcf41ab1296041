"""One root for everything Tidings refuses; each class's docstring is its default message.

An error carries its data as attributes (`attribute`, `mistakes`, `limit`, ...) so that the command
line, a service or a dead letter can render it in its own way. The message alone is a positional
argument, so every error survives pickling on its way back from a Spark worker.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Any


class TidingsError(Exception):
    """Tidings refused what was asked."""

    def __init__(self, message: str | None = None, **data: Any) -> None:
        """Keep the message as the only argument and the data as attributes."""
        super().__init__(message if message is not None else inspect.getdoc(type(self)))
        self.__dict__.update(data)

    def __str__(self) -> str:
        """Return the message; a `KeyError` among the bases would quote it."""
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing wrong with a filter, and where: an offset span in text, or a path in JSON."""

    message: str
    start: int | None = None
    end: int | None = None
    path: str | None = None

    def shift(self, offset: int) -> Mistake:
        """Return the mistake with its offsets in a longer text, in which its own text begins at `offset`."""
        if self.start is None:
            return self
        return replace(self, start=self.start + offset, end=None if self.end is None else self.end + offset)

    def meets(self, other: Mistake) -> bool:
        """Tell whether the two places share something: then one may well follow from the other."""
        if self.start is None or other.start is None:
            return self.path is not None and self.path == other.path
        return self.start < (other.end or other.start + 1) and other.start < (self.end or self.start + 1)


class FilterError(TidingsError, ValueError):
    """The filter is not well formed."""

    mistakes: tuple[Mistake, ...]
    text: str | None


class FilterWarning(UserWarning):
    """The filter may mean something else than its author thinks; `start` and `end` are its place in `text`."""

    def __init__(self, message: str, *, start: int | None = None, end: int | None = None, text: str = "") -> None:
        """Keep the message as the only argument, so that the warning survives pickling."""
        super().__init__(message)
        self.start, self.end, self.text = start, end, text

    def __reduce__(self) -> tuple[Any, ...]:
        """Make it again from the message, and then its place."""
        return type(self), self.args, self.__dict__


class PatternError(TidingsError, ValueError):
    """The pattern is not well formed."""

    mistakes: tuple[Mistake, ...] = ()
    text: str | None = None


class NotExpressible(TidingsError, ValueError):
    """This notation cannot say that."""

    notation: str
    part: str


class TooLarge(TidingsError, ValueError):
    """The filter's normal form has too many conjunctions."""

    limit: int


class SchemaError(TidingsError, ValueError):
    """The schema is not well formed."""


class KindConflict(SchemaError):
    """Two sides use one attribute as different kinds."""

    attribute: str


class UnknownAttributes(TidingsError, LookupError):
    """Filters ask for attributes that nobody has."""

    names: tuple[str, ...]


class BadEvent(TidingsError, ValueError):
    """The event does not fit the attributes' kinds."""

    attribute: str | None = None
    index: int | None = None


class BadValue(TidingsError, ValueError):
    """The value cannot stand in a filter or an event."""


class OntologyError(TidingsError, ValueError):
    """The ontology is not well formed."""


class UnknownConcept(OntologyError, LookupError):
    """No concept tree has this name."""


class AmbiguousConcept(OntologyError, LookupError):
    """Several concepts have this name."""


class UnknownUnit(OntologyError, LookupError):
    """No such unit is known."""


class UnitMismatch(OntologyError):
    """The two units measure different things."""


class UnknownRegion(TidingsError, LookupError):
    """No region has this name."""


class BadRegion(TidingsError, ValueError):
    """The polygon is not valid."""


class UnknownSubscription(TidingsError, KeyError):
    """No subscription has this id."""


class BadSubscriptions(TidingsError, ValueError):
    """Some subscriptions were refused, so none was added."""

    errors: tuple[tuple[str | int, TidingsError], ...]


class UnknownPattern(TidingsError, KeyError):
    """No pattern has this name."""


class StateError(TidingsError, ValueError):
    """The detector's state cannot be read."""


class UnknownMatcher(TidingsError, LookupError):
    """No matcher has this name."""


class Unsupported(TidingsError, ValueError):
    """This matcher cannot express the filter."""

    kind: str
    part: str


class SnapshotError(TidingsError, ValueError):
    """The snapshot cannot be read."""


class FileError(TidingsError, ValueError):
    """The file cannot be read as what it should be."""


class MissingExtra(TidingsError, ImportError):
    """An optional part is not installed."""


class SparkUnavailable(TidingsError, RuntimeError):
    """Spark cannot start here, or lacks what is asked of it."""


class BadFrame(TidingsError, ValueError):
    """The DataFrame's columns do not fit what was asked."""


class CheckpointError(TidingsError, ValueError):
    """The checkpoint folder cannot be used."""


class PipelineFailed(TidingsError, RuntimeError):
    """The pipeline stopped by itself."""


class SinkError(TidingsError, RuntimeError):
    """The sink cannot take the rows."""


class CannotServe(TidingsError, RuntimeError):
    """The metrics cannot be served at this address."""


class BadSettings(TidingsError, ValueError):
    """The settings file has mistakes."""

    mistakes: tuple[str, ...]


class BadPipeline(BadSettings):
    """The pipeline's file has mistakes."""
