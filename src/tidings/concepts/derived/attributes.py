"""Derived attributes: values computed from an event's own, by expressions that the ontology declares.

`Derived` checks its expression when it is made (names of functions, numbers of arguments, types as far as they can be
inferred) and evaluates it for one event at a time. It pickles, so workers evaluate exactly what the driver does. If an
input is absent, so is the result, except in `coalesce`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from tidings.concepts.derived.expression import Call, Constant, Expression, Name, Now, list_names, parse
from tidings.concepts.derived.functions import FUNCTIONS, OPERATORS, Type
from tidings.concepts.derived.inference import infer_type
from tidings.errors import BadEvent
from tidings.model.values import Kind, check_value, to_utc

Lookup: TypeAlias = Callable[[str], Any]
"""Returns an attribute's value in the event, or `None`."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived attribute: its name, its expression, and the types that were inferred from it.

    `inputs` are the attributes it reads, `wants` the kinds that it requires of them, and `kind` is the kind of its
    result, as far as these are known. A difference of times is in seconds; `divisor` converts it to the declared unit.
    """

    name: str
    text: str
    expression: Expression
    inputs: tuple[str, ...]
    wants: Mapping[str, Kind] = field(hash=False)
    kind: Kind | None = None
    unit: str | None = None
    divisor: int | float = 1

    @classmethod
    def parse(
        cls,
        name: str,
        text: str,
        *,
        kinds: Callable[[str], Kind | None] = lambda _: None,
        own_name: Callable[[str], str] = str,
    ) -> Derived:
        """Parse and check an expression; `kinds` and `own_name` give an attribute's kind and its own name."""
        expression = parse(text, own_name)
        result, wants = infer_type(expression, text, kinds=kinds)
        unit = "second" if result is Type.DURATION else None
        return cls(name, text, expression, list_names(expression), wants, result.kind, unit)

    def value(self, lookup: Lookup, now: datetime) -> Any | None:
        """Return the value for one event, or None where an input is absent."""
        try:
            result = _evaluate(self.expression, lookup, now)
            if self.divisor != 1 and result is not None:
                result = result / self.divisor
            return None if result is None else check_value(result)
        except ZeroDivisionError:
            reason = "division by zero"
        except (ArithmeticError, ValueError) as problem:
            reason = str(problem)
        except TypeError:
            reason = "values of different kinds are compared"
        msg = f"the derived attribute `{self.name}` ({self.text}): {reason}"
        raise BadEvent(msg, attribute=self.name)


def _evaluate(expression: Expression, lookup: Lookup, now: datetime) -> Any:
    match expression:
        case Constant(value):
            return value
        case Now():
            return to_utc(now)
        case Name(name):
            return _read(name, lookup(name))
        # The one function that takes absent values; it evaluates no more arguments than it needs.
        case Call("coalesce", args):
            chosen = (_evaluate(part, lookup, now) for part in args)
            return next((value for value in chosen if value is not None), None)
        case Call(function, args):
            values = [_evaluate(part, lookup, now) for part in args]
            return None if any(value is None for value in values) else _call(function, values)


def _read(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return to_utc(value)
    if value is None or (isinstance(value, int | float | str) and not isinstance(value, bool)):
        return value
    msg = f"`{name}` is {_describe(value)}, and expressions work with numbers, texts and times"
    raise ValueError(msg)


def _call(function: str, values: list[Any]) -> Any:
    operator = OPERATORS.get(function)
    if operator is None:
        wanted = FUNCTIONS[function].takes
        for value in values:
            if wanted is not Type.ANY and _find_type(value) is not wanted:
                msg = f"{function}() takes {wanted}, not {_describe(value)}"
                raise ValueError(msg)
        return FUNCTIONS[function].body(*values)
    left, right = values
    if function == "-" and isinstance(left, datetime) and isinstance(right, datetime):
        return _subtract_times(left, right)
    if _find_type(left) is Type.NUMBER and _find_type(right) is Type.NUMBER:
        return operator(left, right)
    raise ValueError(_explain_mismatch(function, left, right))


def _subtract_times(left: datetime, right: datetime) -> int | float:
    # `total_seconds` rounds over long spans, and whole seconds are to be integers.
    difference = left - right
    whole = difference.days * 86_400 + difference.seconds
    return whole + difference.microseconds / 1_000_000 if difference.microseconds else whole


def _explain_mismatch(function: str, left: Any, right: Any) -> str:
    types = {_find_type(left), _find_type(right)}
    message = f"{_describe(left)} {function} {_describe(right)} has no meaning"
    if types == {Type.TIME, Type.NUMBER}:
        return f"{message}; if the number is a year, write year(now) - graduated instead of now - graduated"
    return f"{message}; concat() joins texts" if Type.TEXT in types and function == "+" else message


def _find_type(value: Any) -> Type:
    if isinstance(value, datetime):
        return Type.TIME
    return Type.TEXT if isinstance(value, str) else Type.NUMBER


def _describe(value: Any) -> str:
    match value:
        case datetime():
            return f"the time {value.isoformat()}"
        case str():
            return f"the text `{value[:40]}`"
        case int() | float() if not isinstance(value, bool):
            return f"the number {value}"
    return f"a {type(value).__name__}"
