"""Tests of text, compiled once each: prefixes, suffixes, substrings, wildcards and RE2 expressions.

Wildcards and expressions both run on RE2, so no filter can cost more than linear time. `ignoring case`
compares case-folded text; for `matches` it is RE2's own folding.
"""

from __future__ import annotations

from functools import lru_cache
from operator import methodcaller
from typing import TYPE_CHECKING

from tidings.model.conditions import TextOp, TextTest
from tidings.model.text_expressions import compile_expression

if TYPE_CHECKING:
    from collections.abc import Callable


@lru_cache(maxsize=16384)
def compile_text_test(test: TextTest) -> Callable[[str], bool]:
    """Return the test as a function of text; a `ValueError` when RE2 refuses the expression."""
    if test.op is TextOp.MATCHES:
        expression = compile_expression(test.pattern, ignoring_case=test.ignoring_case)
        return lambda value: expression.search(value) is not None
    # `casefold` before comparing, and not a case-insensitive RE2: `STRASSE` equals `straße` only by folding, which
    # changes lengths, so pattern and value are both folded.
    pattern = test.pattern.casefold() if test.ignoring_case else test.pattern
    accepts = _test_wildcard(pattern) if test.op is TextOp.LIKE else methodcaller(_METHODS[test.op], pattern)
    return (lambda value: accepts(value.casefold())) if test.ignoring_case else accepts


_METHODS = {TextOp.STARTS_WITH: "startswith", TextOp.ENDS_WITH: "endswith", TextOp.CONTAINS: "__contains__"}


def _test_wildcard(pattern: str) -> Callable[[str], bool]:
    wildcard = compile_expression(to_expression(pattern), ignoring_case=False)
    return lambda value: wildcard.fullmatch(value) is not None


def split_like(pattern: str) -> list[tuple[str, bool]]:
    """Return the characters of a wildcard pattern, each with whether it stands for itself; a backslash makes it so."""
    parts: list[tuple[str, bool]] = []
    escaped = False
    for char in pattern:
        if char == "\\" and not escaped:
            escaped = True
            continue
        parts.append((char, escaped or char not in "*?"))
        escaped = False
    return [*parts, ("\\", True)] if escaped else parts


def to_expression(pattern: str) -> str:
    """Return a wildcard pattern as an RE2 expression."""
    import re2  # late: a native library that only filters with `like` or `matches` need

    wildcards = {"*": ".*", "?": "."}
    return "".join(re2.escape(char) if plain else wildcards[char] for char, plain in split_like(pattern))
