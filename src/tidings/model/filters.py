"""The filter tree: tests of one attribute under `and`, `or` and `not`.

A test reads: of the attribute's values, any (or all, or none) satisfies the condition. Everything here
is frozen and compares by content; what it means is `algebra.evaluate`'s to say. `And(())` is true and
`Or(())` is false; `And` and `Or` of one part are that part, so `all_of` and `any_of` build them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tidings.errors import FilterError
from tidings.model.areas import Area
from tidings.model.text_expressions import canonical_expression, compile_expression
from tidings.model.values import Kind, Network, Point, Range, Scalar, check_text, check_value, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def _check_name(name: str) -> None:
    if not name or not all(name.split(".")):
        msg = f"`{name}` is not an attribute's name"
        raise ValueError(msg)
    check_text(name)


def _check_ends(ends: Range) -> None:
    if ends.low is None and ends.high is None:
        msg = "a range needs at least one end; `exists` accepts any value"
        raise ValueError(msg)


def _check_parts(parts: tuple[Filter, ...]) -> None:
    if len(parts) == 1:
        msg = "`and` and `or` of a single part; use all_of() or any_of()"
        raise ValueError(msg)


class Quantifier(StrEnum):
    """How many of an attribute's values must satisfy a condition."""

    ANY = "any"
    ALL = "all"
    NONE = "none"


class TextOp(StrEnum):
    """The tests of text beyond comparison."""

    STARTS_WITH = "starts with"
    ENDS_WITH = "ends with"
    CONTAINS = "contains"
    LIKE = "like"
    MATCHES = "matches"


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
        object.__setattr__(self, "kind", kind_of(self.value))


@dataclass(frozen=True, slots=True)
class In:
    """Equal to one of two or more values of one kind (`one_of` also takes a single one)."""

    values: tuple[Scalar, ...]
    kind: Kind = field(init=False)

    def __post_init__(self) -> None:
        values = tuple(dict.fromkeys(check_value(value) for value in self.values))
        kinds = {kind_of(value) for value in self.values}
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
class TextTest:
    """Text that starts with, ends with, contains, is like or matches something."""

    op: TextOp
    pattern: str
    ignoring_case: bool = False

    def __post_init__(self) -> None:
        check_text(self.pattern)
        if self.op is TextOp.MATCHES:
            object.__setattr__(self, "pattern", canonical_expression(self.pattern))
            compile_expression(self.pattern, ignoring_case=self.ignoring_case)


@dataclass(frozen=True, slots=True)
class IsA:
    """The concept itself or anything below it in its tree (binding a filter fills the tree in)."""

    concept: str
    tree: str | None = None

    def __post_init__(self) -> None:
        check_text(self.concept)


@dataclass(frozen=True, slots=True)
class Within:
    """Inside an area, or on its boundary."""

    area: Area


@dataclass(frozen=True, slots=True)
class WithinRegion:
    """Inside a region that `td.Regions` knows by name."""

    region: str

    def __post_init__(self) -> None:
        check_text(self.region)


@dataclass(frozen=True, slots=True)
class Near:
    """At most so many metres from a place, along the great circle."""

    center: Point
    metres: int | float

    def __post_init__(self) -> None:
        check_value(self.metres)
        if self.metres < 0:
            msg = "a distance is not negative"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class InNetworks:
    """An address in one of the blocks; a single address is a block of one."""

    networks: tuple[Network, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "networks", tuple(dict.fromkeys(self.networks)))
        if not self.networks:
            msg = "a set of no address blocks"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Age:
    """So many seconds old, reckoned against `now`."""

    seconds: Range

    def __post_init__(self) -> None:
        _check_ends(self.seconds)
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
        _check_name(self.other)


@dataclass(frozen=True, slots=True)
class Has:
    """One element of an array of records satisfies the whole filter."""

    filter: Filter


@dataclass(frozen=True, slots=True)
class Exists:
    """At least one value."""


@dataclass(frozen=True, slots=True)
class IsNull:
    """An explicit null."""


PlaceCondition: TypeAlias = Within | WithinRegion | Near
Condition: TypeAlias = (
    Is | In | Range | SameText | TextTest | IsA | PlaceCondition | InNetworks | Age | Compare | Has | Exists | IsNull
)


@dataclass(frozen=True, slots=True)
class Test:
    """Of the values of `attribute`, any (or all, or none) satisfies `condition`."""

    attribute: str
    condition: Condition
    quantifier: Quantifier = Quantifier.ANY
    __test__: ClassVar[bool] = False  # pytest must not take it for a class of tests

    def __post_init__(self) -> None:
        _check_name(self.attribute)
        if isinstance(self.condition, Range):
            _check_ends(self.condition)
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


def one_of(values: Iterable[Scalar]) -> Is | In:
    """Return membership in a set; of one distinct value, equality."""
    values = tuple(values)
    distinct = set(map(check_value, values))
    # A set of Python values takes `True` and `1` for one; `In` then refuses the mixture of kinds.
    return Is(values[0]) if len(distinct) == 1 and len({type(v) is bool for v in values}) == 1 else In(values)


def require_filter(tree: object) -> Filter:
    """Return the filter, or refuse what is none yet: text goes through `td.parse` first."""
    if isinstance(tree, Test | And | Or | Not):
        return tree
    msg = f"expected a parsed filter, not `{tree!r:.60}`; td.parse makes one from text, JSON or a URL query"
    raise FilterError(msg, mistakes=(), text=None)


def tests(tree: Filter, prefix: str = "") -> Iterator[tuple[str, Test]]:
    """Yield every test with its full attribute name; inside `has` the array's name goes before."""
    if not isinstance(tree, Test):
        for part in (tree.part,) if isinstance(tree, Not) else tree.parts:
            yield from tests(part, prefix)
        return
    name = prefix + tree.attribute
    yield name, tree
    if isinstance(tree.condition, Has):
        yield from tests(tree.condition.filter, f"{name}.")


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


def scalars_of(condition: Condition) -> tuple[Any, ...]:  # callers know the kind, which no type here can say
    """Return the values a condition names: of equality, a set, or the ends of a range."""
    match condition:
        case Is(value):
            return (value,)
        case In(values):
            return values
        case Range(low, high):
            return tuple(end for end in (low, high) if end is not None)
    return ()


KIND_BY_CONDITION: dict[type, Kind | None] = {
    TextTest: Kind.TEXT,
    SameText: Kind.TEXT,
    IsA: Kind.CONCEPT,
    Within: Kind.PLACE,
    WithinRegion: Kind.PLACE,
    Near: Kind.PLACE,
    InNetworks: Kind.IP,
    Age: Kind.TIME,
    Has: Kind.RECORD,
    Exists: None,
    IsNull: None,
}
"""The kinds that conditions ask for by their class alone; those of the others depend on their values."""


def condition_kind(condition: Condition) -> Kind | None:
    """Return the kind a condition asks of its attribute; `exists` and `is null` ask nothing."""
    if isinstance(condition, Is | In | Range | Compare):
        return condition.kind
    return KIND_BY_CONDITION[type(condition)]
