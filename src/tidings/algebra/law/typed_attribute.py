"""The key under which a test looks up values: an attribute's name with the kind and unit the test asks for.

No filter decides what an undeclared attribute is: each test reads its values as the kind it asks for, side by side
with tests that ask for other kinds. So the values of an event are stored by `TypedAttribute`, not by name. A declared
attribute has one reading for all tests, in the declared unit.

A value that cannot be read as a kind is still present: it is a `Mismatch`, which satisfies no condition.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, get_args

from tidings import model
from tidings.model.values import KIND_BY_TYPE, get_kind

Label: TypeAlias = "tuple[str, str, bool]"
"""A reading label: a `TypedAttribute` without its name, so the kind, the unit, and whether numbers may come bare."""

AS_IS: Label = ("", "", True)
"""The label of tests that ask for no kind: `exists`, `is null`."""


class TypedAttribute(NamedTuple):
    """An attribute with the kind it is read as (empty: any) and the unit of its numbers (empty: none).

    With `bare`, a number without a unit counts as being in `unit`; otherwise it must carry one. The kind is a plain
    string because `Kind` members hash ten times as slowly, and this is the key of every value lookup.
    """

    name: str
    kind: str = ""
    unit: str = ""
    bare: bool = True


class Mismatch:
    """A value that is present but cannot be read as the kind a test asks for."""

    __slots__ = ("raw",)

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def __repr__(self) -> str:
        return f"Mismatch({self.raw!r})"

    def __str__(self) -> str:
        return str(self.raw)


_TYPE_WORDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (str, "text"),
    (bool, "bool"),
    ((int, float, Decimal), "number"),
    (date, "time"),
    (model.Range, "range"),
    (dict, "record"),
    ((list, tuple), "place"),
)
"""The words for Python types and their subclasses; the first that fits applies."""


def describe_type(raw: Any) -> str:
    """Return the word for the type of a raw value, as reports show it: `text`, `number`, `time`, ..."""
    if type(raw) is model.Kind:  # the type of a whole column
        return "record" if raw is model.Kind.OPAQUE else raw.value
    return _describe_class(type(raw))  # type: ignore[arg-type] # classes are hashable


@lru_cache(maxsize=1024)
def _describe_class(raw_type: type) -> str:
    return next((word for types, word in _TYPE_WORDS if issubclass(raw_type, types)), raw_type.__name__.lower())


def to_kind_word(kind: model.Kind | None) -> str:
    """Return the kind as a `TypedAttribute` spells it: concepts are text, no kind is empty."""
    if kind is None:
        return ""
    return "text" if kind is model.Kind.CONCEPT else kind.value


# Of the conditions that have one kind for all values; the others have a slot or a property `kind`.
_WORD_BY_CONDITION = {
    condition: to_kind_word(condition.kind)
    for condition in get_args(model.Condition)
    if condition.kind is None or isinstance(condition.kind, model.Kind)
}
_WORD_BY_TYPE = {value_type: to_kind_word(kind) for value_type, kind in KIND_BY_TYPE.items()}


# Runs for every test of every event, so common conditions are decided by two dictionary lookups.
def resolve_attribute(name: str, condition: model.Condition) -> TypedAttribute:
    """Return the key under which a bound condition looks up the values of the attribute with this name."""
    kind = type(condition)
    word = _WORD_BY_CONDITION.get(kind)
    if word is None:
        if kind is model.Is:
            word = _WORD_BY_TYPE.get(type(condition.value))  # type: ignore[union-attr]
        elif kind is model.Range:
            low, high = condition.low, condition.high  # type: ignore[union-attr]
            word = _WORD_BY_TYPE.get(type(high if low is None or type(high) is model.Quantity else low))
        elif kind is model.In:
            values = condition.values  # type: ignore[union-attr]
            word = None if model.Quantity in map(type, values) else _WORD_BY_TYPE.get(type(values[0]))
        elif kind is model.Compare:
            return TypedAttribute(name, to_kind_word(condition.kind), condition.unit or "")  # type: ignore[union-attr]
    return _resolve_by_values(name, condition) if word is None else _make_plain(name, word)


@lru_cache(maxsize=1 << 16)
def _make_plain(name: str, word: str) -> TypedAttribute:
    return TypedAttribute(name, word)


def resolve_test(test: model.Test) -> TypedAttribute:
    """Return the key under which a bound test looks up the values of its attribute."""
    return resolve_attribute(test.attribute, test.condition)


def resolve_compared(condition: model.Compare) -> TypedAttribute:
    """Return the key under which a bound comparison looks up its other attribute."""
    return TypedAttribute(condition.other, to_kind_word(condition.kind), condition.unit or "")


def collect_attributes(tree: model.Filter) -> set[TypedAttribute]:
    """Return the keys of all attributes that the tests of a bound filter look up, by full names."""
    attributes = set()
    for name, test in model.walk_tests(tree):
        attributes.add(resolve_attribute(name, test.condition))
        if isinstance(test.condition, model.Compare):
            attributes.add(resolve_compared(test.condition)._replace(name=model.get_other_name(name, test)))
    return attributes


def _resolve_by_values(name: str, condition: model.Condition) -> TypedAttribute:
    values = model.list_scalars(condition)
    unit = next((value.unit for value in values if type(value) is model.Quantity), "")
    if unit:
        return TypedAttribute(name, "number", unit, bare=False)
    return TypedAttribute(name, get_kind(values[0]).value)


def strip_unit(condition: model.Condition) -> model.Condition:
    """Return a bound condition with plain numbers for amounts, which binding has put into one unit."""
    kind = type(condition)
    if kind is model.Is:
        value = condition.value  # type: ignore[union-attr]
        return model.Is(value.amount) if type(value) is model.Quantity else condition
    if kind is model.Range:
        low, high = condition.low, condition.high  # type: ignore[union-attr]
        if type(low) is not model.Quantity and type(high) is not model.Quantity:
            return condition
        return model.Range(_to_amount(low), _to_amount(high), condition.low_open, condition.high_open)  # type: ignore[union-attr]
    if kind is model.In and model.Quantity in map(type, condition.values):  # type: ignore[union-attr]
        return model.one_of(map(_to_amount, condition.values))  # type: ignore[union-attr]
    return condition


def _to_amount(value: Any) -> Any:
    return value.amount if type(value) is model.Quantity else value
