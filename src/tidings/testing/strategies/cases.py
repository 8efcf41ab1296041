"""Worlds, and cases: filters and events of one world that fit together.

A world's attributes are drawn from recipes, one for each thing an attribute can be. With a closed schema
every attribute is declared; with an open one some are; without one, only those that the ontology declares. A
declaration may leave the kind open. Worlds are mixed by default: see `World.mixed`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from tidings.concepts import Ontology
from tidings.model import Attribute, Filter, Kind, Schema
from tidings.model.values import EventValue
from tidings.testing.hypothesis_import import evenly, st
from tidings.testing.strategies.concepts import CURRENCIES, FORESTS, SYNONYMS, regions, tree_table, trees
from tidings.testing.strategies.conditions import trees as filter_trees
from tidings.testing.strategies.events import bad_events, events_of
from tidings.testing.strategies.values import attributes
from tidings.testing.strategies.world import Lore, Slot, World

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NAMES = ("a", "b", "c", "price", "x.y", "x.z", "deep.er.one", "größe", "and", "two words")
"""A few names, so that filters of one world often share attributes."""

_BASIC = ("number", "text", "time", "place", "concept", "record")
RECIPES = (*_BASIC, *_BASIC, "bool", "ip", "size", "length", "money")
"""Recipes of attributes, apart from the special ones."""

SPECIAL = ("contact", "twice", "synonym")
"""Recipes of attributes with fixed names, which need an ontology."""

_FIELDS = ("number", "text", "bool", "time", "place", "ip")
"""Kinds of the fields of records."""

_SLOTS = {
    "size": Slot(Kind.NUMBER, units=("GB", "MB"), bare=False),
    "length": Slot(Kind.NUMBER, units=("m", "km", "cm"), declared=True),
    "money": Slot(Kind.NUMBER, units=("USD", "EUR", "JPY"), declared=True, unit_from="currency"),
    "contact": Slot(Kind.TEXT, below=("email", "phone")),
    "twice": Slot(Kind.NUMBER, half="once", declared=True),
    "synonym": Slot(Kind.TEXT, spellings=("color", "Farbe")),
}
"""Slots of recipes that draw nothing; other recipes are kinds."""


@dataclass(frozen=True, slots=True)
class Case:
    """Filters and events of one world."""

    world: World
    filters: tuple[Filter, ...]
    events: tuple[dict[str, EventValue], ...]


@st.composite
def worlds(
    draw: st.DrawFn, recipes: tuple[str, ...] = RECIPES + SPECIAL, *, mixed: bool = True, declared: bool = False
) -> World:
    """Return worlds of one to four attributes, at least one of them by each kind of schema and ontology.

    Where data must be of the kinds that filters ask for (a table with typed columns), say `mixed=False`. With
    `declared`, most worlds have a schema: without a declaration nothing is bad.
    """
    chosen = draw(_build_lists_of(recipes))
    forest = draw(_FORESTS) if "concept" in chosen else FORESTS[0]
    slots: dict[str, Slot] = {}
    for recipe in chosen:
        name = _SPECIAL_NAMES.get(recipe) or draw(_NAMES)
        if not _is_name_in_use(name, slots):
            slots[name] = draw(_draw_slot(recipe, _list_spellings(forest["goods"])))
    slots, schema = draw(_draw_schema(slots or {"a": Slot(Kind.NUMBER)}, mixed=mixed, declared=declared))
    table, lore = _build_table(slots, forest)
    has_place = any(slot.kind is Kind.PLACE for slot in slots.values())
    places = draw(st.one_of(regions(), st.none(), regions())) if has_place else None
    return World(slots, schema, _build_ontology(json.dumps(table)), places, lore=lore, mixed=mixed)


_FORESTS = st.one_of(st.sampled_from(FORESTS), st.sampled_from(FORESTS), trees())
_NAMES = st.one_of(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(NAMES), attributes())


@cache
def _build_lists_of(recipes: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.integers(1, 4).flatmap(lambda size: st.lists(st.sampled_from(recipes), min_size=size, max_size=size))


@lru_cache(maxsize=1024)
def _build_ontology(table: str) -> Ontology:
    """Return the ontology of a table; cached, since many worlds share one and building it costs more than drawing."""
    return Ontology.from_dict(json.loads(table))


_SPECIAL_NAMES = {"contact": "contact", "twice": "twice", "synonym": "colour"}
_RESERVED = ("unasked", "currency", "email", "phone", "once", "color", "Farbe", *_SPECIAL_NAMES.values())


def _is_name_in_use(name: str, slots: Mapping[str, Slot]) -> bool:
    """Tell whether a name equals, contains or lies under another one, or is reserved for events."""
    used = [*slots, *_RESERVED] if name not in _SPECIAL_NAMES.values() else [*slots]
    return any(name == other or name.startswith(f"{other}.") or other.startswith(f"{name}.") for other in used)


@st.composite
def _draw_slot(draw: st.DrawFn, recipe: str, words: tuple[str, ...]) -> Slot:
    match recipe:
        case "concept":
            return Slot(Kind.CONCEPT, words=words, declared=draw(st.booleans()))
        case "record":
            inner = draw(st.lists(st.sampled_from(_FIELDS), min_size=1, max_size=3))
            fields = {name: Slot(Kind(kind)) for name, kind in zip(("sku", "qty", "q.r"), inner, strict=False)}
            return Slot(Kind.RECORD, fields=fields)
    return _SLOTS[recipe] if recipe in _SLOTS else Slot(Kind(recipe))


def _list_spellings(tree: Iterable[str]) -> tuple[str, ...]:
    spelled = [word for concept in tree for word in SYNONYMS.get(concept, ())]
    return (*tree, *spelled, *(word.upper() for word in spelled[:1]))


# --- schemas: everything declared, something, or nothing -------------------------------------------


@st.composite
def _draw_schema(
    draw: st.DrawFn, slots: Mapping[str, Slot], *, mixed: bool, declared: bool
) -> tuple[dict[str, Slot], Schema | None]:
    """Draw a schema, or none; return the slots with the kinds and units it declares, and the schema."""
    form = draw(st.sampled_from(("closed", "open", "none") if declared else ("none", "none", "closed", "open")))
    if form == "none":
        return dict(slots), None
    entries: dict[str, Attribute] = {}
    slots_in_schema = dict(slots)
    for name, slot in slots.items():
        is_declared = form == "closed" or draw(st.booleans())
        if is_declared and not slot.half:
            slots_in_schema[name] = draw(_draw_slot_in_schema(slot, mixed=mixed))
            entries.update(_list_attributes(name, slots_in_schema[name]))
    return slots_in_schema, Schema(entries, closed=form == "closed")


@st.composite
def _draw_slot_in_schema(draw: st.DrawFn, slot: Slot, *, mixed: bool) -> Slot:
    several = slot.kind is Kind.RECORD or bool(slot.below or slot.spellings) or draw(st.booleans())
    if mixed and not slot.declared and draw(st.integers(0, 3)) == 0:
        return replace(slot, several=several)  # declared without a kind
    fields = {name: replace(inner, declared=True) for name, inner in slot.fields.items()}
    if not slot.bare:  # without a declared unit it is a plain number
        slot = replace(slot, units=(), bare=True)
    refinable = slot.kind is Kind.TEXT and draw(st.booleans())
    return replace(slot, several=several, declared=True, fields=fields, refinable=refinable)


def _list_attributes(name: str, slot: Slot) -> Iterable[tuple[str, Attribute]]:
    tree = "goods" if slot.kind is Kind.CONCEPT else None
    kind = slot.kind if slot.declared else None
    yield name, Attribute(kind, several=slot.several, tree=tree if kind else None, refinable=slot.refinable)
    for inner, field in slot.fields.items():
        yield from _list_attributes(f"{name}.{inner}", field)


# --- ontologies: what the slots need to be understood ----------------------------------------------


def _build_table(
    slots: Mapping[str, Slot], forest: dict[str, dict[str, tuple[str, ...]]]
) -> tuple[dict[str, Any], Lore]:
    """Return the ontology that the slots need, as a table for `Ontology.from_dict`, and as `Lore`."""
    attributes: dict[str, dict[str, str | list[str]]] = {}
    table: dict[str, Any] = {"trees": tree_table(forest), "currencies": CURRENCIES, "attributes": attributes}
    for name, slot in slots.items():
        if slot.kind is Kind.CONCEPT and slot.declared:
            attributes[name] = {"kind": "concept goods"}
        if slot.units and slot.declared and slot.bare:
            attributes[name] = {"kind": "number", "unit": slot.units[0]}
            attributes[name].update({"unit_from": slot.unit_from} if slot.unit_from else {})
        if slot.spellings:
            attributes[name] = {"synonyms": list(slot.spellings)}
        if slot.below:
            table["attribute_trees"] = {"names": {"parents": {name: [], **{other: [name] for other in slot.below}}}}
        if slot.half:
            table["derived"] = {name: f"{slot.half} * 2"}
    lore = Lore(
        parents=forest,
        synonyms={
            concept: words for concept, words in SYNONYMS.items() if any(concept in tree for tree in forest.values())
        },
        trees={name: "goods" for name, slot in slots.items() if slot.kind is Kind.CONCEPT and slot.declared},
        units={name: slot.units[0] for name, slot in slots.items() if slot.units and slot.declared and slot.bare},
    )
    return table, lore


# --- the public strategies --------------------------------------------------------------------------


def filters(world: World | None = None, *, depth: int = 3, mixed: bool = True) -> st.SearchStrategy[Filter]:
    """Return filter trees over the attributes of a world; without one, of a fresh world each."""
    if world is not None:
        return filter_trees(world, depth)
    return worlds(mixed=mixed).flatmap(lambda fresh: filter_trees(fresh, depth))


def events(
    world: World | None = None, *, of: Iterable[Filter] = (), bad: bool = False
) -> st.SearchStrategy[dict[str, EventValue]]:
    """Return events of a world, aimed at the filters `of` it; `bad` ones carry one value that does not fit."""
    if world is None:
        return worlds().flatmap(events)
    return bad_events(world, tuple(of)) if bad else events_of(world, tuple(of))


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    recipes: tuple[str, ...] = RECIPES + SPECIAL,
    filters: int = 3,
    events: int = 3,
    depth: int = 2,
    bad: bool = False,
    mixed: bool = True,
) -> Case:
    """Return a world, up to so many filters, and up to so many events aimed at them.

    With `bad`, some of the events carry a value that does not fit its kind. Unless `mixed`, attributes that are not
    declared are read as one kind, too, and hold nothing else.
    """
    world = draw(worlds(recipes, mixed=mixed, declared=bad))
    tree = filter_trees(world, depth)
    trees = tuple(draw(tree) for _ in range(draw(st.integers(1, filters))))
    good = events_of(world, trees)
    event = evenly((good, bad_events(world, trees))) if bad else good
    return Case(world, trees, tuple(draw(event) for _ in range(draw(st.integers(1, events)))))
