"""Places: the bounding box, two intervals, finds candidates; the exact test of an area or a circle decides them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders.base import EncodedPredicate
from tidings.engine.exact.place_tests import PlaceTable
from tidings.model import Kind

if TYPE_CHECKING:
    from tidings.model import Near, Within

WHOLE = (-180.0, 180.0)
"""All longitudes."""


def encode_boxes(attribute: str, condition: Within | Near) -> tuple[EncodedPredicate, ...]:
    """Return intervals of longitude and latitude outside which no value can satisfy the condition."""
    west, south, east, north = PlaceTable.compute_box(condition)
    intervals = [EncodedPredicate(Column(attribute, View.LATITUDE), ((south, north, 0),), Kind.PLACE)]
    if (west, east) != WHOLE:
        intervals.insert(0, EncodedPredicate(Column(attribute, View.LONGITUDE), ((west, east, 0),), Kind.PLACE))
    return tuple(intervals)
