"""Whether an ontology's parts fit together, and what follows from them.

Attributes have one name and any number of synonyms; those in one attribute tree share one kind, since a
filter on the upper hears of the lower. Derived attributes come in an order in which each finds its inputs
done. Mistakes are gathered, not raised, so that a file's are reported together.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tidings.concepts.derived.attributes import Derived
from tidings.concepts.derived.expression import names_in, parse
from tidings.concepts.spelling import did_you_mean
from tidings.concepts.taxonomies.numbering import circle
from tidings.concepts.taxonomies.tree import Tree
from tidings.concepts.units import AttributeUnit, Units
from tidings.errors import OntologyError
from tidings.model.values import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidings.concepts.ontology_declaration import Declared, Parts


@dataclass(slots=True)
class Assembled:
    """What the parts amount to, by the attributes' own names."""

    called: dict[str, str] = field(default_factory=dict)
    homes: dict[str, Tree] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    input_kinds: dict[str, Kind] = field(default_factory=dict)
    """What derived attributes read their inputs as, where nothing is declared of these."""
    trees: dict[str, str] = field(default_factory=dict)
    units: dict[str, AttributeUnit] = field(default_factory=dict)
    derived: dict[str, Derived] = field(default_factory=dict)
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def own_name(self, name: str) -> str:
        """Return the attribute's own name; an unknown one is itself."""
        return self.called.get(name, name)

    def kind_read(self, name: str) -> Kind | None:
        """Return the kind as which derived attributes read this one."""
        return self.kinds.get(name) or self.input_kinds.get(name)


def assemble(parts: Parts, units: Units, *, named: frozenset[str] = frozenset()) -> Assembled:
    """Fit the parts together; mistakes are added to theirs. `named` are trees that could not be read."""
    found = Assembled()
    _names(parts, found)
    for name, said in parts.attributes.items():
        _declare(parts, found, name, said, known={*parts.trees, *named})
    for tree in parts.attribute_trees.values():
        _share_kind(parts, found, tree)
    _check_units(parts, found, units)
    _derive(parts, found, units)
    words = _words(found.called)
    for name in words:
        below = found.homes[name].below(name) if name in found.homes else (name,)
        found.sources[name] = tuple(word for each in below for word in words[each])
    return found


def _words(called: Mapping[str, str]) -> dict[str, list[str]]:
    """Return each attribute's own name and then its synonyms."""
    words: dict[str, list[str]] = {}
    for word, name in called.items():
        words.setdefault(name, []).append(word)
    return words


def _names(parts: Parts, found: Assembled) -> None:
    """Index every attribute's own name, then every synonym."""
    for label, tree in parts.attribute_trees.items():
        for name in tree:
            if name in found.homes:
                parts.mistakes.append(f"[attribute_trees.{label}] the attribute `{name}` is in another tree already")
            found.homes[name] = tree
    own = dict.fromkeys((*found.homes, *parts.attributes, *parts.derived))
    found.called.update((name, name) for name in own)
    for name in own:
        words = [*found.homes[name].synonyms(name)] if name in found.homes else []
        words += parts.attributes[name].synonyms if name in parts.attributes else ()
        for word in words:
            before = found.called.setdefault(word, name)
            if before != name:
                meant = "is an attribute of its own" if before == word else f"is a synonym of `{before}` already"
                parts.mistakes.append(f"the synonym `{word}` of the attribute `{name}` {meant}")


def _declare(parts: Parts, found: Assembled, name: str, said: Declared, *, known: set[str]) -> None:
    place = f'[attributes."{name}"]'
    if said.tree is not None and said.tree not in known:
        parts.mistakes.append(f"{place} no concept tree `{said.tree}`{did_you_mean(said.tree, known)}")
    if said.unit_from is not None and said.unit is None:
        parts.mistakes.append(f"{place} `unit_from` needs `unit`, the unit its values are kept in")
    kind = said.kind or (Kind.NUMBER if said.unit else None)
    if said.unit is not None:
        found.units[name] = AttributeUnit(said.unit, said.unit_from)
        if kind is not Kind.NUMBER:
            parts.mistakes.append(f"{place} only a number has a unit, and this is a {kind}")
    if kind is not None:
        found.kinds[name] = kind
    if said.tree is not None:
        found.trees[name] = said.tree


def _share_kind(parts: Parts, found: Assembled, tree: Tree) -> None:
    """Give all attributes of a tree the kind one of them declares, and the unit of the one above."""
    declared = [name for name in tree if name in found.kinds]
    for name in declared[1:]:
        first = declared[0]
        if _said(found, name) != _said(found, first):
            text = f"the attributes `{first}` ({_said(found, first)}) and `{name}` ({_said(found, name)})"
            parts.mistakes.append(f"{text} are in one tree, so they have one kind")
    for name in tree:  # depth first, so a parent's unit is there before its child asks
        if declared:
            _set_kind(found, name, declared[0])
        if name not in found.units:
            above = next((found.units[parent] for parent in tree.parents(name) if parent in found.units), None)
            if above is not None:
                found.units[name] = AttributeUnit(above.unit)


def _said(found: Assembled, name: str) -> str:
    return " ".join(filter(None, (found.kinds[name], found.trees.get(name))))


def _set_kind(found: Assembled, name: str, like: str) -> None:
    found.kinds.setdefault(name, found.kinds[like])
    if like in found.trees:
        found.trees.setdefault(name, found.trees[like])


def _check_units(parts: Parts, found: Assembled, units: Units) -> None:
    asked = [(f"[units] `{alias}`:", alias) for alias in parts.units]
    asked += [(f'[attributes."{name}"]', said.unit) for name, said in parts.attributes.items() if said.unit]
    for place, unit in asked:
        try:
            units.measure(unit)
        except OntologyError as mistake:
            parts.mistakes.append(f"{place} {mistake}")
    for name, said in parts.attributes.items():
        if said.unit_from is not None:
            called = found.called.get(said.unit_from, said.unit_from)
            found.units[name] = replace(found.units.get(name, AttributeUnit("")), unit_from=called)


def _derive(parts: Parts, found: Assembled, units: Units) -> None:
    for name in _in_order(parts, found):
        place = f"[derived] `{name}`:"
        try:
            derived = Derived.parse(name, parts.derived[name], kinds=found.kind_read, called=found.own_name)
            found.derived[name] = _measured(found, derived, units)
        except OntologyError as mistake:
            parts.mistakes.append(f"{place} {mistake}")
            continue
        if derived.kind is not None and found.kinds.setdefault(name, derived.kind) is not derived.kind:
            parts.mistakes.append(f"{place} it gives a {derived.kind}, but it is declared as a {found.kinds[name]}")
        for asked, kind in derived.wants.items():
            for each in found.homes.get(asked, (asked,)):
                found.input_kinds.setdefault(each, kind)


def _in_order(parts: Parts, found: Assembled) -> list[str]:
    """Return the derived attributes, each after those it reads; a circle is a mistake."""
    reads = {name: _reads(text, parts, found) for name, text in parts.derived.items()}
    around = circle(reads)
    if around:
        steps = " reads ".join(f"`{name}`" for name in [*around, around[0]])
        parts.mistakes.append(f"[derived] attributes in a circle: {steps}")
        return list(reads)  # the others' mistakes are still to be told
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


def _reads(text: str, parts: Parts, found: Assembled) -> tuple[str, ...]:
    try:
        names = [found.own_name(part.name) for part in names_in(parse(text))]
    except OntologyError:
        return ()  # told when it is parsed for good
    return tuple(dict.fromkeys(name for name in names if name in parts.derived))


def _measured(found: Assembled, derived: Derived, units: Units) -> Derived:
    """Settle the unit of a derived number: seconds, or what the attribute is declared in."""
    declared = found.units.get(derived.name)
    if derived.unit is None:
        return replace(derived, unit=declared.unit) if declared else derived
    if declared is None:
        found.units[derived.name] = AttributeUnit(derived.unit)
        return derived
    return replace(derived, unit=declared.unit, divisor=units.convert(1, declared.unit, to=derived.unit))
