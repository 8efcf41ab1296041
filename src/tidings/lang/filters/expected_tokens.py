"""What the grammar expected, in words: only what is legal there, and how to mend it where that is known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidings.lang.filters.foreign_syntax import way_out
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
    # What the state's table lists includes what only other ways into the state allow; trying each token tells.
    parser = getattr(problem, "interactive_parser", None)
    names = parser.accepts() if parser is not None else set()
    words = [_WORDS[name] for name in _WORDS if name in names]
    if names & _OPERATORS:
        words.insert(0, _OPERATOR)
    return list(dict.fromkeys(words)) or ["a filter"]


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _hint(text: str, at: int, expected: list[str]) -> str | None:
    return way_out(text, at) or _quote(text, at) or _place(text, at, expected)


def _quote(text: str, at: int) -> str | None:
    """Say what is wrong with a quote: it is not closed, or it closed too early."""
    if text[at : at + 1] not in ("'", '"', "`"):
        return None
    if not _QUOTED.match(text, at):
        return "a quote is not closed, or a quote inside text needs a backslash"
    if at and text[at - 1] == text[at]:
        return "a quote inside text takes a backslash: 'it\\'s'"
    return None


def _place(text: str, at: int, expected: list[str]) -> str | None:
    """Say what usually stands where something else was found."""
    keyword, word = _KEYWORD.match(text, at), _NAME.match(text, at)
    if expected[0] == _OPERATOR and (keyword or at >= len(text.rstrip()) or text[at] == ")"):
        name = _LAST_NAME.search(text[:at].rstrip())
        return name and f"a name alone says nothing: write `{name[0]} = true`, or `{name[0]} exists`"
    if keyword and "an attribute" in expected:
        return f"as an attribute's name `{keyword[0]}` goes in backticks"
    if "an attribute" in expected[:1] and re.match(r"[-+]?\d|['\"]", text[at : at + 2]):
        return "the attribute comes first: `price < 9000`"
    if expected == ["quoted text"] and word:
        return f"text goes in quotes: '{word[0]}'"
    if text[at : at + 1] in "<>=" and "`and`" in expected:
        return "between two values is written `a in (2 .. 5)`"
    if text[at : at + 1] in ",;" and "`and`" in expected:
        return "tests are joined by `and`; a set is written `a in (1, 2)`"
    if text[at : at + 1] in "+-*/(" and at < len(text):
        return "there are no functions and no arithmetic here; the ontology's derived attributes compute"
    if text[at : at + 8].lower() == "ignoring":
        return "`ignoring case` goes with text behind =, !=, in, starts with, ends with, contains, like and matches"
    return None
