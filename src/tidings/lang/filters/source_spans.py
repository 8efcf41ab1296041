"""Source positions of a parsed filter's tests, for checks that run after parsing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.errors import Mistake

if TYPE_CHECKING:
    from tidings.model import Test


@dataclass(frozen=True, slots=True)
class TestSpan:
    """The spans of a test's attribute and of its value in text, or its path in JSON."""

    attribute: tuple[int, int] | None = None
    value: tuple[int, int] | None = None
    path: str | None = None

    def make_mistake(self, message: str, part: str) -> Mistake:
        """Return a mistake at the attribute or at the value."""
        span = self.attribute if part == "attribute" else self.value
        start, end = span or (None, None)
        return Mistake(message, start, end, self.path)


class FilterSourceMap:
    """The positions of one filter's tests, by identity: two equal tests have two positions."""

    def __init__(self) -> None:
        """Start empty.

        `mistakes` are those found while parsing, each replaced by `TRUE` in the tree; `bare_words` are the tests that
        compare with an attribute whose name is not in backticks, where text may have been meant.
        """
        self.mistakes: list[Mistake] = []
        self.bare_words: list[Test] = []
        self._spans: dict[int, tuple[Test, TestSpan]] = {}

    def record(self, test: Test, spot: TestSpan) -> None:
        """Record a test's position; the map refers to the test, so that its `id` stays valid as a key."""
        self._spans[id(test)] = (test, spot)

    def locate(self, test: Test) -> TestSpan:
        """Return the position of a test; an empty one if none was recorded."""
        return self._spans[id(test)][1] if id(test) in self._spans else TestSpan()
