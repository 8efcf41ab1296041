"""The pattern expression in text: steps, joined by `,` and `;`, under `and` and `or`, with times.

A plain descent: `or` binds loosest, then `and`, then a sequence; `@` and `within` belong to the operand before
them. Where reading stops, the mistake is noted and reading goes on behind the next joint of the same level, with a
hole in the operand's place, so that one reading finds several mistakes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import PatternError
from tidings.lang.patterns.durations import read_duration
from tidings.lang.patterns.source_positions import HOLE, MAX_LEVELS, Place
from tidings.lang.patterns.time_conditions import read_conditions
from tidings.lang.patterns.tokens import Cursor, Sort, Stop
from tidings.model.patterns import Absence, Both, Either, Gap, Joint, Repeat, Sequence, Step, Timed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.lang.patterns.source_positions import Places
    from tidings.lang.patterns.tokens import Token
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
_ENDS_IN_NOT = "nothing comes after this `not`; at the end of a pattern it needs a time: `a ; not b for 5 min`"


class Expression:
    """One reading of one expression; mistakes and places go to `places`."""

    def __init__(self, tokens: tuple[Token, ...], end: int, places: Places) -> None:
        """Stand before the first token; `end` is the offset behind the last."""
        self._cursor, self._places = Cursor(list(tokens), end), places
        self._levels = _levels(tokens)
        self._absence: Absence | None = None
        self._ended: Token | None = None

    def read(self) -> tuple[Node | None, Absence | None]:
        """Return the tree and the absence at its end."""
        if max(self._levels, default=0) > MAX_LEVELS:
            token = self._cursor.tokens[self._levels.index(MAX_LEVELS + 1)]
            self._refuse(f"the pattern is nested more than {MAX_LEVELS} levels deep, which is the limit", token.place)
            return None, None
        node = self._either()
        try:
            node = self._bounded(node)
            if self._cursor.peek().sort is not Sort.END:
                closes = self._cursor.peek().says(")")
                raise self._cursor.stop(wanted="the end", hint="this parenthesis closes nothing" if closes else "")
        except Stop as problem:
            self._places.mistakes.append(problem.mistake)
        return node, self._absence

    def _bounded(self, node: Node) -> Node:
        """Read the `within` that ends the whole pattern."""
        token = self._cursor.takes("within")
        if token is None:
            return node
        if self._ended is not None:
            msg = "`within` goes before an absence: `(a ; b) within 10 min ; not c for 5 min`"
            raise Stop(token.place, msg)
        span = self._within()
        if self._cursor.peek().sort is not Sort.END:
            raise Stop(token.place, _WHAT_WITHIN_BOUNDS)
        return Timed(node, within=span)

    # Connectives ------------------------------------------------------------------------------------

    def _either(self) -> Node:
        return self._joined("or", self._both, Either)

    def _both(self) -> Node:
        return self._joined("and", self._sequence, Both)

    def _joined(self, word: str, part: Callable[[], Node], make: Callable[[tuple[Node, ...]], Node]) -> Node:
        parts, before = [part()], self._ended
        while self._cursor.takes(word):
            parts.append(part())
        ended = before or self._ended
        if len(parts) > 1 and ended is not None:
            msg = "an absence ends the whole pattern; put the rest in parentheses: `(a and b) ; not c for 5 min`"
            self._refuse(msg, ended.place)
            self._ended = None
        return parts[0] if len(parts) == 1 else make(tuple(parts))

    def _sequence(self) -> Node:
        parts, joints = [self._operand()], []
        while sign := self._cursor.takes(",", ";"):
            if self._ended is not None:
                self._refuse("an absence ends the pattern: nothing comes after `not b for 5 min`", self._ended.place)
                self._ended = None
            joint = self._joint(sign)
            if joint is None:
                continue
            joints.append(joint)
            parts.append(self._operand())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts), tuple(joints))

    def _joint(self, sign: Token) -> Joint | None:
        """Read the `not`s behind a `,` or `;`; nothing when they end the sequence."""
        names: list[str] = []
        spots: list[Place] = []
        begun = self._cursor.peek()
        while self._cursor.peek().says("not"):
            try:
                self._guard(names, spots)
            except Stop as problem:
                self._places.mistakes.append(problem.mistake)
                self._skip(self._level())
            if self._cursor.peek().says("for"):
                self._absent(names, spots, sign)
                return None
            if not self._cursor.peek().says(",", ";"):
                self._refuse(_ENDS_IN_NOT, Place(begun.start, self._behind()))
                return None
            sign = sign if sign.text == "," else self._cursor.peek()
            self._cursor.take()
        if names and sign.text == ",":
            self._refuse("`not` stands between two `;`: `a ; not b ; c`", Place(begun.start, self._behind()))
            return Joint(Gap.LATER)
        joint = Joint(Gap(sign.text), tuple(names))
        self._places.note(joint, *spots)
        return joint

    def _guard(self, names: list[str], spots: list[Place]) -> None:
        self._cursor.take()
        name, place = self._cursor.name("a filter's name after `not`")
        if self._cursor.peek().says(":", "{", "@"):
            msg = "`not` takes one filter's name, without a label, repetition or condition"
            raise Stop(self._cursor.peek().place, msg)
        names.append(name)
        spots.append(place)

    def _absent(self, names: list[str], spots: list[Place], sign: Token) -> None:
        level, token = self._level(), self._cursor.take()
        try:
            span, place = read_duration(self._cursor)
            if sign.text == ",":
                raise Stop(sign.place, "an absence follows `;`: `a ; not b for 5 min`")
            if level > 0:
                raise Stop(token.place, "an absence ends the whole pattern, so it stands outside parentheses")
            if span <= 0:
                raise Stop(place, "an absence lasts longer than nothing")
            self._absence, self._ended = Absence(tuple(names), span), token
            self._places.note(self._absence, *spots)
        except Stop as problem:
            self._places.mistakes.append(problem.mistake)
            self._skip(level)

    # Operands ---------------------------------------------------------------------------------------

    def _operand(self) -> Node:
        level = self._level()
        try:
            return self._timed()
        except Stop as problem:
            self._places.mistakes.append(problem.mistake)
            self._skip(level)
            return Step(HOLE)

    def _timed(self) -> Node:
        begun, grouped = self._cursor.at, self._cursor.peek().says("(")
        node = self._group() if grouped else self._step()
        conditions: tuple[Elapsed, ...] = ()
        within: int | None = None
        while True:
            if self._cursor.takes("@"):
                conditions += read_conditions(self._cursor, self._places)
            elif grouped and (token := self._cursor.takes("within")):
                if within is not None:
                    raise Stop(token.place, "this part has a `within` already")
                within = self._within()
                if begun > 0 and self._level() == 0 and self._cursor.peek().sort is Sort.END:
                    raise Stop(token.place, _UNCLEAR)
            else:
                break
        self._end_of_operand()
        return Timed(node, conditions, within) if conditions or within is not None else node

    def _end_of_operand(self) -> None:
        token = self._cursor.peek()
        if token.sort is Sort.END or token.says(*_JOINTS, ")"):
            return
        if token.says("within"):
            if self._level() > 0:
                raise Stop(token.place, _WHAT_WITHIN_BOUNDS)
            return
        if token.says("{"):
            raise Stop(token.place, "only a step is repeated: `fail{3,}`")
        raise self._cursor.stop(wanted="`;`, `,`, `and`, `or` or `@`", hint=_HABITS.get(token.text, ""))

    def _group(self) -> Node:
        opened = self._cursor.take()
        node = self._either()
        if not self._cursor.takes(")"):
            if self._cursor.peek().sort is Sort.END:
                raise Stop(opened.place, "this parenthesis is not closed")
            raise self._cursor.stop(wanted="`)`")
        return node

    def _step(self) -> Node:
        token = self._cursor.peek()
        if token.says("not"):
            raise Stop(token.place, "`not` stands between two steps, `a ; not b ; c`, or ends a pattern for a time")
        if token.text == "t" and self._cursor.peek(1).says("("):
            raise Stop(token.place, "several conditions go in parentheses: `@ (t(b) - t(a) < 5 s and ...)`")
        if token.says("pattern") and self._cursor.peek(1).is_name:
            raise Stop(token.place, "`pattern NAME` begins a pattern in a file; here the pattern has no such line")
        hint = _HABITS.get(token.text, "") if not token.is_name else ""
        if hint:
            raise self._cursor.stop(wanted="a step", hint=hint)
        name, place = self._cursor.name("a step")
        label, spot = None, place
        if self._cursor.takes(":"):
            (label, spot), (name, place) = (name, place), self._cursor.name("a filter's name")
        step = Step(name, label)
        self._places.note(step, place, spot)
        return self._repeated(step) if self._cursor.peek().says("{") else step

    def _repeated(self, step: Step) -> Repeat:
        begun = self._cursor.take()
        if self._cursor.peek().says(","):
            raise Stop(begun.place, "a repetition has a lower end: `{1,5}`")
        least = self._count()
        most: int | None = least
        if self._cursor.takes(","):
            most = None if self._cursor.peek().says("}") else self._count()
        self._cursor.need("`}`", "}")
        try:
            return Repeat(step, least, most)
        except PatternError as problem:
            raise Stop(Place(begun.start, self._behind()), str(problem)) from None

    def _count(self) -> int:
        token = self._cursor.peek()
        if token.sort is not Sort.NUMBER or not token.text.isdecimal() or len(token.text) > 9:
            raise self._cursor.stop(wanted="how many times, as a whole number")
        return int(self._cursor.take().text)

    def _within(self) -> int:
        span, place = read_duration(self._cursor)
        if span < 0:
            raise Stop(place, "`within` takes a duration from zero on")
        return span

    # Moving -----------------------------------------------------------------------------------------

    def _level(self) -> int:
        at = self._cursor.at
        return self._levels[at] if at < len(self._levels) else self._levels[-1] if self._levels else 0

    def _skip(self, level: int) -> None:
        """Go on to the next joint of this level, or to what closes it."""
        while (token := self._cursor.peek()).sort is not Sort.END:
            here = self._level()
            if here < level or (here == level and token.says(*_JOINTS)):
                return
            self._cursor.take()

    def _behind(self) -> int:
        return self._cursor.tokens[self._cursor.at - 1].end

    def _refuse(self, message: str, place: Place) -> None:
        self._places.refuse(message, place)


def _levels(tokens: tuple[Token, ...]) -> list[int]:
    """Return how many parentheses and braces are open at each token, and behind the last."""
    found, level = [], 0
    for token in tokens:
        level -= token.says(")", "}")
        found.append(level)
        level += token.says("(", "{")
    return [*found, level]
