"""The classifieds matcher: the filter tree and the candidates tree with its final revision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.papers.classifieds.candidates_tree import CandidatesTree
from tidings.papers.classifieds.filter_tree import FilterTree

if TYPE_CHECKING:
    from tidings.matcher.registry import Factory

MATCHERS: dict[str, Factory] = {"filter-tree": lambda _: FilterTree(), "candidates-tree": lambda _: CandidatesTree()}
"""The matchers of this package by the names that `td.Matcher(kind=...)` takes."""
