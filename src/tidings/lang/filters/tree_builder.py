"""Builds the filter tree from the grammar's parse tree, bottom-up, and records each test's position.

A value that is not valid (an empty range, a ring that is not closed) is noted as a mistake and replaced by a
placeholder, so that one pass finds all mistakes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from lark import Transformer

from tidings import model
from tidings.lang.filters import value_text
from tidings.lang.source_map import SourceMap, SourceSpan

if TYPE_CHECKING:
    from collections.abc import Callable

    from lark import Token


@dataclass(frozen=True, slots=True)
class _Part:
    """A value read from the text, and its place."""

    value: Any
    span: SourceSpan


class _QuotedText(_Part):
    """A quoted literal, to be told from an attribute's name."""


@dataclass(frozen=True, slots=True)
class _Subject:
    name: _Part
    quantifier: model.Quantifier | None = None
    is_age: bool = False


_Tail: TypeAlias = "Callable[[_Subject], model.Filter]"
"""What follows a subject: a function that builds the test."""

_PERCENT = "`%` is no wildcard here: `*` is any text and `?` one character; the percent sign itself is `\\%`"
_LITERALS: dict[str, Callable[[str], Any]] = {
    "NUMBER": value_text.parse_number,
    "TRUE": lambda _: True,
    "FALSE": lambda _: False,
    "TIME": value_text.parse_moment,
    "ADDRESS": value_text.parse_network,
}


class FilterBuilder(Transformer[Any, Any]):
    """One method for each rule of `grammar.lark`; `source_map` collects positions and mistakes."""

    def __init__(self, *, stored: bool = False) -> None:
        super().__init__()
        self.source_map, self._stored = SourceMap(), stored

    # Connectives -----------------------------------------------------------------------------

    def disjunction(self, parts: list[model.Filter]) -> model.Filter:
        return model.Or(tuple(parts))

    def conjunction(self, parts: list[model.Filter]) -> model.Filter:
        return model.And(tuple(parts))

    def negation(self, parts: list[model.Filter]) -> model.Filter:
        return model.Not(parts[0])

    def constant(self, tokens: list[Token]) -> model.Filter:
        return model.FALSE if tokens[0].type == "FALSE" else model.TRUE

    # Subjects ----------------------------------------------------------------------------------

    def name(self, tokens: list[Token]) -> _Part:
        return self._read_token(tokens[0], value_text.unquote if tokens[0].startswith("`") else str, "x")

    unit = name

    def age(self, parts: list[Any]) -> _Subject:
        return _Subject(parts[1], is_age=True)

    def quantification(self, parts: list[Any]) -> _Subject:
        return replace(self.subject(parts[1:]), quantifier=model.Quantifier(parts[0][:-1].strip().lower()))

    def subject(self, parts: list[Any]) -> _Subject:
        return parts[0] if isinstance(parts[0], _Subject) else _Subject(parts[0])

    # Literals ----------------------------------------------------------------------------------

    def word(self, tokens: list[Token]) -> _Part:
        return self._read_token(tokens[0], value_text.unquote, "")

    def other(self, tokens: list[Token]) -> _Part:
        return self._read_token(tokens[0], _LITERALS[tokens[0].type], 0)

    def quantity(self, parts: list[Any]) -> _Part:
        amount, unit = self._read_token(parts[0], value_text.parse_number, 0), parts[1]
        return _Part(model.Quantity(amount.value, unit.value), _join_spans(amount, unit))

    def point(self, tokens: list[Token]) -> _Part:
        lon, lat = (token for token in tokens if token.type == "NUMBER")
        return self._read_part(lambda: _build_point(lon, lat), _join_spans(lon, lat), model.Point(0, 0))

    # Tests ---------------------------------------------------------------------------------------

    def comparison(self, parts: list[Any]) -> _Tail:
        return lambda subject: self._build_comparison(subject, str(parts[0]), parts[1])

    def case_fold(self, parts: list[Any]) -> _Tail:
        part = parts[1]
        build = self._defer(lambda: model.SameText((part.value,)), part)
        return build if parts[0] == "=" else lambda subject: self._build_negation(subject, build)

    def case_fold_set(self, parts: list[Any]) -> _Tail:
        values = [part for part in parts if isinstance(part, _Part)]
        return self._defer(lambda: model.SameText(tuple(part.value for part in values)), values[0], values[-1])

    def membership(self, parts: list[Any]) -> _Tail:
        values = [part for part in parts if isinstance(part, _Part)]
        span = _join_spans(values[0], values[-1])
        return lambda subject: self._build_test(subject, lambda: _build_set(subject, values), span)

    def span(self, parts: list[Any]) -> _Tail:
        dots = next(i for i, part in enumerate(parts) if getattr(part, "type", "") == "DOTS")
        low = parts[2] if dots > 2 else None
        high = parts[dots + 1] if isinstance(parts[dots + 1], _Part) else None
        opens = (parts[1] == "(", parts[-1] == ")")
        span = _join_spans(parts[1], parts[-1])
        return lambda subject: self._build_test(subject, lambda: _build_range(subject, low, high, *opens), span)

    def between(self, parts: list[Any]) -> _Tail:
        low, high = parts[1], parts[2]
        span = _join_spans(low, high)
        return lambda subject: self._build_test(subject, lambda: _build_range(subject, low, high), span)

    def text(self, tokens: list[Token]) -> _Tail:
        op = model.TextOp(" ".join(tokens[0].lower().split()))
        part = self._read_token(tokens[1], value_text.unquote, "")
        # SQL's wildcard is refused; in stored filters it is the percent sign, which it once meant.
        percent = value_text.find_bare_percent(tokens[1]) if op is model.TextOp.LIKE and not self._stored else None
        if percent is not None:
            start = int(tokens[1].start_pos or 0) + percent
            self.source_map.refuse(_PERCENT, SourceSpan(start, start + 1))
        return self._defer(lambda: model.TextTest(op, part.value, len(tokens) > 2), part)

    def expression(self, tokens: list[Token]) -> _Tail:
        pattern, ignoring_case = str(tokens[1][1:-1]), len(tokens) > 2
        return self._defer(lambda: model.TextTest(model.TextOp.MATCHES, pattern, ignoring_case), tokens[1])

    def is_a(self, tokens: list[Token]) -> _Tail:
        part = self._read_token(tokens[1], value_text.unquote, "")
        return self._defer(lambda: model.IsA(part.value), part)

    def inside(self, tokens: list[Token]) -> _Tail:
        return self._defer(lambda: model.Within(value_text.parse_polygon(tokens[1])), tokens[1])

    def region(self, tokens: list[Token]) -> _Tail:
        name = str(tokens[1][1:])
        read = value_text.unquote if name[0] == "`" else str
        return self._defer(lambda: model.WithinRegion(read(name)), tokens[1])

    def near(self, parts: list[Any]) -> _Tail:
        lon, lat, far = (part for part in parts if getattr(part, "type", "") == "NUMBER")
        unit = parts[-1]

        def make() -> model.Near:
            metres = value_text.to_metres(model.Quantity(value_text.parse_number(far), unit.value))
            return model.Near(_build_point(lon, lat), metres)

        return self._defer(make, lon, unit)

    def exists(self, tokens: list[Token]) -> _Tail:
        return self._defer(model.Exists, tokens[0])

    def is_null(self, tokens: list[Token]) -> _Tail:
        return self._defer(model.IsNull, tokens[0])

    def has(self, parts: list[Any]) -> _Tail:
        inner = next(part for part in parts if not isinstance(part, str))
        return self._defer(lambda: model.Has(inner), parts[0])

    def test(self, parts: list[Any]) -> model.Filter:
        build: _Tail = parts[1]
        return build(parts[0])

    def negative_test(self, parts: list[Any]) -> model.Filter:
        """`a not in (...)`: as with `!=`, `a` exists and none of its values satisfies the condition."""
        return self._build_negation(parts[0], parts[1])

    # Building ------------------------------------------------------------------------------------

    def _defer(self, make: Callable[[], model.Condition], first: Token | _Part, last: _Part | None = None) -> _Tail:
        """Return the tail of a condition that is not about ages; it stands from `first` to `last`."""
        span = _join_spans(first, last or first)

        def build(subject: _Subject) -> model.Filter:
            if subject.is_age:
                return self._refuse("an age is compared with a duration: age(posted) < 7 days", subject.name)
            return self._build_test(subject, make, span)

        return build

    def _build_comparison(self, subject: _Subject, op: str, right: _Part) -> model.Filter:
        if op == "!=":
            return self._build_negation(subject, lambda subject: self._build_comparison(subject, "=", right))
        if not isinstance(right.value, str) or isinstance(right, _QuotedText):
            return self._build_test(subject, lambda: _compare_with_literal(subject, op, right.value), right.span)
        is_bare = (right.span.end or 0) - (right.span.start or 0) == len(right.value)
        if right.value.lower() == "now" and is_bare:
            return self._refuse("the time is not a value here; write `age(posted) > 0 s` for `posted < now`", right)
        compared = self._build_test(subject, lambda: _compare_with_attribute(subject, op, right.value), right.span)
        if is_bare and isinstance(compared, model.Test):
            self.source_map.bare_words.append(compared)
        return compared

    def _build_negation(self, subject: _Subject, build: _Tail) -> model.Filter:
        """Negate a test: none of the values satisfies it, unless a quantifier says otherwise."""
        if subject.quantifier is model.Quantifier.ANY:
            some = model.Test(subject.name.value, model.Exists())
            return model.And((some, model.Not(build(replace(subject, quantifier=model.Quantifier.ALL)))))
        is_none = subject.quantifier is model.Quantifier.NONE
        return build(replace(subject, quantifier=model.Quantifier.ALL if is_none else model.Quantifier.NONE))

    def _build_test(self, subject: _Subject, make: Callable[[], model.Condition], span: SourceSpan) -> model.Filter:
        try:
            test = model.Test(subject.name.value, make(), subject.quantifier or model.Quantifier.ANY)
        except ValueError as problem:
            mistake = span.make_mistake(str(problem))
            # What a placeholder does not fit is no second mistake.
            if not any(mistake.meets(other) for other in self.source_map.mistakes):
                self.source_map.mistakes.append(mistake)
            return model.TRUE
        self.source_map.record(test, subject.name.span, span)
        return test

    def _refuse(self, message: str, part: _Part) -> model.Filter:
        self.source_map.refuse(message, part.span)
        return model.TRUE

    def _read_token(self, token: Token, read: Callable[[str], Any], instead: Any) -> _Part:
        part = self._read_part(lambda: read(str(token)), _join_spans(token, token), instead)
        return _QuotedText(part.value, part.span) if token.type == "STRING" else part

    def _read_part(self, make: Callable[[], Any], span: SourceSpan, instead: Any) -> _Part:
        try:
            return _Part(make(), span)
        except ValueError as problem:
            self.source_map.refuse(str(problem), span)
            return _Part(instead, span)


def _join_spans(first: Token | _Part, last: Token | _Part) -> SourceSpan:
    start = first.span.start if isinstance(first, _Part) else first.start_pos
    return SourceSpan(start, last.span.end if isinstance(last, _Part) else last.end_pos)


def _build_point(lon: Token, lat: Token) -> model.Point:
    return model.Point(float(value_text.parse_number(lon)), float(value_text.parse_number(lat)))


def _is_network(value: Any) -> bool:
    return hasattr(value, "prefixlen")


def _build_set(subject: _Subject, parts: list[_Part]) -> model.Condition:
    values = [part.value for part in parts]
    if any(map(_is_network, values)):
        for value in values:
            if not _is_network(value):
                msg = f"a set of addresses holds addresses and blocks only, not {value!r}"
                raise ValueError(msg)
        return model.InNetworks(tuple(values))
    if subject.is_age:
        msg = "an age is compared with a range of durations, not with a set"
        raise ValueError(msg)
    return model.one_of(values)


def _build_range(
    subject: _Subject, low: _Part | None, high: _Part | None, low_open: bool = False, high_open: bool = False
) -> model.Range | model.Age:
    bounds = [None if part is None else _read_bound(subject, part.value) for part in (low, high)]
    span = model.Range(bounds[0], bounds[1], low_open, high_open)
    return model.Age(span) if subject.is_age else span


def _read_bound(subject: _Subject, value: Any) -> Any:
    if subject.is_age:
        return value_text.to_seconds(value)
    if _is_network(value):
        msg = f"addresses have no order here; write `in {value}`"
        raise ValueError(msg)
    return value


def _compare_with_literal(subject: _Subject, op: str, value: Any) -> model.Condition:
    """Return the condition of a comparison with a literal: equality, or a range with one end."""
    if op == "=" and not subject.is_age:
        return model.InNetworks((value,)) if _is_network(value) else model.Is(value)
    bound = _read_bound(subject, value)
    span = model.Range(bound, bound) if op == "=" else value_text.to_range(op, bound)
    return model.Age(span) if subject.is_age else span


def _compare_with_attribute(subject: _Subject, op: str, other: str) -> model.Condition:
    if subject.is_age:
        msg = "an age is compared with a duration, not with another attribute"
        raise ValueError(msg)
    return model.Compare(model.Comparison(op), other)
