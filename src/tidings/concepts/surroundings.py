"""What a filter's meaning rests on, checked where it is given: `schema=`, `ontology=`, `regions=`, `now=`.

The same keywords stand everywhere, so the same slip (a plain dict, a path) gets the same answer
everywhere, and gets it at once rather than from deep inside.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from tidings.concepts.ontology import Ontology
from tidings.concepts.regions import Regions
from tidings.errors import TidingsError
from tidings.model import Schema
from tidings.model.values import checked

_TAKEN = {
    "schema": (Schema, "td.Schema({...}) or td.Schema.load(...)"),
    "ontology": (Ontology, "td.Ontology.load(...)"),
    "regions": (Regions, "td.Regions.load(...)"),
}


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
