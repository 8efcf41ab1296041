"""The disjunctive normal form: an `or` of `and`s of tests and negated tests.

`not` is pushed down to the tests, `and` is distributed over `or`. Distribution can explode, so the number
of conjunctions is computed first, from the tree alone, and beyond the limit nothing is built. Each distinct
test has a number; a conjunction on the way is one integer of bits (a bit for the test, a bit for its
negation), so the product of two is one `|`, and contradictions, repetitions and absorbed conjunctions are bit tests.

Cost: O(tree) to estimate the size; at most `limit` conjunctions to build, and their square in integer comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tidings.algebra.canonical_order import filter_key
from tidings.errors import TooLarge
from tidings.model import FALSE, TRUE, And, Not, Or, Test, all_of, any_of, require_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.model import Filter

MAX_CONJUNCTIONS = 1024
"""Conjunctions a normal form may have by default."""

MAX_TESTS_PER_CONJUNCTION = 128
"""Tests a conjunction may have on average if there are several, since they share no memory."""

COUNTING_LIMIT = 10**15
"""Larger sizes are not computed exactly."""


def normal_form(tree: Filter, *, limit: int = MAX_CONJUNCTIONS) -> Filter:
    """Return the filter as an `or` of `and`s of tests and negated tests; it accepts the same events.

    >>> from tidings import parse, render
    >>> render(normal_form(parse("a = 1 and (b = 2 or not (c = 3 or d = 4))")))
    'a = 1 and b = 2 or a = 1 and not c = 3 and not d = 4'

    The order of the parts depends on what they are, not on how they were written. Beyond `limit`
    conjunctions it raises `TooLarge`; keep the filter as it is then.
    """
    return any_of(map(all_of, list_conjunctions(require_filter(tree), limit=limit)))


def list_conjunctions(tree: Filter, *, limit: int = MAX_CONJUNCTIONS) -> list[tuple[Filter, ...]]:
    """Return the conjunctions of the normal form, each a tuple of literals."""
    return expand_rows(push_negations(tree), limit=limit)


def expand_rows(flat: Filter, *, limit: int) -> list[tuple[Filter, ...]]:
    """Return the conjunctions of a filter whose negations are already pushed down."""
    parts = flat.parts if isinstance(flat, And) else (flat,)
    if all(isinstance(part, Test | Not) for part in parts):  # a single conjunction, the common case
        return _expand_single(parts)
    _refuse_large(flat, limit)
    atoms = sorted(set(_iterate_tests(flat)), key=filter_key)
    expansion = _Expansion({test: at for at, test in enumerate(atoms)})
    rows = _drop_weaker(expansion.expand(flat))
    return [_to_literals(row, atoms) for row in sorted(rows, key=lambda row: _list_positions(row, len(atoms)))]


def _expand_single(parts: tuple[Filter, ...]) -> list[tuple[Filter, ...]]:
    atoms = {part.part if isinstance(part, Not) else part: part for part in parts}
    # Fewer atoms than parts: a test occurs both plain and negated, a contradiction.
    return [tuple(atoms[test] for test in sorted(atoms, key=filter_key))] if len(atoms) == len(parts) else []


def push_negations(tree: Filter, *, negated: bool = False) -> Filter:
    """Return the filter, or its negation, with `not` on tests only, flattened and without inner constants."""
    match tree:
        case Not(part):
            return push_negations(part, negated=not negated)
        case Test():
            return Not(tree) if negated else tree
        case And(parts) | Or(parts):
            conjunctive = isinstance(tree, And) is not negated
            return _flatten([push_negations(part, negated=negated) for part in parts], conjunctive=conjunctive)


def _flatten(parts: list[Filter], *, conjunctive: bool) -> Filter:
    deciding, empty = (FALSE, TRUE) if conjunctive else (TRUE, FALSE)
    whole = And if conjunctive else Or
    flat: dict[Filter, None] = {}
    for part in parts:
        if part == deciding:
            return deciding
        flat.update(dict.fromkeys(part.parts if isinstance(part, whole) else (part,)))
    if not flat:
        return empty
    return next(iter(flat)) if len(flat) == 1 else whole(tuple(flat))


def _refuse_large(tree: Filter, limit: int) -> None:
    size = _estimate_size(tree)
    if size.rows <= limit and (size.rows <= 1 or size.literals <= limit * MAX_TESTS_PER_CONJUNCTION):
        return
    many = size.rows > limit
    unit, number, bound = (
        ("conjunctions", size.rows, limit) if many else ("tests", size.literals, limit * MAX_TESTS_PER_CONJUNCTION)
    )
    count = f"{number:,}" if number < COUNTING_LIMIT else f"over {COUNTING_LIMIT:,}"
    msg = (
        f"the normal form would have {count} {unit}, and the limit is {bound:,}; "
        "keep the filter as it is, split its `or` into several filters, or pass a higher `limit`"
    )
    raise TooLarge(msg, limit=limit, number=number)


@dataclass(frozen=True, slots=True)
class _Size:
    rows: int
    literals: int


def _estimate_size(tree: Filter) -> _Size:
    match tree:
        case Or(parts):
            sizes = [_estimate_size(part) for part in parts]
            return _Size(sum(size.rows for size in sizes), sum(size.literals for size in sizes))
        case And(parts):
            sizes = [_estimate_size(part) for part in parts]
            rows = prod(size.rows for size in sizes)
            if rows > COUNTING_LIMIT:  # far beyond any limit: avoid arithmetic on huge integers
                return _Size(rows, rows)
            return _Size(rows, sum(size.literals * (rows // size.rows) for size in sizes))
    return _Size(1, 1)


def _iterate_tests(tree: Filter) -> Iterator[Test]:
    match tree:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _iterate_tests(part)
        case Not(part):
            yield from _iterate_tests(part)
        case Test():
            yield tree


class _Expansion:
    """Expands a tree into conjunctions as bit rows: bit `n` is test `n`, bit `n + width` its negation."""

    def __init__(self, numbers: dict[Test, int]) -> None:
        self._numbers = numbers
        self._width = len(numbers)

    def expand(self, tree: Filter) -> set[int]:
        match tree:
            case Or(parts):
                return set().union(*(self.expand(part) for part in parts))
            case And(parts):
                rows = {0}
                for part in parts:
                    rows = self._multiply(rows, self.expand(part))
                return rows
            case Not(Test() as test):
                return {1 << (self._numbers[test] + self._width)}
            case Test():
                return {1 << self._numbers[tree]}
        msg = f"{tree!r} has a `not` that was not pushed down"
        raise TypeError(msg)

    def _multiply(self, lefts: set[int], rights: set[int]) -> set[int]:
        products = {left | right for left in lefts for right in rights}
        return {row for row in products if not row & (row >> self._width) & ((1 << self._width) - 1)}


def _drop_weaker(rows: Iterable[int]) -> list[int]:
    """Drop each row that has all bits of another one (absorption: it accepts no event the other does not)."""
    kept: list[int] = []
    for row in sorted(rows, key=int.bit_count):
        if not any(row & less == less for less in kept):
            kept.append(row)
    return kept


def _list_positions(row: int, width: int) -> list[int]:
    """Return the literals of a row in order: by test, the test before its negation."""
    places = [at for at in range(row.bit_length()) if row >> at & 1]
    return sorted(2 * at if at < width else 2 * (at - width) + 1 for at in places)


def _to_literals(row: int, atoms: list[Test]) -> tuple[Filter, ...]:
    return tuple(Not(atoms[at // 2]) if at % 2 else atoms[at // 2] for at in _list_positions(row, len(atoms)))
