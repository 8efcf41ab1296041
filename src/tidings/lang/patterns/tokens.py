"""Tokens of a pattern's text, and a cursor over them.

Filters and expressions have different tokens (`@downtown` is a region in a filter, `@ t(a)` a condition in an
expression), so there are two tokenizers. Quoted text ends on its line in both: a forgotten quote spoils one named
filter and not the rest of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tidings.lang.filters import value_text
from tidings.lang.filters.render_text import RESERVED
from tidings.lang.source_map import SourceSpan

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidings.errors import Mistake

NOT_NAMES = RESERVED | {"for", "pattern"}
"""Words that are no names of filters or labels, unless in backticks."""


class TokenKind(StrEnum):
    """The kinds of tokens."""

    WORD = "word"
    NAME = "name"  # in backticks
    NUMBER = "number"
    VARIABLE = "variable"
    TEXT = "text"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its offsets; `starts_line` marks the first on its line."""

    text: str
    start: int
    end: int
    kind: TokenKind
    starts_line: bool = False

    @property
    def span(self) -> SourceSpan:
        """Its position in the text."""
        return SourceSpan(self.start, self.end)

    def is_one_of(self, *words: str) -> bool:
        """Tell whether it is one of these words (in any case) or signs; quoted text is neither."""
        return self.kind in (TokenKind.WORD, TokenKind.SIGN) and self.text.lower() in words

    @property
    def is_name(self) -> bool:
        """Whether it can be the name of a filter or a label."""
        return self.kind is TokenKind.NAME or (self.kind is TokenKind.WORD and self.text.lower() not in NOT_NAMES)

    @property
    def name(self) -> str:
        """The name without backticks, of a variable without `$`; an unknown escape raises `PatternReadError`."""
        text = self.text.removeprefix("$") if self.kind is TokenKind.VARIABLE else self.text
        try:
            return value_text.unquote(text) if text[:1] == "`" else text
        except ValueError as problem:
            raise PatternReadError(self.span, str(problem)) from None


class PatternReadError(Exception):
    """A mistake that ends reading at this position; the parser that catches it resumes after the next joint."""

    def __init__(self, span: SourceSpan, message: str) -> None:
        super().__init__(message)
        self.mistake: Mistake = span.make_mistake(message)


_QUOTED = r"""(?P<text>'(?:[^'\\\n]|\\[^\n])*'|"(?:[^"\\\n]|\\[^\n])*")|(?P<name>`(?:[^`\\\n]|\\[^\n])+`)"""
_COMMENT = r"(?P<comment>(?:\#|--)[^\n]*)"
_WORD = r"(?P<word>[^\W\d]\w*(?:\.\w+)*)"
_NUMBER = r"(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
_SIGN = r"(?P<sign><=|>=|!=|==|->|&&|\|\||\.\.|\S)"
_VARIABLE = r"(?P<variable>\$(?:\w+|`(?:[^`\\\n]|\\[^\n])+`)?)"
_WHOLE = r"(?P<whole>(?i:matches)\s*/(?:[^/\\]|\\.)*/|@[\w-]+|@`(?:[^`\\\n]|\\[^\n])+`)"

_IN_FILTERS = re.compile("|".join((_QUOTED, _COMMENT, _WHOLE, _VARIABLE, _WORD, _NUMBER, _SIGN)), re.DOTALL)
_IN_EXPRESSIONS = re.compile("|".join((_QUOTED, _COMMENT, _VARIABLE, _WORD, _NUMBER, _SIGN)), re.DOTALL)


def tokenize_filters(text: str) -> list[Token]:
    """Return the tokens of named filters; a regular expression and a region are each one token."""
    tokens = _tokenize(_IN_FILTERS, text, 0, len(text))
    for i, token in enumerate(tokens):  # `400 $` is an amount with its unit
        if token.kind is TokenKind.VARIABLE and i and tokens[i - 1].kind is TokenKind.NUMBER:
            tokens[i] = Token(token.text, token.start, token.end, TokenKind.WORD, token.starts_line)
    return tokens


def find_step_attributes(tokens: list[Token], names: Collection[str]) -> list[Token]:
    """Return the words such as `b.price` whose first part is one of `names`: an attribute of that step's event."""
    step_attributes = []
    for token in tokens:
        parts = token.text.split(".") if token.kind is TokenKind.WORD else []
        if any(".".join(parts[:count]) in names for count in range(1, len(parts))):
            step_attributes.append(token)
    return step_attributes


def tokenize_expression(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """Return the tokens of a pattern expression."""
    return _tokenize(_IN_EXPRESSIONS, text, start, len(text) if end is None else end)


def _tokenize(tokenizer: re.Pattern[str], text: str, start: int, end: int) -> list[Token]:
    tokens: list[Token] = []
    for piece in tokenizer.finditer(text, start, end):
        if piece.lastgroup == "comment":
            continue
        kind = TokenKind.TEXT if piece.lastgroup == "whole" else TokenKind(str(piece.lastgroup))
        starts_line = not tokens or "\n" in text[tokens[-1].end : piece.start()]
        tokens.append(Token(piece[0], piece.start(), piece.end(), kind, starts_line))
    return tokens


class TokenCursor:
    """A position among tokens; after the last one, every further token is the end."""

    def __init__(self, tokens: list[Token], end: int) -> None:
        """Start before the first token; `end` is the offset after the last."""
        self.tokens, self.index = tokens, 0
        self._end = Token("", end, end + 1, TokenKind.END)

    def peek(self, ahead: int = 0) -> Token:
        """Return a token without taking it."""
        return self.tokens[self.index + ahead] if self.index + ahead < len(self.tokens) else self._end

    def take(self) -> Token:
        """Take the next token."""
        token = self.peek()
        self.index += 1
        return token

    def take_if(self, *words: str) -> Token | None:
        """Take the next token if it is one of these words or signs."""
        return self.take() if self.peek().is_one_of(*words) else None

    def expect(self, wanted: str, *words: str) -> Token:
        """Take one of these words or signs; any other token raises `PatternReadError`."""
        if not self.peek().is_one_of(*words):
            raise self.make_error(wanted=wanted)
        return self.take()

    def take_name(self, wanted: str) -> tuple[str, SourceSpan]:
        """Take a name; any other token raises `PatternReadError`."""
        if not self.peek().is_name:
            word = self.peek().text
            quoted = self.peek().kind is TokenKind.WORD
            raise self.make_error(wanted=wanted, hint=f"as a name `{word}` goes in backticks" if quoted else "")
        token = self.take()
        return token.name, token.span

    def make_error(self, *, wanted: str, hint: str = "") -> PatternReadError:
        """Return the error of the next token, which is not the one that is wanted."""
        token = self.peek()
        actual = "the end" if token.kind is TokenKind.END else f"`{token.text[:30]}`"
        return PatternReadError(token.span, f"expected {wanted}, found {actual}{f'; {hint}' if hint else ''}")
