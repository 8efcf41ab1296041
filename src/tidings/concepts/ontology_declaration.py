"""Reads the table of an ontology, as a TOML or JSON file has it, into its parts, and notes every mistake.

The sections are `trees`, `attribute_trees`, `attributes`, `units`, `currencies` and `derived`. Each is read by one
function, and a mistake in one section does not keep the others from being read. Whether the parts fit together is
checked by `ontology_assembly`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidings.concepts.mistakes import split_mistakes
from tidings.concepts.spelling import did_you_mean
from tidings.concepts.taxonomies.formats import OPTIONS
from tidings.concepts.taxonomies.formats.nested import draft_tree, list_texts
from tidings.concepts.taxonomies.tree import Tree
from tidings.concepts.units import Currencies
from tidings.errors import FileError, MissingExtra, OntologyError, SchemaError
from tidings.model.schema import Attribute, Schema
from tidings.model.values import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECTIONS = ("trees", "attribute_trees", "attributes", "units", "currencies", "derived")
"""The keys of an ontology's table."""

SHAPES = ("outline", "children", "parents", "file")
"""The ways to give a tree; exactly one of them."""

OF_TREES = (*SHAPES, "format", "synonyms", *OPTIONS)
"""The keys of a tree's table."""

OF_ATTRIBUTES = ("kind", "unit", "unit_from", "synonyms")
"""The keys of an attribute's table."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of an attribute: its kind, its concept tree, its unit, its other names."""

    kind: Kind | None = None
    tree: str | None = None
    unit: str | None = None
    unit_from: str | None = None
    synonyms: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the table a file would hold."""
        table = {
            "kind": str(Attribute(self.kind, tree=self.tree)) if self.kind else None,
            "unit": self.unit,
            "unit_from": self.unit_from,
            "synonyms": list(self.synonyms),
        }
        return {key: value for key, value in table.items() if value}


@dataclass(slots=True)
class Parts:
    """The parts of an ontology as far as they could be read, and the mistakes in the rest."""

    trees: dict[str, Tree] = field(default_factory=dict)
    attribute_trees: dict[str, Tree] = field(default_factory=dict)
    attributes: dict[str, Declared] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    currencies: Currencies | None = None
    derived: dict[str, str] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)


def read_parts(table: Mapping[str, Any], *, base: Path) -> Parts:
    """Read the table; files it names lie relative to `base`."""
    parts = Parts()
    _refuse_unknown_keys(parts, table, SECTIONS, "the ontology")
    for section, trees in (("trees", parts.trees), ("attribute_trees", parts.attribute_trees)):
        for name, entry in _get_section(parts, table, section).items():
            tree = _read_tree(parts, entry, f"{section}.{name}", base)
            if tree is not None:
                trees[name] = tree
    for name, entry in _get_section(parts, table, "attributes").items():
        _read_attributes(parts, name, entry)
    parts.units = _read_texts(parts, table, "units")
    parts.derived = _read_texts(parts, table, "derived")
    if "currencies" in table:
        parts.currencies = _read_currencies(parts, table["currencies"])
    return parts


def _read_tree(parts: Parts, entry: Any, place: str, base: Path) -> Tree | None:
    if not isinstance(entry, dict):
        parts.mistakes.append(f"[{place}] is a table with one of {', '.join(SHAPES)}, not {entry!r}")
        return None
    _refuse_unknown_keys(parts, entry, OF_TREES, f"[{place}]")
    shapes = [shape for shape in SHAPES if shape in entry]
    # With two shapes one would have to win silently.
    if len(shapes) != 1:
        present = " and ".join(shapes) or "none of them"
        parts.mistakes.append(f"[{place}] takes one of {', '.join(SHAPES)}; it has {present}")
        return None
    try:
        return _build_tree(entry, shapes[0], place, base=base)
    except (OntologyError, FileError, MissingExtra) as mistake:
        texts = split_mistakes(mistake)
        parts.mistakes.extend(text if text.startswith(f"[{place}]") else f"[{place}] {text}" for text in texts)
        return None


def _build_tree(entry: dict[str, Any], shape: str, place: str, *, base: Path) -> Tree:
    options = {key: entry[key] for key in OPTIONS if key in entry}
    _check_types(entry, shape, options)
    if shape in ("children", "parents"):
        draft = draft_tree(entry, f"[{place}]")
        return Tree.of_parts(draft.check(lenient=options.get("lenient", False), root=options.get("root")))
    if shape == "outline":
        tree = Tree.read(entry["outline"], format="outline", label=f"[{place}]", **options)
    else:
        tree = Tree.load(base / entry["file"], format=entry.get("format"), **options)
    return tree.with_synonyms(_read_synonyms(entry.get("synonyms", {})))


def _check_types(entry: dict[str, Any], shape: str, options: dict[str, Any]) -> None:
    wanted: dict[str, type] = {"outline": str, "file": str, "format": str, "lenient": bool, "columns": list}
    for key in (shape, "format", *options):
        kind = wanted.get(key, dict if key in SHAPES else str)
        if key in entry and not isinstance(entry[key], kind):
            word = {str: "a text", bool: "true or false", list: "a list", dict: "a table"}[kind]
            msg = f"`{key}` is {word}, not {entry[key]!r}"
            raise OntologyError(msg)


def _read_synonyms(entry: Any) -> dict[str, list[str]]:
    if not isinstance(entry, dict):
        msg = f"`synonyms` is a table from concepts to their other names, not {entry!r}"
        raise OntologyError(msg)
    synonyms: dict[str, list[str]] = {}
    for name, words in entry.items():
        texts = list_texts(words)
        if texts is None:
            msg = f"`synonyms` of `{name}`: a text or a list of texts, not {words!r}"
            raise OntologyError(msg)
        synonyms[name] = texts
    return synonyms


def _read_attributes(parts: Parts, name: str, entry: Any) -> None:
    """Read an attribute; a table within its table is the attribute with the longer, dotted name."""
    if isinstance(entry, str):
        entry = {"kind": entry}
    if not isinstance(entry, dict):
        parts.mistakes.append(f"[attributes] `{name}` is a kind or a table, not {entry!r}")
        return
    # TOML reads `[attributes.car.price]` and `car.price = "number"` as tables within tables.
    for key, deeper in entry.items():
        if isinstance(deeper, dict):
            _read_attributes(parts, f"{name}.{key}", deeper)
    own = {key: value for key, value in entry.items() if not isinstance(value, dict)}
    if own or not entry:
        parts.attributes[name] = _read_attribute(parts, name, own)


def _read_attribute(parts: Parts, name: str, entry: dict[str, Any]) -> Declared:
    place = f'[attributes."{name}"]'
    _refuse_unknown_keys(parts, entry, OF_ATTRIBUTES, place)
    for key in ("kind", "unit", "unit_from"):
        if not isinstance(entry.get(key, ""), str):
            parts.mistakes.append(f"{place} `{key}` is a text, not {entry[key]!r}")
            entry = {**entry, key: None}
    words = list_texts(entry.get("synonyms", []))
    if words is None:
        parts.mistakes.append(f"{place} `synonyms` is a list of names, not {entry['synonyms']!r}")
    attribute = _read_kind(parts, place, entry.get("kind"))
    return Declared(attribute.kind, attribute.tree, entry.get("unit"), entry.get("unit_from"), tuple(words or ()))


def _read_kind(parts: Parts, place: str, words: str | None) -> Attribute:
    if words is None:
        return Attribute()
    # A schema reads the same words, so that kinds are spelled alike in both files.
    try:
        attribute = Schema({"kind": words})["kind"]
    except SchemaError as mistake:
        parts.mistakes.append(f"{place} {mistake}")
        return Attribute()
    if attribute.several:
        parts.mistakes.append(f"{place} whether it has several values is the schema's to say; write the kind alone")
    if attribute.kind is Kind.CONCEPT and attribute.tree is None:
        parts.mistakes.append(f'{place} name the tree the concepts are of, such as kind = "concept product"')
    return attribute


def _read_currencies(parts: Parts, entry: Any) -> Currencies | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("base"), str):
        parts.mistakes.append('[currencies] is a table with base = "USD" and rates = { EUR = 1.08 }')
        return None
    _refuse_unknown_keys(parts, entry, ("base", "rates"), "[currencies]")
    rates = entry.get("rates", {})
    if not isinstance(rates, dict):
        parts.mistakes.append(f"[currencies] `rates` is a table of what one of each is worth, not {rates!r}")
        rates = {}
    valid = {code: rate for code, rate in rates.items() if type(rate) in (int, float) and 0 < rate < math.inf}
    for code in (code for code in rates if code not in valid):
        parts.mistakes.append(f"[currencies] `{code}` is worth {rates[code]!r}; a rate is a number above zero")
    return Currencies(entry["base"], valid)


def _read_texts(parts: Parts, table: Mapping[str, Any], section: str) -> dict[str, str]:
    """Read a section of texts; a table within it is a dotted name."""
    texts: dict[str, str] = {}
    stack = list(reversed(_get_section(parts, table, section).items()))  # the order of the file stays
    while stack:
        name, text = stack.pop()
        if isinstance(text, str):
            texts[name] = text
        elif isinstance(text, dict):
            stack.extend((f"{name}.{key}", deeper) for key, deeper in reversed(text.items()))
        else:
            parts.mistakes.append(f"[{section}] `{name}` is a text, not {text!r}")
    return texts


def _get_section(parts: Parts, table: Mapping[str, Any], section: str) -> dict[str, Any]:
    entry = table.get(section, {})
    if isinstance(entry, dict):
        return entry
    parts.mistakes.append(f"[{section}] is a table, not {entry!r}")
    return {}


def _refuse_unknown_keys(parts: Parts, entry: Mapping[str, Any], keys: tuple[str, ...], place: str) -> None:
    for key in entry:
        if key not in keys:
            hint = did_you_mean(key, keys) or f"; known are {', '.join(keys)}"
            parts.mistakes.append(f"{place}: unknown key `{key}`{hint}")
