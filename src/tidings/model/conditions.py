"""Conditions: what a test asks of an attribute's values, with the kind of values that each asks for.

They are frozen, compare by content and are checked when they are made, so that nothing further down meets an empty set,
a range that is upside down or an expression that RE2 refuses. What they mean is defined by `algebra.law.evaluate`.
`kind` is the kind that a condition asks of its attribute, `None` if it asks for none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from tidings.model.areas import Area
from tidings.model.text_tests import TextTest
from tidings.model.values import Kind, Network, Point, Range, Scalar, check_text, check_value, get_kind

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_name(name: str) -> None:
    """Refuse anything but an attribute's name: parts divided by dots, none of them empty."""
    if not name or not all(name.split(".")):
        msg = f"`{name}` is not an attribute's name"
        raise ValueError(msg)
    check_text(name)


def check_ends(ends: Range) -> None:
    """Refuse a range without ends as a condition; in an event it is a value that nothing bounds."""
    if ends.low is None and ends.high is None:
        msg = "a range needs at least one end; `exists` accepts any value"
        raise ValueError(msg)


class Comparison(StrEnum):
    """How two attributes compare; `!=` is `none` of `=`."""

    EQ = "="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def mirror(self) -> Comparison:
        """The comparison that says the same with its two sides exchanged."""
        return Comparison(self.translate({ord("<"): ">", ord(">"): "<"}))


@dataclass(frozen=True, slots=True)
class Is:
    """Equal to one value. The kind takes part in equality: Python's `True == 1` must not."""

    value: Scalar
    kind: Kind = field(init=False)

    def __post_init__(self) -> None:
        # The class is frozen, so its constructor is the one place that may normalize a field.
        object.__setattr__(self, "value", check_value(self.value))
        object.__setattr__(self, "kind", get_kind(self.value))


@dataclass(frozen=True, slots=True)
class In:
    """Equal to one of two or more values of one kind (`one_of` also takes a single one)."""

    values: tuple[Scalar, ...]
    kind: Kind = field(init=False)

    def __post_init__(self) -> None:
        values = tuple(dict.fromkeys(check_value(value) for value in self.values))
        kinds = {get_kind(value) for value in self.values}
        if len(kinds) > 1:
            msg = f"a set holds values of one kind, not {' and '.join(sorted(kinds))}"
            raise ValueError(msg)
        if len(values) < 2:
            msg = "a set of fewer than two values; use one_of()"
            raise ValueError(msg)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "kind", kinds.pop())


@dataclass(frozen=True, slots=True)
class SameText:
    """Text that equals one of these, ignoring case: `make = 'ford' ignoring case`, or `in` with several."""

    values: tuple[str, ...]
    folded: frozenset[str] = field(init=False, repr=False, compare=False)
    kind: ClassVar = Kind.TEXT

    def __post_init__(self) -> None:
        if not self.values or not all(isinstance(value, str) for value in self.values):
            msg = "`ignoring case` compares text: `make = 'ford' ignoring case`"
            raise ValueError(msg)
        first: dict[str, str] = {}  # of spellings that fold alike, the one that was written first is shown
        for value in self.values:
            first.setdefault(check_text(value).casefold(), value)
        object.__setattr__(self, "values", tuple(first.values()))
        object.__setattr__(self, "folded", frozenset(first))


@dataclass(frozen=True, slots=True)
class IsA:
    """The concept itself or anything below it in its tree (binding a filter fills the tree in)."""

    concept: str
    tree: str | None = None
    kind: ClassVar = Kind.CONCEPT

    def __post_init__(self) -> None:
        check_text(self.concept)


@dataclass(frozen=True, slots=True)
class Within:
    """Inside an area, or on its boundary."""

    area: Area
    kind: ClassVar = Kind.PLACE


@dataclass(frozen=True, slots=True)
class WithinRegion:
    """Inside a region that `td.Regions` knows by name."""

    region: str
    kind: ClassVar = Kind.PLACE

    def __post_init__(self) -> None:
        check_text(self.region)


@dataclass(frozen=True, slots=True)
class Near:
    """At most `metres` from a place, along the great circle."""

    center: Point
    metres: int | float
    kind: ClassVar = Kind.PLACE

    def __post_init__(self) -> None:
        check_value(self.metres)
        if self.metres < 0:
            msg = "a distance is not negative"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class InNetworks:
    """An address in one of the blocks; a single address is a block of one."""

    networks: tuple[Network, ...]
    kind: ClassVar = Kind.IP

    def __post_init__(self) -> None:
        object.__setattr__(self, "networks", tuple(dict.fromkeys(self.networks)))
        if not self.networks:
            msg = "a set of no address blocks"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Age:
    """The age of a time, in seconds before `now`, lies in a range."""

    seconds: Range
    kind: ClassVar = Kind.TIME

    def __post_init__(self) -> None:
        check_ends(self.seconds)
        if self.seconds.kind is not Kind.NUMBER:
            msg = "an age is a range of seconds"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Compare:
    """Compared with another attribute of the same event.

    Binding a filter fills in the kind and the unit that a declaration of either side gives to both.
    """

    op: Comparison
    other: str
    kind: Kind | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        check_name(self.other)


@dataclass(frozen=True, slots=True)
class Exists:
    """At least one value."""

    kind: ClassVar = None


@dataclass(frozen=True, slots=True)
class IsNull:
    """An explicit null."""

    kind: ClassVar = None


PlaceCondition: TypeAlias = Within | WithinRegion | Near
ValueCondition: TypeAlias = (
    Is | In | Range | SameText | TextTest | IsA | PlaceCondition | InNetworks | Age | Compare | Exists | IsNull
)
"""A condition on the values of one attribute; `model.filters` adds `Has`, which holds a whole filter."""


def one_of(values: Iterable[Scalar]) -> Is | In:
    """Return membership in a set; of one distinct value, equality."""
    values = tuple(values)
    distinct = set(map(check_value, values))
    # A set of Python values takes `True` and `1` for one; `In` then refuses the mixture of kinds.
    return Is(values[0]) if len(distinct) == 1 and len({type(value) is bool for value in values}) == 1 else In(values)
