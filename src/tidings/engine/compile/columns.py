"""Columns: the views of an attribute that the index tests, and the values that a batch of events has in them.

An attribute has several views: its value, reversed text (where a suffix is a prefix), case-folded text, the ids of the
text patterns it satisfies, a concept's number, longitude and latitude, an age, existence, and null. Each view is a
column with a code space of its own, so that every predicate is an interval in some column and every event value a
point.
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
from tidings.kernels.array_types import ByteArray, FloatArray, Int32Array, IntArray
from tidings.model import Kind

UNREADABLE = math.inf
"""Stands for a value that exists but cannot be read as the column's kind: it lies in no interval."""

UNREADABLE_TEXT = -2
"""The same as an index of `Texts`."""

EXACT = 2**53
"""Floats represent every integer up to here exactly."""


class View(StrEnum):
    """The aspect of an attribute that a column holds."""

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
    EXISTS = "exists"  # 0 where the event has a value or a record
    NULL = "null"  # 0 where the event has an explicit null

    __hash__ = str.__hash__  # `Enum`'s own hash is slow, being written in Python

    @property
    def is_bytewise(self) -> bool:
        """Whether the values are bytes; otherwise they are numbers."""
        return self in (View.TEXT, View.REVERSED, View.FOLDED, View.FOLDED_REVERSED)


class Column(NamedTuple):
    """One view of one attribute; `tree` is the concept tree of a `CONCEPT` view.

    `kind` tells views with the same values apart: numbers, times and truth values; text and addresses. `unit` is the
    unit that filters name where the attribute declares none: amounts in it are not the attribute's bare numbers.
    """

    attribute: str
    view: View
    tree: str | None = None
    kind: Kind | None = None
    unit: str | None = None

    def __str__(self) -> str:
        """Return the name that `explain` prints."""
        plain = self.view in (View.NUMBER, View.TEXT)
        name = self.attribute if plain else f"{self.attribute} ({self.view})"
        return f"{name} in {self.unit}" if self.unit else name

    @property
    def value_kind(self) -> Kind:
        """The kind of the column's values; most views have but one."""
        return _VIEW_KINDS.get(self.view) or self.kind or Kind.TEXT


_VIEW_KINDS = {
    View.PATTERNS: Kind.TEXT,
    View.CONCEPT: Kind.CONCEPT,
    View.LONGITUDE: Kind.PLACE,
    View.LATITUDE: Kind.PLACE,
    View.AGE: Kind.TIME,
    View.EXISTS: Kind.OPAQUE,
    View.NULL: Kind.OPAQUE,
}
"""The kinds of views that do not depend on the column."""


@lru_cache(maxsize=1 << 16)
def to_typed_attribute(column: Column) -> TypedAttribute:
    """Return the attribute with the kind and unit that a column reads it as."""
    kind = column.value_kind.value
    name = {"opaque": "", "concept": "text"}.get(kind, kind)
    return TypedAttribute(column.attribute, name, column.unit or "", column.unit is None)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers, exact: each is `near + rest`, where `near` is the nearest float64.

    NaN stands for no value, `UNREADABLE` for one that cannot be read. `rest` is None when it is zero everywhere, which
    is so for numbers up to 2**53.
    """

    near: FloatArray
    rest: NDArray[np.int16] | None = None

    def __len__(self) -> int:
        return len(self.near)


@dataclass(frozen=True, slots=True)
class Texts:
    """Byte strings, each distinct one once: place `i` holds `distinct[index[i]]`.

    The index -1 stands for no value, `UNREADABLE_TEXT` for one that cannot be read.
    """

    index: Int32Array
    distinct: list[bytes]

    def __len__(self) -> int:
        return len(self.index)


ColumnValues = Numbers | Texts


@dataclass(frozen=True, slots=True)
class EventColumn:
    """The values of a batch of events in one column.

    Without `starts`, event `e` has the value at place `e`, which may be none. With `starts`, it has those from
    `starts[e]` up to `starts[e + 1]`, none of them missing. With `high`, a value is a range from `low` to `high`, and
    `open` has the flags of its ends: 1 low end open, 2 high end open, 4 no low end, 8 no high end; a point has equal
    ends and 0.
    """

    low: ColumnValues
    high: ColumnValues | None = None
    open: ByteArray | None = None
    starts: IntArray | None = None


EventColumns = dict[Column, EventColumn]
"""The columns of a batch of events; of a column that is left out, no event has a value."""


class EventSample(NamedTuple):
    """The columns of some events that were matched, and their number: what the planner and `explain` go by."""

    batch: EventColumns
    events: int


def split_number(value: Any) -> tuple[float, int]:
    """Return a number as the nearest float and the difference to it.

    >>> split_number(2**53 + 1)
    (9007199254740992.0, 1)
    """
    near = float(value)
    return near, value - int(near) if isinstance(value, int) else 0
