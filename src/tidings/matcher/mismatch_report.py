"""Values of events that are not of the kind that filters ask for: which attribute, how many, and which filters.

A user who writes `model > 5` where models are text gets no match, and no error either; so it must be easy to see. The
subscriptions that ask are looked up when the report is made, among those in force then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.matcher.algorithm import SubId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.algebra.law.mismatches import MismatchCounts
    from tidings.matcher.backend import Backend

NAMED = 3
"""Subscriptions that a report names; the others are counted."""

PLURALS = {
    "number": "numbers",
    "time": "times",
    "bool": "true or false",
    "ip": "addresses",
    "place": "places",
    "record": "records",
    "range": "ranges",
}
"""Words for several values of a kind."""


@dataclass(frozen=True, slots=True)
class MismatchReport:
    """How many of the values of an attribute are not of the kind that some subscriptions ask for."""

    attribute: str
    kind: str
    unit: str
    values: int
    mismatched: int
    sorts: tuple[tuple[str, int], ...]
    subscriptions: int
    ids: tuple[SubId, ...]

    def __str__(self) -> str:
        sorts = " and ".join(PLURALS.get(sort, sort) for sort, _ in self.sorts)
        wanted = PLURALS.get(self.kind, self.kind) + (f" in {self.unit}" if self.unit else "")
        more = ", ..." if self.subscriptions > len(self.ids) else ""
        readers = f"{self.subscriptions:,} subscription{'s' * (self.subscriptions != 1)}"
        named = f" ({', '.join(map(str, self.ids))}{more})" if self.ids else ""
        counts = f"{self.mismatched:,} of {self.values:,} values are {sorts}"
        return f"{self.attribute}: {counts}, asked as {wanted} by {readers}{named}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "attribute": self.attribute,
            "asked": self.kind,
            **({"unit": self.unit} if self.unit else {}),
            "values": self.values,
            "mismatched": self.mismatched,
            "are": dict(self.sorts),
            "subscriptions": self.subscriptions,
            "ids": list(self.ids),
        }


def describe_mismatches(counts: MismatchCounts, backend: Backend) -> Iterator[MismatchReport]:
    """Yield a report for each attribute and kind with mismatches that a filter in force still asks for."""
    for key, count in counts:
        ids = backend.find_readers([key])
        if ids:
            yield MismatchReport(
                key.name, key.kind, key.unit, count.values, count.mismatched, count.types, len(ids), tuple(ids[:NAMED])
            )
