"""Where each test of a parsed filter stands in its source, so that later checks can point at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.errors import Mistake

if TYPE_CHECKING:
    from tidings.model import Test


@dataclass(frozen=True, slots=True)
class Spot:
    """The spans of a test's attribute and of its value in text, or its path in JSON."""

    attribute: tuple[int, int] | None = None
    value: tuple[int, int] | None = None
    path: str | None = None

    def mistake(self, message: str, part: str) -> Mistake:
        """Return a mistake at the attribute or at the value."""
        span = self.attribute if part == "attribute" else self.value
        start, end = span or (None, None)
        return Mistake(message, start, end, self.path)


class Spots:
    """The spots of one filter's tests, by identity: two equal tests stand in two places."""

    def __init__(self) -> None:
        """Start empty.

        `mistakes` are those found while reading, with stand-ins in their places; `bare_words` are the tests that
        compare with another attribute whose name stands without backticks, so that text may have been meant.
        """
        self.mistakes: list[Mistake] = []
        self.bare_words: list[Test] = []
        self._spots: dict[int, tuple[Test, Spot]] = {}

    def note(self, test: Test, spot: Spot) -> None:
        """Remember where the test stands; holding the test keeps its identity its own."""
        self._spots[id(test)] = (test, spot)

    def of(self, test: Test) -> Spot:
        """Return where the test stands, as far as known."""
        return self._spots[id(test)][1] if id(test) in self._spots else Spot()
