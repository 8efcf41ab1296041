"""One value of an event as a view sees it: a number, a byte string, or the ends of a range.

`select_encoder` returns the function of a column. That returns None for a value that could not be read as the column's
kind (`algebra.law.typed_attribute.Mismatch`): the value exists, but lies in no interval.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders import pack_address
from tidings.errors import AmbiguousConcept
from tidings.model import Point, Range
from tidings.model.values import to_microseconds

if TYPE_CHECKING:
    from tidings.algebra import Setting
    from tidings.concepts import Ontology, Tree

UNKNOWN, AMBIGUOUS = -1.0, -2.0
"""The numbers of a name that is not in its tree, and of one that several of its concepts share.

Both lie in no concept's range. A declared concept attribute never has an ambiguous name: such events are refused when
they are read.
"""

ViewedValue: TypeAlias = float | bytes | tuple[float | None, float | None, int]
"""A value in a view; a range is its low end, its high end and the flags of `EventColumn.open`."""

ValueEncoder: TypeAlias = Callable[[Any], ViewedValue | None]
"""Maps a value of an event to its value in a view."""


def select_encoder(column: Column, setting: Setting) -> ValueEncoder:
    """Return the function that maps a value of an event to the column's view."""
    alone = ENCODERS.get(column.view)
    if alone is not None:
        return alone
    if column.view is View.AGE:
        return lambda value: view_age(value, setting.now)
    tree = find_tree(column, setting.ontology)
    return lambda value: _view_concept(value, tree)


def find_tree(column: Column, ontology: Ontology) -> Tree | None:
    """Return the tree whose numbers a `CONCEPT` column has: the one it names, or the only one."""
    if column.tree is not None:
        return ontology.trees[column.tree]
    if len(ontology.trees) > 1:
        msg = f"the column `{column}` must name its tree: the numbers of several trees cannot be told apart"
        raise ValueError(msg)
    return next(iter(ontology.trees.values()), None)


def view_number(value: Any) -> ViewedValue | None:
    """Return a number, the microseconds of a time, or a range of either."""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, datetime):
        return to_microseconds(value)
    return _view_range(value, view_number) if isinstance(value, Range) else None


def view_age(value: Any, now: datetime) -> ViewedValue | None:
    """Return how many seconds ago a time was; of a range of times, the low end is the oldest."""
    if isinstance(value, datetime):
        return (now - value).total_seconds()
    if not isinstance(value, Range):
        return None
    # The ends swap: the earlier time is the greater age, and the flags of the two ends swap with them.
    span = _view_range(value, lambda end: view_age(end, now))
    if not isinstance(span, tuple):
        return None
    old, young, ends = span
    return young, old, (ends & 5) << 1 | (ends & 10) >> 1


def _view_range(value: Range, seen: ValueEncoder) -> ViewedValue | None:
    low, high = (None if end is None else seen(end) for end in (value.low, value.high))
    if (low is None) != (value.low is None) or (high is None) != (value.high is None):
        return None  # ends of text, or amounts in a unit that no filter names
    ends = value.low_open + 2 * value.high_open + 4 * (low is None) + 8 * (high is None)
    return low, high, ends  # type: ignore[return-value]


def _view_text(value: Any) -> ViewedValue | None:
    if isinstance(value, str):
        return value.encode()
    return pack_address(value) if isinstance(value, (IPv4Address, IPv6Address)) else None


def _view_concept(value: Any, tree: Tree | None) -> ViewedValue | None:
    if not isinstance(value, str):
        return None
    try:
        code = None if tree is None else tree.code(value)
    except AmbiguousConcept:
        return AMBIGUOUS
    return UNKNOWN if code is None else code


ENCODERS: dict[View, ValueEncoder] = {
    View.NUMBER: view_number,
    View.TEXT: _view_text,
    View.REVERSED: lambda value: value[::-1].encode() if isinstance(value, str) else None,
    View.FOLDED: lambda value: value.casefold().encode() if isinstance(value, str) else None,
    View.FOLDED_REVERSED: lambda value: value.casefold()[::-1].encode() if isinstance(value, str) else None,
    View.LONGITUDE: lambda value: value.lon if isinstance(value, Point) else None,
    View.LATITUDE: lambda value: value.lat if isinstance(value, Point) else None,
}
"""The views that depend on the value alone; `AGE` needs the time, `CONCEPT` a tree, the others have no single value."""
