"""What a filter's meaning rests on, checked where it is given: `schema=`, `ontology=`, `regions=`, `now=`.

The same keywords stand everywhere, so the same slip (a plain dict, a path) gets the same answer
everywhere, and gets it at once rather than from deep inside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from tidings.concepts.ontology import Ontology
from tidings.concepts.regions import Regions
from tidings.errors import TidingsError
from tidings.model import Attribute, Schema
from tidings.model.values import checked

_TAKEN = {
    "schema": (Schema, "td.Schema({...}) or td.Schema.load(...)"),
    "ontology": (Ontology, "td.Ontology.load(...)"),
    "regions": (Regions, "td.Regions.load(...)"),
}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What names in filters and events mean: a schema, an ontology and named regions, each or none given.

    Public functions take the three as keywords; `Vocabulary.of` checks them once, and everything inside hands on
    this one value.
    """

    schema: Schema | None = None
    ontology: Ontology | None = None
    regions: Regions | None = None

    @classmethod
    def of(cls, schema: Any = None, ontology: Any = None, regions: Any = None) -> Vocabulary:
        """Return the vocabulary of a caller's keywords; what is no schema, ontology or regions raises."""
        check_surroundings(schema, ontology, regions)
        return cls(schema, ontology, regions)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was given, so that every name is allowed and none is checked."""
        return self.schema is None and self.ontology is None and self.regions is None

    @property
    def concepts(self) -> Ontology:
        """The ontology, or an empty one where none was given."""
        return self.ontology if self.ontology is not None else Ontology()

    def keywords(self) -> dict[str, Any]:
        """Return the three as the keyword arguments that public functions take."""
        return {"schema": self.schema, "ontology": self.ontology, "regions": self.regions}


def check_surroundings(schema: Any = None, ontology: Any = None, regions: Any = None) -> None:
    """Refuse what is not a schema, an ontology or regions, and say what makes one."""
    for word, given in (("schema", schema), ("ontology", ontology), ("regions", regions)):
        wanted, way = _TAKEN[word]
        if given is not None and not isinstance(given, wanted):
            msg = f"{word}= takes {way}, not a `{type(given).__name__}`"
            raise TidingsError(msg)


def moment(now: Any) -> datetime | None:
    """Return the time in UTC; without a zone it is UTC already, and a date is its midnight."""
    if now is None:
        return None
    if not isinstance(now, date):
        msg = f"now= takes a datetime, not `{now!r}`"
        raise TidingsError(msg)
    return checked(now)  # type: ignore[return-value]


def declared(name: str, schema: Schema | None, ontology: Ontology) -> Attribute | None:
    """Return what the schema or, where it is silent, the ontology declares of an attribute."""
    told = schema.get(name) if schema is not None else None
    if told is not None and told.kind is not None and told.tree is not None:
        return told
    kind, tree = ontology.kind(name), ontology.tree_of(name)
    if told is None:
        return Attribute(kind, several=True, tree=tree) if kind else None
    if told.refinable and kind is not None:  # a column of strings, and the ontology says what they are
        return Attribute(kind, several=told.several, tree=tree)
    return replace(told, kind=told.kind or kind, tree=tree)


def knows(name: str, schema: Schema, ontology: Ontology) -> bool:
    """Tell whether a schema or an ontology has the attribute, by this name or the one it is a synonym of."""
    return (
        name in schema
        or name in ontology.derived
        or ontology.kind(name) is not None
        or ontology.attribute(name) in schema
        or len(ontology.sources(name)) > 1
    )
