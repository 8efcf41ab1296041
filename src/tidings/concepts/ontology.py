"""An ontology: concept trees, attribute trees, synonyms, units and derived attributes in one value.

All checks are made and all tables are built by the constructor. A look-up of a concept is a dictionary access, and
`is_a` costs the same at any height of a tree. An ontology never changes, compares by content, hashes in constant time
and pickles, so matchers may keep it and Spark may carry it to its workers.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tidings.concepts.mistakes import refuse, split_mistakes
from tidings.concepts.ontology_assembly import assemble
from tidings.concepts.ontology_declaration import Declared, Parts, read_parts
from tidings.concepts.spelling import did_you_mean
from tidings.concepts.taxonomies.formats.nested import KEYS
from tidings.concepts.taxonomies.tree import Tree, build_ambiguity, find_tree_labels
from tidings.concepts.text_files import get_stem, get_suffix, read_table
from tidings.concepts.units import AttributeUnit, Currencies, Units
from tidings.errors import OntologyError, UnknownConcept
from tidings.model.values import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidings.concepts.derived.attributes import Derived


class Ontology:
    """What words mean: `td.Ontology.load("ontology.toml")`, or from its parts.

    >>> shop = Ontology(trees={"product": Tree({"computer": [], "laptop": ["computer"]})})
    >>> shop.is_a("laptop", "computer"), shop.root("laptop")
    (True, 'computer')
    """

    __slots__ = ("_assembled", "_hash", "_parts", "_trees", "_units")

    def __init__(
        self,
        *,
        trees: Mapping[str, Tree] | None = None,
        attribute_trees: Mapping[str, Tree] | None = None,
        attributes: Mapping[str, Declared] | None = None,
        units: Mapping[str, str] | None = None,
        currencies: Currencies | None = None,
        derived: Mapping[str, str] | None = None,
    ) -> None:
        """Fit the parts together; all mistakes are reported in one error."""
        self._assemble(
            Parts(
                trees=dict(trees or {}),
                attribute_trees=dict(attribute_trees or {}),
                attributes=dict(attributes or {}),
                units=dict(units or {}),
                currencies=currencies,
                derived=dict(derived or {}),
            )
        )

    def _assemble(self, parts: Parts, *, unread_trees: frozenset[str] = frozenset()) -> None:
        self._parts, self._trees, self._units = parts, parts.trees, Units(parts.units, parts.currencies)
        self._assembled = assemble(parts, self._units, unread_trees=unread_trees)
        refuse(parts.mistakes)
        sizes = sorted((name, len(tree)) for name, tree in (*parts.trees.items(), *parts.attribute_trees.items()))
        content = repr((sizes, sorted(self._assembled.own_names), sorted(parts.derived.items())))
        # A checksum is the same in every process, unlike Python's hash of text, so it can be pickled along.
        self._hash = zlib.crc32(content.encode())

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> Ontology:
        """Read an ontology from TOML or JSON, or a single tree in any format, named after its file.

        The options are those of `Tree.load` (`format=`, `lenient=True`, ...) and go with a single tree; an ontology
        file says such things itself.
        """
        path = Path(path)
        table = read_table(path) if get_suffix(path) in (".toml", ".json") else None
        if table is None or (table and set(table) <= set(KEYS)):
            return cls(trees={get_stem(path): Tree.load(path, **options)})
        if options:
            msg = f"`{path.name}` is an ontology file; write `{next(iter(options))}` beside the tree it is for"
            raise OntologyError(msg)
        try:
            return cls.from_dict(table, base=path.parent)
        except OntologyError as mistake:
            mistakes = split_mistakes(mistake)
            count = f"{len(mistakes)} mistakes" if len(mistakes) > 1 else "a mistake"
            msg = f"`{path.name}` has {count}:\n{mistake}"
            raise OntologyError(msg, mistakes=mistakes) from None

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], *, base: str | Path | None = None) -> Ontology:
        """Read the table that a file would hold; files it names lie relative to `base`."""
        parts, trees = read_parts(table, base=Path(base or ".")), table.get("trees", {})
        # An attribute of a tree that could not be read has no mistake of its own.
        unread = frozenset(trees if isinstance(trees, dict) else ()) - parts.trees.keys()
        ontology = cls.__new__(cls)
        ontology._assemble(parts, unread_trees=unread)  # noqa: SLF001 - of the instance just made
        return ontology

    def to_dict(self) -> dict[str, Any]:
        """Return the table a file would hold, with the trees themselves in place of their files."""
        parts, rates = self._parts, self._parts.currencies
        table = {
            "trees": {name: tree.to_dict() for name, tree in parts.trees.items()},
            "attribute_trees": {name: tree.to_dict() for name, tree in parts.attribute_trees.items()},
            "attributes": {name: entry.to_dict() for name, entry in parts.attributes.items()},
            "units": dict(parts.units),
            "currencies": {"base": rates.base, "rates": dict(rates.rates)} if rates else {},
            "derived": {name: derived.text for name, derived in self._assembled.derived.items()},
        }
        return {section: entry for section, entry in table.items() if entry}

    @property
    def trees(self) -> Mapping[str, Tree]:
        """The trees of concepts, by name."""
        return MappingProxyType(self._trees)

    @property
    def attribute_trees(self) -> Mapping[str, Tree]:
        """The trees of attribute names."""
        return MappingProxyType(self._parts.attribute_trees)

    @property
    def attributes(self) -> Mapping[str, Declared]:
        """The declarations of attributes, by their own names."""
        return MappingProxyType(self._parts.attributes)

    @property
    def derived(self) -> Mapping[str, Derived]:
        """The derived attributes, each after those it reads."""
        return MappingProxyType(self._assembled.derived)

    @property
    def units(self) -> Units:
        """The aliases and currencies."""
        return self._units

    def canonical(self, name: str, *, tree: str | None = None) -> str | None:
        """Return the concept's own name, or None; a name that several share is refused."""
        owner = self._find_tree(name, tree)
        return None if owner is None else owner.canonical(name)

    def require(self, name: str, *, tree: str | None = None) -> str:
        """Return the concept's own name, or refuse with the nearest known one."""
        return self._require_tree(name, tree).require(name)

    def is_a(self, value: str, concept: str, *, tree: str | None = None) -> bool:
        """Tell whether the value is the concept or lies below it; an unknown name is only itself."""
        owner = self._find_tree(concept, tree)
        return value == concept if owner is None else owner.is_a(value, concept)

    def code(self, name: str, *, tree: str | None = None) -> int | None:
        """Return the concept's depth-first number in its tree, or None."""
        owner = self._find_tree(name, tree)
        return None if owner is None else owner.code(name)

    def ranges(self, concept: str, *, tree: str | None = None) -> tuple[tuple[int, int], ...]:
        """Return the numbers of the concept and all below it: disjoint closed ranges, ascending."""
        return self._require_tree(concept, tree).ranges(concept)

    def root(self, name: str) -> str:
        """Return the topmost name above an attribute or a concept; a name in no tree is its own root."""
        attribute = self.attribute(name)
        owner = self._assembled.attribute_trees.get(attribute)
        if owner is not None:
            return owner.root(attribute)
        owner = self._find_tree(name, None)
        return attribute if owner is None else owner.root(name)

    def attribute(self, name: str) -> str:
        """Return the attribute's own name; an unknown one is itself."""
        return self._assembled.own_names.get(name, name)

    def sources(self, attribute: str) -> tuple[str, ...]:
        """Return the names by which events may give the attribute a value.

        They are its own name and synonyms, then those of the attributes below it in its attribute tree.
        """
        return self._assembled.sources.get(self.attribute(attribute)) or (attribute,)

    def kind(self, attribute: str) -> Kind | None:
        """Return the attribute's kind, declared or inferred from its derivation; `None` if there is neither."""
        return self._assembled.kinds.get(self.attribute(attribute))

    def input_kind(self, attribute: str) -> Kind | None:
        """Return the kind as which derived attributes read this one; filters may read it as another."""
        return self._assembled.find_input_kind(self.attribute(attribute))

    @property
    def declared_names(self) -> tuple[str, ...]:
        """The attributes that have a declared kind, by their own names; derived ones are not among them."""
        return tuple(name for name in self._assembled.kinds if name not in self._assembled.derived)

    def tree_of(self, attribute: str) -> str | None:
        """Return the name of the tree a concept attribute draws its values from."""
        return self._assembled.trees.get(self.attribute(attribute))

    def domain(self, attribute: str) -> str:
        """Return the tree of a concept attribute, or the word for its kind; `text` where it is unknown."""
        kind = self.kind(attribute)
        return self.tree_of(attribute) or (kind.value if kind else Kind.TEXT.value)

    def unit(self, attribute: str) -> AttributeUnit | None:
        """Return the unit of the attribute's values, and the attribute by which an event may name another unit."""
        return self._assembled.units.get(self.attribute(attribute))

    def convert(self, amount: float, unit: str, *, to: str) -> int | float:
        """Return the amount in another unit; in the same unit it comes back as it is."""
        return self._units.convert(amount, unit, to=to)

    def base_unit(self, unit: str) -> str:
        """Return the unit in which amounts of this dimension compare where no other is declared."""
        return self._units.base(unit)

    def read_quantity(self, text: str) -> tuple[int | float, str] | None:
        """Read `450 EUR`, `40GB` or `$ 450` as an amount and a unit; anything else is nothing."""
        return self._units.read(text)

    def _find_tree(self, name: str, tree: str | None) -> Tree | None:
        """Return the tree that has the concept: as it is written or, if there is none, with its case folded."""
        trees = self._trees
        if tree is not None:
            if tree not in trees:
                msg = f"no concept tree `{tree}`{did_you_mean(tree, trees)}"
                raise UnknownConcept(msg, name=tree)
            return trees[tree]
        if len(trees) == 1:
            (owner,) = trees.values()
            return owner if name in owner else None
        labels = find_tree_labels(trees, name)
        if len(labels) > 1:
            names = [f"`{each}` of `{label}`" for label in labels for each in trees[label].candidates(name)]
            raise build_ambiguity(name, names, "declare the attribute's tree")
        return trees[labels[0]] if labels else None

    def _require_tree(self, name: str, tree: str | None) -> Tree:
        owner = self._find_tree(name, tree)
        if owner is None:
            spellings = (word for each in self._trees.values() for word in each.spellings())
            msg = f"unknown concept `{name}`{did_you_mean(name, spellings)}"
            if not self._trees:
                msg += "; no ontology with concept trees is given"
            raise UnknownConcept(msg, name=name)
        return owner

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Ontology):
            return self is other
        return self._hash == other._hash and self._parts == other._parts

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        trees = (*self._parts.trees.items(), *self._parts.attribute_trees.items())
        sizes = [f"{name}: {len(tree):,}" for name, tree in trees]
        return f"<Ontology {{{', '.join(sizes)}}}, {len(self._assembled.derived)} derived>"
