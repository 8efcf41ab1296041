"""Infers the type of a derived attribute's expression, and the kinds that it requires of the attributes it reads.

Types are inferred from the leaves upwards; `ANY` is that of an attribute whose kind is not known. Where a part must
have one type (`year(x)`, `now - x`), an attribute of unknown kind gets that kind, and a part of another type is a
mistake that points at its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tidings.concepts.derived.expression import Call, Constant, Expression, Name, Now, point_at
from tidings.concepts.derived.functions import FUNCTIONS, OPERATORS, Type
from tidings.concepts.spelling import did_you_mean
from tidings.errors import OntologyError
from tidings.model.values import Kind

_TYPES = {Kind.NUMBER: Type.NUMBER, Kind.TEXT: Type.TEXT, Kind.TIME: Type.TIME, Kind.CONCEPT: Type.TEXT}
_NUMBERS = (Type.NUMBER, Type.DURATION)


def infer_type(
    expression: Expression, text: str, *, kinds: Callable[[str], Kind | None]
) -> tuple[Type, dict[str, Kind]]:
    """Return the expression's type, and the kinds it requires of its attributes where these are not known."""
    inference = _TypeInference(text, kinds)
    return inference.infer(expression), inference.wants


@dataclass(frozen=True, slots=True)
class _TypeInference:
    """Infers the type of each part of an expression; `wants` collects the kinds that it requires of attributes."""

    text: str
    kinds: Callable[[str], Kind | None]
    wants: dict[str, Kind] = field(default_factory=dict)

    def infer(self, part: Expression) -> Type:
        match part:
            case Constant(value):
                return Type.TEXT if isinstance(value, str) else Type.NUMBER
            case Now():
                return Type.TIME
            case Name(name):
                return self._infer_name(name, part)
            case Call(function) if function in OPERATORS:
                return self._infer_operator(part)
            case Call():
                return self._infer_function(part)

    def _infer_name(self, name: str, part: Name) -> Type:
        kind = self.kinds(name) or self.wants.get(name)
        if kind is not None and kind not in _TYPES:
            raise self._build_error(part, f"`{name}` is a {kind}; expressions work with numbers, texts and times")
        return _TYPES[kind] if kind else Type.ANY

    def _infer_operator(self, call: Call) -> Type:
        left, right = types = [self.infer(part) for part in call.args]
        if call.function == "-" and Type.TIME in types:
            self._require_type(call, types, Type.TIME)
            return Type.DURATION
        if call.function == "-" and types == [Type.ANY, Type.ANY]:
            return Type.ANY  # two numbers or two times; only the values of an event decide
        self._require_type(call, types, Type.NUMBER)
        return _infer_result(call.function, left, right)

    def _infer_function(self, call: Call) -> Type:
        function = FUNCTIONS.get(call.function)
        if function is None:
            hint = did_you_mean(call.function, FUNCTIONS)
            raise self._build_error(call, f"unknown function `{call.function}`{hint}")
        if not function.least <= len(call.args) <= function.most:
            wanted = function.least if function.least == function.most else f"{function.least} to {function.most}"
            raise self._build_error(
                call, f"{call.function}() takes {wanted} value{'s' * (wanted != 1)}, not {len(call.args)}"
            )
        types = [self.infer(part) for part in call.args]
        if function.takes is not Type.ANY:
            self._require_type(call, types, function.takes)
        if function.gives is not None:
            return function.gives
        return types[0] if function.takes is not Type.ANY else self._infer_common(call, types)

    def _infer_common(self, call: Call, types: list[Type]) -> Type:
        """Ask that all values be of one type: `min`, `max` and `coalesce` choose among them."""
        common = next((actual for actual in types if actual is not Type.ANY), Type.ANY)
        self._require_type(call, types, common)
        return common

    def _require_type(self, call: Call, types: list[Type], wanted: Type) -> None:
        """Require one type of all arguments, whose own types are given."""
        for part, actual in zip(call.args, types, strict=True):
            if actual is wanted or (actual in _NUMBERS and wanted in _NUMBERS):
                continue
            if actual is not Type.ANY:
                name = f"{call.function}()" if call.function.isidentifier() else call.function
                hint = _hint(actual, wanted, call.function)
                raise self._build_error(part, f"`{name}` takes {wanted} here, and this is {actual}{hint}")
            if isinstance(part, Name) and wanted.kind is not None:
                self.wants[part.name] = wanted.kind

    def _build_error(self, part: Expression, message: str) -> OntologyError:
        return OntologyError(point_at(self.text, part.offset, message))


def _infer_result(operator: str, left_type: Type, right_type: Type) -> Type:
    durations = (left_type is Type.DURATION) + (right_type is Type.DURATION)
    if operator in "+-":
        return Type.DURATION if durations else Type.NUMBER
    if operator == "*":
        return Type.DURATION if durations == 1 else Type.NUMBER
    return Type.DURATION if left_type is Type.DURATION and right_type is not Type.DURATION else Type.NUMBER


def _hint(actual: Type, wanted: Type, operator: str) -> str:
    if operator == "-" and wanted is Type.TIME and actual is Type.NUMBER:
        return "; if it is a year, write year(now) - graduated instead of now - graduated"
    if wanted is Type.NUMBER and actual is Type.TIME:
        return "; two times can be subtracted, and year(now) is a number"
    return "; concat() joins texts" if operator == "+" and actual is Type.TEXT else ""
