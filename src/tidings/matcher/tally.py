"""What subscriptions ask of attributes, counted without reading each of them back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tidings.engine.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.algebra.demands import Demand
    from tidings.matcher.listed import Listed
    from tidings.matchers import SubId
    from tidings.model import Filter


def tally(kept: Engine | Listed, ids: Sequence[SubId]) -> tuple[Counter[tuple[str, Demand]], list[Filter]]:
    """Return the demands of these subscriptions, and the filters whose demands must be taken one by one."""
    if isinstance(kept, Engine):
        return kept.demands(ids)
    trees: list[Any] = [kept.written(id) for id in ids]
    return Counter(), trees
