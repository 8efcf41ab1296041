"""A pattern's text taken apart: the named filters first, then the expression.

A line that begins `name =` or `name, name =` begins a named filter. It ends at a line break, unless a parenthesis is
open, the line ends in a word or sign that waits for more, or the next line begins with one that goes on. What
is left is the expression: `=` alone never occurs in it, so no line of it reads as a named filter.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.lang.filters.render_text import RESERVED
from tidings.lang.patterns.source_positions import Place, Places
from tidings.lang.patterns.tokens import Sort, Stop, Token, expression_tokens, filter_tokens

_COMPLETE = {"exists", "null", "true", "false"}
_WAITING = (RESERVED - _COMPLETE) | {"=", "!=", "<", "<=", ">", ">=", "==", ",", ".."}
"""A line that ends in one of these goes on."""

_GOING_ON = (RESERVED - {"not", "true", "false"}) | {"=", "!=", "<", "<=", ">", ">=", "==", ",", ")", "]", ".."}
"""A line that begins with one of these belongs to the one before."""

_UNFINISHED = {",", ";", "->", "@", "(", "{", "-", "|", ":", "and", "or", "not", "within", "for"}
"""What an expression cannot end in: the next line belongs to it, whatever it looks like."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One or several names, and the text of the filter that they mean."""

    names: tuple[Token, ...]
    body: tuple[Token, ...]
    start: int
    end: int
    closed: bool = True


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a pattern's text."""

    definitions: tuple[Definition, ...]
    expression: tuple[Token, ...]
    end: int


def lay_out(text: str, places: Places) -> Layout:
    """Return the named filters and the tokens of the expression; mistakes in the order of parts are noted."""
    tokens, at = filter_tokens(text), 0
    definitions: list[Definition] = []
    expression: list[Token] = []
    while at < len(tokens):
        head = _head(tokens, at)
        if head is None or (expression and expression[-1].says(*_UNFINISHED)):
            stop = _next_head(tokens, at + 1)
            expression += _expression(text, tokens, at, stop)
            at = stop
            continue
        if expression:
            places.refuse("named filters come before the pattern expression, which is last", tokens[at].place)
        stop, opened = _end(tokens, head)
        if opened is not None:
            places.refuse("this parenthesis is not closed", opened.place)
        definitions.append(_definition(tokens, at, head, stop, closed=opened is None))
        at = stop
    return Layout(tuple(definitions), tuple(expression), len(text.rstrip()))


def _expression(text: str, tokens: list[Token], at: int, stop: int) -> list[Token]:
    end = tokens[stop].start if stop < len(tokens) else len(text)
    return expression_tokens(text, tokens[at].start, end)


def _head(tokens: list[Token], at: int) -> int | None:
    """Return where the filter begins, if names and `=` stand here at the beginning of a line."""
    if not tokens[at].fresh:
        return None
    while at + 1 < len(tokens) and _can_be_defined(tokens[at]):
        if tokens[at + 1].says("="):
            return at + 2
        if not tokens[at + 1].says(","):
            return None
        at += 2
    return None


def _can_be_defined(token: Token) -> bool:
    # A keyword before `=` is still meant as a name: it is refused as one, with the way out.
    return token.sort in (Sort.WORD, Sort.NAME) and not token.says("and", "or", "not")


def _next_head(tokens: list[Token], at: int) -> int:
    while at < len(tokens) and _head(tokens, at) is None:
        at += 1
    return at


def _end(tokens: list[Token], at: int) -> tuple[int, Token | None]:
    """Return the index behind the filter that begins at `at`, and the parenthesis that it leaves open.

    A filter that never closes its parenthesis ends at its line all the same, so that the rest can be read.
    """
    opened: list[Token] = []
    line: int | None = None
    for i in range(at, len(tokens)):
        token = tokens[i]
        if token.fresh and not tokens[i - 1].says(*_WAITING) and not token.says(*_GOING_ON):
            if not opened:
                return i, None
            line = line or i
        if token.says("(", "["):
            opened.append(token)
        elif token.says(")", "]") and opened:
            opened.pop()
            line = line if opened else None
    return (line or len(tokens), opened[0]) if opened else (len(tokens), None)


def _definition(tokens: list[Token], at: int, head: int, stop: int, *, closed: bool) -> Definition:
    body = tuple(tokens[head:stop])
    start = tokens[head - 1].end
    return Definition(tuple(tokens[at : head - 1 : 2]), body, start, body[-1].end if body else start, closed)


def defined_name(token: Token, places: Places) -> str:
    """Return the name of a filter; a word that cannot be one is refused, and stands in for itself."""
    try:
        if token.is_name:
            return token.name
        places.refuse(f"as a name `{token.text}` goes in backticks", token.place)
    except Stop as problem:
        places.mistakes.append(problem.mistake)
    return token.text


def missing(layout: Layout) -> Place:
    """Return where the expression is missing."""
    return Place(layout.end, layout.end + 1)
