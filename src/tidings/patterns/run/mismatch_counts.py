"""Counts of values and times in the events that patterns could not use; these are no errors, but are reported.

Three things may pass a pattern by: a value that a filter cannot read as the kind it asks for, a value that no variable
takes, and an event without a time where the pattern asks for times. Counts are by attribute, and each tells which
patterns it is about; what no pattern asks for any more is left out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidings.algebra.law.typed_attribute import collect_attributes
from tidings.matcher.mismatch_report import PLURALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.matcher import Matcher
    from tidings.patterns.compile.graph import CompiledPattern

MOST_NAMED = 3
"""The most patterns that a report names; of more it says how many there are."""

VARIABLE, TIME = "a variable", "the time"
"""The two uses of an attribute that have no kind."""


@dataclass(slots=True)
class PatternMismatchCounts:
    """How many events had a value for an attribute, and of how many it could not be used; kept while events come.

    `untimed` are the events that have no time that can be read.
    """

    value_counts: Counter[str] = field(default_factory=Counter)
    mismatch_types: dict[str, Counter[str]] = field(default_factory=dict)
    events: int = 0
    untimed: int = 0

    def count(self, name: str, instead: str, *, has_value: bool, events: int = 1) -> None:
        """Count events that bind a variable to a value, or have something `instead` that it cannot take, or neither."""
        if has_value or instead:
            self.value_counts[name] += events
        if instead:
            self.mismatch_types.setdefault(name, Counter())[instead] += events


@dataclass(frozen=True, slots=True)
class PatternMismatch:
    """So many of so many values of an attribute are not what some patterns ask for, so these passed them by."""

    attribute: str
    asked: str
    values: int
    mismatched: int
    sorts: tuple[tuple[str, int], ...]
    patterns: tuple[str, ...]

    def __str__(self) -> str:
        more = ", ..." if len(self.patterns) > MOST_NAMED else ""
        count = f"{len(self.patterns):,} pattern{'s' * (len(self.patterns) != 1)}"
        named = f"{count} ({', '.join(self.patterns[:MOST_NAMED])}{more})"
        if self.asked == TIME:
            lack = f"{self.mismatched:,} of {self.values:,} events have no time that can be read"
            return f"{self.attribute}: {lack}, and take no part in {named}"
        are = " and ".join(PLURALS.get(sort, sort) for sort, _ in self.sorts)
        purpose = "taken by variables of" if self.asked == VARIABLE else f"asked as {self.asked} by"
        return f"{self.attribute}: {self.mismatched:,} of {self.values:,} values are {are}, {purpose} {named}"

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        counts = {"values": self.values, "mismatched": self.mismatched, "are": dict(self.sorts)}
        return {"attribute": self.attribute, "asked": self.asked, **counts, "patterns": list(self.patterns)}


def describe_pattern_mismatches(
    counts: PatternMismatchCounts, matcher: Matcher, compiled: Iterable[CompiledPattern], *, time: str
) -> Iterator[PatternMismatch]:
    """Yield what patterns could not use: by filters first, then by variables, then for want of a time."""
    patterns = list(compiled)
    yield from _describe_filter_mismatches(matcher, patterns)
    for name, types in counts.mismatch_types.items():
        names = tuple(pattern.name for pattern in patterns if name in pattern.pattern.variable_attributes())
        if names:
            type_counts = tuple(types.most_common())
            yield PatternMismatch(name, VARIABLE, counts.value_counts[name], types.total(), type_counts, names)
    names = tuple(pattern.name for pattern in patterns if pattern.pattern.asks_for_time())
    if counts.untimed and names:
        yield PatternMismatch(time, TIME, counts.events, counts.untimed, (("none", counts.untimed),), names)


def _describe_filter_mismatches(matcher: Matcher, patterns: list[CompiledPattern]) -> Iterator[PatternMismatch]:
    """Yield the matcher's counts with the names of patterns; the matcher has only the numbers of their filters."""
    bind = matcher.admission.bind_filter
    for key, count in matcher.mismatch_counts:
        names = tuple(
            p.name for p in patterns if any(key in collect_attributes(bind(tree)) for tree in p.list_filters())
        )
        if names:
            asked = PLURALS.get(key.kind, key.kind) + (f" in {key.unit}" if key.unit else "")
            yield PatternMismatch(key.name, asked, count.values, count.mismatched, count.types, names)
