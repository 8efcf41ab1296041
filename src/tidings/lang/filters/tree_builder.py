"""Builds the filter tree from the grammar's parse tree, bottom-up, and records each test's position.

A value that is not valid (an empty range, a ring that is not closed) is noted as a mistake and replaced by a
placeholder, so that one pass finds all mistakes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lark import Transformer

from tidings import model
from tidings.errors import Mistake
from tidings.lang.filters import literals
from tidings.lang.filters.source_spans import FilterSourceMap, TestSpan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lark import Token


@dataclass(frozen=True, slots=True)
class _Part:
    """A value read from the text, and its place."""

    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Subject:
    name: _Part
    quantifier: model.Quantifier | None = None
    is_age: bool = False


class FilterBuilder(Transformer[Any, Any]):
    """One method for each rule of `grammar.lark`; `source_map` collects positions and mistakes."""

    def __init__(self, *, stored: bool = False) -> None:
        super().__init__()
        self.source_map, self._stored = FilterSourceMap(), stored

    # Connectives -----------------------------------------------------------------------------

    def start(self, parts: list[model.Filter]) -> model.Filter:
        return parts[0]

    def group(self, parts: list[model.Filter]) -> model.Filter:
        return parts[0]

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
        return self._read_token(
            tokens[0], lambda token: literals.unquote(token) if token.startswith("`") else token, "x"
        )

    def age(self, parts: list[Any]) -> _Subject:
        return _Subject(parts[1], is_age=True)

    def quantification(self, parts: list[Any]) -> _Subject:
        inner = parts[1] if isinstance(parts[1], _Subject) else _Subject(parts[1])
        return replace(inner, quantifier=model.Quantifier(parts[0][:-1].strip().lower()))

    def subject(self, parts: list[Any]) -> _Subject:
        return parts[0] if isinstance(parts[0], _Subject) else _Subject(parts[0])

    # Literals ----------------------------------------------------------------------------------

    def word(self, tokens: list[Token]) -> _Part:
        return self._read_token(tokens[0], literals.unquote, "")

    def other(self, tokens: list[Token]) -> _Part:
        return self._read_token(tokens[0], _LITERALS[tokens[0].type], 0)

    def unit(self, tokens: list[Token]) -> _Part:
        return self.name(tokens)

    def quantity(self, parts: list[Any]) -> _Part:
        amount, unit = self._read_token(parts[0], literals.parse_number, 0), parts[1]
        return _Part(model.Quantity(amount.value, unit.value), amount.start, unit.end)

    def point(self, tokens: list[Token]) -> _Part:
        lon, lat = (token for token in tokens if token.type == "NUMBER")
        return self._read_part(lambda: self._build_point(lon, lat), lon.start_pos, lat.end_pos, model.Point(0, 0))

    # Tests ---------------------------------------------------------------------------------------

    def comparison(self, parts: list[Any]) -> Callable[[_Subject], model.Filter]:
        return lambda subject: self._build_comparison(subject, str(parts[0]), parts[1])

    def case_fold(self, parts: list[Any]) -> Callable[[_Subject], model.Filter]:
        part = parts[1]
        build = self._defer_test(lambda: model.SameText((part.value,)), part.start, part.end)
        return build if parts[0] == "=" else lambda subject: self._build_negation(subject, build)

    def case_fold_set(self, parts: list[Any]) -> Callable[[_Subject], model.Filter]:
        values = [part for part in parts if isinstance(part, _Part)]
        return self._defer_test(lambda: model.SameText(tuple(part.value for part in values)), *_span_of(values))

    def membership(self, parts: list[Any]) -> Callable[[_Subject], model.Filter]:
        values = [part for part in parts if isinstance(part, _Part)]
        return lambda subject: self._build_test(subject, lambda: _build_set(subject, values), *_span_of(values))

    def span(self, parts: list[Any]) -> Callable[[_Subject], model.Filter]:
        dots = next(i for i, part in enumerate(parts) if getattr(part, "type", "") == "DOTS")
        low = parts[2] if dots > 2 else None
        high = parts[dots + 1] if isinstance(parts[dots + 1], _Part) else None
        opens = (parts[1] == "(", parts[-1] == ")")
        return lambda subject: self._build_test(
            subject, lambda: _build_range(subject, low, high, *opens), int(parts[1].start_pos), int(parts[-1].end_pos)
        )

    def block(self, tokens: list[Token]) -> Callable[[_Subject], model.Filter]:
        part = self._read_token(tokens[1], literals.parse_network, None)
        return lambda subject: self._build_test(subject, lambda: model.InNetworks((part.value,)), part.start, part.end)

    def between(self, parts: list[Any]) -> Callable[[_Subject], model.Filter]:
        low, high = parts[1], parts[2]
        return lambda subject: self._build_test(
            subject, lambda: _build_range(subject, low, high, low_open=False, high_open=False), low.start, high.end
        )

    def text(self, tokens: list[Token]) -> Callable[[_Subject], model.Filter]:
        op = model.TextOp(" ".join(tokens[0].lower().split()))
        part = self._read_token(tokens[1], literals.unquote, "")
        if op is model.TextOp.LIKE and not self._stored:
            self._refuse_percent(tokens[1])
        return self._defer_test(lambda: model.TextTest(op, part.value, len(tokens) > 2), part.start, part.end)

    def _refuse_percent(self, token: Token) -> None:
        """Refuse SQL's wildcard; in stored filters it is the percent sign, which it once meant."""
        at = literals.find_bare_percent(token)
        if at is not None:
            start = int(token.start_pos or 0) + at
            self.source_map.mistakes.append(Mistake(_PERCENT, start, start + 1))

    def expression(self, tokens: list[Token]) -> Callable[[_Subject], model.Filter]:
        pattern, ignoring_case = str(tokens[1][1:-1]), len(tokens) > 2
        return self._defer_test(
            lambda: model.TextTest(model.TextOp.MATCHES, pattern, ignoring_case), tokens[1].start_pos, tokens[1].end_pos
        )

    def is_a(self, tokens: list[Token]) -> Callable[[_Subject], model.Filter]:
        part = self._read_token(tokens[1], literals.unquote, "")
        return self._defer_test(lambda: model.IsA(part.value), part.start, part.end)

    def inside(self, tokens: list[Token]) -> Callable[[_Subject], model.Filter]:
        return self._defer_test(
            lambda: model.Within(literals.parse_polygon(tokens[1])), tokens[1].start_pos, tokens[1].end_pos
        )

    def region(self, tokens: list[Token]) -> Callable[[_Subject], model.Filter]:
        token = tokens[1]
        return self._defer_test(
            lambda: model.WithinRegion(literals.unquote(token[1:]) if token[1] == "`" else str(token[1:])),
            token.start_pos,
            token.end_pos,
        )

    def near(self, parts: list[Any]) -> Callable[[_Subject], model.Filter]:
        lon, lat, far = (part for part in parts if getattr(part, "type", "") == "NUMBER")
        return self._defer_test(
            lambda: model.Near(
                self._build_point(lon, lat),
                literals.to_metres(model.Quantity(literals.parse_number(far), parts[-1].value)),
            ),
            lon.start_pos,
            parts[-1].end,
        )

    def exists(self, tokens: list[Token]) -> Callable[[_Subject], model.Filter]:
        return self._defer_test(model.Exists, tokens[0].start_pos, tokens[0].end_pos)

    def is_null(self, tokens: list[Token]) -> Callable[[_Subject], model.Filter]:
        return self._defer_test(model.IsNull, tokens[0].start_pos, tokens[0].end_pos)

    def has(self, parts: list[Any]) -> Callable[[_Subject], model.Filter]:
        inner = next(part for part in parts if not isinstance(part, str))
        return self._defer_test(lambda: model.Has(inner), parts[0].start_pos, parts[0].end_pos)

    def test(self, parts: list[Any]) -> model.Filter:
        build: Callable[[_Subject], model.Filter] = parts[1]
        return build(parts[0])

    def negative_test(self, parts: list[Any]) -> model.Filter:
        """`a not in (...)`: as with `!=`, `a` exists and none of its values satisfies the condition."""
        return self._build_negation(parts[0], parts[1])

    # Building ------------------------------------------------------------------------------------

    def _defer_test(
        self, make: Callable[[], model.Condition], start: Any, end: Any
    ) -> Callable[[_Subject], model.Filter]:
        def build(subject: _Subject) -> model.Filter:
            if subject.is_age:
                return self._refuse("an age is compared with a duration: age(posted) < 7 days", subject.name)
            return self._build_test(subject, make, int(start), int(end))

        return build

    def _build_comparison(self, subject: _Subject, op: str, right: _Part) -> model.Filter:
        if op == "!=":
            return self._build_negation(subject, lambda subject: self._build_comparison(subject, "=", right))
        if isinstance(right.value, str) and not isinstance(right, _QuotedText):
            if right.value.lower() == "now" and right.end - right.start == len("now"):
                return self._refuse("the time is not a value here; write `age(posted) > 0 s` for `posted < now`", right)
            compared = self._build_test(
                subject, lambda: _compare_with_attribute(subject, op, right.value), right.start, right.end
            )
            if right.end - right.start == len(right.value) and isinstance(compared, model.Test):
                self.source_map.bare_words.append(compared)
            return compared
        return self._build_test(subject, lambda: _compare_with_literal(subject, op, right), right.start, right.end)

    def _build_negation(self, subject: _Subject, build: Callable[[_Subject], model.Filter]) -> model.Filter:
        """Negate a test: none of the values satisfies it, unless a quantifier says otherwise."""
        match subject.quantifier:
            case None | model.Quantifier.ALL:
                negated = build(replace(subject, quantifier=model.Quantifier.NONE))
            case model.Quantifier.NONE:
                negated = build(replace(subject, quantifier=model.Quantifier.ALL))
            case model.Quantifier.ANY:
                some = model.Test(subject.name.value, model.Exists())
                negated = model.And((some, model.Not(build(replace(subject, quantifier=model.Quantifier.ALL)))))
        return negated

    def _build_test(self, subject: _Subject, make: Callable[[], model.Condition], start: int, end: int) -> model.Filter:
        try:
            test = model.Test(subject.name.value, make(), subject.quantifier or model.Quantifier.ANY)
        except ValueError as problem:
            mistake = Mistake(str(problem), start, end)
            if not any(
                mistake.meets(other) for other in self.source_map.mistakes
            ):  # a placeholder is no second mistake
                self.source_map.mistakes.append(mistake)
            return model.TRUE
        self.source_map.record(test, TestSpan((subject.name.start, subject.name.end), (start, end)))
        return test

    def _refuse(self, message: str, part: _Part) -> model.Filter:
        self.source_map.mistakes.append(Mistake(message, part.start, part.end))
        return model.TRUE

    def _read_token(self, token: Token, read: Callable[[str], Any], instead: Any) -> _Part:
        part = self._read_part(lambda: read(str(token)), token.start_pos, token.end_pos, instead)
        return _QuotedText(part.value, part.start, part.end) if token.type == "STRING" else part

    def _read_part(self, make: Callable[[], Any], start: Any, end: Any, instead: Any) -> _Part:
        try:
            value = make()
        except ValueError as problem:
            self.source_map.mistakes.append(Mistake(str(problem), start, end))
            value = instead
        return _Part(value, start, end)

    @staticmethod
    def _build_point(lon: Token, lat: Token) -> model.Point:
        return model.Point(float(literals.parse_number(lon)), float(literals.parse_number(lat)))


class _QuotedText(_Part):
    """A quoted literal, to be told from an attribute's name."""


_PERCENT = "`%` is no wildcard here: `*` is any text and `?` one character; the percent sign itself is `\\%`"


_LITERALS: dict[str, Callable[[str], Any]] = {
    "NUMBER": literals.parse_number,
    "TRUE": lambda _: True,
    "FALSE": lambda _: False,
    "TIME": literals.parse_moment,
    "ADDRESS": literals.parse_network,
}


def _span_of(parts: list[_Part]) -> tuple[int, int]:
    return parts[0].start, parts[-1].end


def _is_network(value: Any) -> bool:
    return hasattr(value, "prefixlen")


def _build_set(subject: _Subject, parts: list[_Part]) -> model.Condition:
    values = [part.value for part in parts]
    if any(map(_is_network, values)):
        return model.InNetworks(tuple(_require_networks(values)))
    if subject.is_age:
        msg = "an age is compared with a range of durations, not with a set"
        raise ValueError(msg)
    return model.one_of(values)


def _require_networks(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if not _is_network(value):
            msg = f"a set of addresses holds addresses and blocks only, not {value!r}"
            raise ValueError(msg)
        yield value


def _build_range(
    subject: _Subject, low: _Part | None, high: _Part | None, low_open: bool, high_open: bool
) -> model.Range | model.Age:
    bounds = [None if part is None else _read_bound(subject, part.value) for part in (low, high)]
    span = model.Range(bounds[0], bounds[1], low_open, high_open)
    return model.Age(span) if subject.is_age else span


def _read_bound(subject: _Subject, value: Any) -> Any:
    if subject.is_age:
        return literals.to_seconds(value)
    if _is_network(value):
        msg = f"addresses have no order here; write `in {value}`"
        raise ValueError(msg)
    return value


def _compare_with_literal(subject: _Subject, op: str, right: _Part) -> model.Condition:
    """Return the condition of a comparison with a literal: equality, or a range with one end."""
    if op == "=":
        if subject.is_age:
            return model.Age(model.Range(_read_bound(subject, right.value), _read_bound(subject, right.value)))
        return model.InNetworks((right.value,)) if _is_network(right.value) else model.one_of([right.value])
    low, high = (right, None) if op[0] == ">" else (None, right)
    return _build_range(subject, low, high, low_open=op == ">", high_open=op == "<")


def _compare_with_attribute(subject: _Subject, op: str, other: str) -> model.Condition:
    if subject.is_age:
        msg = "an age is compared with a duration, not with another attribute"
        raise ValueError(msg)
    return model.Compare(model.Comparison(op), other)
