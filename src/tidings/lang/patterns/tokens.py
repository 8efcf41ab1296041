"""Tokens of a pattern's text.

Filters and pattern expressions cut text differently (`@downtown` is a region in a filter, `@ t(a)` a condition in
an expression), so there are two cuttings. Quoted text ends on its line in both: a forgotten quote then spoils
one named filter and not the rest of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tidings.lang.filters import literals
from tidings.lang.filters.render_text import RESERVED
from tidings.lang.patterns.source_positions import Place

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidings.errors import Mistake

NOT_NAMES = RESERVED | {"for", "pattern"}
"""Words that a filter's name or a label cannot be without backticks."""


class Sort(StrEnum):
    """What a token is."""

    WORD = "word"
    NAME = "name"  # in backticks
    NUMBER = "number"
    VARIABLE = "variable"
    TEXT = "text"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text; `fresh` when it is the first on its line."""

    text: str
    start: int
    end: int
    sort: Sort
    fresh: bool = False

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.start, self.end)

    def says(self, *words: str) -> bool:
        """Tell whether it is one of these words, in any case, or signs; what is quoted is neither."""
        return self.sort in (Sort.WORD, Sort.SIGN) and self.text.lower() in words

    @property
    def is_name(self) -> bool:
        """Whether it can be the name of a filter or a label."""
        return self.sort is Sort.NAME or (self.sort is Sort.WORD and self.text.lower() not in NOT_NAMES)

    @property
    def name(self) -> str:
        """The name that it is; `Stop` when an escape in its backticks is unknown."""
        try:
            return literals.unquoted(self.text) if self.sort is Sort.NAME else self.text
        except ValueError as problem:
            raise Stop(self.place, str(problem)) from None


class Stop(Exception):
    """Reading cannot go on here; who catches it goes on behind the next joint."""

    def __init__(self, place: Place, message: str) -> None:
        """Keep the mistake."""
        super().__init__(message)
        self.mistake: Mistake = place.mistake(message)


_QUOTED = r"""(?P<text>'(?:[^'\\\n]|\\[^\n])*'|"(?:[^"\\\n]|\\[^\n])*")|(?P<name>`(?:[^`\\\n]|\\[^\n])+`)"""
_COMMENT = r"(?P<comment>(?:\#|--)[^\n]*)"
_WORD = r"(?P<word>[^\W\d]\w*(?:\.\w+)*)"
_NUMBER = r"(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
_SIGN = r"(?P<sign><=|>=|!=|==|->|&&|\|\||\.\.|\S)"
_VARIABLE = r"(?P<variable>\$(?:\w+|`(?:[^`\\\n]|\\[^\n])+`)?)"
_WHOLE = r"(?P<whole>(?i:matches)\s*/(?:[^/\\]|\\.)*/|@[\w-]+|@`(?:[^`\\\n]|\\[^\n])+`)"

_IN_FILTERS = re.compile("|".join((_QUOTED, _COMMENT, _WHOLE, _VARIABLE, _WORD, _NUMBER, _SIGN)), re.DOTALL)
_IN_EXPRESSIONS = re.compile("|".join((_QUOTED, _COMMENT, _VARIABLE, _WORD, _NUMBER, _SIGN)), re.DOTALL)


def filter_tokens(text: str) -> list[Token]:
    """Return the tokens of named filters; an expression and a region are each one piece of text."""
    found = _tokens(_IN_FILTERS, text, 0, len(text))
    for i, token in enumerate(found):  # `400 $` is an amount with its unit
        if token.sort is Sort.VARIABLE and i and found[i - 1].sort is Sort.NUMBER:
            found[i] = Token(token.text, token.start, token.end, Sort.WORD, token.fresh)
    return found


def names_of_steps(tokens: list[Token], names: Collection[str]) -> list[Token]:
    """Return the bare words, such as `b.price`, that read as an attribute of another step's event."""
    return [token for token in tokens if token.sort is Sort.WORD and "." in token.text and _step(token.text, names)]


def _step(word: str, names: Collection[str]) -> bool:
    parts = word.split(".")
    return any(".".join(parts[:count]) in names for count in range(1, len(parts)))


def expression_tokens(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """Return the tokens of a pattern expression."""
    return _tokens(_IN_EXPRESSIONS, text, start, len(text) if end is None else end)


def _tokens(cutting: re.Pattern[str], text: str, start: int, end: int) -> list[Token]:
    found: list[Token] = []
    for piece in cutting.finditer(text, start, end):
        if piece.lastgroup == "comment":
            continue
        sort = Sort.TEXT if piece.lastgroup == "whole" else Sort(str(piece.lastgroup))
        fresh = not found or "\n" in text[found[-1].end : piece.start()]
        found.append(Token(piece[0], piece.start(), piece.end(), sort, fresh))
    return found


class Cursor:
    """A reader's place among tokens; beyond the last comes the end, again and again."""

    def __init__(self, tokens: list[Token], end: int) -> None:
        """Stand before the first token; `end` is the offset behind the last."""
        self.tokens, self.at = tokens, 0
        self._end = Token("", end, end + 1, Sort.END)

    def peek(self, ahead: int = 0) -> Token:
        """Return a token without taking it."""
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else self._end

    def take(self) -> Token:
        """Take the next token."""
        token = self.peek()
        self.at += 1
        return token

    def takes(self, *words: str) -> Token | None:
        """Take the next token if it is one of these words or signs."""
        return self.take() if self.peek().says(*words) else None

    def need(self, wanted: str, *words: str) -> Token:
        """Take one of these words or signs, or stop."""
        if not self.peek().says(*words):
            raise self.stop(wanted=wanted)
        return self.take()

    def name(self, wanted: str) -> tuple[str, Place]:
        """Take a name, or stop."""
        if not self.peek().is_name:
            word = self.peek().text
            quoted = self.peek().sort is Sort.WORD
            raise self.stop(wanted=wanted, hint=f"as a name `{word}` goes in backticks" if quoted else "")
        token = self.take()
        return token.name, token.place

    def stop(self, *, wanted: str, hint: str = "") -> Stop:
        """Return what to raise when the next token is not what is wanted."""
        token = self.peek()
        found = "the end" if token.sort is Sort.END else f"`{token.text[:30]}`"
        return Stop(token.place, f"expected {wanted}, found {found}{f'; {hint}' if hint else ''}")
