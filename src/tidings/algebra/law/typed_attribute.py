"""An attribute as one test reads it: its name, and the kind and the unit that the test asks for.

Nobody's filter decides what an attribute is: of an attribute that is not declared, each test reads the values as the
kind it asks for, side by side with tests that ask for others. So what is read of an event is kept by `TypedAttribute`,
not by name. A declared attribute has one reading for all its tests, in the unit that is declared.

A value that a kind cannot read is there all the same: it is a `Mismatch`, which satisfies no condition.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tidings.model import (
    Age,
    Compare,
    Exists,
    Has,
    In,
    InNetworks,
    Is,
    IsA,
    IsNull,
    Kind,
    Near,
    Point,
    Quantity,
    Range,
    SameText,
    TextTest,
    Within,
    WithinRegion,
    one_of,
    scalars_of,
    tests,
)
from tidings.model.values import kind_of

if TYPE_CHECKING:
    from tidings.model import Condition, Filter, Test


Label: TypeAlias = "tuple[str, str, bool]"
"""All of a `TypedAttribute` but its name: the kind, the unit, and whether numbers may come without it."""

AS_IS: Label = ("", "", True)
"""The reading of those who ask for no kind."""


class TypedAttribute(NamedTuple):
    """An attribute and how it is read: as which kind (none: as it is), in which unit (none: bare numbers).

    With `bare`, a number without a unit is taken to be in `unit`; otherwise a value must bring a unit. Plain text
    instead of `Kind`, which hashes ten times as slowly.
    """

    name: str
    kind: str = ""
    unit: str = ""
    bare: bool = True


class Mismatch:
    """A value that is there, but cannot be read as what a test asks for."""

    __slots__ = ("raw",)

    def __init__(self, raw: Any) -> None:
        """Keep the value as the event gives it."""
        self.raw = raw

    def __repr__(self) -> str:
        """Show the value as it came."""
        return f"Mismatch({self.raw!r})"

    def __str__(self) -> str:
        """Show the value as it came."""
        return str(self.raw)


_SORTS = {str: "text", bool: "bool", int: "number", float: "number"}
"""Words for values of the plainest types."""


def sort_of(raw: Any) -> str:
    """Return the word for what a raw value is by itself: `text`, `number`, `time`, ..."""
    known = _SORTS.get(type(raw))
    if known is not None:
        return known
    from datetime import date
    from decimal import Decimal

    if isinstance(raw, Kind):  # of a whole column of them
        return "record" if raw is Kind.OPAQUE else raw.value
    if isinstance(raw, str):
        return "text"
    if isinstance(raw, bool):
        return "bool"
    if isinstance(raw, int | float | Decimal):
        return "number"
    if isinstance(raw, date):
        return "time"
    if isinstance(raw, Range):
        return "range"
    if isinstance(raw, dict):
        return "record"
    return "place" if isinstance(raw, list | tuple) else type(raw).__name__.lower()


_KINDS: dict[type, str] = {
    TextTest: "text",
    SameText: "text",
    IsA: "text",  # a concept's name is text; whether it is folded is declared
    Within: "place",
    WithinRegion: "place",
    Near: "place",
    InNetworks: "ip",
    Age: "time",
    Has: "record",
    Exists: "",
    IsNull: "",
}
"""What conditions ask for, whatever they hold."""


_WORDS: dict[type, str] = {int: "number", float: "number", str: "text", bool: "bool", datetime: "time", Point: "place"}
"""What values ask for that have no unit."""


# Implementer's note: every test of every event asks this, so plain conditions are told at a glance.
def typed(name: str, condition: Condition) -> TypedAttribute:
    """Return how a bound condition reads the attribute of this name."""
    kind = type(condition)
    word = _KINDS.get(kind)
    if word is None:
        if kind is Is:
            word = _WORDS.get(type(condition.value))  # type: ignore[union-attr]
        elif kind is Range:
            low, high = condition.low, condition.high  # type: ignore[union-attr]
            word = _WORDS.get(type(high if low is None or type(high) is Quantity else low))
        elif kind is In:
            values = condition.values  # type: ignore[union-attr]
            word = None if Quantity in map(type, values) else _WORDS.get(type(values[0]))
        elif kind is Compare:
            return TypedAttribute(name, kind_word(condition.kind), condition.unit or "")  # type: ignore[union-attr]
    return _of_scalars(name, condition) if word is None else _plainly(name, word)


@lru_cache(maxsize=1 << 16)
def _plainly(name: str, word: str) -> TypedAttribute:
    return TypedAttribute(name, word)


def typed_test(test: Test) -> TypedAttribute:
    """Return how a bound test reads its attribute."""
    return typed(test.attribute, test.condition)


def compared_with(condition: Compare) -> TypedAttribute:
    """Return how a bound comparison reads the other attribute."""
    return TypedAttribute(condition.other, kind_word(condition.kind), condition.unit or "")


def asked_of(tree: Filter) -> set[TypedAttribute]:
    """Return all that the tests of a bound filter read, by full names."""
    asked = set()
    for name, test in tests(tree):
        asked.add(typed(name, test.condition))
        if isinstance(test.condition, Compare):
            prefix = name[: len(name) - len(test.attribute)]
            asked.add(compared_with(test.condition)._replace(name=prefix + test.condition.other))
    return asked


def kind_word(kind: Kind | None) -> str:
    """Return the word under which values of a kind are read: concepts are text, nothing is any kind."""
    if kind is None:
        return ""
    return "text" if kind is Kind.CONCEPT else kind.value


def _of_scalars(name: str, condition: Condition) -> TypedAttribute:
    values = scalars_of(condition)
    unit = next((value.unit for value in values if type(value) is Quantity), "")
    if unit:
        return TypedAttribute(name, "number", unit, bare=False)
    return TypedAttribute(name, kind_of(values[0]).value)


def without_unit(condition: Condition) -> Condition:
    """Return a bound condition with plain numbers for amounts: all of them are in one unit."""
    kind = type(condition)
    if kind is Is:
        value = condition.value  # type: ignore[union-attr]
        return Is(value.amount) if type(value) is Quantity else condition
    if kind is Range:
        low, high = condition.low, condition.high  # type: ignore[union-attr]
        if type(low) is not Quantity and type(high) is not Quantity:
            return condition
        return Range(_amount(low), _amount(high), condition.low_open, condition.high_open)  # type: ignore[union-attr]
    if kind is In and Quantity in map(type, condition.values):  # type: ignore[union-attr]
        return one_of(map(_amount, condition.values))  # type: ignore[union-attr]
    return condition


def _amount(value: Any) -> Any:
    return value.amount if type(value) is Quantity else value
