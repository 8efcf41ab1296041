"""What a matcher consists of, as values that snapshots write and read without knowing `Matcher`.

A save takes a `CapturedContent`, which no later change touches. An opened snapshot is a `MatcherContent`: parts that
are ready to be put into a matcher. Both stand below `matcher.snapshot` and `matcher.matcher`, which both use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidings.matcher.admission import Admission
from tidings.matcher.registry import build_backend

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidings.algebra.law.requirement_counts import DemandTable
    from tidings.concepts import Vocabulary
    from tidings.engine.state import LiveSegment
    from tidings.matcher.algorithm import SubId
    from tidings.matcher.backend import Backend
    from tidings.model import Filter


class MatcherContent(NamedTuple):
    """The parts of a matcher that are its own: everything but locks and counts of mismatches."""

    kind: str
    now: datetime | None
    admission: Admission
    backend: Backend


class CapturedContent(NamedTuple):
    """What a matcher had in force at one moment: segments, or filters where its backend has no segments."""

    kind: str
    now: datetime | None
    vocabulary: Vocabulary
    demands: DemandTable
    parts: Sequence[LiveSegment] | None
    filters: Sequence[tuple[SubId, Filter]]


def build_content(kind: str, vocabulary: Vocabulary, now: datetime | None) -> MatcherContent:
    """Return the parts of a matcher without subscriptions."""
    admission = Admission(vocabulary)
    return MatcherContent(kind, now, admission, build_backend(kind, admission))
