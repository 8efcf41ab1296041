"""Splits a pattern's text into its named filters and the expression after them.

A line that begins `name =` or `name, name =` begins a named filter. The filter ends at a line break, unless a
parenthesis is open, the line ends in a word or sign that needs an operand, or the next line begins with one that
continues it. The rest is the expression: `=` alone never occurs in it, so no line of it looks like a named filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.lang.filters.render_text import RESERVED
from tidings.lang.patterns.tokens import PatternReadError, Token, TokenKind, tokenize_expression, tokenize_filters

if TYPE_CHECKING:
    from tidings.lang.source_map import SourceMap

_COMPLETE = {"exists", "null", "true", "false"}
_WAITING = (RESERVED - _COMPLETE) | {"=", "!=", "<", "<=", ">", ">=", "==", ",", ".."}
"""A line that ends in one of these continues on the next."""

_GOING_ON = (RESERVED - {"not", "true", "false"}) | {"=", "!=", "<", "<=", ">", ">=", "==", ",", ")", "]", ".."}
"""A line that begins with one of these continues the one before."""

_UNFINISHED = {",", ";", "->", "@", "(", "{", "-", "|", ":", "and", "or", "not", "within", "for"}
"""An expression cannot end in one of these: the next line continues it, whatever it looks like."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One or several names and the filter they stand for, as tokens and as offsets in the text."""

    names: tuple[Token, ...]
    body: tuple[Token, ...]
    start: int
    end: int
    closed: bool = True


def split_sections(text: str, source_map: SourceMap) -> tuple[list[Definition], list[Token]]:
    """Return the named filters and the tokens of the expression; mistakes in their order go to `source_map`."""
    tokens, at = tokenize_filters(text), 0
    definitions: list[Definition] = []
    expression: list[Token] = []
    while at < len(tokens):
        head = _find_header_end(tokens, at)
        if head is None or (expression and expression[-1].is_one_of(*_UNFINISHED)):
            stop = next((i for i in range(at + 1, len(tokens)) if _find_header_end(tokens, i) is not None), len(tokens))
            end = tokens[stop].start if stop < len(tokens) else len(text)
            expression += tokenize_expression(text, tokens[at].start, end)
            at = stop
            continue
        if expression:
            source_map.refuse("named filters come before the pattern expression, which is last", tokens[at].span)
        stop, parenthesis = _find_filter_end(tokens, head)
        if parenthesis is not None:
            source_map.refuse("this parenthesis is not closed", parenthesis.span)
        body, start = tuple(tokens[head:stop]), tokens[head - 1].end
        names = tuple(tokens[at : head - 1 : 2])
        definitions.append(Definition(names, body, start, body[-1].end if body else start, parenthesis is None))
        at = stop
    return definitions, expression


def _find_header_end(tokens: list[Token], at: int) -> int | None:
    """Return the index after `name, name =`, if a line begins so at `at`."""
    if not tokens[at].starts_line:
        return None
    # A keyword before `=` is meant as a name too: `read_defined_name` refuses it and says how to write it.
    while at + 1 < len(tokens) and tokens[at].kind in (TokenKind.WORD, TokenKind.NAME):
        if tokens[at].is_one_of("and", "or", "not"):
            return None
        if tokens[at + 1].is_one_of("="):
            return at + 2
        if not tokens[at + 1].is_one_of(","):
            return None
        at += 2
    return None


def _find_filter_end(tokens: list[Token], at: int) -> tuple[int, Token | None]:
    """Return the index after the filter that begins at `at`, and the parenthesis that it leaves open.

    A filter that never closes its parenthesis ends with its line, so that the rest can be read.
    """
    open_tokens: list[Token] = []
    line: int | None = None
    for i in range(at, len(tokens)):
        token = tokens[i]
        if token.starts_line and not tokens[i - 1].is_one_of(*_WAITING) and not token.is_one_of(*_GOING_ON):
            if not open_tokens:
                return i, None
            line = line or i
        if token.is_one_of("(", "["):
            open_tokens.append(token)
        elif token.is_one_of(")", "]") and open_tokens:
            open_tokens.pop()
            line = line if open_tokens else None
    return (line or len(tokens), open_tokens[0]) if open_tokens else (len(tokens), None)


def read_defined_name(token: Token, source_map: SourceMap) -> str:
    """Return the name of a filter; a word that cannot be a name is noted as a mistake and returned as it is."""
    try:
        if token.is_name:
            return token.name
        source_map.refuse(f"as a name `{token.text}` goes in backticks", token.span)
    except PatternReadError as problem:
        source_map.mistakes.append(problem.mistake)
    return token.text
