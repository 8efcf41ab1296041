"""Concept trees (CTPS) and the matchers they were measured against: G-ToPSS, MIC, OPS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.papers.ctps.ctps import Ctps
from tidings.papers.ctps.g_topss import GTopss
from tidings.papers.ctps.mic import Mic
from tidings.papers.ctps.ops import Ops

if TYPE_CHECKING:
    from tidings.matcher.registry import Factory

MATCHERS: dict[str, Factory] = {"ctps": Ctps, "g-topss": GTopss, "mic": Mic, "ops": Ops}
"""The matchers of this package by the names that `td.Matcher(kind=...)` takes."""
