"""Poset routing's matchers: the covering poset, the forest, and counting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.papers.posets.counting import Counting
from tidings.papers.posets.forest import Forest
from tidings.papers.posets.poset import Poset

if TYPE_CHECKING:
    from tidings.matcher.registry import Factory

MATCHERS: dict[str, Factory] = {"counting": lambda _: Counting(), "forest": Forest, "poset": Poset}
"""The matchers of this package by the names that `td.Matcher(kind=...)` takes."""
