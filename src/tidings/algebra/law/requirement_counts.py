"""Counting what tests ask of their attributes: how many ask for it, and who asked first.

Filters come and go by the million and ask for the same few things, so the count of a known demand is found
from the attribute's name and a glance at the condition, in half a microsecond a test. Whether a demand may be
made is not judged here but in `needs`. Counts can be written as plain values and read back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError
from tidings.model import Compare, Has, In, Is, Kind, Not, Quantity, Range, Test, condition_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidings.model import Condition, Filter


@dataclass(frozen=True, slots=True)
class Demand:
    """What one test asks of its attribute; the unit is the base unit of what it wrote.

    With `bare`, numbers without a unit are taken to be in that unit: so is read what is compared with an attribute
    whose unit is declared.
    """

    kind: Kind | None
    unit: str | None = None
    bare: bool = False

    def __str__(self) -> str:
        """Say it as an error does."""
        words = self.kind.value if self.kind else "any"
        return f"{words} in {self.unit}" if self.unit else words


@dataclass(slots=True)
class Tally:
    """How many tests ask one thing of one attribute, and who asked first."""

    name: str
    demand: Demand
    witness: str
    count: int = 0


class Tallies:
    """The counts of demands by attribute; names in `kept` stay when nobody asks for them."""

    def __init__(self, kept: Iterable[str] = ()) -> None:
        """Start with nothing asked."""
        self._kept = dict.fromkeys(kept)
        self._clear()

    def _clear(self) -> None:
        self.demands: dict[str, dict[Demand, Tally]] = {name: {} for name in self._kept}
        # The same tallies by `_token`, for demands that a token tells all of.
        self._quick: dict[str, dict[type, Tally]] = {}

    def of(self, name: str) -> Mapping[Demand, Tally]:
        """Return what is asked of one attribute."""
        return self.demands.get(name, {})

    def known(self, tree: Filter) -> list[Tally] | None:
        """Return the tally of each test of a filter, or nothing when one of them must be looked at closely."""
        quick, found = self._quick, []
        trees = [tree]
        for part in trees:  # grows as it goes
            if isinstance(part, Test):
                tokens = quick.get(part.attribute)
                tally = tokens.get(_token(part.condition)) if tokens else None
                if tally is None:
                    return None
                found.append(tally)
            elif isinstance(part, Not):
                trees.append(part.part)
            else:
                trees.extend(part.parts)
        return found

    def remember(self, tests: Iterable[tuple[str, Test]]) -> None:
        """Make counted tests `known`, by their full names."""
        for name, test in tests:
            token = _token(test.condition)
            if token not in _CLOSELY:
                tally = self.demands[name][Demand(condition_kind(test.condition))]
                self._quick.setdefault(name, {})[token] = tally

    def put(self, name: str, demand: Demand, number: int, *, witness: str) -> bool:
        """Count so many tests more; tell whether nobody asked for this before."""
        demands = self.demands.setdefault(name, {})
        tally = demands.get(demand)
        if tally is None:
            tally = demands[demand] = Tally(name, demand, witness)
        tally.count += number
        return tally.count == number

    def take(self, tally: Tally, number: int = 1) -> None:
        """Count so many tests fewer; what nobody asks for any more is forgotten."""
        tally.count -= number
        if tally.count > 0:
            return
        demands = self.demands[tally.name]
        del demands[tally.demand]
        self._quick.pop(tally.name, None)
        if not demands and tally.name not in self._kept:
            del self.demands[tally.name]

    def to_dict(self) -> dict[str, list[list[Any]]]:
        """Return the counts in plain values."""
        every = [tally for demands in self.demands.values() for tally in demands.values()]
        return {"demands": [_row(tally) for tally in every]}

    def restore(self, counts: Mapping[str, Any]) -> None:
        """Take over the counts that `to_dict` gave; what does not read as such is refused and changes nothing."""
        try:
            demands = [(*_read_demand(row), _positive(row[3]), str(row[4])) for row in counts["demands"]]
        except (KeyError, IndexError, TypeError, ValueError) as problem:
            msg = f"these are no counts of demands: {type(problem).__name__}: {problem}"
            raise TidingsError(msg) from problem
        self._clear()
        for name, demand, count, witness in demands:
            self.put(name, demand, count, witness=witness)


_CLOSELY = (Compare, Has, Quantity)
"""Tokens of conditions that ask for more than a kind: of another attribute, inside records, in a unit."""


def _token(condition: Condition) -> type:
    """Return a type that tells which kind a condition asks for: that of its value, or its own."""
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


def _row(tally: Tally) -> list[Any]:
    demand = tally.demand
    row = [tally.name, None if demand.kind is None else demand.kind.value, demand.unit, tally.count, tally.witness]
    return [*row, True] if demand.bare else row


def _read_demand(row: list[Any]) -> tuple[str, Demand]:
    name, kind, unit = row[:3]
    return str(name), Demand(None if kind is None else Kind(kind), unit, bare=len(row) > 5)


def _positive(count: int) -> int:
    if count < 1:
        msg = f"a count of {count}"
        raise ValueError(msg)
    return int(count)
