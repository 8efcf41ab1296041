"""The quick way through typical saved searches: a flat `and` of comparisons, ranges and sets of plain literals.

One regular expression reads each predicate; what it does not recognise to the last character is left to
the grammar, which is the only judge of mistakes. Predicates recur across millions of saved searches, so
each distinct one is built once. Invariant: where `parse_fast` answers, the grammar gives the same tree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidings.lang import literals
from tidings.lang.diagnostics import MAX_LENGTH
from tidings.lang.render import RESERVED
from tidings.model import And, Is, Quantifier, Range, Test, one_of

if TYPE_CHECKING:
    from tidings.model import Condition, Filter

_LITERAL = r"'[^'\\\x00]*'|-?\d{1,18}(?:\.\d+)?(?![\w.:/-])"
_PREDICATE = re.compile(
    rf"""\s*(?P<name>[a-zA-Z_]\w*(?:\.[a-zA-Z_]\w*)*)\s*
    (?:(?P<op>!=|<=|>=|=|<|>)\s*(?P<value>{_LITERAL})
    |\s+in\s*\(\s*(?P<set>(?:{_LITERAL})(?:\s*,\s*(?:{_LITERAL}))*)\s*\)
    |\s+in\s*(?P<left>[\[(])\s*(?P<low>{_LITERAL})?\s*\.\.\s*(?P<high>{_LITERAL})?\s*(?P<right>[\])])
    |\s+between\s+(?P<from>{_LITERAL})\s+and\s+(?P<to>{_LITERAL}))
    \s*(?P<joint>$|and\b)""",
    re.VERBOSE | re.ASCII,
)
_ITEM = re.compile(_LITERAL)
_KNOWN: dict[str, Test] = {}
_KNOWN_LIMIT = 100_000


def parse_fast(text: str) -> Filter | None:
    """Return the filter when it is a plain conjunction, or nothing when the grammar must look."""
    if len(text) > MAX_LENGTH:
        return None
    parts: list[Filter] = []
    at, joint = 0, "and"
    while joint:
        found = _PREDICATE.match(text, at)
        if found is None or (test := _test(found)) is None:
            return None
        parts.append(test)
        at, joint = found.end(), found["joint"]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _test(found: re.Match[str]) -> Test | None:
    source = found[0]
    known = _KNOWN.get(source)
    if known is None:
        known = _built(found)
        if known is not None and len(_KNOWN) < _KNOWN_LIMIT:
            _KNOWN[source] = known
    return known


def _built(found: re.Match[str]) -> Test | None:
    if found["name"].partition(".")[0].lower() in RESERVED:
        return None
    quantifier = Quantifier.NONE if found["op"] == "!=" else Quantifier.ANY
    try:
        return Test(found["name"], _condition(found), quantifier)
    except ValueError:
        return None  # the grammar will say what is wrong, and where


def _condition(found: re.Match[str]) -> Condition:
    if found["op"]:
        return _compared(found["op"], _value(found["value"]))
    if found["set"]:
        return one_of([_value(item) for item in _ITEM.findall(found["set"])])
    if found["from"]:
        return Range(_value(found["from"]), _value(found["to"]))
    low, high = found["low"], found["high"]
    return Range(
        _value(low) if low else None, _value(high) if high else None, found["left"] == "(", found["right"] == ")"
    )


def _compared(op: str, value: int | float | str) -> Is | Range:
    if op in ("=", "!="):
        return Is(value)
    if op[0] == "<":
        return Range(high=value, high_open=op == "<")
    return Range(low=value, low_open=op == ">")


def _value(token: str) -> int | float | str:
    return token[1:-1] if token[0] == "'" else literals.number(token)
