"""Habits from SQL, Python and search boxes, and how the same is written here.

Each habit is an expression over the text around the place where the grammar stopped, and the way out in the user's
own words: `make in ['ford', 'opel']` gets `make in ('ford', 'opel')`. A habit applies when what it reads holds the
place; the first that applies speaks. Nothing here decides whether a filter is right: the grammar alone does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_REACH = 300  # characters before and behind the place that a habit may look at
_NAME = r"(?:`[^`\n]+`|(?!(?:and|or|not|in|has|like|matches|is|between)\b)[^\W\d][\w.]*)"
_TEXT = r"(?:'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_LITERAL = rf"(?:{_TEXT}|{_NUMBER})"
_QUOTES, _SAMPLE = "'\"", "'x'"
_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₽": "RUB", "₹": "INR"}
_WORDS = {"s": "starts with", "b": "starts with", "e": "ends with", "c": "contains", "i": "contains", "h": "contains"}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _inner(text: str) -> str:
    return text[1:-1]


def _address(found: re.Match[str]) -> str:
    inner = _inner(found["text"])
    if re.fullmatch(r"[\da-fA-F]*[.:][\da-fA-F.:]*(/\d+)?", inner):
        return f"an address or block stands without quotes: `{found['name']} in {inner}`"
    return f"a set stands in parentheses: `{found['name']} in ({found['text']})`"


def _null(found: re.Match[str]) -> str:
    return f"write `{found['name']} exists`" if found["op"] in ("!=", "<>") else f"write `{found['name']} is null`"


def _ago(found: re.Match[str]) -> str:
    if found["span"]:
        op = _TURNED[found["op"]]
        return f"the time now is no value; an age is compared: `age({found['name']}) {op} {found['span']}`"
    return (
        f"the time now is no value; `age({found['name']}) > 0 s` is the past, `age({found['name']}) < 7 days` is recent"
    )


def _amount(found: re.Match[str]) -> str:
    number, unit = found["number"], _CURRENCIES[found["sign"]]
    return f"write the number alone, {number}, or with its unit behind it: {number} {unit}"


def _dated(found: re.Match[str]) -> str:
    parts = re.split(r"[-/.]", found["date"])
    if len(parts[0]) == 4:
        return f"a date has two digits for month and day: {parts[0]}-{int(parts[1]):02}-{int(parts[2]):02}"
    return "a date is written year, month, day: 2024-12-31"


def _part_of(found: re.Match[str]) -> str:
    op = _WORDS[found["word"][0].lower()]
    return f"write `{found['name']} {op} {found['text'] or _SAMPLE}`"


def _is_value(found: re.Match[str]) -> str:
    op, value = "!=" if found["no"] else "=", found["value"]
    return f"write `{found['name']} {op} {value if value[0] in _QUOTES else value.lower()}`"


_HABITS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # sets and ranges
    (
        rf"(?P<name>{_NAME})\s+(?P<no>not\s+)?in\s*[\[{{](?P<items>[^\][{{}}\n.]*(?:,[^\][{{}}\n]*)+)[\]}}]",
        "a set stands in parentheses: `{name} {no}in ({items})`",
    ),
    (rf"(?P<name>{_NAME})\s+(?:not\s+)?in\s+(?P<text>{_TEXT})", _address),
    (
        rf"(?P<name>{_NAME})\s+(?P<no>not\s+)?in\s+(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER})",
        "a range stands in brackets: `{name} {no}in [{low} .. {high}]`",
    ),
    (
        rf"(?P<name>{_NAME})\s+(?P<no>not\s+)?in\s+(?P<items>{_LITERAL}(?:\s*,\s*{_LITERAL})*)",
        "a set stands in parentheses: `{name} {no}in ({items})`",
    ),
    (
        rf"(?P<name>{_NAME})\s*=\s*\((?P<items>[^()\n]*,[^()\n]*)\)",
        "a set is written `{name} in ({items})`",
    ),
    (
        rf"(?P<name>{_NAME})\s*=\s*(?P<left>{_LITERAL})\s+or\s+(?P<right>{_LITERAL})",
        "both sides of `or` are whole tests; write `{name} in ({left}, {right})`",
    ),
    # operators with another word behind them
    (rf"matches\s*(?P<text>{_TEXT})", lambda found: f"an expression stands between slashes: /{_inner(found['text'])}/"),
    (
        rf"(?P<name>{_NAME})\s+has\s+(?P<value>{_LITERAL})",
        "`has` takes a filter over the fields of a record; for one of several values write `{name} = {value}`",
    ),
    (
        rf"(?P<name>{_NAME})\s+has\s+(?P<inner>{_NAME}\s*[=<>][^\n]*)",
        "`has` takes a filter in parentheses: `{name} has ({inner})`",
    ),
    (
        rf"(?P<name>{_NAME})\s+(?:not\s+)?ilike\b(?:\s*(?P<text>{_TEXT}))?",
        "write `{name} like 'x*' ignoring case`; `*` is any text, `?` one character",
    ),
    (
        rf"(?P<name>{_NAME})\s*(?:rlike\b|regexp\b|regex\b|=~|~\*?|similar\s+to\b)",
        "an expression is written `{name} matches /x.*/`",
    ),
    (
        rf"\b(?P<word>(?:starts|begins|ends)_?with|contains|includes)\s*\(\s*(?P<name>{_NAME})\s*,\s*(?P<text>{_TEXT})",
        _part_of,
    ),
    (
        rf"(?P<name>{_NAME}?)\.(?P<word>(?:starts|begins|ends)_?with|contains|includes)\s*\(\s*(?P<text>{_TEXT})?",
        _part_of,
    ),
    (
        rf"(?P<name>{_NAME})\s+(?P<word>(?:starts|begins|ends)_?with|begins\s+with|includes)\b\s*(?P<text>{_TEXT})?",
        _part_of,
    ),
    (
        rf"(?P<name>{_NAME})\s+within\s+(?P<far>{_NUMBER}\s*[a-z]+)",
        "a distance is written `{name} near (8.5, 47.4) {far}`",
    ),
    # functions, dates, times
    (
        rf"(?P<name>{_NAME})\s*(?P<op>[<>]=?)\s*(?:now|today|current_timestamp|current_date|getdate)\b\s*(?:\(\s*\))?"
        rf"\s*(?:-\s*(?:interval\s*)?'?(?P<span>\d+\s*[a-z]+)'?)?",
        _ago,
    ),
    (
        rf"\b(?:date|timestamp|datetime)\s*\(?\s*(?P<text>{_TEXT})",
        lambda found: f"a date stands alone: {_inner(found['text'])}",
    ),
    (
        rf"\b(?:lower|upper|lcase|ucase|casefold)\s*\(\s*(?P<name>{_NAME})\s*\)",
        "case is left out with `ignoring case`: `{name} = 'x' ignoring case`",
    ),
    (r"(?P<date>\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(?![\w.])", _dated),
    # nulls and truth
    (rf"(?P<name>{_NAME})\s*(?P<op>!=|<>|==?)\s*null\b", _null),
    (rf"(?P<name>{_NAME})\s+is\s+not\s+null\b", "write `{name} exists`, or `not ({name} is null)`"),
    (rf"(?P<name>{_NAME})\s+not\s+null\b", "write `{name} exists`, or `not ({name} is null)`"),
    (rf"(?P<name>{_NAME})\s+is\s+(?P<no>not\s+)?(?P<value>true\b|false\b|{_LITERAL})", _is_value),
    (rf"(?P<name>{_NAME})\s+is\s+(?:missing|none|empty|absent)\b", "write `not ({name} exists)`"),
    (rf"\bexists\s+(?P<name>{_NAME})", "the attribute comes first: `{name} exists`"),
    (r"not\s+exists\b", "write `not (a exists)`"),
    (r"is\s+not\b", "write `!=`, or `not (a is a 'b')`"),
    # amounts
    (r"(?P<sign>[$€£¥₽₹])\s*(?P<number>\d[\d.]*)", _amount),
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
_COMPILED = [(re.compile(source, re.IGNORECASE), way) for source, way in _HABITS]


def way_out(text: str, at: int) -> str | None:
    """Return how what stands around the place is written here, if it is a habit that is known."""
    begin = max(0, at - _REACH)
    near, at = text[begin : at + _REACH], at - begin
    for habit, way in _COMPILED:
        for found in habit.finditer(near):
            if found.start() <= at < found.end() or (at == found.end() == len(near.rstrip())):
                return way(found) if callable(way) else way.format(**_groups(found))
    return None


def _groups(found: re.Match[str]) -> dict[str, str]:
    return {name: value or "" for name, value in found.groupdict().items()}
