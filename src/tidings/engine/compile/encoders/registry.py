"""The encoder of each kind of predicate: a new kind is one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders import address, boolean, concept, number, text, time
from tidings.engine.compile.encoders.base import EncodedPredicate, make_point
from tidings.model import Exists, IsA, IsNull, Kind, condition_kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.concepts import Ontology
    from tidings.model import Condition

ENCODERS: dict[Kind, Callable[[str, Condition], EncodedPredicate | None]] = {
    Kind.NUMBER: number.encode_number,
    Kind.BOOL: boolean.encode_boolean,
    Kind.TIME: time.encode_time,
    Kind.TEXT: text.encode_text,
    Kind.IP: address.encode_address,
}
"""The encoder of each kind whose predicates are intervals by themselves."""


def encode_condition(attribute: str, condition: Condition, ontology: Ontology) -> EncodedPredicate | None:
    """Return a condition as intervals of one column, or None where it is not an interval."""
    if isinstance(condition, Exists):
        return EncodedPredicate(Column(attribute, View.EXISTS), (make_point(0),), Kind.OPAQUE)
    if isinstance(condition, IsNull):
        return EncodedPredicate(Column(attribute, View.NULL), (make_point(0),), Kind.OPAQUE)
    if isinstance(condition, IsA):
        return concept.encode_concept(attribute, condition, ontology)
    kind = condition_kind(condition)
    encoder = ENCODERS.get(kind) if kind is not None else None
    return encoder(attribute, condition) if encoder else None
