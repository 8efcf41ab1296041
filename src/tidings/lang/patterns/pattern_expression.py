"""The expression of a pattern in text notation: steps joined by `,` and `;`, under `and` and `or`, with times.

A recursive descent: `or` binds loosest, then `and`, then a sequence; `@` and `within` belong to the operand before
them. At a mistake the operand becomes a hole and parsing resumes after the next joint (`,`, `;`, `and`, `or`) of the
same level, so that one pass finds several mistakes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import PatternError
from tidings.lang.patterns.check import HOLE, MAX_LEVELS, TOO_DEEP
from tidings.lang.patterns.durations import read_duration
from tidings.lang.patterns.time_conditions import read_conditions
from tidings.lang.patterns.tokens import PatternReadError, TokenCursor, TokenKind
from tidings.lang.source_map import SourceSpan
from tidings.model.patterns import Absence, Conjunction, Disjunction, Gap, Joint, Repeat, Sequence, Step, Timed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.lang.patterns.tokens import Token
    from tidings.lang.source_map import SourceMap
    from tidings.model.patterns import Elapsed, Node

_JOINTS = (",", ";", "and", "or")
_HABITS = {
    "->": "a later event is written `;`",
    "&&": "connectives are written `and` and `or`",
    "||": "connectives are written `and` and `or`",
    "|": "connectives are written `and` and `or`",
    "&": "connectives are written `and` and `or`",
    "!": "negation is written `not`",
    "+": "once or more is written `{1,}`",
    "*": "a repetition is written `{2,5}` or `{3,}`",
    "?": "a repetition is written `{2,5}` or `{3,}`",
    "=": "a named filter is written `name = filter`, on a line of its own",
    "[": "a repetition is written `{2,5}` or `{3,}`",
}
_WHAT_WITHIN_BOUNDS = "put what `within` bounds in parentheses: `(a ; b) within 5 min`; alone it ends the whole pattern"
_UNCLEAR = "does `within` bound these parentheses or the whole pattern? Put what it bounds in parentheses with it"
_WITHIN_BEFORE_ABSENCE = "`within` goes before an absence: `(a ; b) within 10 min ; not c for 5 min`"
_ENDS_IN_NOT = "nothing comes after this `not`; at the end of a pattern it needs a time: `a ; not b for 5 min`"
_MISPLACED_NOT = "`not` stands between two steps, `a ; not b ; c`, or ends a pattern for a time"
_NOT_TAKES_A_NAME = "`not` takes one filter's name, without a label, repetition or condition"
_ABSENCE_IN_CONNECTIVE = "an absence ends the whole pattern; put the rest in parentheses: `(a and b) ; not c for 5 min`"
_ABSENCE_INSIDE = "an absence ends the whole pattern, so it stands outside parentheses"
_AFTER_ABSENCE = "an absence ends the pattern: nothing comes after `not b for 5 min`"
_SEVERAL_CONDITIONS = "several conditions go in parentheses: `@ (t(b) - t(a) < 5 s and ...)`"
_HEADER = "`pattern NAME` begins a pattern in a file; here the pattern has no such line"


class ExpressionParser:
    """Parses one expression; positions and mistakes go to `source_map`."""

    def __init__(self, tokens: list[Token], end: int, source_map: SourceMap) -> None:
        """Start before the first token; `end` is the offset after the last."""
        self._cursor, self._source_map = TokenCursor(tokens, end), source_map
        self._levels = _count_levels(tokens)
        self._absence: Absence | None = None
        self._absence_token: Token | None = None

    def parse(self) -> tuple[Node | None, Absence | None]:
        """Return the tree, and the absence (`; not b for 5 min`) that ends it, if there is one."""
        if max(self._levels) > MAX_LEVELS:
            token = self._cursor.tokens[self._levels.index(MAX_LEVELS + 1)]
            self._source_map.refuse(TOO_DEEP, token.span)
            return None, None
        node = self._parse_disjunction()
        try:
            node = self._parse_final_within(node)
            if self._cursor.peek().kind is not TokenKind.END:
                hint = "this parenthesis closes nothing" if self._cursor.peek().is_one_of(")") else ""
                raise self._cursor.make_error(wanted="the end", hint=hint)
        except PatternReadError as problem:
            self._source_map.mistakes.append(problem.mistake)
        return node, self._absence

    def _parse_final_within(self, node: Node) -> Node:
        """Parse a `within` that ends the whole pattern and bounds `node`."""
        token = self._cursor.take_if("within")
        if token is None:
            return node
        if self._absence_token is not None:
            raise PatternReadError(token.span, _WITHIN_BEFORE_ABSENCE)
        duration = self._parse_within()
        if self._cursor.peek().kind is not TokenKind.END:
            raise PatternReadError(token.span, _WHAT_WITHIN_BOUNDS)
        return Timed(node, within=duration)

    # Connectives ------------------------------------------------------------------------------------

    def _parse_disjunction(self) -> Node:
        return self._parse_connective(
            "or", lambda: self._parse_connective("and", self._parse_sequence, Conjunction), Disjunction
        )

    def _parse_connective(self, word: str, part: Callable[[], Node], make: Callable[[tuple[Node, ...]], Node]) -> Node:
        parts, before = [part()], self._absence_token
        while self._cursor.take_if(word):
            parts.append(part())
        absence_token = before or self._absence_token
        if len(parts) > 1 and absence_token is not None:
            self._source_map.refuse(_ABSENCE_IN_CONNECTIVE, absence_token.span)
            self._absence_token = None
        return parts[0] if len(parts) == 1 else make(tuple(parts))

    def _parse_sequence(self) -> Node:
        parts, joints = [self._parse_operand()], []
        while sign := self._cursor.take_if(",", ";"):
            if self._absence_token is not None:
                self._source_map.refuse(_AFTER_ABSENCE, self._absence_token.span)
                self._absence_token = None
            joint = self._parse_joint(sign)
            if joint is not None:
                joints.append(joint)
                parts.append(self._parse_operand())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts), tuple(joints))

    def _parse_joint(self, sign: Token) -> Joint | None:
        """Parse the `not`s after a `,` or `;`; return nothing when they end the sequence."""
        names: list[str] = []
        spans: list[SourceSpan] = []
        start = self._cursor.peek()
        while self._cursor.peek().is_one_of("not"):
            try:
                self._parse_guard(names, spans)
            except PatternReadError as problem:
                self._source_map.mistakes.append(problem.mistake)
                self._skip_to_joint(self._get_level())
            if self._cursor.peek().is_one_of("for"):
                self._parse_absence(names, spans, sign)
                return None
            if not self._cursor.peek().is_one_of(",", ";"):
                self._source_map.refuse(_ENDS_IN_NOT, self._get_span_from(start))
                return None
            sign = sign if sign.text == "," else self._cursor.peek()
            self._cursor.take()
        if names and sign.text == ",":
            self._source_map.refuse("`not` stands between two `;`: `a ; not b ; c`", self._get_span_from(start))
            return Joint(Gap.LATER)
        joint = Joint(Gap(sign.text), tuple(names))
        self._source_map.record(joint, *spans)
        return joint

    def _parse_guard(self, names: list[str], spans: list[SourceSpan]) -> None:
        self._cursor.take()
        name, span = self._cursor.take_name("a filter's name after `not`")
        if self._cursor.peek().is_one_of(":", "{", "@"):
            raise PatternReadError(self._cursor.peek().span, _NOT_TAKES_A_NAME)
        names.append(name)
        spans.append(span)

    def _parse_absence(self, names: list[str], spans: list[SourceSpan], sign: Token) -> None:
        level, token = self._get_level(), self._cursor.take()
        try:
            duration, span = read_duration(self._cursor)
            if sign.text == ",":
                raise PatternReadError(sign.span, "an absence follows `;`: `a ; not b for 5 min`")
            if level > 0:
                raise PatternReadError(token.span, _ABSENCE_INSIDE)
            if duration <= 0:
                raise PatternReadError(span, "an absence lasts longer than nothing")
            self._absence, self._absence_token = Absence(tuple(names), duration), token
            self._source_map.record(self._absence, *spans)
        except PatternReadError as problem:
            self._source_map.mistakes.append(problem.mistake)
            self._skip_to_joint(level)

    # Operands ---------------------------------------------------------------------------------------

    def _parse_operand(self) -> Node:
        level = self._get_level()
        try:
            return self._parse_timed()
        except PatternReadError as problem:
            self._source_map.mistakes.append(problem.mistake)
            self._skip_to_joint(level)
            return Step(HOLE)

    def _parse_timed(self) -> Node:
        start, grouped = self._cursor.index, self._cursor.peek().is_one_of("(")
        node = self._parse_group() if grouped else self._parse_step()
        conditions: tuple[Elapsed, ...] = ()
        within: int | None = None
        while True:
            if self._cursor.take_if("@"):
                conditions += read_conditions(self._cursor, self._source_map)
            elif grouped and (token := self._cursor.take_if("within")):
                if within is not None:
                    raise PatternReadError(token.span, "this part has a `within` already")
                within = self._parse_within()
                if start > 0 and self._get_level() == 0 and self._cursor.peek().kind is TokenKind.END:
                    raise PatternReadError(token.span, _UNCLEAR)
            else:
                break
        self._check_operand_end()
        return Timed(node, conditions, within) if conditions or within is not None else node

    def _check_operand_end(self) -> None:
        token = self._cursor.peek()
        if token.kind is TokenKind.END or token.is_one_of(*_JOINTS, ")"):
            return
        if token.is_one_of("within"):
            if self._get_level() > 0:
                raise PatternReadError(token.span, _WHAT_WITHIN_BOUNDS)
            return
        if token.is_one_of("{"):
            raise PatternReadError(token.span, "only a step is repeated: `fail{3,}`")
        raise self._cursor.make_error(wanted="`;`, `,`, `and`, `or` or `@`", hint=_HABITS.get(token.text, ""))

    def _parse_group(self) -> Node:
        parenthesis = self._cursor.take()
        node = self._parse_disjunction()
        if not self._cursor.take_if(")"):
            if self._cursor.peek().kind is TokenKind.END:
                raise PatternReadError(parenthesis.span, "this parenthesis is not closed")
            raise self._cursor.make_error(wanted="`)`")
        return node

    def _parse_step(self) -> Node:
        token = self._cursor.peek()
        if token.is_one_of("not"):
            raise PatternReadError(token.span, _MISPLACED_NOT)
        if token.text == "t" and self._cursor.peek(1).is_one_of("("):
            raise PatternReadError(token.span, _SEVERAL_CONDITIONS)
        if token.is_one_of("pattern") and self._cursor.peek(1).is_name:
            raise PatternReadError(token.span, _HEADER)
        hint = _HABITS.get(token.text, "") if not token.is_name else ""
        if hint:
            raise self._cursor.make_error(wanted="a step", hint=hint)
        name, span = self._cursor.take_name("a step")
        label, label_span = None, span
        if self._cursor.take_if(":"):
            (label, label_span), (name, span) = (name, span), self._cursor.take_name("a filter's name")
        step = Step(name, label)
        self._source_map.record(step, span, label_span)
        return self._parse_repeat(step) if self._cursor.peek().is_one_of("{") else step

    def _parse_repeat(self, step: Step) -> Repeat:
        brace = self._cursor.take()
        if self._cursor.peek().is_one_of(","):
            raise PatternReadError(brace.span, "a repetition has a lower end: `{1,5}`")
        least = self._parse_count()
        most: int | None = least
        if self._cursor.take_if(","):
            most = None if self._cursor.peek().is_one_of("}") else self._parse_count()
        self._cursor.expect("`}`", "}")
        try:
            return Repeat(step, least, most)
        except PatternError as problem:
            raise PatternReadError(self._get_span_from(brace), str(problem)) from None

    def _parse_count(self) -> int:
        token = self._cursor.peek()
        if token.kind is not TokenKind.NUMBER or not token.text.isdecimal() or len(token.text) > 9:
            raise self._cursor.make_error(wanted="how many times, as a whole number")
        return int(self._cursor.take().text)

    def _parse_within(self) -> int:
        duration, span = read_duration(self._cursor)
        if duration < 0:
            raise PatternReadError(span, "`within` takes a duration from zero on")
        return duration

    # Moving -----------------------------------------------------------------------------------------

    def _get_level(self) -> int:
        return self._levels[min(self._cursor.index, len(self._levels) - 1)]

    def _skip_to_joint(self, level: int) -> None:
        """Skip to the next joint of this level, or to the parenthesis that closes it."""
        while (token := self._cursor.peek()).kind is not TokenKind.END:
            current = self._get_level()
            if current < level or (current == level and token.is_one_of(*_JOINTS)):
                return
            self._cursor.take()

    def _get_span_from(self, token: Token) -> SourceSpan:
        return SourceSpan(token.start, self._cursor.tokens[self._cursor.index - 1].end)


def _count_levels(tokens: list[Token]) -> list[int]:
    """Return how many parentheses and braces are open at each token, and after the last."""
    levels, level = [], 0
    for token in tokens:
        level -= token.is_one_of(")", "}")
        levels.append(level)
        level += token.is_one_of("(", "{")
    return [*levels, level]
