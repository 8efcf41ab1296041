"""Notations of patterns: one tree, written as text or as JSON, alone or in a file of named patterns.

`tokens` cuts text into tokens, `parse_text` finds the named filters and the expression, `named_filters` and
`pattern_expression` read them into a draft, `check` finds its mistakes. The filters themselves have their own parser.
"""

from tidings.lang.patterns.notations import parse_pattern, render_pattern
from tidings.lang.patterns.pattern_files import WrittenPattern, read_patterns, render_patterns

__all__ = ["WrittenPattern", "parse_pattern", "read_patterns", "render_pattern", "render_patterns"]
