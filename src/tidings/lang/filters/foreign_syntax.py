"""Syntax of SQL, Python and search boxes, recognised at a syntax error, with how the same is written here.

Each entry of `_HABITS` is a regular expression over the text around the position where the grammar stopped, and the
advice in the user's own words: `make in ['ford', 'opel']` gets `make in ('ford', 'opel')`. The first entry whose match
covers the position applies. Nothing here decides whether a filter is valid: the grammar alone does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidings.concepts.units import SIGNS
from tidings.model import Comparison

if TYPE_CHECKING:
    from collections.abc import Callable

_REACH = 300  # characters before and after the position that an expression may look at
_NAME = r"(?:`[^`\n]+`|(?!(?:and|or|not|in|has|like|matches|is|between)\b)[^\W\d][\w.]*)"
_TEXT = r"(?:'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_LITERAL = rf"(?:{_TEXT}|{_NUMBER})"
_SUBJECT, _QUOTED = rf"(?P<name>{_NAME})", rf"(?P<text>{_TEXT})"
_TEXT_WORD = r"(?P<word>(?:starts|begins|ends)_?with|contains|includes)"
_QUOTES, _SAMPLE = "'\"", "'x'"
_WORDS = {"s": "starts with", "b": "starts with", "e": "ends with", "c": "contains", "i": "contains", "h": "contains"}


def _advise_set(match: re.Match[str]) -> str:
    inner = match["text"][1:-1]
    if re.fullmatch(r"[\da-fA-F]*[.:][\da-fA-F.:]*(/\d+)?", inner):
        return f"an address or block stands without quotes: `{match['name']} in {inner}`"
    return f"a set stands in parentheses: `{match['name']} in ({match['text']})`"


def _advise_age(match: re.Match[str]) -> str:
    if match["span"]:
        op = Comparison(match["op"]).mirror
        return f"the time now is no value; an age is compared: `age({match['name']}) {op} {match['span']}`"
    return (
        f"the time now is no value; `age({match['name']}) > 0 s` is the past, `age({match['name']}) < 7 days` is recent"
    )


def _advise_amount(match: re.Match[str]) -> str:
    number, unit = match["number"], SIGNS[match["sign"]]
    return f"write the number alone, {number}, or with its unit behind it: {number} {unit}"


def _advise_date(match: re.Match[str]) -> str:
    parts = re.split(r"[-/.]", match["date"])
    if len(parts[0]) == 4:
        return f"a date has two digits for month and day: {parts[0]}-{int(parts[1]):02}-{int(parts[2]):02}"
    return "a date is written year, month, day: 2024-12-31"


def _advise_text_operator(match: re.Match[str]) -> str:
    op = _WORDS[match["word"][0].lower()]
    return f"write `{match['name']} {op} {match['text'] or _SAMPLE}`"


def _advise_equality(match: re.Match[str]) -> str:
    op, value = "!=" if match["no"] else "=", match["value"]
    return f"write `{match['name']} {op} {value if value[0] in _QUOTES else value.lower()}`"


_HABITS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # sets and ranges
    (
        rf"{_SUBJECT}\s+(?P<no>not\s+)?in\s*[\[{{](?P<items>[^\][{{}}\n.]*(?:,[^\][{{}}\n]*)+)[\]}}]",
        "a set stands in parentheses: `{name} {no}in ({items})`",
    ),
    (rf"{_SUBJECT}\s+(?:not\s+)?in\s+{_QUOTED}", _advise_set),
    (
        rf"{_SUBJECT}\s+(?P<no>not\s+)?in\s+(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER})",
        "a range stands in brackets: `{name} {no}in [{low} .. {high}]`",
    ),
    (
        rf"{_SUBJECT}\s+(?P<no>not\s+)?in\s+(?P<items>{_LITERAL}(?:\s*,\s*{_LITERAL})*)",
        "a set stands in parentheses: `{name} {no}in ({items})`",
    ),
    (rf"{_SUBJECT}\s*=\s*\((?P<items>[^()\n]*,[^()\n]*)\)", "a set is written `{name} in ({items})`"),
    (
        rf"{_SUBJECT}\s*=\s*(?P<left>{_LITERAL})\s+or\s+(?P<right>{_LITERAL})",
        "both sides of `or` are whole tests; write `{name} in ({left}, {right})`",
    ),
    # operators with another word behind them
    (rf"matches\s*{_QUOTED}", lambda match: f"an expression stands between slashes: /{match['text'][1:-1]}/"),
    (
        rf"{_SUBJECT}\s+has\s+(?P<value>{_LITERAL})",
        "`has` takes a filter over the fields of a record; for one of several values write `{name} = {value}`",
    ),
    (
        rf"{_SUBJECT}\s+has\s+(?P<inner>{_NAME}\s*[=<>][^\n]*)",
        "`has` takes a filter in parentheses: `{name} has ({inner})`",
    ),
    (
        rf"{_SUBJECT}\s+(?:not\s+)?ilike\b(?:\s*{_QUOTED})?",
        "write `{name} like 'x*' ignoring case`; `*` is any text, `?` one character",
    ),
    (
        rf"{_SUBJECT}\s*(?:rlike\b|regexp\b|regex\b|=~|~\*?|similar\s+to\b)",
        "an expression is written `{name} matches /x.*/`",
    ),
    (rf"\b{_TEXT_WORD}\s*\(\s*{_SUBJECT}\s*,\s*{_QUOTED}", _advise_text_operator),
    (rf"(?P<name>{_NAME}?)\.{_TEXT_WORD}\s*\(\s*{_QUOTED}?", _advise_text_operator),
    (
        rf"{_SUBJECT}\s+(?P<word>(?:starts|begins|ends)_?with|begins\s+with|includes)\b\s*{_QUOTED}?",
        _advise_text_operator,
    ),
    (rf"{_SUBJECT}\s+within\s+(?P<far>{_NUMBER}\s*[a-z]+)", "a distance is written `{name} near (8.5, 47.4) {far}`"),
    # functions, dates, times
    (
        rf"{_SUBJECT}\s*(?P<op>[<>]=?)\s*(?:now|today|current_timestamp|current_date|getdate)\b\s*(?:\(\s*\))?"
        rf"\s*(?:-\s*(?:interval\s*)?'?(?P<span>\d+\s*[a-z]+)'?)?",
        _advise_age,
    ),
    (rf"\b(?:date|timestamp|datetime)\s*\(?\s*{_QUOTED}", lambda match: f"a date stands alone: {match['text'][1:-1]}"),
    (
        rf"\b(?:lower|upper|lcase|ucase|casefold)\s*\(\s*{_SUBJECT}\s*\)",
        "case is left out with `ignoring case`: `{name} = 'x' ignoring case`",
    ),
    (r"(?P<date>\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(?![\w.])", _advise_date),
    # nulls and truth
    (rf"{_SUBJECT}\s*(?:!=|<>)\s*null\b", "write `{name} exists`"),
    (rf"{_SUBJECT}\s*==?\s*null\b", "write `{name} is null`"),
    (rf"{_SUBJECT}\s+(?:is\s+)?not\s+null\b", "write `{name} exists`, or `not ({name} is null)`"),
    (rf"{_SUBJECT}\s+is\s+(?P<no>not\s+)?(?P<value>true\b|false\b|{_LITERAL})", _advise_equality),
    (rf"{_SUBJECT}\s+is\s+(?:missing|none|empty|absent)\b", "write `not ({name} exists)`"),
    (rf"\bexists\s+{_SUBJECT}", "the attribute comes first: `{name} exists`"),
    (r"not\s+exists\b", "write `not (a exists)`"),
    (r"is\s+not\b", "write `!=`, or `not (a is a 'b')`"),
    # amounts
    (r"(?P<sign>[$€£¥₽₹])\s*(?P<number>\d[\d.]*)", _advise_amount),
    (r"[<>=]\s*(?P<unit>[A-Z]{3})\s+(?P<number>\d[\d.]*)", "the unit comes last: {number} {unit}"),
    (r"\d[,'_ ]\d{3}(?!\d)|\d\.\d+,\d", "numbers are written without separators: 9000"),
    # signs of other languages
    (r"==", "equality is written `=`"),
    (r"<>", "unequal is written `!=`"),
    (r"&&?|\|\|?", "connectives are written `and` and `or`"),
    (r"!(?!=)", "negation is written `not`"),
    (r"[\u2018\u2019\u201c\u201d]", "quotes are straight: ' or \""),
    (r"^\s*(?:select|where|filter)\b\s*\S", "a filter is the condition alone: `price < 9000`"),
)
_COMPILED = [(re.compile(source, re.IGNORECASE), advice) for source, advice in _HABITS]


def find_advice(text: str, offset: int) -> str | None:
    """Return how the text around an offset is written here, if it is a known habit of another language."""
    begin = max(0, offset - _REACH)
    near, offset = text[begin : offset + _REACH], offset - begin
    for habit, advice in _COMPILED:
        for match in habit.finditer(near):
            if match.start() <= offset < match.end() or (offset == match.end() == len(near.rstrip())):
                return advice(match) if callable(advice) else advice.format(**match.groupdict(default=""))
    return None
