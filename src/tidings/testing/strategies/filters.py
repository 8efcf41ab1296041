"""Filter trees as people write them: tests under `and`, `or`, `not`, nested and repeated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.model import And, Exists, Filter, Has, IsNull, Kind, Not, Or, Quantifier, Test
from tidings.testing.drawing import st
from tidings.testing.strategies.conditions import conditions

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
    if slot.kind is Kind.RECORD and slot.fields and draw(st.integers(0, 3)):
        return Test(
            name, Has(draw(trees(_inside(world, attribute), max(0, depth - 1)))), draw(st.sampled_from(Quantifier))
        )
    regions = tuple(world.regions or ())
    condition = draw(conditions(slot.kind, slot=slot, regions=regions, beside=world.alike(attribute)))
    if isinstance(condition, Exists | IsNull):
        return Test(name, condition)
    return Test(name, condition, draw(st.sampled_from(QUANTIFIERS)))


QUANTIFIERS = (Quantifier.ANY, Quantifier.ANY, Quantifier.ALL, Quantifier.NONE)


def _inside(world: World, name: str) -> World:
    """The world that one element of an array of records is."""
    return replace(world, slots=world.slots[name].fields)
