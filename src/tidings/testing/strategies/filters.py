"""Filter trees: tests under `and`, `or` and `not`, nested and repeated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.model import And, Exists, Filter, Has, IsNull, Kind, Not, Or, Quantifier, Test
from tidings.testing.hypothesis_import import st
from tidings.testing.strategies.conditions import conditions
from tidings.testing.strategies.world import Slot

if TYPE_CHECKING:
    from tidings.testing.strategies.world import World

_ARITIES = (2, 2, 2, 3, 4, 0)
_SHAPES = ("test", "and", "or", "not", "test", "not not")


@st.composite
def trees(draw: st.DrawFn, world: World, depth: int = 3) -> Filter:
    """Return filters over the attributes of a world, at most so many connectives deep."""
    shape = draw(st.sampled_from(_SHAPES)) if depth else "test"
    match shape:
        case "not":
            return Not(draw(trees(world, depth - 1)))
        case "not not":
            return Not(Not(draw(trees(world, depth - 1))))
        case "and" | "or":
            arity = draw(st.sampled_from(_ARITIES))
            parts = tuple(draw(trees(world, depth - 1)) for _ in range(arity))
            return And(parts) if shape == "and" else Or(parts)
    return draw(tests(world, depth))


@st.composite
def tests(draw: st.DrawFn, world: World, depth: int = 1) -> Test:
    """Return single tests, with every quantifier."""
    attribute = draw(st.sampled_from(sorted(world.slots)))
    slot = world.slots[attribute]
    name = draw(st.sampled_from((attribute, *slot.spellings)))
    beside = {other: world.has_order(attribute, other) for other in world.alike(attribute)}
    slot = draw(_read_as(slot, world))
    if slot.kind is Kind.RECORD and slot.fields and draw(st.integers(0, 3)):
        inner = trees(replace(world, slots=slot.fields), max(0, depth - 1))
        return Test(name, Has(draw(inner)), draw(st.sampled_from(Quantifier)))
    regions = tuple(world.regions or ())
    condition = draw(conditions(slot.kind, slot=slot, regions=regions, beside=beside))
    if isinstance(condition, Exists | IsNull):
        return Test(name, condition)
    return Test(name, condition, draw(st.sampled_from(QUANTIFIERS)))


QUANTIFIERS = (Quantifier.ANY, Quantifier.ANY, Quantifier.ALL, Quantifier.NONE)


_KINDS = (Kind.NUMBER, Kind.TEXT, Kind.BOOL, Kind.TIME, Kind.PLACE, Kind.IP)
_OTHERS = (
    *map(Slot, _KINDS),
    Slot(Kind.NUMBER, units=("GB", "MB"), bare=False),
    Slot(Kind.NUMBER, units=("m", "km", "cm"), bare=False),
    Slot(Kind.NUMBER, units=("USD", "EUR", "JPY"), bare=False),
    Slot(Kind.RECORD, fields={"b": Slot(Kind.NUMBER), "sku": Slot(Kind.TEXT)}),
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
    concept = [Slot(Kind.CONCEPT, words=words)] if words else []
    # A closed schema lacks the fields of such a record.
    others = _OTHERS[:-1] if world.schema is not None and world.schema.closed else _OTHERS
    return draw(st.sampled_from([*concept, Slot(Kind.IP)] if slot.refinable else [*concept, *others]))
