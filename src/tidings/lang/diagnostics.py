"""Error messages for mistakes in filters: the message, the line, and carets under the position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import FilterError, Mistake

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LENGTH = 200_000
"""Characters of a filter at most: a long polygon fits, a pasted file does not."""

MAX_DEPTH = 100
"""Levels of parentheses, `not` and `has` in a filter at most; recursion stays far from Python's own limit."""

MAX_MISTAKES = 20
"""Mistakes in one error at most; beyond these it is better to correct the first ones."""

_WIDTH = 100


def build_filter_error(mistakes: Iterable[Mistake], text: str | None) -> FilterError:
    """Return the error that reports all mistakes together, in the order of their positions, one for each position."""
    by_place = {(m.start, m.path, m.message if m.start is None else ""): m for m in reversed(list(mistakes))}
    ordered = tuple(sorted(by_place.values(), key=lambda m: (m.start or 0, m.path or "")))[:MAX_MISTAKES]
    message = "\n".join(_format_mistake(mistake, text) for mistake in ordered)
    return FilterError(message, mistakes=ordered, text=text)


def check_length(text: str) -> None:
    """Refuse a filter of more than `MAX_LENGTH` characters."""
    if len(text) > MAX_LENGTH:
        mistake = Mistake(f"the filter has {len(text):,} characters; the limit is {MAX_LENGTH:,}")
        raise build_filter_error([mistake], None)


def make_depth_mistake(start: int | None = None, path: str | None = None) -> Mistake:
    """Return the mistake of nesting too deeply."""
    end = None if start is None else start + 1
    return Mistake(f"the filter is nested more than {MAX_DEPTH} levels deep, which is the limit", start, end, path)


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
    excerpt = "".join(char if char.isprintable() else " " for char in line[left : left + _WIDTH])
    return f"  {excerpt}\n  {' ' * (column - left)}{'^' * min(width, max(1, _WIDTH - (column - left)))}"
