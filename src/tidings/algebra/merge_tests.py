"""Tests of one attribute joined into fewer tests, without asking what names and units mean.

Under `or`, some value satisfies one condition or the other exactly when some value satisfies their union;
under `and`, none satisfies one and none the other exactly when none satisfies their union. Both are true of
several values and of event ranges. Two conditions meet in one only for an attribute with one value.

Tests of different kinds, or in different units, do not join. Conditions that every value of a kind satisfies are
`exists` only where an attribute is declared of that kind; elsewhere a value may be there that they cannot read.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import TYPE_CHECKING, TypeAlias

from tidings.algebra.canonical_order import value_key
from tidings.algebra.covering.spans import join, meet, without
from tidings.algebra.covering.value_sets import EVERYTHING, Space, expressed, place
from tidings.algebra.law.typed_attribute import TypedAttribute, resolve_test
from tidings.model import (
    FALSE,
    TRUE,
    Condition,
    Exists,
    In,
    InNetworks,
    Is,
    Kind,
    Not,
    Quantifier,
    Range,
    Test,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidings.algebra.covering.spans import Spans
    from tidings.model import Filter, Scalar

ANY, ALL, NONE = Quantifier.ANY, Quantifier.ALL, Quantifier.NONE

Manner: TypeAlias = "tuple[str, bool, Quantifier]"
"""What tests must share to be joined: the attribute, whether they are negated, and the quantifier."""

_JOINED = {True: {(False, NONE), (True, ANY)}, False: {(False, ANY), (True, NONE)}}
"""Under `and`, and under `or`: negated or not, and the quantifier, of tests that join by union."""


Certainty: TypeAlias = "Callable[[str, Condition], bool]"
"""Whether a condition can read every value of an attribute."""


@dataclass(frozen=True, slots=True)
class Union:
    """Some conditions as fewer: without any, no value satisfies them; with `everything`, every value does."""

    conditions: tuple[Condition, ...]
    everything: bool = False


def simple_test(test: Test, reads_all: Certainty) -> Filter:
    """Return one test in its plainest form: sets sorted, and no condition of every value or of none."""
    union = united([test.condition], lambda condition: reads_all(test.attribute, condition))
    if union.everything:
        return FALSE if test.quantifier is NONE else Test(test.attribute, Exists())
    if not union.conditions:
        return Test(test.attribute, Exists()) if test.quantifier is NONE else FALSE
    return Test(test.attribute, union.conditions[0], test.quantifier)


def joined_parts(parts: Sequence[Filter], reads_all: Certainty, *, conjunctive: bool) -> list[Filter]:
    """Join the tests of each attribute that join by union; the result stands where the first of them stood."""
    groups: dict[tuple[Manner, TypedAttribute], list[Filter]] = {}
    for part in parts:
        manner = _manner(part)
        if manner is not None and manner[1:] in _JOINED[conjunctive]:
            groups.setdefault((manner, resolve_test(_test(part))), []).append(part)
    several = [(manner, group) for (manner, _), group in groups.items() if len(group) > 1]
    return _replaced(parts, [(group, _joined(manner, group, reads_all)) for manner, group in several])


def met_parts(parts: Sequence[Filter], has_one: Callable[[str], bool]) -> list[Filter]:
    """Under `and`, meet the equalities and ranges of each attribute that has one value."""
    groups: dict[tuple[str, Space], list[Filter]] = {}
    for part in parts:
        if _manner(part) is None or not isinstance(_test(part).condition, Is | In | Range):
            continue
        name, placed = _test(part).attribute, place(_test(part).condition)
        if placed is not None and has_one(name):
            groups.setdefault((name, placed.space), []).append(part)
    return _replaced(parts, [(group, _met(name, space, group)) for (name, space), group in groups.items()])


def united(conditions: Iterable[Condition], reads_all: Callable[[Condition], bool]) -> Union:
    """Return the union of conditions on one attribute that read it in one way."""
    ordered: dict[Space, dict[Condition, Spans]] = {}
    sets: list[Is | In] = []
    networks: list[IPv4Network | IPv6Network] = []
    others: dict[Condition, None] = {}
    for condition in conditions:
        placed = place(condition)
        match condition:
            # A text that is equal may be another name of a concept, a text between two others never is.
            case Is(kind=kind) | In(kind=kind) if placed is None or kind is Kind.TEXT:
                sets.append(condition)
            case Is() | In() | Range() if placed is not None:
                ordered.setdefault(placed.space, {})[condition] = placed.spans
            case InNetworks(blocks):
                networks.extend(blocks)
            case _:
                others[condition] = None
    lines = [line for space, spans in ordered.items() for line in _lines(space, spans)]
    every = [condition for space, spans in ordered.items() if _is_all(space, spans) for condition in spans]
    if any(map(reads_all, every)):
        return Union((), everything=True)
    return _checked([*([_set(sets)] if sets else []), *lines, *_blocks(networks), *others], reads_all)


def _is_all(space: Space, spans: dict[Condition, Spans]) -> bool:
    return join(spans.values()) == EVERYTHING[space]


def _lines(space: Space, parts: dict[Condition, Spans]) -> Iterable[Condition]:
    spans = join(parts.values())
    if spans == EVERYTHING[space] and space in (Space.NUMBER, Space.TIME):  # no range says so: it has no end to name
        yield from parts
        return
    for condition in expressed(space, spans):
        if space is Space.TEXT and not isinstance(condition, Range):
            yield from (Range(value, value) for value in _values(condition))  # type: ignore[arg-type]
        else:
            yield condition


def _set(conditions: list[Is | In]) -> Is | In:
    values = dict.fromkeys(value for condition in conditions for value in _values(condition))
    return one_of(sorted(values, key=value_key))


def _values(condition: Is | In) -> tuple[Scalar, ...]:
    return condition.values if isinstance(condition, In) else (condition.value,)


def _blocks(networks: list[IPv4Network | IPv6Network]) -> Iterable[Condition]:
    four = collapse_addresses([block for block in networks if isinstance(block, IPv4Network)])
    six = collapse_addresses([block for block in networks if isinstance(block, IPv6Network)])
    if networks:
        yield InNetworks((*four, *six))


def _checked(conditions: list[Condition], reads_all: Callable[[Condition], bool]) -> Union:
    """See which conditions no value satisfies, and whether one is satisfied by every value."""
    kept: list[Condition] = []
    for condition in conditions:
        placed = place(condition)
        if placed is None or placed.spans:
            kept.append(condition)
        if placed is not None and placed.spans == EVERYTHING[placed.space] and reads_all(condition):
            return Union((), everything=True)
    return Union(tuple(kept))


def _joined(manner: Manner, group: list[Filter], reads_all: Certainty) -> list[Filter]:
    name, negated, quantifier = manner
    union = united((_test(part).condition for part in group), lambda condition: reads_all(name, condition))
    exists = Test(name, Exists())
    if union.everything:
        plain: list[Filter] = [FALSE if quantifier is NONE else exists]
    elif not union.conditions:
        plain = [exists if quantifier is NONE else FALSE]
    else:
        plain = [Test(name, condition, quantifier) for condition in union.conditions]
    return [_not(part) for part in plain] if negated else plain


def _met(name: str, space: Space, group: list[Filter]) -> list[Filter]:
    """Return what is left of the wanted values when the unwanted are gone, as one test where that is possible."""
    wanted = [_spans(part) for part in group if not _unwanted(part)]
    present = any(not isinstance(part, Not) for part in group)  # a negated test may hold without any value
    if not wanted or not present or len(group) == 1:
        return group
    values = wanted[0]
    for spans in wanted[1:]:
        values = meet(values, spans)
    gone = meet(values, join(_spans(part) for part in group if _unwanted(part)))
    left = expressed(space, without(values, gone))
    if len(left) < 2:
        return [Test(name, left[0])] if left else [FALSE]
    kept = [Test(name, condition) for condition in expressed(space, values)]
    return [*kept, *(Test(name, condition, NONE) for condition in expressed(space, gone))]


def _unwanted(part: Filter) -> bool:
    return isinstance(part, Not) is not (_test(part).quantifier is NONE)


def _spans(part: Filter) -> Spans:
    placed = place(_test(part).condition)
    return placed.spans if placed is not None else ()


def _manner(part: Filter) -> Manner | None:
    """Return how a test, or a negated one, speaks of its attribute; of anything else nothing."""
    inner = part.part if isinstance(part, Not) else part
    return (inner.attribute, part is not inner, inner.quantifier) if isinstance(inner, Test) else None


def _test(part: Filter) -> Test:
    inner = part.part if isinstance(part, Not) else part
    assert isinstance(inner, Test)
    return inner


def _not(part: Filter) -> Filter:
    return TRUE if part == FALSE else Not(part)


def _replaced(parts: Sequence[Filter], groups: list[tuple[list[Filter], list[Filter]]]) -> list[Filter]:
    """Put what became of each group where its first part stood."""
    becomes: dict[Filter, list[Filter]] = {}
    for group, result in groups:
        becomes.update({part: [] for part in group})
        becomes[group[0]] = result
    return list(dict.fromkeys(new for part in parts for new in becomes.get(part, [part])))
