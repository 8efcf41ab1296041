"""Statements for many pairs of values: one after the other in SQLite, where each is microseconds; at once elsewhere.

A pair is `first` and `second`. PostgreSQL gets all pairs as two arrays, in one round trip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import ARRAY, BigInteger, Text, and_, bindparam, func
from sqlalchemy.sql import Executable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Column, Select

ValuePairs: TypeAlias = "Sequence[tuple[str, str]] | Sequence[tuple[int, int]]"
"""ValuePairs of texts, or of numbers."""


@dataclass(frozen=True, slots=True)
class PairStatement:
    """A statement for one pair, and the same for arrays of them."""

    for_one: Executable
    for_many: Executable


def make_pair_query(select: Select[Any], first: Column[str], second: Column[str]) -> PairStatement:
    """Return the query that finds rows by two columns of text."""
    pairs = _make_pairs(Text)
    for_many = select.join(pairs, and_(first == pairs.c.first, second == pairs.c.second))
    single = _make_one(Text)
    return PairStatement(select.where(first == single[0], second == single[1]), for_many)


def make_pair_change(build: Callable[[Any, Any], Executable]) -> PairStatement:
    """Return an UPDATE or DELETE for pairs of numbers, which `build` makes of the expressions for a pair."""
    pairs = _make_pairs(BigInteger)
    return PairStatement(build(*_make_one(BigInteger)), build(pairs.c.first, pairs.c.second))


def _make_pairs(type: Any) -> Any:
    firsts, seconds = (bindparam(name, type_=ARRAY(type)) for name in ("first", "second"))
    return func.unnest(firsts, seconds).table_valued("first", "second", name="pairs").render_derived()


def _make_one(type: Any) -> tuple[Any, Any]:
    return bindparam("first", type_=type()), bindparam("second", type_=type())
