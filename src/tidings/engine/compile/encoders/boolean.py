"""Truth values: two points, 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders.base import Encoded, point
from tidings.model import Kind, scalars_of

if TYPE_CHECKING:
    from tidings.model import Condition


def encoded(attribute: str, condition: Condition) -> Encoded | None:
    """Return the points of a condition on truth values."""
    points = tuple(point(int(value)) for value in scalars_of(condition))
    return Encoded(Column(attribute, View.NUMBER, kind=Kind.BOOL), points, Kind.BOOL)
