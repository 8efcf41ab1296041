"""Source positions of a filter's tests and a pattern's parts, for checks that run after parsing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.errors import Mistake

if TYPE_CHECKING:
    from tidings.errors import FilterWarning
    from tidings.model import Test

ATTRIBUTE, VALUE = 0, 1
"""The positions of a filter's test: that of its attribute and that of what it is compared with."""


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """A span of offsets in text, or a path in JSON."""

    start: int | None = None
    end: int | None = None
    path: str | None = None

    def make_mistake(self, message: str) -> Mistake:
        """Return a mistake at this position."""
        return Mistake(message, self.start, self.end, self.path)


class SourceMap:
    """The positions of one filter's or pattern's parts, by identity: two equal parts have two positions.

    `mistakes` and `filter_warnings` are those found while reading. `bare_words` are the tests that compare with an
    attribute whose name is not in backticks, where text may have been meant.
    """

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []
        self.filter_warnings: list[FilterWarning] = []
        self.bare_words: list[Test] = []
        self._spans: dict[int, tuple[Any, tuple[SourceSpan, ...]]] = {}

    def record(self, part: Any, *spans: SourceSpan) -> None:
        """Record the positions of a part and of its names; the map refers to the part, so its `id` stays valid."""
        self._spans[id(part)] = (part, spans)

    def locate(self, part: Any, index: int = 0) -> SourceSpan:
        """Return one of the positions of a part; an empty one if none was recorded."""
        spans = self._spans[id(part)][1] if id(part) in self._spans else ()
        return spans[index] if index < len(spans) else SourceSpan()

    def refuse(self, message: str, span: SourceSpan) -> None:
        """Note a mistake."""
        self.mistakes.append(span.make_mistake(message))
