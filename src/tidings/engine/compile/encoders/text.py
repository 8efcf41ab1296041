"""Text by its UTF-8 bytes, whose order is that of code points; a prefix is an interval, a suffix one of reversed text.

`contains`, `like` and `matches` are no intervals: one automaton over all of them turns a text into the ids of the
patterns it satisfies, and an id is a point (`exact.text_automaton`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.encoders.base import EVERYTHING, HIGH_OPEN, EncodedPredicate, make_point
from tidings.engine.compile.encoders.number import to_spans
from tidings.model import Kind, SameText, TextOp, TextTest

if TYPE_CHECKING:
    from tidings.engine.compile.encoders.base import Span
    from tidings.model import Condition


def encode_text(attribute: str, condition: Condition) -> EncodedPredicate | None:
    """Return the intervals of a condition on text, or None for a pattern."""
    if isinstance(condition, TextTest):
        return _encode_affix(attribute, condition)
    if isinstance(condition, SameText):
        points = tuple(make_point(text.encode()) for text in sorted(condition.folded))
        return EncodedPredicate(Column(attribute, View.FOLDED, kind=Kind.TEXT), points, Kind.TEXT)
    whole = tuple((low.encode(), high.encode(), flags) for low, high, flags in to_spans(condition))
    return EncodedPredicate(Column(attribute, View.TEXT, kind=Kind.TEXT), whole, Kind.TEXT)


def _encode_affix(attribute: str, test: TextTest) -> EncodedPredicate | None:
    pattern = test.pattern.casefold() if test.ignoring_case else test.pattern
    match test.op:
        case TextOp.STARTS_WITH:
            view = View.FOLDED if test.ignoring_case else View.TEXT
            return EncodedPredicate(
                Column(attribute, view, kind=Kind.TEXT), (_prefix_span(pattern.encode()),), Kind.TEXT
            )
        case TextOp.ENDS_WITH:
            view = View.FOLDED_REVERSED if test.ignoring_case else View.REVERSED
            return EncodedPredicate(
                Column(attribute, view, kind=Kind.TEXT), (_prefix_span(pattern[::-1].encode()),), Kind.TEXT
            )
    return None


def _prefix_span(prefix: bytes) -> Span:
    """Return the interval of what begins with a prefix; UTF-8 has no byte 255, so the last byte can be incremented."""
    if not prefix:
        return b"", b"", EVERYTHING
    return prefix, prefix[:-1] + bytes([prefix[-1] + 1]), HIGH_OPEN
