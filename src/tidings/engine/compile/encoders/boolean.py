"""Truth values: two points, 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders.base import EncodedPredicate, make_point
from tidings.model import Kind, scalars_of

if TYPE_CHECKING:
    from tidings.model import Condition


def encode_boolean(attribute: str, condition: Condition) -> EncodedPredicate | None:
    """Return the points of a condition on truth values."""
    points = tuple(make_point(int(value)) for value in scalars_of(condition))
    return EncodedPredicate(Column(attribute, View.NUMBER, kind=Kind.BOOL), points, Kind.BOOL)
