"""Counting what tests ask of their attributes: how many ask for it, and who asked first.

Filters come and go by the million and ask for the same few things, so the count of a known demand is found
from the attribute's name and a glance at the condition, in half a microsecond a test. Whether demands agree
is not judged here but in `needs`. Counts can be written as plain values and read back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError
from tidings.model import Compare, Comparison, Has, In, Is, Kind, Not, Quantity, Range, Test, condition_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tidings.model import Condition, Filter


@dataclass(frozen=True, slots=True)
class Pair:
    """Two attributes of one record that a filter compares; `prefix` is the record's place, with its dot."""

    prefix: str
    left: str
    op: Comparison
    right: str

    @property
    def names(self) -> tuple[str, str]:
        """The full names of both."""
        return self.prefix + self.left, self.prefix + self.right


@dataclass(frozen=True, slots=True)
class Demand:
    """What one test asks of its attribute; the unit is the base unit of what it wrote."""

    kind: Kind | None
    unit: str | None = None

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
    """The counts of demands by attribute, and of compared pairs; names in `kept` stay when nobody asks for them."""

    def __init__(self, kept: Iterable[str] = ()) -> None:
        """Start with nothing asked."""
        self._kept = dict.fromkeys(kept)
        self._clear()

    def _clear(self) -> None:
        self.demands: dict[str, dict[Demand, Tally]] = {name: {} for name in self._kept}
        self.compared: dict[Pair, int] = {}
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

    def remember(self, found: Iterable[tuple[str, Test]]) -> None:
        """Make counted tests `known`, by their full names."""
        for name, test in found:
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

    def put_pair(self, pair: Pair) -> bool:
        """Count one comparison more; tell whether nobody compared these before."""
        self.compared[pair] = self.compared.get(pair, 0) + 1
        return self.compared[pair] == 1

    def take_pair(self, pair: Pair) -> None:
        """Count one comparison fewer."""
        self.compared[pair] -= 1
        if not self.compared[pair]:
            del self.compared[pair]

    def to_dict(self) -> dict[str, list[list[Any]]]:
        """Return the counts in plain values."""
        every = [tally for demands in self.demands.values() for tally in demands.values()]
        return {
            "demands": [[t.name, _plain(t.demand.kind), t.demand.unit, t.count, t.witness] for t in every],
            "compared": [[p.prefix, p.left, _plain(p.op), p.right, count] for p, count in self.compared.items()],
        }

    def restore(self, counts: Mapping[str, Any]) -> None:
        """Take over the counts that `to_dict` gave; what does not read as such is refused and changes nothing."""
        try:
            demands = [(*_read_demand(row), _positive(row[3]), str(row[4])) for row in counts["demands"]]
            pairs = {Pair(row[0], row[1], Comparison(row[2]), row[3]): _positive(row[4]) for row in counts["compared"]}
        except (KeyError, IndexError, TypeError, ValueError) as problem:
            msg = f"these are no counts of demands: {type(problem).__name__}: {problem}"
            raise TidingsError(msg) from problem
        self._clear()
        for name, demand, count, witness in demands:
            self.put(name, demand, count, witness=witness)
        self.compared = pairs


def compared(found: Iterable[tuple[str, Test]]) -> Iterator[Pair]:
    """Yield the pairs of attributes that tests compare."""
    for name, test in found:
        if isinstance(test.condition, Compare):
            prefix = name[: len(name) - len(test.attribute)]
            yield Pair(prefix, test.attribute, test.condition.op, test.condition.other)


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


def _plain(word: Kind | Comparison | None) -> str | None:
    return None if word is None else word.value


def _read_demand(row: list[Any]) -> tuple[str, Demand]:
    name, kind, unit = row[:3]
    return str(name), Demand(None if kind is None else Kind(kind), unit)


def _positive(count: int) -> int:
    if count < 1:
        msg = f"a count of {count}"
        raise ValueError(msg)
    return int(count)
