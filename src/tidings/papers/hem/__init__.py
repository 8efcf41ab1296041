"""Hybrid event matching (Fan, Liu, Tang 2016) and the range matchers it was measured against: REIN, TAMA, H-Tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.papers.hem.hem import Hem
from tidings.papers.hem.htree import HTree
from tidings.papers.hem.range_matcher import RangeMatcher
from tidings.papers.hem.rein import Rein
from tidings.papers.hem.tama import Tama

if TYPE_CHECKING:
    from tidings.matcher.registry import Factory

MATCHERS: dict[str, Factory] = {
    "hem": lambda _: RangeMatcher("hem", Hem()),
    "rein": lambda _: RangeMatcher("rein", Rein()),
    "tama": lambda _: RangeMatcher("tama", Tama()),
    "htree": lambda _: RangeMatcher("htree", HTree()),
}
"""The matchers of this package by the names that `td.Matcher(kind=...)` takes."""
