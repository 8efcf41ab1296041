"""The message of a syntax error: what is legal at the position, what was found, and how to correct it if known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidings.lang.filters.foreign_syntax import find_advice
from tidings.lang.filters.render_text import RESERVED

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
_OPERATOR = "an operator (=, <, in, like, ...)"
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)+`""", re.DOTALL)
_NAME = re.compile(r"[^\W\d]\w*")
_LAST_NAME = re.compile(r"(`[^`\n]+`|[^\W\d][\w.]*)$")
_KEYWORD = re.compile(rf"({'|'.join(sorted(RESERVED))})\b", re.IGNORECASE)


def explain_error(problem: UnexpectedInput, text: str, offset: int) -> str:
    """Return one line: the legal tokens at an offset, what was found there, and a hint where one applies."""
    actual, piece = "a character that cannot be here", re.match(r"\w+|\S", text[offset:])
    if offset >= len(text.rstrip()):
        actual = "the end"
    elif piece and piece[0].isprintable():
        actual = f"`{piece[0][:30]}`"
    *others, last = expected = _list_expected(problem)
    hint = find_advice(text, offset) or _explain_quote(text, offset) or _explain_position(text, offset, expected)
    words = f"{', '.join(others)} or {last}" if others else last
    return f"expected {words}, found {actual}{f'; {hint}' if hint else ''}"


def _list_expected(problem: UnexpectedInput) -> list[str]:
    # An LALR state lists tokens of every path that leads to it; `accepts` tries each token on the actual stack.
    parser = getattr(problem, "interactive_parser", None)
    names = parser.accepts() if parser is not None else set()
    words = [_WORDS[name] for name in _WORDS if name in names]
    if names & _OPERATORS:
        words.insert(0, _OPERATOR)
    return list(dict.fromkeys(words)) or ["a filter"]


def _explain_quote(text: str, offset: int) -> str | None:
    """Return a hint about a quote at the position: it is not closed, or it closed too early."""
    if text[offset : offset + 1] not in ("'", '"', "`"):
        return None
    if not _QUOTED.match(text, offset):
        return "a quote is not closed, or a quote inside text needs a backslash"
    if offset and text[offset - 1] == text[offset]:
        return "a quote inside text takes a backslash: 'it\\'s'"
    return None


def _explain_position(text: str, offset: int, expected: list[str]) -> str | None:
    """Return a hint from what is expected at the position and what was found instead."""
    keyword, word = _KEYWORD.match(text, offset), _NAME.match(text, offset)
    if expected[0] == _OPERATOR and (keyword or offset >= len(text.rstrip()) or text[offset] == ")"):
        name = _LAST_NAME.search(text[:offset].rstrip())
        return name and f"a name alone says nothing: write `{name[0]} = true`, or `{name[0]} exists`"
    if keyword and "an attribute" in expected:
        return f"as an attribute's name `{keyword[0]}` goes in backticks"
    if "an attribute" in expected[:1] and re.match(r"[-+]?\d|['\"]", text[offset : offset + 2]):
        return "the attribute comes first: `price < 9000`"
    if expected == ["quoted text"] and word:
        return f"text goes in quotes: '{word[0]}'"
    if text[offset : offset + 1] in "<>=" and "`and`" in expected:
        return "between two values is written `a in (2 .. 5)`"
    if text[offset : offset + 1] in ",;" and "`and`" in expected:
        return "tests are joined by `and`; a set is written `a in (1, 2)`"
    if text[offset : offset + 1] in "+-*/(" and offset < len(text):
        return "there are no functions and no arithmetic here; the ontology's derived attributes compute"
    if text[offset : offset + 8].lower() == "ignoring":
        return "`ignoring case` goes with text behind =, !=, in, starts with, ends with, contains, like and matches"
    return None
