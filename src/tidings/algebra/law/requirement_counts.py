"""Reference counts of what tests demand of attributes, with the first filter that demanded it.

Filters come and go by the million but demand the same few things, so the count of an existing demand is found by the
attribute's name and a token of the condition, in half a microsecond a test. Whether a demand is allowed is checked in
`requirements`. Counts can be written as plain values and restored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.algebra.law.typed_attribute import to_kind_word
from tidings.errors import TidingsError
from tidings.model import Compare, Has, In, Is, Kind, Not, Quantity, Range, Test

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidings.algebra.law.typed_attribute import Label
    from tidings.model import Condition, Filter


DemandTable: TypeAlias = "dict[str, list[list[Any]]]"
"""Counts in plain values that JSON can hold: the form in manifests and reports.

The key `demands` has a row for each: attribute, kind, unit, count, witness, and True where `bare`.
"""


@dataclass(frozen=True, slots=True)
class Demand:
    """The kind, and for amounts the base unit, that one test demands of its attribute.

    With `bare`, numbers without a unit count as being in `unit`: so for the other side of a comparison with an
    attribute whose unit is declared.
    """

    kind: Kind | None
    unit: str | None = None
    bare: bool = False

    @property
    def label(self) -> Label:
        """The label under which tests with this demand look values up."""
        return to_kind_word(self.kind), self.unit or "", self.bare or self.unit is None

    def __str__(self) -> str:
        """Return the demand in the words of an error message."""
        words = self.kind.value if self.kind else "any"
        return f"{words} in {self.unit}" if self.unit else words


@dataclass(slots=True)
class DemandCount:
    """How many tests have one demand on one attribute; `witness` names the first filter that had it."""

    name: str
    demand: Demand
    witness: str
    count: int = 0


class DemandCounts:
    """Demand counts by attribute; the names in `permanent` stay when their counts are gone."""

    def __init__(self, permanent: Iterable[str] = ()) -> None:
        self._permanent = dict.fromkeys(permanent)
        self._clear()

    def _clear(self) -> None:
        self.demands: dict[str, dict[Demand, DemandCount]] = {name: {} for name in self._permanent}
        # The same counts by token, for demands that a token fully determines.
        self._by_token: dict[str, dict[type, DemandCount]] = {}

    def find(self, name: str) -> Mapping[Demand, DemandCount]:
        """Return the demands on one attribute with their counts."""
        return self.demands.get(name, {})

    def find_counts(self, tree: Filter) -> list[DemandCount] | None:
        """Return the count of each test of a filter, or `None` if one is new or not determined by its token."""
        by_token, counts = self._by_token, []
        trees = [tree]
        for part in trees:  # grows as it goes
            if isinstance(part, Test):
                tokens = by_token.get(part.attribute)
                count = tokens.get(_derive_token(part.condition)) if tokens else None
                if count is None:
                    return None
                counts.append(count)
            elif isinstance(part, Not):
                trees.append(part.part)
            else:
                trees.extend(part.parts)
        return counts

    def remember(self, tests: Iterable[tuple[str, Test]]) -> None:
        """Index counted tests by token, so that `find_counts` finds them."""
        for name, test in tests:
            token = _derive_token(test.condition)
            if token not in _SLOW_TOKENS:
                count = self.demands[name][Demand(test.condition.kind)]
                self._by_token.setdefault(name, {})[token] = count

    def increase(self, name: str, demand: Demand, amount: int, *, witness: str) -> bool:
        """Add to the count of a demand; tell whether the demand is new."""
        demands = self.demands.setdefault(name, {})
        count = demands.get(demand)
        if count is None:
            count = demands[demand] = DemandCount(name, demand, witness)
        count.count += amount
        return count.count == amount

    def decrease(self, count: DemandCount, amount: int = 1) -> None:
        """Subtract from a count; a demand whose count reaches zero is forgotten."""
        count.count -= amount
        if count.count > 0:
            return
        demands = self.demands[count.name]
        del demands[count.demand]
        self._by_token.pop(count.name, None)
        if not demands and count.name not in self._permanent:
            del self.demands[count.name]

    def to_dict(self) -> DemandTable:
        """Return the counts as plain values."""
        rows: list[list[Any]] = []
        for name, demands in self.demands.items():
            for demand, count in demands.items():
                kind = None if demand.kind is None else demand.kind.value
                rows.append([name, kind, demand.unit, count.count, count.witness, *([True] if demand.bare else [])])
        return {"demands": rows}

    def restore(self, counts: Mapping[str, Sequence[list[Any]]]) -> None:
        """Restore counts written by `to_dict`; malformed ones raise and change nothing."""
        try:
            demands = [_read_row(row) for row in counts["demands"]]
        except (KeyError, IndexError, TypeError, ValueError) as problem:
            msg = f"these are no counts of demands: {type(problem).__name__}: {problem}"
            raise TidingsError(msg) from problem
        self._clear()
        for name, demand, count, witness in demands:
            self.increase(name, demand, count, witness=witness)


_SLOW_TOKENS = (Compare, Has, Quantity)
"""Tokens of conditions whose demand is more than a kind: another attribute, nested records, a unit."""


def _derive_token(condition: Condition) -> type:
    """Return a Python type that determines the kind a condition demands: that of its value, or its own."""
    kind = type(condition)
    if kind is Is:
        return type(condition.value)  # type: ignore[union-attr]
    if kind is Range:
        low, high = condition.low, condition.high  # type: ignore[union-attr]
        return type(high) if low is None or type(high) is Quantity else type(low)
    if kind is In:
        types = {*map(type, condition.values)}  # type: ignore[union-attr]
        return Quantity if Quantity in types else types.pop()
    return kind


def _read_row(row: list[Any]) -> tuple[str, Demand, int, str]:
    name, kind, unit, count, witness = row[:5]
    if count < 1:
        msg = f"a count of {count}"
        raise ValueError(msg)
    return str(name), Demand(None if kind is None else Kind(kind), unit, bare=len(row) > 5), int(count), str(witness)
