"""Tests of text (prefix, suffix, substring, wildcards, RE2 expression), and each compiled once to a function of text.

Wildcards and expressions both run on RE2, which has no back references and no look-around: it decides any text in time
linear in its length, so no filter of one user can slow down the matching of all the others. `ignoring case` compares
case-folded text; for `matches` it is RE2's own folding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from operator import methodcaller
from typing import TYPE_CHECKING, Any, ClassVar

from tidings.model.values import Kind, check_text

if TYPE_CHECKING:
    from collections.abc import Callable


class TextOp(StrEnum):
    """The tests of text beyond comparison; snapshots keep their order (`text_automaton`), so a new one comes last."""

    STARTS_WITH = "starts with"
    ENDS_WITH = "ends with"
    CONTAINS = "contains"
    LIKE = "like"
    MATCHES = "matches"


@dataclass(frozen=True, slots=True)
class TextTest:
    """Text that starts with, ends with, contains, is like or matches a pattern."""

    op: TextOp
    pattern: str
    ignoring_case: bool = False
    kind: ClassVar = Kind.TEXT

    def __post_init__(self) -> None:
        check_text(self.pattern)
        if self.op is TextOp.MATCHES:
            # Only the text notation needs slashes escaped.
            bare = re.sub(r"\\(.)", lambda match: "/" if match[1] == "/" else match[0], self.pattern, flags=re.DOTALL)
            object.__setattr__(self, "pattern", bare)
            _compile_expression(self.pattern, ignoring_case=self.ignoring_case)


@lru_cache(maxsize=16384)
def _compile_expression(expression: str, *, ignoring_case: bool) -> Any:
    """Return the compiled expression, or raise `ValueError` with RE2's reason for refusing it.

    Building a filter compiles its expression as a check; the cache hands the same object to whatever evaluates it.
    """
    import re2  # late: a native library that only filters with `like` or `matches` need

    options = re2.Options()
    options.dot_nl = True  # `.` is any character: a text of several lines is one value
    options.log_errors = False  # RE2 would write to stderr; the error below says the same
    options.case_sensitive = not ignoring_case
    try:
        return re2.compile(expression, options=options)
    except re2.error as problem:
        reason = problem.args[0]
        msg = f"RE2 refuses /{expression}/: {reason.decode() if isinstance(reason, bytes) else reason}"
        raise ValueError(msg) from None


@lru_cache(maxsize=16384)
def compile_text_test(test: TextTest) -> Callable[[str], bool]:
    """Return the test as a function of text; a `ValueError` when RE2 refuses the expression."""
    if test.op is TextOp.MATCHES:
        expression = _compile_expression(test.pattern, ignoring_case=test.ignoring_case)
        return lambda value: expression.search(value) is not None
    # `casefold` before comparing, and not a case-insensitive RE2: `STRASSE` equals `straße` only by folding, which
    # changes lengths, so pattern and value are both folded.
    pattern = test.pattern.casefold() if test.ignoring_case else test.pattern
    accepts = _test_wildcard(pattern) if test.op is TextOp.LIKE else methodcaller(_METHODS[test.op], pattern)
    return (lambda value: accepts(value.casefold())) if test.ignoring_case else accepts


_METHODS = {TextOp.STARTS_WITH: "startswith", TextOp.ENDS_WITH: "endswith", TextOp.CONTAINS: "__contains__"}


def _test_wildcard(pattern: str) -> Callable[[str], bool]:
    import re2

    wildcards = {"*": ".*", "?": "."}
    source = "".join(re2.escape(char) if plain else wildcards[char] for char, plain in split_like(pattern))
    expression = _compile_expression(source, ignoring_case=False)
    return lambda value: expression.fullmatch(value) is not None


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
