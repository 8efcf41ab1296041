"""Columns: what the index sees of an attribute, and the values that a batch of events has there.

An attribute is looked at in several ways: as its value, as reversed text (a suffix is a prefix there),
case-folded, as the ids of the text patterns it satisfies, as a concept's number, as longitude and latitude,
as an age, as being there or being null. Each way is a column of its own with its own code space, so that
every predicate is an interval in some column and every event value a point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.algebra.law.typed_attribute import TypedAttribute
from tidings.model import Kind

UNREADABLE = math.inf
"""Stands for a value that is there but that a column's kind cannot read: it lies in no interval."""

UNREADABLE_TEXT = -2
"""The same as an index of `Texts`."""


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

    __hash__ = str.__hash__  # that of `Enum` is Python's

    @property
    def is_bytewise(self) -> bool:
        """Whether the values are bytes; otherwise they are numbers."""
        return self in (View.TEXT, View.REVERSED, View.FOLDED, View.FOLDED_REVERSED)


class Column(NamedTuple):
    """One view of one attribute; `tree` is the concept tree of a `CONCEPT` view.

    `kind` keeps apart what looks alike: numbers, times and truth values; text and addresses. `unit` is the one that
    filters on an attribute without a declared unit ask for: amounts in it are not the attribute's bare numbers.
    """

    attribute: str
    view: View
    tree: str | None = None
    kind: Kind | None = None
    unit: str | None = None

    def __str__(self) -> str:
        """Name it as `explain` prints it."""
        plain = self.view in (View.NUMBER, View.TEXT)
        name = self.attribute if plain else f"{self.attribute} ({self.view})"
        return f"{name} in {self.unit}" if self.unit else name


_READ_AS = {
    View.LONGITUDE: "place",
    View.LATITUDE: "place",
    View.AGE: "time",
    View.EXISTS: "",
    View.NULL: "",
}
"""What the views of values read an attribute as; all views of text read text, but for addresses."""


@lru_cache(maxsize=1 << 16)
def to_typed_attribute(column: Column) -> TypedAttribute:
    """Return how a column reads its attribute."""
    kind = _READ_AS.get(column.view)
    if kind is None:
        kind = "text" if column.kind in (None, Kind.CONCEPT) else column.kind.value
    return TypedAttribute(column.attribute, kind, column.unit or "", column.unit is None)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers, exact: each is `near + rest`, where `near` is the nearest float64.

    NaN says that no value is here, `UNREADABLE` that one is here and cannot be read. `rest` is nothing when all are
    zero, which is so up to 2**53.
    """

    near: NDArray[np.float64]
    rest: NDArray[np.int16] | None = None

    def __len__(self) -> int:
        """Count the places."""
        return len(self.near)


@dataclass(frozen=True, slots=True)
class Texts:
    """Byte strings, each distinct one once: place `i` holds `distinct[index[i]]`.

    The index -1 says that no value is here, `UNREADABLE_TEXT` that one is here and cannot be read.
    """

    index: NDArray[np.int32]
    distinct: list[bytes]

    def __len__(self) -> int:
        """Count the places."""
        return len(self.index)


ColumnValues = Numbers | Texts


@dataclass(frozen=True, slots=True)
class EventColumn:
    """The values of a batch of events in one column.

    Without `starts`, event `e` has the value at place `e`, if there is one. With `starts`, it has those from
    `starts[e]` up to `starts[e + 1]`, all of them there. Where `high` is given, a value is a range from `low`
    to `high`, whose `open` says: 1 low end open, 2 high end open, 4 no low end, 8 no high end; points have
    equal ends and 0.
    """

    low: ColumnValues
    high: ColumnValues | None = None
    open: NDArray[np.uint8] | None = None
    starts: NDArray[np.int64] | None = None


EventColumns = dict[Column, EventColumn]
"""The columns of a batch of events; a column that is not there is absent in every event."""


def split_number(value: Any) -> tuple[float, int]:
    """Return a number as the nearest float and what is missing to it.

    >>> split(2**53 + 1)
    (9007199254740992.0, 1)
    """
    near = float(value)
    return near, value - int(near) if isinstance(value, int) else 0
