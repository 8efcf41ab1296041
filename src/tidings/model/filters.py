"""The filter tree: tests of one attribute under `and`, `or` and `not`.

A test reads: of the attribute's values, any (or all, or none) satisfies the condition. Everything here
is frozen and compares by content; what it means is defined by `algebra.law.evaluate`. `And(())` is true and
`Or(())` is false; `And` and `Or` of one part are that part, so `all_of` and `any_of` build them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tidings.errors import FilterError
from tidings.model.conditions import Compare, Exists, In, Is, IsNull, ValueCondition, check_ends, check_name
from tidings.model.values import Kind, Range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Quantifier(StrEnum):
    """How many of an attribute's values must satisfy a condition."""

    ANY = "any"
    ALL = "all"
    NONE = "none"


def _check_parts(parts: tuple[Filter, ...]) -> None:
    if len(parts) == 1:
        msg = "`and` and `or` of a single part; use all_of() or any_of()"
        raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Has:
    """One element of an array of records satisfies the whole filter."""

    filter: Filter
    kind: ClassVar = Kind.RECORD


Condition: TypeAlias = ValueCondition | Has


@dataclass(frozen=True, slots=True)
class Test:
    """Of the values of `attribute`, any (or all, or none) satisfies `condition`."""

    attribute: str
    condition: Condition
    quantifier: Quantifier = Quantifier.ANY
    __test__: ClassVar[bool] = False  # pytest must not take it for a class of tests

    def __post_init__(self) -> None:
        check_name(self.attribute)
        if isinstance(self.condition, Range):
            check_ends(self.condition)
        if isinstance(self.condition, Exists | IsNull) and self.quantifier is not Quantifier.ANY:
            msg = "`exists` and `is null` take no quantifier; the opposite is `not (a exists)`, `not (a is null)`"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; `And(())` is true."""

    parts: tuple[Filter, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """Some part holds; `Or(())` is false."""

    parts: tuple[Filter, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold; of an absent attribute, that is true."""

    part: Filter


Filter: TypeAlias = Test | And | Or | Not

TRUE = And(())
"""The filter that accepts every event."""

FALSE = Or(())
"""The filter that accepts none."""


def all_of(parts: Iterable[Filter]) -> Filter:
    """Return the conjunction; of one part, the part itself."""
    parts = tuple(parts)
    return parts[0] if len(parts) == 1 else And(parts)


def any_of(parts: Iterable[Filter]) -> Filter:
    """Return the disjunction; of one part, the part itself."""
    parts = tuple(parts)
    return parts[0] if len(parts) == 1 else Or(parts)


def negate(tree: Filter) -> Filter:
    """Return the negation without a double `not`."""
    if isinstance(tree, Not):
        return tree.part
    return FALSE if tree == TRUE else TRUE if tree == FALSE else Not(tree)


def require_filter(tree: object) -> Filter:
    """Return the filter; text raises an error that names `td.parse`."""
    if isinstance(tree, Test | And | Or | Not):
        return tree
    msg = f"expected a parsed filter, not `{tree!r:.60}`; td.parse makes one from text, JSON or a URL query"
    raise FilterError(msg, mistakes=(), text=None)


def walk_tests(tree: Filter, prefix: str = "") -> Iterator[tuple[str, Test]]:
    """Yield every test with its full attribute name; inside `has` the array's name goes before."""
    if not isinstance(tree, Test):
        for part in (tree.part,) if isinstance(tree, Not) else tree.parts:
            yield from walk_tests(part, prefix)
        return
    name = prefix + tree.attribute
    yield name, tree
    if isinstance(tree.condition, Has):
        yield from walk_tests(tree.condition.filter, f"{name}.")


def change_parts(tree: And | Or | Not, change: Callable[[Filter], Filter]) -> Filter:
    """Apply a function to the parts of an `and`, `or` or `not`; return the same object if no part changed."""
    if isinstance(tree, Not):
        part = change(tree.part)
        return tree if part is tree.part else Not(part)
    # Sharing unchanged trees keeps rewrites of large filters cheap, and lets callers see by `is` whether to go on.
    parts = [*map(change, tree.parts)]
    return tree if all(map(is_, parts, tree.parts)) else type(tree)(tuple(parts))


def get_other_name(name: str, test: Test) -> str:
    """Return the full name of a comparison's other attribute, which lies in the same record as `name`, the test's."""
    assert isinstance(test.condition, Compare)
    return name.removesuffix(test.attribute) + test.condition.other


def list_scalars(condition: Condition) -> tuple[Any, ...]:  # callers know the kind, which no type here can say
    """Return the values a condition names: of equality, a set, or the ends of a range."""
    match condition:
        case Is(value):
            return (value,)
        case In(values):
            return values
        case Range(low, high):
            return tuple(end for end in (low, high) if end is not None)
    return ()
