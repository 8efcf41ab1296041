"""Notations: filters as text, JSON and URL query, patterns as text, JSON and files; each parsed to one tree."""

from tidings.lang.filters.notations import parse, parse_rendered, parse_stored, render
from tidings.lang.patterns import WrittenPattern, parse_pattern, read_patterns, render_pattern, render_patterns

__all__ = [
    "WrittenPattern",
    "parse",
    "parse_pattern",
    "parse_rendered",
    "parse_stored",
    "read_patterns",
    "render",
    "render_pattern",
    "render_patterns",
]
