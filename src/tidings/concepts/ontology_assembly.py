"""Checks that the parts of an ontology fit together, and builds the tables that its look-ups use.

An attribute has one name of its own and any number of synonyms. Attributes of one attribute tree have one kind, since a
filter on an attribute also reads the values of those below it. Derived attributes are sorted so that each comes after
those it reads. Mistakes are collected instead of raised, so that all mistakes of a file are reported together.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tidings.concepts.derived.attributes import Derived
from tidings.concepts.derived.expression import list_names, parse
from tidings.concepts.spelling import did_you_mean
from tidings.concepts.taxonomies.numbering import find_circle
from tidings.concepts.taxonomies.tree import Tree
from tidings.concepts.units import AttributeUnit, Units
from tidings.errors import OntologyError
from tidings.model.values import Kind

if TYPE_CHECKING:
    from tidings.concepts.ontology_declaration import Declared, Parts


@dataclass(slots=True)
class Assembled:
    """The tables of an ontology; all but `own_names` are by the attributes' own names."""

    own_names: dict[str, str] = field(default_factory=dict)
    attribute_trees: dict[str, Tree] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    input_kinds: dict[str, Kind] = field(default_factory=dict)
    """The kinds that derived attributes require of inputs whose kind is not declared."""
    trees: dict[str, str] = field(default_factory=dict)
    units: dict[str, AttributeUnit] = field(default_factory=dict)
    derived: dict[str, Derived] = field(default_factory=dict)
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def get_own_name(self, name: str) -> str:
        """Return the attribute's own name; an unknown one is itself."""
        return self.own_names.get(name, name)

    def find_input_kind(self, name: str) -> Kind | None:
        """Return the kind as which derived attributes read this one: its own, else what one of them requires."""
        return self.kinds.get(name) or self.input_kinds.get(name)


def assemble(parts: Parts, units: Units, *, unread_trees: frozenset[str] = frozenset()) -> Assembled:
    """Check the parts and build the tables; mistakes are added to `parts.mistakes`.

    An attribute may name one of `unread_trees`: what is wrong with these is among the mistakes already.
    """
    assembled = Assembled()
    _index_names(parts, assembled)
    for name, declaration in parts.attributes.items():
        _declare(parts, assembled, name, declaration, trees={*parts.trees, *unread_trees})
    for tree in parts.attribute_trees.values():
        _share_kind(parts, assembled, tree)
    _check_units(parts, assembled, units)
    _derive(parts, assembled, units)
    words: dict[str, list[str]] = {}  # each attribute's own name and then its synonyms
    for word, name in assembled.own_names.items():
        words.setdefault(name, []).append(word)
    for name in words:
        below = assembled.attribute_trees[name].below(name) if name in assembled.attribute_trees else (name,)
        assembled.sources[name] = tuple(word for each in below for word in words[each])
    return assembled


def _index_names(parts: Parts, assembled: Assembled) -> None:
    """Index every attribute's own name, then every synonym."""
    for label, tree in parts.attribute_trees.items():
        for name in tree:
            if name in assembled.attribute_trees:
                parts.mistakes.append(f"[attribute_trees.{label}] the attribute `{name}` is in another tree already")
            assembled.attribute_trees[name] = tree
    own = dict.fromkeys((*assembled.attribute_trees, *parts.attributes, *parts.derived))
    assembled.own_names.update((name, name) for name in own)
    for name in own:
        words = [*assembled.attribute_trees[name].synonyms(name)] if name in assembled.attribute_trees else []
        words += parts.attributes[name].synonyms if name in parts.attributes else ()
        for word in words:
            before = assembled.own_names.setdefault(word, name)
            if before != name:
                conflict = "is an attribute of its own" if before == word else f"is a synonym of `{before}` already"
                parts.mistakes.append(f"the synonym `{word}` of the attribute `{name}` {conflict}")


def _declare(parts: Parts, assembled: Assembled, name: str, declaration: Declared, *, trees: set[str]) -> None:
    place = f'[attributes."{name}"]'
    if declaration.tree is not None and declaration.tree not in trees:
        parts.mistakes.append(f"{place} no concept tree `{declaration.tree}`{did_you_mean(declaration.tree, trees)}")
    if declaration.unit_from is not None and declaration.unit is None:
        parts.mistakes.append(f"{place} `unit_from` needs `unit`, the unit its values are kept in")
    kind = declaration.kind or (Kind.NUMBER if declaration.unit else None)
    if declaration.unit is not None:
        assembled.units[name] = AttributeUnit(declaration.unit, declaration.unit_from)
        if kind is not Kind.NUMBER:
            parts.mistakes.append(f"{place} only a number has a unit, and this is a {kind}")
    if kind is not None:
        assembled.kinds[name] = kind
    if declaration.tree is not None:
        assembled.trees[name] = declaration.tree


def _share_kind(parts: Parts, assembled: Assembled, tree: Tree) -> None:
    """Give each attribute of a tree the kind that any of them declares, and its parent's unit if it has none."""
    declared = [name for name in tree if name in assembled.kinds]
    for name in declared[1:]:
        first, (kind, other) = declared[0], (_describe_kind(assembled, each) for each in (declared[0], name))
        if kind != other:
            pair = f"the attributes `{first}` ({kind}) and `{name}` ({other})"
            parts.mistakes.append(f"{pair} are in one tree, so they have one kind")
    for name in tree:  # depth first, so a parent's unit is there before its child asks
        if declared:
            assembled.kinds.setdefault(name, assembled.kinds[declared[0]])
        if declared and declared[0] in assembled.trees:
            assembled.trees.setdefault(name, assembled.trees[declared[0]])
        if name not in assembled.units:
            above = next((assembled.units[parent] for parent in tree.parents(name) if parent in assembled.units), None)
            if above is not None:
                assembled.units[name] = AttributeUnit(above.unit)


def _describe_kind(assembled: Assembled, name: str) -> str:
    return " ".join(filter(None, (assembled.kinds[name], assembled.trees.get(name))))


def _check_units(parts: Parts, assembled: Assembled, units: Units) -> None:
    unit_uses = [(f"[units] `{alias}`:", alias) for alias in parts.units]
    unit_uses += [
        (f'[attributes."{name}"]', declaration.unit)
        for name, declaration in parts.attributes.items()
        if declaration.unit
    ]
    for place, unit in unit_uses:
        try:
            units.measure(unit)
        except OntologyError as mistake:
            parts.mistakes.append(f"{place} {mistake}")
    for name, declaration in parts.attributes.items():
        if declaration.unit_from is not None:
            source = assembled.get_own_name(declaration.unit_from)
            assembled.units[name] = replace(assembled.units.get(name, AttributeUnit("")), unit_from=source)


def _derive(parts: Parts, assembled: Assembled, units: Units) -> None:
    for name in _sort_derived(parts, assembled):
        place = f"[derived] `{name}`:"
        try:
            kinds, own_name = assembled.find_input_kind, assembled.get_own_name
            derived = Derived.parse(name, parts.derived[name], kinds=kinds, own_name=own_name)
            assembled.derived[name] = _settle_unit(assembled, derived, units)
        except OntologyError as mistake:
            parts.mistakes.append(f"{place} {mistake}")
            continue
        if derived.kind is not None and assembled.kinds.setdefault(name, derived.kind) is not derived.kind:
            parts.mistakes.append(f"{place} it gives a {derived.kind}, but it is declared as a {assembled.kinds[name]}")
        for source, kind in derived.wants.items():
            for attribute in assembled.attribute_trees.get(source, (source,)):
                assembled.input_kinds.setdefault(attribute, kind)


def _sort_derived(parts: Parts, assembled: Assembled) -> list[str]:
    """Return the derived attributes, each after those it reads (a depth-first search); a circle is a mistake."""
    reads = {name: _list_inputs(text, parts, assembled) for name, text in parts.derived.items()}
    cycle = find_circle(reads)
    if cycle:
        steps = " reads ".join(f"`{name}`" for name in [*cycle, cycle[0]])
        parts.mistakes.append(f"[derived] attributes in a circle: {steps}")
        return list(reads)  # in any order: the mistakes of the others are still to be found
    done: dict[str, None] = {}
    stack = list(reversed(reads))
    while stack:
        name = stack.pop()
        missing = [other for other in reads[name] if other not in done]
        if missing:
            stack += [name, *missing]
        else:
            done[name] = None
    return list(done)


def _list_inputs(text: str, parts: Parts, assembled: Assembled) -> tuple[str, ...]:
    try:
        names = list_names(parse(text, assembled.get_own_name))
    except OntologyError:
        return ()  # `_derive` parses the text again and notes the mistake
    return tuple(name for name in names if name in parts.derived)


def _settle_unit(assembled: Assembled, derived: Derived, units: Units) -> Derived:
    """Return the derived attribute with its unit: the declared one; without it, seconds for a difference of times."""
    declared = assembled.units.get(derived.name)
    if derived.unit is None:
        return replace(derived, unit=declared.unit) if declared else derived
    if declared is None:
        assembled.units[derived.name] = AttributeUnit(derived.unit)
        return derived
    return replace(derived, unit=declared.unit, divisor=units.convert(1, declared.unit, to=derived.unit))
