"""Warnings about filters that may not mean what their author thinks.

A comparison with a bare word, `make = ford`, compares two attributes of the event. Its author may have meant the text
`'ford'` or, with `posted > today`, a function of another language. Where no schema declares the word, the comparison
stands and a `FilterWarning` names both readings; backticks around the word say that the attribute is meant.
Of many warnings the first `MAX_WARNINGS` are issued, and one more counts the rest.
"""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

from tidings.errors import FilterWarning
from tidings.lang.diagnostics import format_excerpt
from tidings.lang.source_map import VALUE
from tidings.model import Compare, get_other_name, walk_tests

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.concepts import Vocabulary
    from tidings.lang.source_map import SourceMap
    from tidings.model import Filter

MAX_WARNINGS = 5
"""Warnings issued one by one; a feed of a million filters must not issue a million."""


def find_ambiguous_words(tree: Filter, source_map: SourceMap, text: str, vocabulary: Vocabulary) -> list[FilterWarning]:
    """Return a warning for each comparison with a bare word that neither schema nor ontology declares."""
    bare = {id(test) for test in source_map.bare_words}
    filter_warnings = []
    for name, test in walk_tests(tree):
        if id(test) not in bare or vocabulary.has_attribute(get_other_name(name, test)):
            continue
        assert isinstance(test.condition, Compare)
        word, span = test.condition.other, source_map.locate(test, VALUE)
        readings = f"text goes in quotes: '{word}', an attribute in backticks: `{word}`"
        message = f"`{word}` is read as another attribute; {readings}"
        filter_warnings.append(_make_warning(message, span.start or 0, span.end or 0, text))
    return filter_warnings


def _make_warning(message: str, start: int, end: int, text: str) -> FilterWarning:
    return FilterWarning(f"{message}\n{format_excerpt(text, start, end)}", start=start, end=end, text=text)


def shift_warnings(filter_warnings: Iterable[FilterWarning], offset: int, text: str) -> list[FilterWarning]:
    """Return a filter's warnings with positions in the longer text that the filter is part of."""
    return [
        _make_warning(str(warning).partition("\n")[0], offset + (warning.start or 0), offset + (warning.end or 0), text)
        for warning in filter_warnings
    ]


class WarningCollector:
    """Collects the warnings about many filters: keeps the first `MAX_WARNINGS` and counts all."""

    def __init__(self) -> None:
        self._first: list[FilterWarning] = []
        self._count = 0

    def add(self, filter_warnings: Iterable[FilterWarning], subscription: Any = None) -> None:
        """Add the warnings about one filter, that of `subscription`."""
        for warning in filter_warnings:
            self._count += 1
            if len(self._first) < MAX_WARNINGS:
                message = str(warning) if subscription is None else f"subscription `{subscription}`: {warning}"
                self._first.append(FilterWarning(message, start=warning.start, end=warning.end, text=warning.text))

    def issue(self) -> None:
        """Issue the warnings at the line outside this package that led here."""
        for warning in self._first:
            warnings.warn(warning, stacklevel=_find_caller_level())
        left = self._count - len(self._first)
        if left:
            message = f"{left:,} more comparisons with a bare word; text goes in quotes, an attribute in backticks"
            warnings.warn(FilterWarning(message), stacklevel=_find_caller_level())


def issue_warnings(filter_warnings: Iterable[FilterWarning], collected: list[FilterWarning] | None = None) -> None:
    """Issue warnings at the line outside this package that led here; of many, the first few and their number.

    A list given as `collected` takes them instead.
    """
    if collected is not None:
        collected += filter_warnings
        return
    collector = WarningCollector()
    collector.add(filter_warnings)
    collector.issue()


def _find_caller_level() -> int:
    """Return the `stacklevel` of the first frame outside this package, as seen from the caller of this function."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_back is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != "tidings":
            break
        frame, level = frame.f_back, level + 1
    return level
