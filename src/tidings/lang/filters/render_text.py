"""Filters in text notation: the text that `parse` reads back as the same tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tidings import model
from tidings.lang.filters import value_text

if TYPE_CHECKING:
    from collections.abc import Callable

_PLAIN_NAME = re.compile(r"[^\W\d]\w*(\.\w+)*")
_PLAIN_UNIT = re.compile(r"[^\W\d]\w*([/*^]-?\w+)*|[%$€£¥₽₹°][\w%]*")
_PLAIN_REGION = re.compile(r"[\w-]+")
RESERVED = frozenset(
    {"and", "or", "not", "in", "between", "contains", "like", "matches", "within", "near", "exists", "has", "is"}
    | {"true", "false", "null", "starts", "ends", "ignoring"}
)
"""Words that an attribute's name, or its first part, cannot be without backticks."""


def render_text(tree: model.Filter) -> str:
    """Return the filter in text notation."""
    match tree:
        case model.And(()):
            return "true"
        case model.Or(()):
            return "false"
        case model.And(parts):
            return " and ".join(_render_operand(part, model.And, model.Or) for part in parts)
        case model.Or(parts):
            return " or ".join(_render_operand(part, model.Or) for part in parts)
        case model.Not(part):
            return f"not {_render_operand(part, model.And, model.Or)}"
        case model.Test():
            return render_test(tree)


def _render_operand(part: model.Filter, *grouped: type) -> str:
    needs_group = isinstance(part, model.And | model.Or) and isinstance(part, grouped) and part.parts
    return f"({render_text(part)})" if needs_group else render_text(part)


def render_test(test: model.Test) -> str:
    """Return one test in text notation."""
    subject, condition = render_name(test.attribute), _render_condition(test.condition)
    if isinstance(test.condition, model.Age):
        subject = f"age({subject})"
    if test.quantifier is model.Quantifier.NONE and condition.startswith("= "):
        return f"{subject} !{condition}"
    if test.quantifier is not model.Quantifier.ANY:
        subject = f"{test.quantifier}({subject})"
    return f"{subject} {condition}"


def _render_condition(condition: Any) -> str:
    match condition:
        case model.Is(value):
            return f"= {render_literal(value)}"
        case model.In(values):
            return f"in ({', '.join(map(render_literal, values))})"
        case model.Range():
            return _render_range(condition, render_literal)
        case model.Age(span):
            return _render_range(span, value_text.format_seconds)
        case model.SameText(values):
            return f"{_render_condition(model.one_of(values))} ignoring case"
        case model.TextTest(op, pattern, ignoring_case):
            return f"{op} {_quote_pattern(op, pattern)}{' ignoring case' if ignoring_case else ''}"
        case model.IsA(concept):
            return f"is a {value_text.quote(concept)}"
        case model.Within(area):
            return f"within {value_text.format_area(area)}"
        case model.WithinRegion(region):
            plain = _PLAIN_REGION.fullmatch(region)
            return f"within @{region if plain else value_text.quote(region, '`')}"
        case model.Near(center, metres):
            return f"near {render_literal(center)} {value_text.format_metres(metres)}"
        case model.InNetworks(networks):
            blocks = [str(network) for network in networks]
            return f"in {blocks[0]}" if len(blocks) == 1 else f"in ({', '.join(blocks)})"
        case model.Compare(op, other):  # in backticks: a bare word is warned of, since text may be meant
            return f"{op} {value_text.quote(other, '`')}"
        case model.Has(inner):
            return f"has ({render_text(inner)})"
        case model.Exists():
            return "exists"
        case model.IsNull():
            return "is null"
    msg = f"{condition!r} is not a condition"
    raise TypeError(msg)


def _render_range(span: model.Range, format_bound: Callable[[Any], str]) -> str:
    if span.low is None:
        return f"{'<' if span.high_open else '<='} {format_bound(span.high)}"
    if span.high is None:
        return f"{'>' if span.low_open else '>='} {format_bound(span.low)}"
    left, right = "(" if span.low_open else "[", ")" if span.high_open else "]"
    return f"in {left}{format_bound(span.low)} .. {format_bound(span.high)}{right}"


def _quote_pattern(op: model.TextOp, pattern: str) -> str:
    if op is model.TextOp.MATCHES:
        escaped = re.sub(r"\\.|/", lambda match: "\\/" if match[0] == "/" else match[0], pattern, flags=re.DOTALL)
        return f"/{escaped}/"
    # A bare `%` in a wildcard pattern is refused.
    return value_text.quote(pattern).replace("%", "\\%") if op is model.TextOp.LIKE else value_text.quote(pattern)


def render_name(name: str) -> str:
    """Return an attribute's name, in backticks when it needs them."""
    plain = _PLAIN_NAME.fullmatch(name) and name.partition(".")[0].lower() not in RESERVED
    return name if plain else value_text.quote(name, "`")


def render_literal(value: Any) -> str:
    """Return a literal as text notation writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)  # the shortest text that reads back as the same number
        case str():
            return value_text.quote(value)
        case model.Point(lon, lat):
            return f"({lon!r}, {lat!r})"
        case model.Quantity(amount, unit):
            plain = _PLAIN_UNIT.fullmatch(unit) and unit.lower() not in RESERVED
            return f"{amount!r} {unit if plain else value_text.quote(unit, '`')}"
    return value_text.format_moment(value)
