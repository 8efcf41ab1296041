"""Names that filters ask for and nobody has: told together, each with the nearest name that there is.

A filter on `pirce` would never be satisfied, and nobody would notice. Where events have columns, or a schema says what
there is, such a name is a mistake, unless somebody asks for the open world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.algebra.law.requirements import unknown_attribute
from tidings.concepts import Vocabulary
from tidings.errors import UnknownAttributes

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidings.matcher.matcher import Matcher
    from tidings.model import Schema

LISTED = 10
"""Names that are told of; the others are counted."""


def refuse_unknown(matcher: Matcher, known: Schema, *, where: str, way_out: str, what: str = "subscriptions") -> None:
    """Refuse names that filters of the matcher ask for and neither `known` nor its own schema and ontology have.

    `where` says who has the names that are known, `way_out` how to ask for the open world.
    """
    there = known if matcher.schema is None else known.merged(matcher.schema)
    vocabulary = Vocabulary(there, matcher.ontology)
    asked = {row[0]: row[4] for row in matcher.admission.needs.to_dict()["demands"]}
    unknown = {name: who for name, who in asked.items() if not vocabulary.has_attribute(name)}
    if unknown:
        named = what == "subscriptions"  # the filters of patterns have numbers that say nothing
        said = {name: f" ({who} asks for it)" if named else "" for name, who in unknown.items()}
        lines = [f"{unknown_attribute(name, there)}{said[name]}" for name in sorted(unknown)]
        more = f"\nand {len(lines) - LISTED:,} more" if len(lines) > LISTED else ""
        listed = "\n".join(lines[:LISTED])
        msg = f"the {what} ask for names that {where} not have:\n{listed}{more}\n{way_out}"
        raise UnknownAttributes(msg, names=tuple(sorted(unknown)))


def asking_for(matcher: Matcher, names: Collection[str]) -> list[str | int]:
    """Return the subscriptions that ask for one of the names, as the index knows them."""
    needs = matcher.needs()
    return matcher.find_readers([key for name in names for need in needs[name] for key in need.keys(name)])
