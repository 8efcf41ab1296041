"""Attribute names that filters ask for and neither the events nor a schema has, reported together.

A filter on `pirce` would never be satisfied, and nobody would notice. Where events have columns, or a schema lists the
names, such a name is a mistake, and the message has the nearest name that exists; a caller may ask for the open world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.algebra.law.requirements import describe_unknown_attribute
from tidings.concepts import Vocabulary
from tidings.errors import UnknownAttributes

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidings.matcher.matcher import Matcher
    from tidings.model import Schema

LISTED = 10
"""Names that a message lists; the others are counted."""


def refuse_unknown(
    matcher: Matcher, names: Schema, *, where: str, way_out: str, subject: str = "subscriptions"
) -> None:
    """Refuse names that filters of the matcher ask for and neither `names` nor its own schema and ontology have.

    In the message, `where` says who lacks the names, and `way_out` how to ask for the open world.
    """
    schema = names if matcher.schema is None else names.merged(matcher.schema)
    vocabulary = Vocabulary(schema, matcher.ontology)
    demands = matcher.admission.list_demands()
    unknown = sorted(name for name in demands if not vocabulary.has_attribute(name))
    if unknown:
        has_ids = subject == "subscriptions"  # the filters of patterns have numbers that mean nothing to a user
        lines = [
            describe_unknown_attribute(name, schema) + (f" ({demands[name]} asks for it)" if has_ids else "")
            for name in unknown
        ]
        more = f"\nand {len(lines) - LISTED:,} more" if len(lines) > LISTED else ""
        listed = "\n".join(lines[:LISTED])
        msg = f"the {subject} ask for names that {where} not have:\n{listed}{more}\n{way_out}"
        raise UnknownAttributes(msg, names=tuple(unknown))


def find_asking(matcher: Matcher, names: Collection[str]) -> list[str | int]:
    """Return the subscriptions that ask for one of the names."""
    needs = matcher.needs()
    return matcher.backend.find_readers([key for name in names for need in needs[name] for key in need.list_keys(name)])
