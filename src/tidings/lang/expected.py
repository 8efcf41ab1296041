"""What the grammar expected, in words, with a hint where a habit from another language shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from tidings.lang.textform import RESERVED

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedInput

_WORDS = {
    "NAME": "an attribute",
    "NUMBER": "a number",
    "STRING": "quoted text",
    "TIME": "a date",
    "ADDRESS": "an address",
    "EXPRESSION": "an expression such as /a.*b/",
    "POLYGON": "POLYGON((lon lat, ...))",
    "REGION": "a region such as @downtown",
    "UNIT": "a unit",
    "DOTS": "`..`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "COMMA": "`,`",
    "_AND": "`and`",
    "_OR": "`or`",
    "_NOT": "`not`",
    "IGNORING_CASE": "`ignoring case`",
    "$END": "the end",
}
_OPERATORS = {"EQ", "NE", "LT", "LE", "GT", "GE", "IN", "BETWEEN", "CONTAINS", "LIKE", "MATCHES", "WITHIN", "NEAR"}
_OPERATORS |= {"EXISTS", "HAS", "STARTS_WITH", "ENDS_WITH", "IS_A", "IS_NULL"}
_HINTS = (
    (re.compile(r"=="), "equality is written `=`"),
    (re.compile(r"<>"), "unequal is written `!=`"),
    (re.compile(r"&&?|\|\|?"), "connectives are written `and` and `or`"),
    (re.compile(r"!(?!=)"), "negation is written `not`"),
    (re.compile(r"[\u2018\u2019\u201c\u201d]"), "quotes are straight: ' or \""),
    (re.compile(r"is\s+not\s+null\b", re.IGNORECASE), "write `a exists`, or `not (a is null)`"),
    (re.compile(r"not\s+exists\b", re.IGNORECASE), "write `not (a exists)`"),
    (re.compile(r"is\s+not\b", re.IGNORECASE), "write `!=`, or `not (a is a 'b')`"),
    (re.compile(r"['\"`]"), "a quote is not closed, or a quote inside text needs a backslash"),
)
_KEYWORD = re.compile(rf"({'|'.join(sorted(RESERVED))})\b", re.IGNORECASE)


def explained(problem: UnexpectedInput, text: str, at: int) -> str:
    """Return one line: what was expected here, what was found, and how to mend it when that is known."""
    found = _found(text, at)
    expected = _expected(problem)
    hint = _hint(text, at, expected)
    return f"expected {_listed(expected)}, found {found}{f'; {hint}' if hint else ''}"


def _found(text: str, at: int) -> str:
    if at >= len(text.rstrip()):
        return "the end"
    piece = re.match(r"\w+|\S", text[at:])
    return f"`{piece[0][:30]}`" if piece and piece[0].isprintable() else "a character that cannot be here"


def _expected(problem: UnexpectedInput) -> list[str]:
    names: set[str] = set()
    if isinstance(problem, UnexpectedToken):
        names = set(problem.accepts or problem.expected)
    elif isinstance(problem, UnexpectedCharacters):
        names = set(problem.allowed or ())
    words = [_WORDS[name] for name in _WORDS if name in names]
    if names & _OPERATORS:
        words.insert(0, "an operator (=, <, in, like, ...)")
    return list(dict.fromkeys(words)) or ["a filter"]


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _hint(text: str, at: int, expected: list[str]) -> str | None:
    for pattern, hint in _HINTS:
        if pattern.match(text, at) or (text[at : at + 1] in "=>" and at and pattern.match(text, at - 1)):
            return hint
    keyword = _KEYWORD.match(text, at)
    if keyword and "an attribute" in expected:
        return f"as an attribute's name `{keyword[0]}` goes in backticks"
    if "an attribute" in expected[:1] and re.match(r"[-+]?\d|['\"]", text[at : at + 2]):
        return "the attribute comes first: `price < 9000`"
    if text[at : at + 1] in "<>=" and "`and`" in expected:
        return "between two values is written `a in (2 .. 5)`"
    if text[at : at + 1] == "," and text[at - 1 : at].isdigit():
        return "numbers are written without separators: 9000"
    if text[at : at + 8].lower() == "ignoring":
        return "`ignoring case` goes with starts with, ends with, contains, like and matches"
    return None
