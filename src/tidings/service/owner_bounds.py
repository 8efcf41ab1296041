"""What an owner may see at all, together with what a subscription asks for.

`[owners.X] only` is a filter. It is and-ed to a filter, and to every named filter of a pattern, as trees: no text of a
subscription, whatever it is, gets out of its bound. Matches that were kept before a bound became narrower are held
against it when they are shown (`OwnerView`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidings.errors import BadEvent
from tidings.lang.filters.notations import parse_filter
from tidings.matcher.loading.documents import strip_payload
from tidings.matcher.matcher import Matcher
from tidings.model import And

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tidings.concepts import Vocabulary
    from tidings.errors import FilterWarning
    from tidings.model import Filter
    from tidings.model.patterns import Pattern
    from tidings.service.subscription import MatchRow


def parse_bound(only: str | None, vocabulary: Vocabulary) -> Filter | None:
    """Return the filter of `only`; None: the owner may see everything."""
    if only is None:
        return None
    warnings: list[FilterWarning] = []  # who wrote it has seen them
    return parse_filter(only, vocabulary, notation="text", warnings=warnings)


def bind_to_owner(tree: Filter, bound: Filter | None) -> Filter:
    """Return what satisfies a filter and the bound of its owner."""
    return tree if bound is None else And((tree, bound))


def bind_pattern_to_owner(pattern: Pattern, bound: Filter | None) -> Pattern:
    """Return a pattern that sees only events within the bound of its owner."""
    if bound is None:
        return pattern
    filters = tuple(replace(named, filter=And((named.filter, bound))) for named in pattern.filters)
    return replace(pattern, filters=filters)


class OwnerView:
    """The bound of an owner, asked of events that have matched already."""

    def __init__(self, only: str, vocabulary: Vocabulary) -> None:
        """`only` is the filter in text; it was checked when the settings were read."""
        self.only, self._matcher = only, Matcher(**vocabulary.to_keywords())
        bound = parse_bound(only, vocabulary)
        assert bound is not None
        self._matcher.add("only", bound)

    def may_see(self, event: Mapping[str, Any], now: datetime) -> bool:
        """Tell whether an event is within the bound; one that cannot be read is not."""
        try:
            return bool(self._matcher.match(strip_payload(event), now=now))
        except BadEvent:
            return False

    def may_see_match(self, row: MatchRow, now: datetime) -> bool:
        """Tell whether a match's event is within the bound; of a detection, all events that are kept with it."""
        if row.kind == "match":
            return self.may_see(row.values, now)
        events = row.values.get("events")
        kept = [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
        return all(self.may_see(event, now) for event in kept)
