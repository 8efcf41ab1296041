"""Filters that read one attribute as different kinds, and events that carry anything at all.

These attributes are undeclared, so each test reads them as the kind it needs: as numbers, as amounts in bytes or
in metres, as text, truth, times, places, addresses, concepts or records. Names are few, so that tests of all kinds
meet on one attribute. Events aim at what the filters name, in every form, and carry what no kind reads: numbers that
are none or infinite, integers beyond 64 bits, bytes, lists of unlike values, records instead of values.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tidings import model
from tidings.concepts import Ontology
from tidings.testing.hypothesis_import import evenly, st
from tidings.testing.strategies.boundary_values import find_boundary_values
from tidings.testing.strategies.cases import Case
from tidings.testing.strategies.concepts import FORESTS, tree_table
from tidings.testing.strategies.conditions import QUANTIFIERS, conditions
from tidings.testing.strategies.events import forms
from tidings.testing.strategies.values import bad_values, odd_values, scalars
from tidings.testing.strategies.world import Slot, World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.model.values import EventValue

EXACT = 2**53
"""Floats represent all integers up to this one."""

ATTRIBUTES = ("a", "mail", "contact")
"""Names that tests of all kinds share; a value of `mail` is a value of `contact`, too."""

WORDS = ("goods", "computer", "tablet", "netbook")

SLOTS = (
    Slot(model.Kind.NUMBER),
    Slot(model.Kind.NUMBER, units=("GB", "MB"), bare=False),
    Slot(model.Kind.NUMBER, units=("m", "km"), bare=False),
    Slot(model.Kind.TEXT),
    Slot(model.Kind.BOOL),
    Slot(model.Kind.TIME),
    Slot(model.Kind.PLACE),
    Slot(model.Kind.IP),
    Slot(model.Kind.CONCEPT, words=WORDS),
)
"""Slots that a test may read an attribute as."""

NOTHING: tuple[EventValue, ...] = (None, [], [[], None], model.Range())
"""Forms of an attribute without a value, and a range of everything."""


@cache
def mixed_world() -> World:
    """Return a world without declarations, with concepts, units and a tree of attribute names."""
    table = {
        "trees": tree_table(FORESTS[1]),
        "attribute_trees": {"names": {"parents": {"contact": [], "mail": ["contact"]}}},
    }
    return World({name: Slot(model.Kind.NUMBER) for name in ATTRIBUTES}, ontology=Ontology.from_dict(table))


EVERYTHING, CONCEPTS, NUMBERS = "everything", "concepts", "numbers"
"""How much of the language to draw: all, what indexes of concepts support, or what indexes of numbers support."""

_SLOTS = {
    EVERYTHING: SLOTS,
    CONCEPTS: tuple(slot for slot in SLOTS if slot.kind not in (model.Kind.PLACE, model.Kind.IP)),
    NUMBERS: tuple(slot for slot in SLOTS if slot.kind in (model.Kind.NUMBER, model.Kind.TIME)),
}


@st.composite
def _draw_test(draw: st.DrawFn, names: Sequence[str], reach: str, *, plain: bool) -> model.Test:
    name, rare = draw(st.sampled_from(names)), 0 if plain else draw(st.integers(0, 9))
    if rare == 1:
        inner = draw(_draw_test(("k", "l"), reach, plain=True))
        return model.Test(name, model.Has(inner), draw(st.sampled_from(QUANTIFIERS)))
    if rare == 2:
        other = model.Compare(draw(st.sampled_from(model.Comparison)), draw(st.sampled_from(names)))
        return model.Test(name, other, draw(st.sampled_from(QUANTIFIERS)))
    slot = draw(st.sampled_from(_SLOTS[reach]))
    condition = draw(
        conditions(slot.kind, slot=slot).filter(lambda condition: reach == EVERYTHING or _is_indexable(condition))
    )
    quantified = not plain and not isinstance(condition, model.Exists | model.IsNull)
    return model.Test(name, condition, draw(st.sampled_from(QUANTIFIERS)) if quantified else model.Quantifier.ANY)


def _is_indexable(condition: model.Condition) -> bool:
    """Tell whether the papers' indexes support a condition; they lack ranges of text and integers beyond 2^53."""
    match condition:
        case model.Is() | model.In() | model.Range():
            return all(
                not isinstance(value, int) or abs(value) <= EXACT for value in model.list_scalars(condition)
            ) and (not isinstance(condition, model.Range) or condition.kind is not model.Kind.TEXT)
    return isinstance(condition, model.IsA | model.Exists)


@st.composite
def _draw_row(draw: st.DrawFn, reach: str) -> model.Filter:
    """Return a conjunction of tests that indexes support; in `EVERYTHING`, now and then with others."""
    plain = reach != EVERYTHING or draw(st.integers(0, 2)) > 0
    return model.all_of(draw(st.lists(_draw_test(ATTRIBUTES, reach, plain=plain), min_size=1, max_size=3)))


def mixed_filters(reach: str = EVERYTHING) -> st.SearchStrategy[model.Filter]:
    """Return filters whose tests read the same few attributes as any kind."""
    rows = _draw_row(reach)
    several = st.lists(rows, min_size=2, max_size=3).map(model.any_of)
    return evenly((rows, rows, several, rows.map(model.Not)) if reach == EVERYTHING else (rows, rows, several))


@st.composite
def mixed_events(draw: st.DrawFn, trees: Sequence[model.Filter] = ()) -> dict[str, EventValue]:
    """Return one event; its values are what some filter names of the attribute, or anything else."""
    aimed = find_boundary_values(trees, mixed_world())
    every = [value for values in aimed.values() for value in values]
    event: dict[str, EventValue] = {}
    for name in ATTRIBUTES:
        above = aimed.get("contact", []) if name == "mail" else []
        value = _draw_value(tuple([*aimed.get(name, ()), *above] or every))
        match draw(st.sampled_from(("absent", "one", "one", "one", "several", "records"))):
            case "one":
                event[name] = draw(value)
            case "several":
                event[name] = [draw(value) for _ in range(draw(st.integers(1, 3)))]
            case "records":
                parts = [{key: draw(_draw_value(tuple(every))) for key in ("k", "l")} for _ in range(2)]
                event[name] = [*parts, draw(value)] if draw(st.booleans()) else parts
    return event


@st.composite
def _draw_value(draw: st.DrawFn, telling: tuple[EventValue, ...]) -> EventValue:
    if draw(st.integers(0, 3)) and telling:
        value = draw(st.sampled_from(telling))
        return draw(st.sampled_from(forms(value, _AMOUNT if isinstance(value, model.Quantity) else SLOTS[0])))
    slot = draw(st.sampled_from(SLOTS))
    return draw(evenly((odd_values(), st.sampled_from(NOTHING), scalars(slot.kind), bad_values(slot.kind))))


_AMOUNT = Slot(model.Kind.NUMBER, bare=False)


@st.composite
def mixed_cases(draw: st.DrawFn, reach: str = EVERYTHING, *, filters: int = 6, events: int = 4) -> Case:
    """Return up to so many filters that share attributes and not kinds, and up to so many events for them."""
    trees = tuple(draw(st.lists(mixed_filters(reach), min_size=1, max_size=filters)))
    events_drawn = tuple(draw(st.lists(mixed_events(trees), min_size=1, max_size=events)))
    return Case(mixed_world(), trees, events_drawn)
