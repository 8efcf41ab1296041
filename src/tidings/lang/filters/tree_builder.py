"""What the grammar's rules build: filters bottom-up, each test with its place.

A value that cannot be one (an empty range, a ring that is not closed) is noted as a mistake at its place,
and a stand-in goes on, so that one reading finds them all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lark import Transformer

from tidings.errors import Mistake
from tidings.lang.filters import literals
from tidings.lang.filters.source_spans import Spot, Spots
from tidings.model import (
    FALSE,
    TRUE,
    Age,
    And,
    Compare,
    Comparison,
    Exists,
    Has,
    InNetworks,
    IsA,
    IsNull,
    Near,
    Not,
    Or,
    Point,
    Quantifier,
    Quantity,
    Range,
    SameText,
    Test,
    TextOp,
    TextTest,
    Within,
    WithinRegion,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lark import Token

    from tidings.model import Condition, Filter


@dataclass(frozen=True, slots=True)
class _Part:
    """A value read from the text, and its place."""

    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Subject:
    name: _Part
    quantifier: Quantifier | None = None
    aged: bool = False


class Builder(Transformer[Any, Any]):
    """Builds filters bottom-up; a value that cannot be one is noted, and a stand-in goes on."""

    def __init__(self, *, stored: bool = False) -> None:
        super().__init__()
        self.spots, self._stored = Spots(), stored

    # Connectives -----------------------------------------------------------------------------

    def start(self, parts: list[Filter]) -> Filter:
        return parts[0]

    def group(self, parts: list[Filter]) -> Filter:
        return parts[0]

    def disjunction(self, parts: list[Filter]) -> Filter:
        return Or(tuple(parts))

    def conjunction(self, parts: list[Filter]) -> Filter:
        return And(tuple(parts))

    def negation(self, parts: list[Filter]) -> Filter:
        return Not(parts[0])

    def constant(self, tokens: list[Token]) -> Filter:
        return FALSE if tokens[0].type == "FALSE" else TRUE

    # Subjects ----------------------------------------------------------------------------------

    def name(self, tokens: list[Token]) -> _Part:
        return self._part(tokens[0], lambda token: literals.unquoted(token) if token.startswith("`") else token, "x")

    def aged(self, parts: list[Any]) -> _Subject:
        return _Subject(parts[1], aged=True)

    def quantified(self, parts: list[Any]) -> _Subject:
        inner = parts[1] if isinstance(parts[1], _Subject) else _Subject(parts[1])
        return replace(inner, quantifier=Quantifier(parts[0][:-1].strip().lower()))

    def subject(self, parts: list[Any]) -> _Subject:
        return parts[0] if isinstance(parts[0], _Subject) else _Subject(parts[0])

    # Literals ----------------------------------------------------------------------------------

    def word(self, tokens: list[Token]) -> _Part:
        return self._part(tokens[0], literals.unquoted, "")

    def other(self, tokens: list[Token]) -> _Part:
        return self._part(tokens[0], _LITERALS[tokens[0].type], 0)

    def unit(self, tokens: list[Token]) -> _Part:
        return self.name(tokens)

    def quantity(self, parts: list[Any]) -> _Part:
        amount, unit = self._part(parts[0], literals.number, 0), parts[1]
        return _Part(Quantity(amount.value, unit.value), amount.start, unit.end)

    def point(self, tokens: list[Token]) -> _Part:
        lon, lat = (token for token in tokens if token.type == "NUMBER")
        return self._made(lambda: self._point(lon, lat), lon.start_pos, lat.end_pos, Point(0, 0))

    # Tests ---------------------------------------------------------------------------------------

    def comparison(self, parts: list[Any]) -> Callable[[_Subject], Filter]:
        return lambda subject: self._compared(subject, str(parts[0]), parts[1])

    def folded(self, parts: list[Any]) -> Callable[[_Subject], Filter]:
        part = parts[1]
        build = self._plain(lambda: SameText((part.value,)), part.start, part.end)
        return build if parts[0] == "=" else lambda subject: self._negated(subject, build)

    def folded_set(self, parts: list[Any]) -> Callable[[_Subject], Filter]:
        values = [part for part in parts if isinstance(part, _Part)]
        return self._plain(lambda: SameText(tuple(part.value for part in values)), *_extent(values))

    def membership(self, parts: list[Any]) -> Callable[[_Subject], Filter]:
        values = [part for part in parts if isinstance(part, _Part)]
        return lambda subject: self._test(subject, lambda: _set(subject, values), *_extent(values))

    def span(self, parts: list[Any]) -> Callable[[_Subject], Filter]:
        dots = next(i for i, part in enumerate(parts) if getattr(part, "type", "") == "DOTS")
        low = parts[2] if dots > 2 else None
        high = parts[dots + 1] if isinstance(parts[dots + 1], _Part) else None
        opens = (parts[1] == "(", parts[-1] == ")")
        return lambda subject: self._test(
            subject, lambda: _ranged(subject, low, high, *opens), int(parts[1].start_pos), int(parts[-1].end_pos)
        )

    def block(self, tokens: list[Token]) -> Callable[[_Subject], Filter]:
        part = self._part(tokens[1], literals.network, None)
        return lambda subject: self._test(subject, lambda: InNetworks((part.value,)), part.start, part.end)

    def between(self, parts: list[Any]) -> Callable[[_Subject], Filter]:
        low, high = parts[1], parts[2]
        return lambda subject: self._test(
            subject, lambda: _ranged(subject, low, high, low_open=False, high_open=False), low.start, high.end
        )

    def text(self, tokens: list[Token]) -> Callable[[_Subject], Filter]:
        op = TextOp(" ".join(tokens[0].lower().split()))
        part = self._part(tokens[1], literals.unquoted, "")
        if op is TextOp.LIKE and not self._stored:
            self._refuse_percent(tokens[1])
        return self._plain(lambda: TextTest(op, part.value, len(tokens) > 2), part.start, part.end)

    def _refuse_percent(self, token: Token) -> None:
        """Refuse SQL's wildcard, which was once read as the percent sign: stored filters keep that meaning."""
        at = literals.unescaped_percent(token)
        if at is not None:
            start = int(token.start_pos or 0) + at
            self.spots.mistakes.append(Mistake(_PERCENT, start, start + 1))

    def expression(self, tokens: list[Token]) -> Callable[[_Subject], Filter]:
        pattern, ignoring_case = str(tokens[1][1:-1]), len(tokens) > 2
        return self._plain(
            lambda: TextTest(TextOp.MATCHES, pattern, ignoring_case), tokens[1].start_pos, tokens[1].end_pos
        )

    def is_a(self, tokens: list[Token]) -> Callable[[_Subject], Filter]:
        part = self._part(tokens[1], literals.unquoted, "")
        return self._plain(lambda: IsA(part.value), part.start, part.end)

    def inside(self, tokens: list[Token]) -> Callable[[_Subject], Filter]:
        return self._plain(lambda: Within(literals.polygon(tokens[1])), tokens[1].start_pos, tokens[1].end_pos)

    def region(self, tokens: list[Token]) -> Callable[[_Subject], Filter]:
        token = tokens[1]
        return self._plain(
            lambda: WithinRegion(literals.unquoted(token[1:]) if token[1] == "`" else str(token[1:])),
            token.start_pos,
            token.end_pos,
        )

    def near(self, parts: list[Any]) -> Callable[[_Subject], Filter]:
        lon, lat, far = (part for part in parts if getattr(part, "type", "") == "NUMBER")
        return self._plain(
            lambda: Near(self._point(lon, lat), literals.metres(Quantity(literals.number(far), parts[-1].value))),
            lon.start_pos,
            parts[-1].end,
        )

    def exists(self, tokens: list[Token]) -> Callable[[_Subject], Filter]:
        return self._plain(Exists, tokens[0].start_pos, tokens[0].end_pos)

    def is_null(self, tokens: list[Token]) -> Callable[[_Subject], Filter]:
        return self._plain(IsNull, tokens[0].start_pos, tokens[0].end_pos)

    def has(self, parts: list[Any]) -> Callable[[_Subject], Filter]:
        inner = next(part for part in parts if not isinstance(part, str))
        return self._plain(lambda: Has(inner), parts[0].start_pos, parts[0].end_pos)

    def test(self, parts: list[Any]) -> Filter:
        return parts[1](parts[0])  # type: ignore[no-any-return]

    def refused_test(self, parts: list[Any]) -> Filter:
        """`a not in (...)`: as with `!=`, `a` is there and none of its values does."""
        return self._negated(parts[0], parts[1])

    # Building ------------------------------------------------------------------------------------

    def _plain(self, make: Callable[[], Condition], start: Any, end: Any) -> Callable[[_Subject], Filter]:
        def build(subject: _Subject) -> Filter:
            if subject.aged:
                return self._stand_in("an age is compared with a duration: age(posted) < 7 days", subject.name)
            return self._test(subject, make, int(start), int(end))

        return build

    def _compared(self, subject: _Subject, op: str, right: _Part) -> Filter:
        if op == "!=":
            return self._negated(subject, lambda subject: self._compared(subject, "=", right))
        if isinstance(right.value, str) and not isinstance(right, _Text):
            if right.value.lower() == "now" and right.end - right.start == len("now"):
                return self._stand_in(
                    "the time is not a value here; write `age(posted) > 0 s` for `posted < now`", right
                )
            compared = self._test(subject, lambda: _beside(subject, op, right.value), right.start, right.end)
            if right.end - right.start == len(right.value) and isinstance(compared, Test):
                self.spots.bare_words.append(compared)
            return compared
        return self._test(subject, lambda: _against(subject, op, right), right.start, right.end)

    def _negated(self, subject: _Subject, build: Callable[[_Subject], Filter]) -> Filter:
        """The values do not satisfy it: none of them, unless a quantifier says how many."""
        match subject.quantifier:
            case None | Quantifier.ALL:
                negated = build(replace(subject, quantifier=Quantifier.NONE))
            case Quantifier.NONE:
                negated = build(replace(subject, quantifier=Quantifier.ALL))
            case Quantifier.ANY:
                some = Test(subject.name.value, Exists())
                negated = And((some, Not(build(replace(subject, quantifier=Quantifier.ALL)))))
        return negated

    def _test(self, subject: _Subject, make: Callable[[], Condition], start: int, end: int) -> Filter:
        try:
            made = Test(subject.name.value, make(), subject.quantifier or Quantifier.ANY)
        except ValueError as problem:
            found = Mistake(str(problem), start, end)
            if not any(found.meets(other) for other in self.spots.mistakes):  # a stand-in is no second mistake
                self.spots.mistakes.append(found)
            return TRUE
        self.spots.note(made, Spot((subject.name.start, subject.name.end), (start, end)))
        return made

    def _stand_in(self, message: str, part: _Part) -> Filter:
        self.spots.mistakes.append(Mistake(message, part.start, part.end))
        return TRUE

    def _part(self, token: Token, read: Callable[[str], Any], instead: Any) -> _Part:
        made = self._made(lambda: read(str(token)), token.start_pos, token.end_pos, instead)
        return _Text(made.value, made.start, made.end) if token.type == "STRING" else made

    def _made(self, make: Callable[[], Any], start: Any, end: Any, instead: Any) -> _Part:
        try:
            value = make()
        except ValueError as problem:
            self.spots.mistakes.append(Mistake(str(problem), start, end))
            value = instead
        return _Part(value, start, end)

    @staticmethod
    def _point(lon: Token, lat: Token) -> Point:
        return Point(float(literals.number(lon)), float(literals.number(lat)))


class _Text(_Part):
    """A quoted literal, as against an attribute's name."""


_PERCENT = "`%` is no wildcard here: `*` is any text and `?` one character; the percent sign itself is `\\%`"


_LITERALS: dict[str, Callable[[str], Any]] = {
    "NUMBER": literals.number,
    "TRUE": lambda _: True,
    "FALSE": lambda _: False,
    "TIME": literals.moment,
    "ADDRESS": literals.network,
}


def _extent(parts: list[_Part]) -> tuple[int, int]:
    return parts[0].start, parts[-1].end


def _is_network(value: Any) -> bool:
    return hasattr(value, "prefixlen")


def _set(subject: _Subject, parts: list[_Part]) -> Condition:
    values = [part.value for part in parts]
    if any(map(_is_network, values)):
        return InNetworks(tuple(_only_networks(values)))
    if subject.aged:
        msg = "an age is compared with a range of durations, not with a set"
        raise ValueError(msg)
    return one_of(values)


def _only_networks(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if not _is_network(value):
            msg = f"a set of addresses holds addresses and blocks only, not {value!r}"
            raise ValueError(msg)
        yield value


def _ranged(subject: _Subject, low: _Part | None, high: _Part | None, low_open: bool, high_open: bool) -> Range | Age:
    ends = [None if part is None else _end(subject, part.value) for part in (low, high)]
    made = Range(ends[0], ends[1], low_open, high_open)
    return Age(made) if subject.aged else made


def _end(subject: _Subject, value: Any) -> Any:
    if subject.aged:
        return literals.seconds(value)
    if _is_network(value):
        msg = f"addresses have no order here; write `in {value}`"
        raise ValueError(msg)
    return value


def _against(subject: _Subject, op: str, right: _Part) -> Condition:
    """A comparison with a literal: equality, or a range with one end."""
    if op == "=":
        if subject.aged:
            return Age(Range(_end(subject, right.value), _end(subject, right.value)))
        return InNetworks((right.value,)) if _is_network(right.value) else one_of([right.value])
    low, high = (right, None) if op[0] == ">" else (None, right)
    return _ranged(subject, low, high, low_open=op == ">", high_open=op == "<")


def _beside(subject: _Subject, op: str, other: str) -> Condition:
    if subject.aged:
        msg = "an age is compared with a duration, not with another attribute"
        raise ValueError(msg)
    return Compare(Comparison(op), other)
