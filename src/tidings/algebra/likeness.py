"""Whether two values can be compared at all: the edge asks, so that no filter meets a pair it cannot decide."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Any

from tidings.errors import BadEvent
from tidings.model import Comparison, Kind, Quantity, Range
from tidings.model.values import kind_of


def refuse_unlike(op: Comparison, left: Any, right: Any, *, names: tuple[str, str]) -> None:
    """Raise `BadEvent` where two values are of different sorts, or of a sort without an order."""
    one, two = _sort(left), _sort(right)
    if (one is two or one is None or two is None) and (
        op is Comparison.EQ or all(kind is None or kind.ordered for kind in (one, two))
    ):
        return
    msg = f"`{names[0]}` {op} `{names[1]}` cannot be decided: here they are {left!r} and {right!r}"
    raise BadEvent(msg, attribute=names[0])


def _sort(value: Any) -> Kind | None:
    """The kind a value has by itself; an amount whose unit nobody asked for has none that compares."""
    if isinstance(value, Range):
        return value.kind
    if isinstance(value, IPv4Address | IPv6Address):
        return Kind.IP
    if isinstance(value, Quantity):
        return Kind.OPAQUE
    try:
        return kind_of(value)
    except ValueError:
        return Kind.OPAQUE
