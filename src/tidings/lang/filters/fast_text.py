"""A fast parser for typical saved searches.

Predicates recur across millions of saved searches, so each distinct one is built once and cached by its text: a
filter is cut at ` or ` and ` and `, and each piece is looked up. A piece that is not cached is `not` or parentheses
around such pieces, or one predicate, read by one regular expression. Text that is not recognised to the last character
(an escape, a comment, a mistake) is left to the grammar, which alone reports mistakes.
Invariant: where `parse_fast` returns a tree, the grammar builds the same tree.
About 4 microseconds a filter, against 400 through the grammar (`python -m benchmarks.parse`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tidings import model
from tidings.lang.diagnostics import MAX_DEPTH, MAX_LENGTH
from tidings.lang.filters import value_text
from tidings.lang.filters.render_text import RESERVED

if TYPE_CHECKING:
    from collections.abc import Callable


_NAME = r"[a-zA-Z_]\w*(?:\.[a-zA-Z_]\w*)*"
_STRING = r"'[^'\\\x00]*'"
_NUMBER = r"-?\d{1,18}(?:\.\d+)?(?![\w.:/-])"
_DATE = r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\dZ)?(?![\w:.+-])"
_UNIT = r"(?!(?:and|or|in|is|not)\b)[a-zA-Z]\w*(?![\w/*^])"
_LITERAL = rf"{_STRING}|{_DATE}|{_NUMBER}"
_RING = r"\(\s*\([^()]*\)(?:\s*,\s*\([^()]*\))*\s*\)"

_PREDICATE = re.compile(
    rf"""\s*(?:(?:(?P<quantifier>any|all|none)|(?P<age>age))\s*\(\s*)?(?P<name>{_NAME})(?(quantifier)\s*\))(?(age)\s*\))\s*
    (?:(?P<op>!=|<=|>=|=|<|>)\s*(?:(?P<value>{_LITERAL})(?:(?P<same>\s*ignoring\ case\b)|\s*(?P<unit>{_UNIT}))?
        |(?P<other>{_NAME})|`(?P<quoted>[\w.]+)`)
    |\bin\s*\(\s*(?P<set>(?:{_LITERAL})(?:\s*,\s*(?:{_LITERAL}))*)\s*\)(?P<same_set>\s*ignoring\ case\b)?
    |\bin\s*(?P<left>[\[(])\s*(?P<low>{_LITERAL})?\s*\.\.\s*(?P<high>{_LITERAL})?\s*(?P<right>[\])])
    |\bbetween\s+(?P<from>{_LITERAL})\s+and\s+(?P<to>{_LITERAL})
    |\b(?P<text>starts\ with|ends\ with|contains|like)\s*(?P<pattern>{_STRING})(?P<fold>\s*ignoring\ case\b)?
    |\bis\ a\s*(?P<concept>{_STRING})
    |\bwithin\s+(?:(?P<polygon>POLYGON\s*{_RING})|@(?P<region>[a-zA-Z_]\w*)(?![\w-]))
    |\bnear\s*\(\s*(?P<lon>{_NUMBER})\s*,\s*(?P<lat>{_NUMBER})\s*\)\s*(?P<far>{_NUMBER})\s*(?P<far_unit>{_UNIT})
    |\b(?P<exists>exists)\b
    |\b(?P<null>is\ null)\b)""",
    re.VERBOSE | re.ASCII,
)
_ITEM = re.compile(_LITERAL)
_QUOTED = re.compile(r"'[^']*'")
_SPACES = re.compile(r"('[^']*')|\s+|(?<![\w.])(and|or|not)(?=\()|(?<=[\])'])(?=(?:and|or)\b)")
_CUT = re.compile(r" and (?![\d'-])")  # what follows the `and` of `between` is a literal; no operand begins so

BARE_WORD = re.compile(r"[=<>]\s*[a-zA-Z_]")
"""Found in every text the fast parser can read that compares with a bare word; the grammar locates the word."""


MAX_CACHED = 200
"""Characters of a predicate that is cached at most; longer ones seldom recur."""


class _NotPlain(Exception):
    """The fast parser does not recognise this text; the grammar must read it."""


class FastParser:
    """Reads plain filters; each distinct predicate is built once and then found in `cache` by its text.

    The cache is emptied when it holds `limit` predicates: those that recur are soon back.
    """

    def __init__(self, *, limit: int = 100_000) -> None:
        self.cache: dict[str, model.Filter] = {}
        self._limit = limit

    def parse(self, text: str) -> model.Filter | None:
        """Return the filter when every part of it is plain, or None when the grammar must read it."""
        if len(text) > MAX_LENGTH:
            return None
        try:
            return self._parse_alternatives(text, 0)
        except _NotPlain:
            pass
        # It may have line breaks or several spaces where one is expected, or none around its parentheses.
        spaced = _SPACES.sub(lambda match: match[1] or f"{match[2] or ''} ", text)
        try:
            return None if spaced == text else self._parse_alternatives(spaced, 0)
        except _NotPlain:
            return None

    # Invariant: a piece is one predicate to its last character, or `not` or parentheses around such pieces. No
    # token of `_PREDICATE` goes on across the space that follows, so cutting there changes no piece's meaning.

    def _parse_alternatives(self, text: str, depth: int) -> model.Filter:
        if " or " not in text:
            return self._parse_conjuncts(text, depth)
        parts = [
            self.cache.get(piece) or self._parse_conjuncts(piece, depth)
            for piece in self._rejoin_pieces(text.split(" or "), " or ")
        ]
        return parts[0] if len(parts) == 1 else model.Or(tuple(parts))

    def _parse_conjuncts(self, text: str, depth: int) -> model.Filter:
        pieces = _CUT.split(text) if "between" in text else text.split(" and ")
        parts: list[Any] = [*map(self.cache.get, pieces)]
        if not all(parts):
            parts = [
                self.cache.get(piece) or self._parse_piece(piece, depth)
                for piece in self._rejoin_pieces(pieces, " and ")
            ]
        return parts[0] if len(parts) == 1 else model.And(tuple(parts))

    def _rejoin_pieces(self, pieces: list[str], joint: str) -> list[str]:
        """Rejoin pieces cut inside quotes, parentheses or brackets (counted together: `[1 .. 2)` is closed)."""
        closed: list[str] = []
        cut: list[str] = []
        level, quote = 0, ""
        for piece in pieces:
            if not cut and piece in self.cache:
                closed.append(piece)
                continue
            cut.append(piece)
            bare, quote, _ = _QUOTED.sub("", quote + piece).partition("'")
            level += bare.count("(") + bare.count("[") - bare.count(")") - bare.count("]")
            if level == 0 and not quote:
                closed.append(joint.join(cut))
                cut = []
        if cut:
            raise _NotPlain
        return closed

    def _parse_piece(self, text: str, depth: int) -> model.Filter:
        inner = text.strip()
        if inner[:1] != "(" and inner[:4] != "not ":
            return self.cache.get(inner) or self._parse_predicate(inner)
        if depth >= MAX_DEPTH - 2:  # cached pieces are up to one level deep: beyond this, levels must be counted
            raise _NotPlain
        part = self._parse_nested(inner, depth + 1)
        if inner.count("(") + inner.count("not ") == 1:
            self._remember(text, part)
        return part

    def _parse_nested(self, text: str, depth: int) -> model.Filter:
        if text[0] == "n":
            return model.Not(self.cache.get(text[4:]) or self._parse_piece(text[4:], depth))
        if text[-1] != ")":
            raise _NotPlain
        return self._parse_alternatives(text[1:-1], depth)

    def _parse_predicate(self, text: str) -> model.Filter:
        match = _PREDICATE.match(text)
        if match is None or match.end() != len(text):
            raise _NotPlain
        test = _build_test(match)
        if match.lastgroup != "polygon":  # large, and seldom repeated
            self._remember(text, test)
        return test

    def _remember(self, text: str, part: model.Filter) -> None:
        if len(text) > MAX_CACHED:
            return
        if len(self.cache) >= self._limit:
            self.cache.clear()
        self.cache[text] = part


def _build_test(match: re.Match[str]) -> model.Test:
    for name in (match["name"], match["other"]):
        if name and name.partition(".")[0].lower() in RESERVED:
            raise _NotPlain
    if (match["other"] or "").lower() == "now":
        raise _NotPlain
    if (match["unit"] or match["far_unit"] or "").lower() in RESERVED:
        raise _NotPlain
    quantifier = model.Quantifier(match["quantifier"]) if match["quantifier"] else model.Quantifier.ANY
    if match["op"] == "!=":
        if match["quantifier"]:
            raise _NotPlain
        quantifier = model.Quantifier.NONE
    assert match.lastgroup
    try:
        condition = _build_age(match) if match["age"] else _MAKERS[match.lastgroup](match)
        return model.Test(match["name"], condition, quantifier)
    except ValueError:
        raise _NotPlain from None  # the grammar will say what is wrong, and where


def _build_age(match: re.Match[str]) -> model.Age:
    if not match["unit"] or match["op"] in ("=", "!="):
        raise _NotPlain
    return model.Age(value_text.to_range(match["op"], value_text.to_seconds(_read_literal(match))))


def _build_comparison(match: re.Match[str]) -> model.Condition:
    if other := match["other"] or match["quoted"]:
        return model.Compare(model.Comparison("=" if match["op"] == "!=" else match["op"]), other)
    value = _read_literal(match)
    return model.Is(value) if match["op"] in ("=", "!=") else value_text.to_range(match["op"], value)


def _read_literal(match: re.Match[str]) -> Any:
    value = _read_value(match["value"])
    if not match["unit"]:
        return value
    if not isinstance(value, int | float):
        raise _NotPlain
    return model.Quantity(value, match["unit"])


def _build_same_text(match: re.Match[str]) -> model.SameText:
    if match["op"] and match["op"] not in ("=", "!="):
        raise _NotPlain
    return model.SameText(tuple(_read_value(item) for item in _ITEM.findall(match["set"] or match["value"])))


def _build_range(match: re.Match[str]) -> model.Condition:
    low, high = (_read_value(end) if end else None for end in match.group("low", "high"))
    return model.Range(low, high, match["left"] == "(", match["right"] == ")")


def _build_text_test(match: re.Match[str]) -> model.TextTest:
    if match["text"] == "like" and "%" in match["pattern"]:
        raise _NotPlain
    return model.TextTest(model.TextOp(match["text"]), match["pattern"][1:-1], bool(match["fold"]))


def _build_near(match: re.Match[str]) -> model.Near:
    far = model.Quantity(value_text.parse_number(match["far"]), match["far_unit"])
    return model.Near(model.Point(float(match["lon"]), float(match["lat"])), value_text.to_metres(far))


def _read_value(token: str) -> Any:
    if token[0] == "'":
        return token[1:-1]
    return value_text.parse_moment(token) if token[4:5] == "-" else value_text.parse_number(token)


# By the last group of `_PREDICATE` that took part in the match.
_MAKERS: dict[str, Callable[[re.Match[str]], model.Condition]] = {
    "value": _build_comparison,
    "unit": _build_comparison,
    "same": _build_same_text,
    "other": _build_comparison,
    "quoted": _build_comparison,
    "set": lambda match: model.one_of(map(_read_value, _ITEM.findall(match["set"]))),
    "same_set": _build_same_text,
    "right": _build_range,
    "to": lambda match: model.Range(_read_value(match["from"]), _read_value(match["to"])),
    "pattern": _build_text_test,
    "fold": _build_text_test,
    "concept": lambda match: model.IsA(match["concept"][1:-1]),
    "polygon": lambda match: model.Within(value_text.parse_polygon(match["polygon"])),
    "region": lambda match: model.WithinRegion(match["region"]),
    "far_unit": _build_near,
    "exists": lambda _: model.Exists(),
    "null": lambda _: model.IsNull(),
}

FAST_PARSER = FastParser()
"""The parser whose cache all callers share: equal predicates of all filters are one object."""

parse_fast = FAST_PARSER.parse
