"""The disjunctive normal form: an `or` of `and`s of tests and negated tests.

`not` is pushed down to the tests, `and` is distributed over `or`. Distribution can explode, so the number
of conjunctions is computed first, from the tree alone, and beyond the limit nothing is built. Each distinct
test has a number; a conjunction on the way is one integer of bits (a bit for the test, a bit for its
negation), so the product of two is one `|`, and contradictions, repetitions and absorbed conjunctions are bit tests.

Cost: O(tree) to estimate the size; at most `limit` conjunctions to build, and their square in integer comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from tidings.algebra.canonical_order import make_filter_key
from tidings.errors import TooLarge
from tidings.model import FALSE, TRUE, And, Not, Or, Test, all_of, any_of, require_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
        by_test = {part.part if isinstance(part, Not) else part: part for part in parts}
        if len(by_test) < len(parts):  # a test occurs both plain and negated, a contradiction
            return []
        return [tuple(by_test[test] for test in sorted(by_test, key=make_filter_key))]
    _refuse_large(flat, limit)
    tests = sorted(set(_iterate_tests(flat)), key=make_filter_key)
    literals: list[Filter] = [literal for test in tests for literal in (test, Not(test))]
    bits = {test: 1 << 2 * index for index, test in enumerate(tests)}
    rows = _drop_weaker(_expand(flat, bits, sum(bits.values())))
    numbers = sorted([index for index in range(row.bit_length()) if row >> index & 1] for row in rows)
    return [tuple(literals[index] for index in row) for row in numbers]


def push_negations(tree: Filter, *, negated: bool = False) -> Filter:
    """Return the filter, or its negation, with `not` on tests only, flattened and without inner constants."""
    match tree:
        case Not(part):
            return push_negations(part, negated=not negated)
        case Test():
            return Not(tree) if negated else tree
        case And(parts) | Or(parts):
            pushed = [push_negations(part, negated=negated) for part in parts]
            if isinstance(tree, And) is not negated:
                return FALSE if FALSE in pushed else all_of(flatten_parts(pushed, And))
            return TRUE if TRUE in pushed else any_of(flatten_parts(pushed, Or))


def flatten_parts(parts: Iterable[Filter], whole: type[And | Or]) -> list[Filter]:
    """Return the distinct parts with nested compounds of the same type dissolved (neutral constants are empty ones)."""
    flat: dict[Filter, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(part.parts if isinstance(part, whole) else (part,)))
    return list(flat)


def _refuse_large(tree: Filter, limit: int) -> None:
    size = _estimate_size(tree)
    if size.rows <= limit and (size.rows <= 1 or size.literals <= limit * MAX_TESTS_PER_CONJUNCTION):
        return
    unit, number, bound = "conjunctions", size.rows, limit
    if number <= limit:
        unit, number, bound = "tests", size.literals, limit * MAX_TESTS_PER_CONJUNCTION
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
    if isinstance(tree, Test):
        yield tree
    else:
        for part in (tree.part,) if isinstance(tree, Not) else tree.parts:
            yield from _iterate_tests(part)


def _expand(tree: Filter, bits: Mapping[Test, int], all_bits: int) -> set[int]:
    """Return the conjunctions as rows: the bit of each test, and the bit above it for its negation."""
    match tree:
        case Or(parts):
            return set().union(*(_expand(part, bits, all_bits) for part in parts))
        case And(parts):
            rows = {0}
            for part in parts:
                products = {left | right for left, right in product(rows, _expand(part, bits, all_bits))}
                rows = {row for row in products if not row & row >> 1 & all_bits}
            return rows
        case Not(Test() as test):
            return {bits[test] << 1}
        case Test():
            return {bits[tree]}
    msg = f"{tree!r} has a `not` that was not pushed down"
    raise TypeError(msg)


def _drop_weaker(rows: Iterable[int]) -> list[int]:
    """Drop each row that has all bits of another one (absorption: it accepts no event the other does not)."""
    kept: list[int] = []
    for row in sorted(rows, key=int.bit_count):
        if not any(row & less == less for less in kept):
            kept.append(row)
    return kept
