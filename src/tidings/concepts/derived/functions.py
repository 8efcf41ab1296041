"""The functions and operators of derived attributes, each with the types of its arguments and of its result.

`DURATION` is a number of seconds that is the difference of two times: a number like any other, but its unit is known.
A body is called with values of the types it takes, none of them absent. It may raise what Python raises; the evaluator
turns that into an error that names the attribute.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import StrEnum
from typing import Any

from tidings.model.values import Kind

DAY, YEAR = 86_400, 31_557_600
"""Seconds; a year has 365.25 days, as the unit `year` has."""


class Type(StrEnum):
    """The type of an expression's value."""

    NUMBER = "a number"
    DURATION = "a number of seconds"
    TEXT = "a text"
    TIME = "a time"
    ANY = "a value"

    @property
    def kind(self) -> Kind | None:
        """The attribute kind that holds such values."""
        return _KINDS.get(self)


_KINDS = {Type.NUMBER: Kind.NUMBER, Type.DURATION: Kind.NUMBER, Type.TEXT: Kind.TEXT, Type.TIME: Kind.TIME}


@dataclass(frozen=True, slots=True)
class Function:
    """A body, the type of its arguments, the type of its result, and how many arguments it takes.

    Without `gives`, the result has the type of the arguments.
    """

    body: Callable[..., Any]
    takes: Type
    gives: Type | None = None
    least: int = 1
    most: int = 1


def _round(value: float, digits: int = 0) -> int | float:
    if digits not in range(-15, 16):
        msg = f"round() takes a whole number of digits between -15 and 15, not {digits}"
        raise ValueError(msg)
    # Half away from zero, as SQL rounds and people do; Python's round() goes to the even neighbour.
    # The widest float has 309 digits before the point.
    exact = Decimal(repr(value)).quantize(Decimal(1).scaleb(-int(digits)), ROUND_HALF_UP, Context(prec=350))
    return int(exact) if digits <= 0 else float(exact)


def _to_text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


MAX_ARGUMENTS = 100
"""The most arguments that `min`, `max`, `concat` and `coalesce` take."""

FUNCTIONS: dict[str, Function] = {
    "year": Function(lambda t: t.year, Type.TIME, Type.NUMBER),
    "month": Function(lambda t: t.month, Type.TIME, Type.NUMBER),
    "day": Function(lambda t: t.day, Type.TIME, Type.NUMBER),
    "hour": Function(lambda t: t.hour, Type.TIME, Type.NUMBER),
    "minute": Function(lambda t: t.minute, Type.TIME, Type.NUMBER),
    "weekday": Function(datetime.isoweekday, Type.TIME, Type.NUMBER),
    "days": Function(lambda seconds: seconds / DAY, Type.NUMBER, Type.NUMBER),
    "years": Function(lambda seconds: seconds / YEAR, Type.NUMBER, Type.NUMBER),
    "abs": Function(abs, Type.NUMBER),
    "floor": Function(math.floor, Type.NUMBER),
    "ceil": Function(math.ceil, Type.NUMBER),
    "round": Function(_round, Type.NUMBER, most=2),
    "min": Function(min, Type.ANY, least=2, most=MAX_ARGUMENTS),
    "max": Function(max, Type.ANY, least=2, most=MAX_ARGUMENTS),
    "lower": Function(str.lower, Type.TEXT, Type.TEXT),
    "upper": Function(str.upper, Type.TEXT, Type.TEXT),
    "length": Function(len, Type.TEXT, Type.NUMBER),
    "concat": Function(lambda *parts: "".join(map(_to_text, parts)), Type.ANY, Type.TEXT, most=MAX_ARGUMENTS),
    "coalesce": Function(lambda *values: values[0], Type.ANY, most=MAX_ARGUMENTS),
    "unary -": Function(operator.neg, Type.NUMBER),
}
"""The functions by name; the last is the minus sign before a value."""

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
"""The operators on numbers; the difference of two times is not computed by these."""
