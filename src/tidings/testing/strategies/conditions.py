"""Filter trees: tests under `and`, `or` and `not`, nested and repeated, with conditions of every kind.

Conditions are equality, sets, ranges with all four boundary types, text, places, and the rest.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any

from tidings import model
from tidings.testing.hypothesis_import import evenly, st
from tidings.testing.strategies.areas import areas
from tidings.testing.strategies.values import AWKWARD, BLOCKS, EXPRESSIONS, TEXTS, numbers, points, scalars, texts
from tidings.testing.strategies.world import Slot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.model.values import Ordered
    from tidings.testing.strategies.world import World

_NO_OTHERS: Mapping[str, bool] = {}

SECONDS = (0, 1, 0.5, 60, 3600, 86_400, 7 * 86_400, -60, 1e9)
"""Ages in seconds; a time in the future has a negative one."""

METRES = (0, 1, 0.5, 1000, 5000, 111_195, 1_000_000, 20_100_000)
"""Distances in metres, up to half around the globe."""


def conditions(
    kind: model.Kind | str,
    *,
    slot: Slot | None = None,
    regions: Sequence[str] = (),
    beside: Mapping[str, bool] = _NO_OTHERS,
) -> st.SearchStrategy[model.Condition]:
    """Return conditions on an attribute of that kind.

    `beside` names attributes that it may be compared with, and whether they have an order. `Has` is not
    among the conditions: `filters` builds it, since it holds a filter of its own.
    """
    slot = slot or Slot(model.Kind(kind))
    # Cached by what conditions depend on: hypothesis validates each new strategy, which costs more than drawing.
    slot = Slot(slot.kind, declared=slot.declared, bare=slot.bare, units=slot.units, words=slot.words)
    return _build_conditions(slot, tuple(regions), tuple(beside.items()))


@lru_cache(maxsize=4096)
def _build_conditions(
    slot: Slot, regions: tuple[str, ...], beside: tuple[tuple[str, bool], ...]
) -> st.SearchStrategy[model.Condition]:
    strategies = _list_conditions_of_kind(slot, regions)
    strategies.append(st.sampled_from((model.Exists(), model.IsNull())))
    equality = (model.Comparison.EQ,)
    pairs = [(op, other) for other, has_order in beside for op in (model.Comparison if has_order else equality)]
    if pairs:
        strategies.append(st.sampled_from(pairs).map(lambda pair: model.Compare(*pair)))
    return evenly(strategies)


def _list_conditions_of_kind(slot: Slot, regions: Sequence[str]) -> list[st.SearchStrategy[model.Condition]]:
    match slot.kind:
        case model.Kind.NUMBER:
            return _list_value_conditions(_list_amounts(slot))
        case model.Kind.TEXT:
            return [*_list_value_conditions([texts()]), text_tests(), same_texts()]
        case model.Kind.CONCEPT:
            return _list_concept_conditions(slot)
        case model.Kind.BOOL:
            return [st.booleans().map(model.Is), st.just(model.In((True, False)))]
        case model.Kind.TIME:
            return [*_list_value_conditions([scalars(model.Kind.TIME)]), ages()]
        case model.Kind.PLACE:
            return _list_place_conditions(regions)
        case model.Kind.IP:
            blocks = st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=3)
            return [blocks.map(lambda chosen: model.InNetworks(tuple(chosen)))]
    return []


def _list_value_conditions(families: Sequence[st.SearchStrategy[Ordered]]) -> list[st.SearchStrategy[model.Condition]]:
    """Return equality, sets and ranges; the values of one range come from one family, such as one unit."""
    value = st.one_of(families)
    sets = st.lists(value, min_size=1, max_size=4).map(model.one_of)
    return [*(ranges(family) for family in families), sets, value.map(model.Is)]


def _list_amounts(slot: Slot) -> list[st.SearchStrategy[int | float | model.Quantity]]:
    """Return plain numbers, and numbers with each unit; those with units are small enough not to overflow."""
    moderate = st.one_of(st.integers(-20, 2000), st.sampled_from((0.5, 2.5, 0.25)))
    united: list[st.SearchStrategy[int | float | model.Quantity]] = [
        moderate.map(partial(model.Quantity, unit=unit)) for unit in slot.units
    ]
    if not slot.bare:
        return united
    return [moderate if slot.units else numbers(), *united]


@st.composite
def ranges(draw: st.DrawFn, values: st.SearchStrategy[Ordered]) -> model.Range:
    """Return ranges with one end or two, each open or closed; also `[x .. x]` and the empty `(x .. x)`."""
    low, high = sorted((draw(values), draw(values)), key=_order)
    shape = draw(st.sampled_from(("both", "both", "low", "high", "point")))
    if shape == "point":
        high = low
    ends = (None if shape == "high" else low, None if shape == "low" else high)
    return model.Range(*ends, low_open=draw(st.booleans()), high_open=draw(st.booleans()))


def _order(value: Any) -> Any:
    return value.amount if isinstance(value, model.Quantity) else value


@st.composite
def text_tests(draw: st.DrawFn) -> model.TextTest:
    """Return every test of text, with its case and without."""
    op = draw(st.sampled_from(model.TextOp))
    pool = (
        EXPRESSIONS if op is model.TextOp.MATCHES else (*TEXTS, *AWKWARD, "f*", "?o*s", "*", "??", "f\\*", "*\n*", "fo")
    )
    return model.TextTest(op, draw(st.sampled_from(pool)), ignoring_case=draw(st.booleans()))


@cache
def same_texts() -> st.SearchStrategy[model.SameText]:
    """Return equality and sets of text that ignore case; some texts fold to more or other characters."""
    cased = st.sampled_from((*TEXTS, *AWKWARD, *(text.upper() for text in TEXTS), "Straße", "STRASSE", "ﬁ", "FI", "İ"))
    return st.lists(cased, min_size=1, max_size=3).map(lambda values: model.SameText(tuple(values)))


@cache
def ages() -> st.SearchStrategy[model.Age]:
    """Return ages."""
    return ranges(st.one_of(st.sampled_from(SECONDS), st.integers(0, 10**6))).map(model.Age)


def _list_concept_conditions(slot: Slot) -> list[st.SearchStrategy[model.Condition]]:
    words = st.sampled_from(slot.words) if slot.words else st.sampled_from(TEXTS)
    # An undeclared attribute compares with any text; a declared one only with concepts of its tree.
    plain = words if slot.declared else st.one_of(words, st.sampled_from(TEXTS))
    sets = st.lists(plain, min_size=1, max_size=3).map(model.one_of)
    is_a = words.map(model.IsA)
    return [is_a, plain.map(model.Is), sets, is_a, text_tests(), same_texts(), ranges(texts())]


def _list_place_conditions(regions: Sequence[str]) -> list[st.SearchStrategy[model.Condition]]:
    near = st.builds(model.Near, points(), st.sampled_from(METRES))
    several = st.lists(points(), min_size=1, max_size=3).map(model.one_of)
    # Few worlds have regions, so they are frequent in those.
    named = [st.sampled_from(regions).map(model.WithinRegion)] * 3 if regions else []
    return [near, areas().map(model.Within), several, points().map(model.Is), *named]


# Filters -------------------------------------------------------------------------------------------

_ARITIES = (2, 2, 2, 3, 4, 0)
_SHAPES = ("test", "and", "or", "not", "test", "not not")
QUANTIFIERS = (model.Quantifier.ANY, model.Quantifier.ANY, model.Quantifier.ALL, model.Quantifier.NONE)


@st.composite
def trees(draw: st.DrawFn, world: World, depth: int = 3) -> model.Filter:
    """Return filters over the attributes of a world, at most so many connectives deep."""
    shape = draw(st.sampled_from(_SHAPES)) if depth else "test"
    match shape:
        case "not":
            return model.Not(draw(trees(world, depth - 1)))
        case "not not":
            return model.Not(model.Not(draw(trees(world, depth - 1))))
        case "and" | "or":
            arity = draw(st.sampled_from(_ARITIES))
            parts = tuple(draw(trees(world, depth - 1)) for _ in range(arity))
            return model.And(parts) if shape == "and" else model.Or(parts)
    return draw(tests(world, depth))


@st.composite
def tests(draw: st.DrawFn, world: World, depth: int = 1) -> model.Test:
    """Return single tests, with every quantifier."""
    attribute = draw(st.sampled_from(sorted(world.slots)))
    slot = world.slots[attribute]
    name = draw(st.sampled_from((attribute, *slot.spellings)))
    beside = {other: world.has_order(attribute, other) for other in world.alike(attribute)}
    slot = draw(_read_as(slot, world))
    if slot.kind is model.Kind.RECORD and slot.fields and draw(st.integers(0, 3)):
        inner = trees(replace(world, slots=slot.fields), max(0, depth - 1))
        return model.Test(name, model.Has(draw(inner)), draw(st.sampled_from(model.Quantifier)))
    regions = tuple(world.regions or ())
    condition = draw(conditions(slot.kind, slot=slot, regions=regions, beside=beside))
    if isinstance(condition, model.Exists | model.IsNull):
        return model.Test(name, condition)
    return model.Test(name, condition, draw(st.sampled_from(QUANTIFIERS)))


_KINDS = (model.Kind.NUMBER, model.Kind.TEXT, model.Kind.BOOL, model.Kind.TIME, model.Kind.PLACE, model.Kind.IP)
_OTHERS = (
    *map(Slot, _KINDS),
    Slot(model.Kind.NUMBER, units=("GB", "MB"), bare=False),
    Slot(model.Kind.NUMBER, units=("m", "km", "cm"), bare=False),
    Slot(model.Kind.NUMBER, units=("USD", "EUR", "JPY"), bare=False),
    Slot(model.Kind.RECORD, fields={"b": Slot(model.Kind.NUMBER), "sku": Slot(model.Kind.TEXT)}),
)
"""Kinds that a test may read an undeclared attribute as."""


@st.composite
def _read_as(draw: st.DrawFn, slot: Slot, world: World) -> Slot:
    """Return the slot that a test reads the attribute as: its own or, unless it is declared, another one."""
    if slot.declared and not slot.refinable:
        return slot
    if not (world.mixed or slot.refinable) or draw(st.integers(0, 2)):
        return slot
    words = tuple(word for tree in world.lore.parents.values() for word in tree)
    concept = [Slot(model.Kind.CONCEPT, words=words)] if words else []
    # A closed schema lacks the fields of such a record.
    others = _OTHERS[:-1] if world.schema is not None and world.schema.closed else _OTHERS
    return draw(st.sampled_from([*concept, Slot(model.Kind.IP)] if slot.refinable else [*concept, *others]))
