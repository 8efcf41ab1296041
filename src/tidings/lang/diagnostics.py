"""Error messages for mistakes in filters and patterns: the message, the line, and carets under the position."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tidings.errors import FilterError, Mistake, PatternError, TidingsError

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LENGTH = 200_000
"""Characters of a filter or pattern at most: a long polygon fits, a pasted file does not."""

MAX_DEPTH = 100
"""Levels of parentheses, `not` and `has` in a filter at most; recursion stays far from Python's own limit."""

MAX_MISTAKES = 20
"""Mistakes in one error at most; beyond these it is better to correct the first ones."""

_WIDTH = 100
_Error = TypeVar("_Error", bound=FilterError | PatternError)


def build_error(error: type[_Error], mistakes: Iterable[Mistake], text: str | None) -> _Error:
    """Return the error that reports all mistakes together, in the order of their positions, one for each position."""
    by_place = {(m.start, m.path, m.message if m.start is None else ""): m for m in reversed(list(mistakes))}
    ordered = tuple(sorted(by_place.values(), key=lambda m: (m.start or 0, m.path or "")))[:MAX_MISTAKES]
    message = "\n".join(_format_mistake(mistake, text) for mistake in ordered)
    return error(message, mistakes=ordered, text=text)


def check_notation(notation: str, notations: tuple[str, ...], subject: str = "") -> None:
    """Refuse a notation that does not exist."""
    if notation not in notations:
        msg = f"unknown notation `{notation}`{subject}; the notations are {', '.join(notations)}"
        raise TidingsError(msg)


def check_length(text: str, error: type[FilterError | PatternError]) -> None:
    """Refuse a filter or pattern of more than `MAX_LENGTH` characters."""
    if len(text) > MAX_LENGTH:
        subject = "filter" if error is FilterError else "pattern"
        mistake = Mistake(f"the {subject} has {len(text):,} characters; the limit is {MAX_LENGTH:,}")
        raise build_error(error, [mistake], None)


def make_depth_mistake(start: int | None = None, path: str | None = None) -> Mistake:
    """Return the mistake of nesting a filter too deeply."""
    end = None if start is None else start + 1
    return Mistake(f"the filter is nested more than {MAX_DEPTH} levels deep, which is the limit", start, end, path)


def decode_json(source: str | bytes, error: type[FilterError | PatternError]) -> Any:
    """Decode the JSON text of a filter or pattern; the error gives the position where it is not JSON."""
    text = None
    try:
        text = source.decode() if isinstance(source, bytes) else source
        check_length(text, error)
        return json.loads(text, parse_constant=refuse_constant)
    except error:
        raise
    except json.JSONDecodeError as problem:
        mistake = Mistake(f"not JSON: {problem.msg}", problem.pos, problem.pos + 1)
        raise build_error(error, [mistake], text) from None
    except (RecursionError, UnicodeDecodeError, ValueError) as problem:
        is_deep_filter = isinstance(problem, RecursionError) and error is FilterError
        mistake = make_depth_mistake(path="$") if is_deep_filter else Mistake(f"not JSON: {problem}")
        raise build_error(error, [mistake], None) from None


def refuse_constant(name: str) -> NoReturn:
    """Refuse the NaN and infinities that Python's JSON reader would let in."""
    msg = f"{name} is not a finite number"
    raise ValueError(msg)


def _format_mistake(mistake: Mistake, text: str | None) -> str:
    if mistake.path:
        return f"{mistake.message} (at {mistake.path})"
    if mistake.start is None or text is None:
        return mistake.message
    return f"{mistake.message}\n{format_excerpt(text, mistake.start, mistake.end)}"


def format_excerpt(text: str, start: int, end: int | None) -> str:
    """Return the line of `start` with carets under the span, cut to a window of `_WIDTH` characters around it."""
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    line = text[begin : len(text) if stop < 0 else stop]
    column = start - begin
    width = max(1, min((end or start + 1) - start, len(line) - column or 1))
    left = max(0, column - _WIDTH // 2) if len(line) > _WIDTH else 0
    excerpt = to_printable(line[left : left + _WIDTH], " ")
    return f"  {excerpt}\n  {' ' * (column - left)}{'^' * min(width, max(1, _WIDTH - (column - left)))}"


def to_printable(value: object, sign: str = "?") -> str:
    """Return a value on one line, with a sign for each control character: a stranger's must not steer a terminal."""
    return "".join(char if char.isprintable() else sign for char in str(value))
