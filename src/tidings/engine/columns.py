"""Columns: what the index sees of an attribute, and the values that a batch of events has there.

An attribute is looked at in several ways: as its value, as reversed text (a suffix is a prefix there),
case-folded, as the ids of the text patterns it satisfies, as a concept's number, as longitude and latitude,
as an age, as being there or being null. Each way is a column of its own with its own code space, so that
every predicate is an interval in some column and every event value a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tidings.model import Kind


class View(StrEnum):
    """A way to look at an attribute."""

    NUMBER = "number"  # numbers; times as microseconds since 1970; truth as 0 and 1
    TEXT = "text"  # text by its UTF-8 bytes; addresses by theirs
    REVERSED = "reversed"  # text read backwards
    FOLDED = "folded"  # case-folded text
    FOLDED_REVERSED = "folded reversed"
    PATTERNS = "patterns"  # ids of the `contains`, `like` and `matches` patterns that the text satisfies
    CONCEPT = "concept"  # depth-first number in the tree `Column.tree`
    LONGITUDE = "longitude"
    LATITUDE = "latitude"
    AGE = "age"  # seconds before `now`
    EXISTS = "exists"  # 0 where there is a value or a record
    NULL = "null"  # 0 where there is an explicit null

    @property
    def bytewise(self) -> bool:
        """Whether the values are bytes; otherwise they are numbers."""
        return self in (View.TEXT, View.REVERSED, View.FOLDED, View.FOLDED_REVERSED)


class Column(NamedTuple):
    """One view of one attribute; `tree` is the concept tree of a `CONCEPT` view.

    `kind` keeps apart what looks alike: numbers, times and truth values; text and addresses.
    """

    attribute: str
    view: View
    tree: str | None = None
    kind: Kind | None = None

    def __str__(self) -> str:
        """Name it as `explain` prints it."""
        plain = self.view in (View.NUMBER, View.TEXT)
        return self.attribute if plain else f"{self.attribute} ({self.view})"


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers, exact: each is `near + rest`, where `near` is the nearest float64 (NaN: no value here).

    `rest` is nothing when all are zero, which is so up to 2**53.
    """

    near: NDArray[np.float64]
    rest: NDArray[np.int16] | None = None

    def __len__(self) -> int:
        """Count the places."""
        return len(self.near)


@dataclass(frozen=True, slots=True)
class Texts:
    """Byte strings, each distinct one once: place `i` holds `distinct[index[i]]` (-1: no value here)."""

    index: NDArray[np.int32]
    distinct: list[bytes]

    def __len__(self) -> int:
        """Count the places."""
        return len(self.index)


Points = Numbers | Texts


@dataclass(frozen=True, slots=True)
class EventColumn:
    """The values of a batch of events in one column.

    Without `starts`, event `e` has the value at place `e`, if there is one. With `starts`, it has those from
    `starts[e]` up to `starts[e + 1]`, all of them there. Where `high` is given, a value is a range from `low`
    to `high`, whose `open` says: 1 low end open, 2 high end open, 4 no low end, 8 no high end; points have
    equal ends and 0.
    """

    low: Points
    high: Points | None = None
    open: NDArray[np.uint8] | None = None
    starts: NDArray[np.int64] | None = None


Batch = dict[Column, EventColumn]
"""The columns of a batch of events; a column that is not there is absent in every event."""


def split(value: Any) -> tuple[float, int]:
    """Return a number as the nearest float and what is missing to it.

    >>> split(2**53 + 1)
    (9007199254740992.0, 1)
    """
    near = float(value)
    return near, value - int(near) if isinstance(value, int) else 0
