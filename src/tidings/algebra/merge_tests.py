"""Merge tests of one attribute into fewer tests, without resolving names and units.

Under `or`, some value satisfies one condition or the other exactly if some value satisfies their union; under `and`, no
value satisfies one and none the other exactly if none satisfies their union. Both hold for multivalued attributes and
for event ranges. Conditions may be intersected only for a single-valued attribute.

Tests of different kinds or units are not merged. A condition that every value of a kind satisfies is `exists` only if
the attribute is declared of that kind; otherwise a value may be present that the condition cannot read.
"""

from __future__ import annotations

from functools import partial, reduce
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import TYPE_CHECKING, TypeAlias

from tidings import model
from tidings.algebra.canonical_order import make_value_key
from tidings.algebra.covering.spans import intersect, subtract, unite
from tidings.algebra.covering.value_sets import EVERYTHING, Space, to_conditions, to_value_set
from tidings.algebra.law.typed_attribute import TypedAttribute, resolve_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tidings.algebra.covering.spans import Spans

ANY, ALL, NONE = model.Quantifier.ANY, model.Quantifier.ALL, model.Quantifier.NONE

MergeKey: TypeAlias = "tuple[str, bool, model.Quantifier]"
"""What tests must share to be merged: the attribute, whether they are negated, and the quantifier."""

_UNITING = {True: {(False, NONE), (True, ANY)}, False: {(False, ANY), (True, NONE)}}
"""Under `and` (True) and `or` (False): the negations and quantifiers of tests that merge by union."""


ReadsAll: TypeAlias = "Callable[[str, model.Condition], bool]"
"""Whether a condition can read every value of an attribute."""


def simplify_test(test: model.Test, reads_all: ReadsAll) -> model.Filter:
    """Return a test in canonical form: sets sorted, conditions that all or no values satisfy replaced."""
    return _unite_group((test.attribute, False, test.quantifier), [test], reads_all)[0]


def unite_tests(parts: Sequence[model.Filter], reads_all: ReadsAll, *, conjunctive: bool) -> list[model.Filter]:
    """Merge the tests of each attribute that merge by union, at the position of the first of them."""
    groups: dict[tuple[MergeKey, TypedAttribute], list[model.Filter]] = {}
    for test, part in _pair_tests(parts):
        key = (test.attribute, part is not test, test.quantifier)
        if key[1:] in _UNITING[conjunctive]:
            groups.setdefault((key, resolve_test(test)), []).append(part)
    several = [(key, group) for (key, _), group in groups.items() if len(group) > 1]
    return _replace_groups(parts, [(group, _unite_group(key, group, reads_all)) for key, group in several])


def intersect_tests(parts: Sequence[model.Filter], is_single: Callable[[str], bool]) -> list[model.Filter]:
    """Under `and`, intersect the equalities and ranges of each single-valued attribute."""
    groups: dict[tuple[str, Space], list[model.Filter]] = {}
    for test, part in _pair_tests(parts):
        has_order = isinstance(test.condition, model.Is | model.In | model.Range)
        value_set = to_value_set(test.condition) if has_order else None
        if value_set is not None and is_single(test.attribute):
            groups.setdefault((test.attribute, value_set.space), []).append(part)
    return _replace_groups(
        parts, [(group, _intersect_group(name, space, group)) for (name, space), group in groups.items()]
    )


def unite_conditions(
    conditions: Iterable[model.Condition], reads_all: Callable[[model.Condition], bool]
) -> list[model.Condition] | None:
    """Return the union of conditions on one attribute that read it under one label; `None`: every value satisfies it.

    An empty union is one that no value satisfies.
    """
    ordered: dict[Space, dict[model.Condition, Spans]] = {}
    values: dict[model.Scalar, None] = {}
    networks: list[model.Network] = []
    others: dict[model.Condition, None] = {}
    for condition in conditions:
        value_set = to_value_set(condition)
        match condition:
            # Equal text may name a concept by a synonym, so it stays a set; a range of texts never does.
            case model.Is(kind=kind) | model.In(kind=kind) if value_set is None or kind is model.Kind.TEXT:
                values.update(dict.fromkeys(model.list_scalars(condition)))
            case model.Is() | model.In() | model.Range() if value_set is not None:
                ordered.setdefault(value_set.space, {})[condition] = value_set.spans
            case model.InNetworks(blocks):
                networks.extend(blocks)
            case _:
                others[condition] = None
    union: list[model.Condition] = []
    if values:
        union.append(model.one_of(sorted(values, key=make_value_key)))
    for space, parts in ordered.items():
        if unite(parts.values()) == EVERYTHING[space] and any(map(reads_all, parts)):
            return None
        union += _express_spans(space, parts)
    if networks:
        four = collapse_addresses([block for block in networks if isinstance(block, IPv4Network)])
        six = collapse_addresses([block for block in networks if isinstance(block, IPv6Network)])
        union.append(model.InNetworks((*four, *six)))
    return _drop_trivial([*union, *others], reads_all)


def _express_spans(space: Space, parts: dict[model.Condition, Spans]) -> Iterable[model.Condition]:
    spans = unite(parts.values())
    if spans == EVERYTHING[space] and space in (Space.NUMBER, Space.TIME):  # no range expresses it, since it has no end
        yield from parts
        return
    for condition in to_conditions(space, spans):
        if space is Space.TEXT and not isinstance(condition, model.Range):
            yield from (model.Range(value, value) for value in model.list_scalars(condition))
        else:
            yield condition


def _drop_trivial(
    conditions: list[model.Condition], reads_all: Callable[[model.Condition], bool]
) -> list[model.Condition] | None:
    """Drop conditions that no value satisfies; return nothing if every value satisfies one."""
    kept: list[model.Condition] = []
    for condition in conditions:
        value_set = to_value_set(condition)
        if value_set is None or value_set.spans:
            kept.append(condition)
        if value_set is not None and value_set.spans == EVERYTHING[value_set.space] and reads_all(condition):
            return None
    return kept


def _unite_group(key: MergeKey, group: list[model.Filter], reads_all: ReadsAll) -> list[model.Filter]:
    name, negated, quantifier = key
    union = unite_conditions([_get_test(part).condition for part in group], partial(reads_all, name))
    tests: list[model.Filter] = [model.Test(name, condition, quantifier) for condition in union or ()]
    if not tests:  # every value satisfies it, or none does
        tests = [model.FALSE if (union is None) is (quantifier is NONE) else model.Test(name, model.Exists())]
    return [model.negate(part) for part in tests] if negated else tests


def _intersect_group(name: str, space: Space, group: list[model.Filter]) -> list[model.Filter]:
    """Return the wanted values without the unwanted ones, as one test if possible."""
    wanted = [_get_spans(part) for part in group if not _is_unwanted(part)]
    present = any(not isinstance(part, model.Not) for part in group)  # a negated test also holds without any value
    if not wanted or not present or len(group) == 1:
        return group
    values = reduce(intersect, wanted)
    excluded = intersect(values, unite(_get_spans(part) for part in group if _is_unwanted(part)))
    remaining = to_conditions(space, subtract(values, excluded))
    if len(remaining) < 2:
        return [model.Test(name, remaining[0])] if remaining else [model.FALSE]
    kept = [model.Test(name, condition) for condition in to_conditions(space, values)]
    return [*kept, *(model.Test(name, condition, NONE) for condition in to_conditions(space, excluded))]


def _is_unwanted(part: model.Filter) -> bool:
    return isinstance(part, model.Not) is not (_get_test(part).quantifier is NONE)


def _get_spans(part: model.Filter) -> Spans:
    value_set = to_value_set(_get_test(part).condition)
    return value_set.spans if value_set is not None else ()


def _pair_tests(parts: Sequence[model.Filter]) -> Iterator[tuple[model.Test, model.Filter]]:
    """Yield the tests among the parts, plain or negated, each with its part."""
    for part in parts:
        test = part.part if isinstance(part, model.Not) else part
        if isinstance(test, model.Test):
            yield test, part


def _get_test(part: model.Filter) -> model.Test:
    inner = part.part if isinstance(part, model.Not) else part
    assert isinstance(inner, model.Test)
    return inner


def _replace_groups(
    parts: Sequence[model.Filter], groups: list[tuple[list[model.Filter], list[model.Filter]]]
) -> list[model.Filter]:
    """Replace each group of parts by its result, at the position of its first part."""
    replacements: dict[model.Filter, list[model.Filter]] = {}
    for group, result in groups:
        replacements.update({part: [] for part in group})
        replacements[group[0]] = result
    return list(dict.fromkeys(new for part in parts for new in replacements.get(part, [part])))
