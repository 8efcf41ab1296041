"""Schemas: which kind an attribute has, and whether it carries one value or several.

A schema is declared (a mapping, TOML or JSON), taken from an Arrow schema, or inferred from filters.
An entry `tags.*` speaks for every name below `tags.`; an attribute of no kind (`any`) is known to be
there, and each filter reads it as the kind it asks for, as it reads an attribute that nobody declares.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.errors import SchemaError
from tidings.model.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

DECLARABLE = tuple(kind for kind in Kind if kind is not Kind.OPAQUE)
"""The kinds a schema may name, beside `any` and `string`."""

STRING = "string"
"""The word for text that may also be asked for as a concept or an address."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute's kind, how many values it may carry, and the concept tree it draws from.

    `refinable` text is what a table's column of strings holds: filters may also ask for it as a concept or an address.
    """

    kind: Kind | None = None
    several: bool = False
    tree: str | None = None
    refinable: bool = False

    def accepts(self, asked: Kind) -> bool:
        """Tell whether a filter may ask for this kind."""
        if self.kind in (None, asked):
            return True
        if self.kind is Kind.CONCEPT:
            return asked is Kind.TEXT
        return self.refinable and asked in (Kind.CONCEPT, Kind.IP)

    def __str__(self) -> str:
        """Return the words a schema file uses."""
        words = ["several"] if self.several else []
        words.append(STRING if self.refinable else self.kind.value if self.kind else "any")
        return " ".join([*words, self.tree] if self.tree else words)


class Schema:
    """The attributes of events: `td.Schema({"price": "number", "tags": "several text"})`.

    >>> Schema({"price": "number", "kind": "concept product"})["kind"].tree
    'product'
    """

    def __init__(self, attributes: Mapping[str, str | Attribute] | None = None, *, closed: bool = True) -> None:
        """Read the words of each attribute; an open schema lets filters name other attributes too."""
        if not isinstance(attributes, Mapping | None):
            msg = f"a schema is a mapping of names to kinds, not `{attributes!r}`; td.Schema.load reads a file"
            raise SchemaError(msg)
        self.closed = closed
        mistakes: list[str] = []
        self._attributes: dict[str, Attribute] = {}
        for name, words in (attributes or {}).items():
            try:
                self._attributes[name] = words if isinstance(words, Attribute) else _attribute(name, words)
            except SchemaError as mistake:
                mistakes.append(str(mistake))
        if mistakes:
            raise SchemaError("\n".join(mistakes))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a TOML or JSON file: a table `attributes`, or the attributes at the top."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
            table = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        except (OSError, ValueError) as problem:
            msg = f"cannot read the schema `{path}`: {problem}"
            raise SchemaError(msg) from problem
        if not isinstance(table, dict):
            msg = f"the schema `{path}` is not a table of attributes"
            raise SchemaError(msg)
        listed = table.get("attributes", table)
        return cls(_flat(listed) if isinstance(listed, dict) else listed)

    @classmethod
    def from_arrow(cls, schema: Any) -> Schema:
        """Take kinds and cardinality from an Arrow schema; text may be asked as a concept or an address too."""
        from tidings.model.arrow_types import find_attributes
        from tidings.model.events import is_arrow

        schema = getattr(schema, "schema", schema)  # a table or a batch has one
        if not is_arrow(schema):
            msg = f"from_arrow takes an Arrow schema or table, not {type(schema).__name__}"
            raise SchemaError(msg)
        return cls(find_attributes(schema))

    def get(self, name: str) -> Attribute | None:
        """Return what is declared of the name, by itself or by an entry `prefix.*`."""
        attribute = self._attributes.get(name)
        prefix = name
        while attribute is None and "." in prefix:
            prefix = prefix.rpartition(".")[0]
            attribute = self._attributes.get(f"{prefix}.*")
        return attribute

    def __getitem__(self, name: str) -> Attribute:
        attribute = self.get(name)
        if attribute is None:
            raise KeyError(name)
        return attribute

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and (self._attributes, self.closed) == (other._attributes, other.closed)

    def __hash__(self) -> int:
        return hash(frozenset(self._attributes.items()))

    def __repr__(self) -> str:
        return f"Schema({self.to_dict()!r})"

    def to_dict(self) -> dict[str, str]:
        """Return the words of each attribute, as a schema file has them."""
        return {name: str(attribute) for name, attribute in self._attributes.items()}

    def merged(self, over: Schema) -> Schema:
        """Return both together; where they differ, `over` wins."""
        return Schema({**self._attributes, **over._attributes}, closed=self.closed or over.closed)

    def opened(self) -> Schema:
        """Return the same attributes, with filters free to name others."""
        return Schema(self._attributes, closed=False)


def _attribute(name: object, words: object) -> Attribute:
    if not isinstance(name, str):
        msg = f"`{name!r}`: an attribute's name is text"
        raise SchemaError(msg)
    if not isinstance(words, str):
        msg = f'`{name}`: a kind is text such as "number" or "several text", not {words!r}'
        raise SchemaError(msg)
    parts = words.split()
    several = bool(parts) and parts[0] == "several"
    kind, *rest = parts[several:] or [""]
    if kind == "opaque" and not rest:
        return Attribute(Kind.OPAQUE, several=several)
    if kind == STRING and not rest:
        return Attribute(Kind.TEXT, several=several, refinable=True)
    if kind not in (*DECLARABLE, "any") or (rest and (kind != "concept" or len(rest) > 1)):
        kinds = ", ".join((*DECLARABLE, STRING, "any"))
        hint = "perhaps after `several`; `concept` may name its tree"
        msg = f"`{name}`: unknown kind `{words}`; the kinds are {kinds}, {hint}"
        raise SchemaError(msg)
    return Attribute(None if kind == "any" else Kind(kind), several=several, tree=rest[0] if rest else None)


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Undo what TOML makes of dotted keys: `car.make = "text"` is a table `car`."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat
