"""Which encoder answers for a test: one line for each kind of predicate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders import address, boolean, concept, number, text, time
from tidings.engine.compile.encoders.base import Encoded, point
from tidings.model import Exists, IsA, IsNull, Kind, condition_kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.concepts import Ontology
    from tidings.model import Condition

ENCODERS: dict[Kind, Callable[[str, Condition], Encoded | None]] = {
    Kind.NUMBER: number.encoded,
    Kind.BOOL: boolean.encoded,
    Kind.TIME: time.encoded,
    Kind.TEXT: text.encoded,
    Kind.IP: address.encoded,
}
"""The encoder of each kind whose predicates are intervals by themselves."""


def encoded(attribute: str, condition: Condition, ontology: Ontology) -> Encoded | None:
    """Return a condition as intervals of one column, or nothing where it is none."""
    if isinstance(condition, Exists):
        return Encoded(Column(attribute, View.EXISTS), (point(0),), Kind.OPAQUE)
    if isinstance(condition, IsNull):
        return Encoded(Column(attribute, View.NULL), (point(0),), Kind.OPAQUE)
    if isinstance(condition, IsA):
        return concept.encoded(attribute, condition, ontology)
    kind = condition_kind(condition)
    encoder = ENCODERS.get(kind) if kind is not None else None
    return encoder(attribute, condition) if encoder else None
