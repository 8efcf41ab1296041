"""Checks of what users pass to a detector, and small questions about patterns."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tidings.errors import PatternError, TidingsError
from tidings.lang import WrittenPattern
from tidings.lang.patterns.durations import parse_duration
from tidings.lang.patterns.tokens import PatternReadError
from tidings.model.patterns import Mode, Pattern, Timed, walk_nodes

if TYPE_CHECKING:
    from tidings.model import Filter


def check_pattern(name: Any, pattern: Pattern, mode: str, limit: Any) -> WrittenPattern:
    """Return a pattern as a file would have it; raise `PatternError` for a bad name, mode or limit."""
    if not isinstance(name, str) or not name:
        msg = f"a pattern's name is text, not `{name!r}`"
        raise PatternError(msg)
    if mode not in list(Mode):
        msg = f"a pattern's mode is one of {', '.join(f'`{name_of_mode}`' for name_of_mode in Mode)}, not `{mode}`"
        raise PatternError(msg)
    if limit is not None and type(limit) is not int:
        msg = f"a limit is a whole number, not `{limit!r}`"
        raise PatternError(msg)
    return WrittenPattern(name, pattern, Mode(mode), limit)


def list_filters(pattern: Pattern) -> list[Filter]:
    """Return the distinct filters of a pattern's operands."""
    return list(dict.fromkeys(pattern[name].filter for name in pattern.list_filters()))


def variable_attributes(pattern: Pattern) -> set[str]:
    """Return the attributes whose values are bound to variables."""
    return {attribute for name in pattern.list_filters() for attribute, _ in pattern[name].variables}


def asks_for_time(pattern: Pattern) -> bool:
    """Tell whether events need times: `within`, `@` or an absence."""
    return pattern.absence is not None or any(isinstance(node, Timed) for node in walk_nodes(pattern.root))


def parse_lateness(lateness: timedelta | str | None) -> int:
    """Return a span of time in microseconds: `10 min`, or a timedelta."""
    if lateness is None:
        return 0
    try:
        microseconds = parse_duration(lateness) if isinstance(lateness, str) else lateness // timedelta(microseconds=1)
    except (PatternReadError, TypeError) as problem:
        msg = f"lateness is a span of time such as `10 min`, not `{lateness}`: {problem}"
        raise TidingsError(msg) from problem
    if microseconds < 0:
        msg = f"lateness is a span of time, not `{lateness}`"
        raise TidingsError(msg)
    return microseconds
