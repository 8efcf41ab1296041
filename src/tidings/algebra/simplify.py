"""`simplify`: an equivalent, shorter filter.

Bottom up: constants fold, nested `and` and `or` flatten, redundant parts go, and equalities and ranges of one attribute
merge where that is valid for multivalued attributes too (`a = 1 or a = 2`, `a != 1 and a != 2`). Tests of different
kinds stay apart, and `a < 2 or a >= 2` is not `a exists`, because an undeclared attribute may hold a value that is no
number. Rewrites that hold for a single value only, such as intersecting two ranges, need a schema that declares one.
Names, units and regions stay as written; only the comparison of parts resolves them.

Parts keep their order; of equals the first stays. Passes repeat until nothing changes, so the result is a fixed point.
Cost: each pass compares the parts of each `and` and `or` in pairs, up to `MAX_COMPARISONS`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.algebra.covering.covers import CoverageChecker
from tidings.algebra.covering.decision import Effort
from tidings.algebra.law.typed_attribute import resolve_attribute
from tidings.algebra.merge_tests import intersect_tests, simplify_test, unite_tests
from tidings.algebra.normal_form import flatten_parts
from tidings.concepts import Vocabulary, parse_now
from tidings.errors import TidingsError
from tidings.model import FALSE, TRUE, And, Has, Kind, Not, Or, Schema, Test, all_of, any_of, negate, require_filter

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.concepts import Ontology, Regions
    from tidings.model import Condition, Filter

MAX_PASSES = 16
"""The most passes over a filter; two or three are usual."""

EFFORT = Effort(rows=64, steps=50)
"""Limits of one comparison of two parts."""

MAX_COMPARISONS = 20_000
"""Comparisons of conjunctions that one pass may cost; parts beyond that are kept."""


def simplify(
    tree: Filter,
    *,
    schema: Schema | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
) -> Filter:
    """Return a shorter filter that accepts the same events.

    >>> from tidings import parse, render
    >>> render(simplify(parse("(a = 2 or a = 1) and (a in (1, 2) or b > 5) and not not c exists")))
    'a in (1, 2) and c exists'

    With a `schema`, ranges of a single-valued attribute are intersected: `a > 2 and a < 3` is `a in (2 .. 3)`,
    and `a < 2 and a > 3` accepts nothing. Tests with names that cannot be resolved are left as written.
    """
    vocabulary = Vocabulary.of(schema, ontology, regions)
    return _Simplifier(vocabulary, parse_now(now)).simplify(require_filter(tree))


class _Simplifier:
    """Simplifies one filter."""

    def __init__(self, vocabulary: Vocabulary, now: datetime | None) -> None:
        self._checker = CoverageChecker(vocabulary, now=now, tolerated=(TidingsError,), effort=EFFORT)
        self._budget = 0
        self._finished: dict[int, Filter] = {}

    def simplify(self, tree: Filter) -> Filter:
        for _ in range(MAX_PASSES):
            self._budget = MAX_COMPARISONS
            shorter = self._simplify_part(tree)
            if shorter == tree:
                break
            tree = shorter
        return tree

    def _simplify_part(self, tree: Filter) -> Filter:
        """Return a part simplified once; a part that did not change is remembered and skipped in later passes."""
        if id(tree) in self._finished:
            return tree
        shorter = self._shorten(tree)
        if shorter != tree:
            return shorter
        if self._budget >= 0:  # otherwise some parts were not compared, and the next pass may
            self._finished[id(tree)] = tree
        return tree

    def _shorten(self, tree: Filter) -> Filter:
        match tree:
            case Test():
                return self._shorten_test(tree)
            case Not(part):
                return negate(self._simplify_part(part))
            case And(parts):
                return self._shorten_and(flatten_parts(map(self._simplify_part, parts), And))
            case Or(parts):
                return self._shorten_or(flatten_parts(map(self._simplify_part, parts), Or))

    def _shorten_test(self, test: Test) -> Filter:
        # An ontology may give names inside the array a second meaning.
        if isinstance(test.condition, Has) and self._checker.vocabulary.ontology is None:
            inner = self._enter_array(test.attribute).simplify(test.condition.filter)
            test = Test(test.attribute, Has(inner), test.quantifier)
        shorter = simplify_test(test, self._reads_all)
        return shorter if self._checker.is_satisfiable(shorter) else FALSE

    def _enter_array(self, array: str) -> _Simplifier:
        """Return a simplifier for the elements of an array, with the declarations of names below it."""
        vocabulary, prefix = self._checker.vocabulary, f"{array}."
        schema = vocabulary.schema or Schema()
        below = {name.removeprefix(prefix): schema[name] for name in schema if name.startswith(prefix)}
        return _Simplifier(replace(vocabulary, schema=Schema(below, closed=False)), self._checker.now)

    def _shorten_and(self, parts: list[Filter]) -> Filter:
        if FALSE in parts or any(negate(part) in parts for part in parts):
            return FALSE
        parts = unite_tests(parts, self._reads_all, conjunctive=True)
        parts = intersect_tests(parts, self._is_single)
        parts = self._drop_redundant(parts, conjunctive=True)
        return all_of(parts) if self._checker.is_satisfiable(all_of(parts)) else FALSE

    def _reads_all(self, name: str, condition: Condition) -> bool:
        """Tell whether a condition can read every value that a good event has under this name."""
        return self._checker.facts.reads_all(name, resolve_attribute(name, condition)[1:])

    def _is_single(self, name: str) -> bool:
        """Tell whether ranges of the attribute may be intersected: it has a single value that is no concept."""
        attribute = self._checker.facts.find_attribute(name)
        return not attribute.several and attribute.kind is not Kind.CONCEPT

    def _shorten_or(self, parts: list[Filter]) -> Filter:
        if TRUE in parts or any(negate(part) in parts for part in parts):
            return TRUE
        parts = unite_tests(parts, self._reads_all, conjunctive=False)
        parts = self._drop_redundant(parts, conjunctive=False)
        shorter = any_of(parts)
        return TRUE if accepts_empty_event(shorter) and self._checker.covers(shorter, TRUE) else shorter

    def _drop_redundant(self, parts: list[Filter], *, conjunctive: bool) -> list[Filter]:
        """Drop redundant parts: those of `and` that another part implies, those of `or` that imply another."""
        kept = list(parts)
        for part in reversed(parts):  # of two equivalent parts the first stays
            others = [other for other in kept if other is not part]
            for other in others:
                wide, narrow = (part, other) if conjunctive else (other, part)
                self._budget -= self._checker.estimate_cost(wide, narrow)
                if self._budget >= 0 and self._checker.covers(wide, narrow):
                    kept = others
                    break
        return kept


def accepts_empty_event(tree: Filter) -> bool:
    """Tell whether the empty event satisfies the filter; only then can it accept every event."""
    match tree:
        case And(parts):
            return all(map(accepts_empty_event, parts))
        case Or(parts):
            return any(map(accepts_empty_event, parts))
        case Not(part):
            return not accepts_empty_event(part)
    return False
