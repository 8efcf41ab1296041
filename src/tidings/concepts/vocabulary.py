"""The vocabulary of filters and events: a schema, an ontology and named regions as one immutable value.

Public functions take the three as the keywords `schema=`, `ontology=` and `regions=`. `Vocabulary.of` checks them in
one place, so that the same slip (a plain dict, a path) gets the same message from every function, before any work is
done. Everything below the public functions passes the one value on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from tidings.concepts.ontology import Ontology
from tidings.concepts.regions import Regions
from tidings.errors import TidingsError
from tidings.model import Attribute, Schema
from tidings.model.values import check_value

_EXPECTED = {
    "schema": (Schema, "td.Schema({...}) or td.Schema.load(...)"),
    "ontology": (Ontology, "td.Ontology.load(...)"),
    "regions": (Regions, "td.Regions.load(...)"),
}
"""The class of each keyword's value, and the calls that make one."""

_NO_CONCEPTS = Ontology()
"""Stands for the ontology that a caller left out; it is immutable, so one serves all."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What names in filters and events mean; any of the three parts may be absent."""

    schema: Schema | None = None
    ontology: Ontology | None = None
    regions: Regions | None = None

    @classmethod
    def of(cls, schema: Any = None, ontology: Any = None, regions: Any = None) -> Vocabulary:
        """Return the vocabulary of a caller's keyword values; a value of another class raises `TidingsError`."""
        for keyword, value in (("schema", schema), ("ontology", ontology), ("regions", regions)):
            expected, constructor = _EXPECTED[keyword]
            if value is not None and not isinstance(value, expected):
                msg = f"{keyword}= takes {constructor}, not a `{type(value).__name__}`"
                raise TidingsError(msg)
        return cls(schema, ontology, regions)

    @property
    def is_empty(self) -> bool:
        """Whether all three parts are absent, so that every name is allowed and none is checked."""
        return self.schema is None and self.ontology is None and self.regions is None

    @property
    def concepts(self) -> Ontology:
        """The ontology, or an empty one where there is none."""
        return _NO_CONCEPTS if self.ontology is None else self.ontology

    def to_keywords(self) -> dict[str, Any]:
        """Return the three parts as the keyword arguments of public functions."""
        return {"schema": self.schema, "ontology": self.ontology, "regions": self.regions}

    def find_attribute(self, name: str) -> Attribute | None:
        """Return an attribute's declaration: the schema's, and the ontology's for what the schema leaves open."""
        declaration = self.schema.get(name) if self.schema is not None else None
        if declaration is not None and declaration.kind is not None and declaration.tree is not None:
            return declaration
        kind, tree = self.concepts.kind(name), self.concepts.tree_of(name)
        if declaration is None:
            return Attribute(kind, several=True, tree=tree) if kind else None
        if declaration.refinable and kind is not None:  # a column of strings whose kind the ontology declares
            return Attribute(kind, several=declaration.several, tree=tree)
        return replace(declaration, kind=declaration.kind or kind, tree=tree)

    def allows(self, name: str) -> bool:
        """Tell whether a filter may name the attribute: under a closed schema, only one that is known."""
        return self.schema is None or not self.schema.closed or self.has_attribute(name)

    def has_attribute(self, name: str) -> bool:
        """Tell whether the schema or the ontology has the attribute, by this name or as a synonym of another."""
        names, concepts = self.schema or (), self.concepts
        return (
            name in names
            or name in concepts.derived
            or concepts.kind(name) is not None
            or concepts.attribute(name) in names
            or len(concepts.sources(name)) > 1
        )


def parse_now(now: Any) -> datetime | None:
    """Return the time in UTC; without a zone it is UTC already, and a date is its midnight."""
    if now is None:
        return None
    if not isinstance(now, date):
        msg = f"now= takes a datetime, not `{now!r}`"
        raise TidingsError(msg)
    return check_value(now)  # type: ignore[return-value]
