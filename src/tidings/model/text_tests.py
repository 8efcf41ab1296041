"""Tests of text, compiled once each: prefixes, suffixes, substrings, wildcards and RE2 expressions.

Wildcards and expressions both run on RE2, so no filter can cost more than linear time. `ignoring case`
compares case-folded text; for `matches` it is RE2's own folding.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from tidings.model.filters import TextOp, TextTest

if TYPE_CHECKING:
    from collections.abc import Callable


@lru_cache(maxsize=16384)
def text_test(test: TextTest) -> Callable[[str], bool]:
    """Return the test as a function of text; a `ValueError` when RE2 refuses the expression."""
    if test.op is TextOp.MATCHES:
        expression = _compile(test.pattern, ignoring_case=test.ignoring_case)
        return lambda value: expression.search(value) is not None
    pattern = test.pattern.casefold() if test.ignoring_case else test.pattern
    accepts = _test_wildcard(pattern) if test.op is TextOp.LIKE else methodcaller(_METHODS[test.op], pattern)
    return (lambda value: accepts(value.casefold())) if test.ignoring_case else accepts


_METHODS = {TextOp.STARTS_WITH: "startswith", TextOp.ENDS_WITH: "endswith", TextOp.CONTAINS: "__contains__"}


def _test_wildcard(pattern: str) -> Callable[[str], bool]:
    wildcard = _compile(like_expression(pattern), ignoring_case=False)
    return lambda value: wildcard.fullmatch(value) is not None


def canonical_expression(expression: str) -> str:
    """Return the expression with its slashes bare: only the text notation needs them escaped."""
    return re.sub(r"\\(.)", lambda match: "/" if match[1] == "/" else match[0], expression, flags=re.DOTALL)


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


def like_expression(pattern: str) -> str:
    """Return a wildcard pattern as an RE2 expression."""
    import re2

    wildcards = {"*": ".*", "?": "."}
    return "".join(re2.escape(char) if plain else wildcards[char] for char, plain in split_like(pattern))


def _compile(expression: str, *, ignoring_case: bool) -> Any:
    import re2

    options = re2.Options()
    options.dot_nl = True
    options.log_errors = False
    options.case_sensitive = not ignoring_case
    try:
        return re2.compile(expression, options=options)
    except re2.error as problem:
        reason = problem.args[0]
        msg = f"RE2 refuses /{expression}/: {reason.decode() if isinstance(reason, bytes) else reason}"
        raise ValueError(msg) from None
