"""Schemas: the kind of each attribute, and whether it has one value or several.

A schema is declared (a mapping, TOML or JSON), taken from an Arrow schema, or inferred from filters. An entry `tags.*`
applies to every name below `tags.`. An attribute without a kind (`any`) exists, but each filter reads it as the kind it
asks for, as it does with an undeclared attribute.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.errors import SchemaError
from tidings.model.arrow_types import find_kind, is_arrow, is_list_type
from tidings.model.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

DECLARABLE = tuple(kind for kind in Kind if kind is not Kind.OPAQUE)
"""The kinds a schema may name, beside `any` and `string`."""

STRING = "string"
"""The word for text that may also be asked for as a concept or an address."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """The kind of an attribute, whether it may have several values, and the tree of its concepts.

    `refinable` text is what a table's column of strings holds: filters may also ask for it as a concept or an address.
    """

    kind: Kind | None = None
    several: bool = False
    tree: str | None = None
    refinable: bool = False

    def accepts(self, kind: Kind) -> bool:
        """Tell whether a filter may ask for this kind."""
        if self.kind in (None, kind):
            return True
        if self.kind is Kind.CONCEPT:
            return kind is Kind.TEXT
        return self.refinable and kind in (Kind.CONCEPT, Kind.IP)

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
                self._attributes[name] = words if isinstance(words, Attribute) else _parse_attribute(name, words)
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
        return cls(_flatten(listed) if isinstance(listed, dict) else listed)

    @classmethod
    def from_arrow(cls, schema: pa.Schema | pa.Table | pa.RecordBatch) -> Schema:
        """Take kinds and cardinality from an Arrow schema; text may be asked as a concept or an address too."""
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


def find_attributes(schema: pa.Schema) -> dict[str, Attribute]:
    """Return the attributes of an Arrow schema, by dotted name.

    Scalars have one value, lists several, structs dotted names, maps any name below theirs. A struct with fields `lon`
    and `lat` is also a place. Columns of text may also be asked for as a concept or an address; to have one read as a
    number or a time, declare it. Values of maps have no kind of their own.
    """
    pairs = (_iterate_attributes(field.name, field.type, several=False) for field in schema)
    return dict(chain.from_iterable(pairs))


def _iterate_attributes(name: str, kind: pa.DataType, *, several: bool) -> Iterator[tuple[str, Attribute]]:
    import pyarrow.types as t  # late: `tidings` starts without PyArrow

    if is_list_type(kind):
        yield from _iterate_attributes(name, kind.value_type, several=True)
    elif t.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        is_place = {"lon", "lat"} <= {field.name for field in fields}
        yield name, Attribute(Kind.PLACE if is_place else Kind.RECORD, several=several)
        for field in fields:
            yield from _iterate_attributes(f"{name}.{field.name}", field.type, several=several)
    elif t.is_map(kind):
        yield name, Attribute(Kind.RECORD, several=several)
        yield f"{name}.*", Attribute(several=True)
    else:
        scalar = find_kind(kind)
        yield name, Attribute(scalar, several=several, refinable=scalar is Kind.TEXT)


def _parse_attribute(name: object, words: object) -> Attribute:
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


def _flatten(table: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """Undo what TOML makes of dotted keys: `car.make = "text"` is a table `car`."""
    flat: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat.update(_flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value  # type: ignore[assignment]  # `Schema` refuses what is no text
    return flat
