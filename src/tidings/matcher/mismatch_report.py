"""Values that are not what filters ask for, told to people: which attribute, how many, and who asks.

Somebody who writes `model > 5` where models are text hears of nothing, and nobody else is touched; so it must be
easy to see. Who asks is looked up when it is told, in the subscriptions that are in force then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.matcher.algorithm import SubId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.algebra.law.mismatches import Mismatches
    from tidings.engine.engine import Engine
    from tidings.matcher.algorithm_store import AlgorithmStore

NAMED = 3
"""Subscriptions that are named."""

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
    """So many of so many values of an attribute are not of the kind that some subscriptions ask for."""

    attribute: str
    kind: str
    unit: str
    values: int
    mismatched: int
    sorts: tuple[tuple[str, int], ...]
    subscriptions: int
    ids: tuple[SubId, ...]

    def __str__(self) -> str:
        """Say it in one line."""
        are = " and ".join(PLURALS.get(sort, sort) for sort, _ in self.sorts)
        asked = PLURALS.get(self.kind, self.kind) + (f" in {self.unit}" if self.unit else "")
        more = ", ..." if self.subscriptions > len(self.ids) else ""
        who = f"{self.subscriptions:,} subscription{'s' * (self.subscriptions != 1)}"
        named = f" ({', '.join(map(str, self.ids))}{more})" if self.ids else ""
        counts = f"{self.mismatched:,} of {self.values:,} values are {are}"
        return f"{self.attribute}: {counts}, asked as {asked} by {who}{named}"

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


def describe_mismatches(counts: Mismatches, kept: Engine | AlgorithmStore) -> Iterator[MismatchReport]:
    """Yield what does not fit, most of it first; what nobody asks for any more is left out."""
    for key, count in counts:
        ids = kept.find_readers([key])
        if ids:
            yield MismatchReport(
                key.name, key.kind, key.unit, count.values, count.mismatched, count.sorts, len(ids), tuple(ids[:NAMED])
            )
