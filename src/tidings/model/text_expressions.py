"""Regular expressions of filters: RE2's, compiled once each.

RE2 has no back references and no look-around, so it decides any text in time linear in its length: no filter of one
user can slow down the matching of all the others.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol


class TextExpression(Protocol):
    """A compiled expression, of which filters need only these two questions."""

    def search(self, text: str) -> object | None:
        """Return something if the expression matches anywhere in the text."""

    def fullmatch(self, text: str) -> object | None:
        """Return something if the expression matches the whole text."""


def normalize_expression(expression: str) -> str:
    """Return the expression with its slashes bare: only the text notation needs them escaped."""
    return re.sub(r"\\(.)", lambda match: "/" if match[1] == "/" else match[0], expression, flags=re.DOTALL)


@lru_cache(maxsize=16384)
def compile_expression(expression: str, *, ignoring_case: bool) -> TextExpression:
    """Return the compiled expression, or raise `ValueError` with RE2's reason for refusing it.

    Building a filter compiles its expression as a check; the cache hands the same object to whatever evaluates it.
    """
    import re2  # late: a native library that only filters with `like` or `matches` need

    options = re2.Options()
    options.dot_nl = True  # `.` is any character: a text of several lines is one value
    options.log_errors = False  # RE2 would write to stderr; the error below says the same
    options.case_sensitive = not ignoring_case
    try:
        compiled: TextExpression = re2.compile(expression, options=options)
    except re2.error as problem:
        reason = problem.args[0]
        msg = f"RE2 refuses /{expression}/: {reason.decode() if isinstance(reason, bytes) else reason}"
        raise ValueError(msg) from None
    return compiled
