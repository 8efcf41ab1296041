"""Warnings about filters that may not mean what their author thinks.

A comparison with a bare word, `make = ford`, compares two attributes of the event. Who comes from another language
may have meant the text `'ford'` or, with `posted > today`, a function. Where no schema knows the word, the reading is
kept and a `FilterWarning` names both; backticks around the word say that the attribute is meant, and silence it.
Many filters give few warnings: beyond `SHOWN`, one more counts the rest.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

from tidings.concepts import Ontology, Vocabulary
from tidings.errors import FilterWarning
from tidings.lang.diagnostics import pointed
from tidings.model import Compare, Schema, tests

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.lang.filters.source_spans import Spots
    from tidings.model import Filter

SHOWN = 5
"""So many warnings are given one by one; a feed of a million filters must not give a million."""


def doubtful_words(
    tree: Filter, spots: Spots, text: str, schema: Schema | None, ontology: Ontology | None
) -> list[FilterWarning]:
    """Return a warning for each comparison with a bare word that neither schema nor ontology knows."""
    if not spots.bare_words:
        return []
    bare = {id(test) for test in spots.bare_words}
    vocabulary = Vocabulary(schema, ontology)
    compared = [(name, test) for name, test in tests(tree) if id(test) in bare]
    return [
        _warning(test.condition.other, spots.of(test).value, text)
        for name, test in compared
        if isinstance(test.condition, Compare)
        and not vocabulary.has_attribute(name.removesuffix(test.attribute) + test.condition.other)
    ]


def _warning(word: str, span: tuple[int, int] | None, text: str) -> FilterWarning:
    start, end = span or (0, 0)
    message = (
        f"`{word}` is read as another attribute; text goes in quotes: '{word}', an attribute in backticks: `{word}`"
    )
    return FilterWarning(f"{message}\n{pointed(text, start, end)}", start=start, end=end, text=text)


def moved(doubts: Iterable[FilterWarning], by: int, text: str) -> list[FilterWarning]:
    """Return the warnings of a filter as those of the longer text it stands in."""
    shown = []
    for doubt in doubts:
        start, end = by + (doubt.start or 0), by + (doubt.end or 0)
        message = f"{str(doubt).partition(chr(10))[0]}\n{pointed(text, start, end)}"
        shown.append(FilterWarning(message, start=start, end=end, text=text))
    return shown


class Doubts:
    """The warnings about many filters: the first few, and how many there are."""

    def __init__(self) -> None:
        """Start empty."""
        self._first: list[FilterWarning] = []
        self._count = 0

    def note(self, doubts: Iterable[FilterWarning], subscription: Any = None) -> None:
        """Take the warnings about one filter, and whose it is."""
        for doubt in doubts:
            self._count += 1
            if len(self._first) < SHOWN:
                whose = "" if subscription is None else f"subscription `{subscription}`: "
                self._first.append(FilterWarning(f"{whose}{doubt}", start=doubt.start, end=doubt.end, text=doubt.text))

    def warn(self) -> None:
        """Issue them where the caller of this package stands."""
        for doubt in self._first:
            warnings.warn(doubt, stacklevel=_outside())
        left = self._count - len(self._first)
        if left:
            message = f"{left:,} more comparisons with a bare word; text goes in quotes, an attribute in backticks"
            warnings.warn(FilterWarning(message), stacklevel=_outside())


def warn_of(doubts: Iterable[FilterWarning]) -> None:
    """Issue warnings where the caller of this package stands; of many, the first few and how many there are."""
    collected = Doubts()
    collected.note(doubts)
    collected.warn()


def _outside() -> int:
    """Return the level of the first frame outside this package, as seen from the caller of this function."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tidings":
        frame, level = frame.f_back, level + 1
    return level
