"""`simplify`: the same filter, said shorter.

Bottom up: constants fold, nested `and` and `or` flatten, a part goes when another part makes it needless,
equalities and ranges of one attribute join where that is true of several values too: `a = 1 or a = 2`,
`a != 1 and a != 2`. Tests of different kinds stay apart, and `a < 2 or a >= 2` is not `a exists`: where nothing
is declared, a value that is no number may be there. What holds for one value only, such as meeting two ranges,
waits for a schema that says so. Names, units and regions stay as they are written; the judge that compares parts
looks through them.

Parts keep their order; of equals the first stays. Passes repeat until nothing changes, so simplifying again
changes nothing. Cost: each pass compares the parts of each `and` and `or` in pairs, up to `COMPARISONS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.algebra.covering.decision import Effort
from tidings.algebra.covering.judge import Judge
from tidings.algebra.law.typed_attribute import resolve_attribute
from tidings.algebra.merge_tests import joined_parts, met_parts, simple_test
from tidings.concepts import Ontology, Vocabulary, parse_now
from tidings.errors import TidingsError
from tidings.model import FALSE, TRUE, And, Has, Kind, Not, Or, Schema, Test, all_of, any_of, require_filter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tidings.concepts import Regions
    from tidings.model import Condition, Filter

PASSES = 16
"""Passes after which we stop in any case; two or three are usual."""

EFFORT = Effort(rows=64, steps=50)
"""How far to go in comparing two parts."""

COMPARISONS = 20_000
"""Comparisons of conjunctions that one pass may cost; what is not compared stays."""


def simplify(
    tree: Filter,
    *,
    schema: Schema | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
) -> Filter:
    """Return a filter that accepts the same events and says less.

    >>> from tidings import parse, render
    >>> render(simplify(parse("(a = 2 or a = 1) and (a in (1, 2) or b > 5) and not not c exists")))
    'a in (1, 2) and c exists'

    With a `schema`, ranges of an attribute that has one value meet: `a > 2 and a < 3` is `a in (2 .. 3)`, and
    `a < 2 and a > 3` accepts nothing. What cannot be looked up is left as it is written.
    """
    vocabulary = Vocabulary.of(schema, ontology, regions)
    judge = _judge(vocabulary.concepts, schema=schema, regions=regions, now=parse_now(now))
    return _Simplifier(judge, plain=ontology is None).settled(require_filter(tree))


def _judge(ontology: Ontology, *, schema: Schema | None, regions: Regions | None, now: datetime | None) -> Judge:
    return Judge(ontology, schema=schema, regions=regions, now=now, forgiven=(TidingsError,), effort=EFFORT)


class _Simplifier:
    """One filter's way to its short form; `plain` when no ontology gives names a second meaning."""

    def __init__(self, judge: Judge, *, plain: bool) -> None:
        self._judge = judge
        self._plain = plain
        self._left = 0
        self._settled: dict[int, Filter] = {}

    def settled(self, tree: Filter) -> Filter:
        for _ in range(PASSES):
            self._left = COMPARISONS
            shorter = self._filter(tree)
            if shorter == tree:
                break
            tree = shorter
        return tree

    def _filter(self, tree: Filter) -> Filter:
        """Return one part's shorter form; a part that came out as it went in is not looked at again."""
        if id(tree) in self._settled:
            return tree
        shorter = self._shorter(tree)
        if shorter != tree:
            return shorter
        if self._left >= 0:  # else something was not compared, and the next pass may
            self._settled[id(tree)] = tree
        return tree

    def _shorter(self, tree: Filter) -> Filter:
        match tree:
            case Test():
                return self._test(tree)
            case Not(part):
                return negated(self._filter(part))
            case And(parts):
                return self._and(flat(map(self._filter, parts), And))
            case Or(parts):
                return self._or(flat(map(self._filter, parts), Or))

    def _test(self, test: Test) -> Filter:
        if isinstance(test.condition, Has):
            inner = (
                self._inside(test.attribute).settled(test.condition.filter) if self._plain else test.condition.filter
            )
            test = Test(test.attribute, Has(inner), test.quantifier)
        shorter = simple_test(test, self._reads_all)
        return shorter if self._judge.satisfiable(shorter) else FALSE

    def _inside(self, array: str) -> _Simplifier:
        """Return the one for the elements of an array: the same words about names below it."""
        schema = self._judge.schema
        prefix = f"{array}."
        below = {} if schema is None else {n.removeprefix(prefix): schema[n] for n in schema if n.startswith(prefix)}
        known = Schema(below, closed=False)
        judge = _judge(self._judge.ontology, schema=known, regions=self._judge.regions, now=self._judge.now)
        return _Simplifier(judge, plain=True)

    def _and(self, parts: list[Filter]) -> Filter:
        if FALSE in parts or any(negated(part) in parts for part in parts):
            return FALSE
        parts = joined_parts(parts, self._reads_all, conjunctive=True)
        parts = met_parts(parts, self._has_one)
        parts = self._needed(parts, conjunctive=True)
        return all_of(parts) if self._judge.satisfiable(all_of(parts)) else FALSE

    def _reads_all(self, name: str, condition: Condition) -> bool:
        """Tell whether a condition can read whatever a good event holds under this name."""
        return self._judge.facts.reads_all(name, resolve_attribute(name, condition)[1:])

    def _has_one(self, name: str) -> bool:
        """Tell whether values of the attribute meet as they are written: one value, and not a concept's name."""
        attribute = self._judge.facts.attribute(name)
        return not attribute.several and attribute.kind is not Kind.CONCEPT

    def _or(self, parts: list[Filter]) -> Filter:
        if TRUE in parts or any(negated(part) in parts for part in parts):
            return TRUE
        parts = joined_parts(parts, self._reads_all, conjunctive=False)
        parts = self._needed(parts, conjunctive=False)
        shorter = any_of(parts)
        return TRUE if accepts_nothing(shorter) and self._judge.covers(shorter, TRUE) else shorter

    def _needed(self, parts: list[Filter], *, conjunctive: bool) -> list[Filter]:
        """Drop each part that another part makes needless: a weaker one of `and`, a stronger one of `or`."""
        kept = list(parts)
        for part in reversed(parts):  # of two that say the same, the first stays
            others = (other for other in kept if other is not part)
            if any(self._needless(part, other, conjunctive=conjunctive) for other in others):
                kept = [other for other in kept if other is not part]
        return kept

    def _needless(self, part: Filter, other: Filter, *, conjunctive: bool) -> bool:
        wide, narrow = (part, other) if conjunctive else (other, part)
        self._left -= self._judge.cost(wide, narrow)
        return self._left >= 0 and self._judge.covers(wide, narrow)


def negated(tree: Filter) -> Filter:
    """Return the negation, without a double one."""
    if isinstance(tree, Not):
        return tree.part
    if tree in (TRUE, FALSE):
        return FALSE if tree == TRUE else TRUE
    return Not(tree)


def accepts_nothing(tree: Filter) -> bool:
    """Tell whether an event without any attribute satisfies the filter; only such a filter can accept all."""
    match tree:
        case And(parts):
            return all(map(accepts_nothing, parts))
        case Or(parts):
            return any(map(accepts_nothing, parts))
        case Not(part):
            return not accepts_nothing(part)
    return False


def flat(parts: Iterable[Filter], whole: type[And | Or]) -> list[Filter]:
    """Return the parts, those of nested wholes among them, each once; neutral constants dissolve by themselves."""
    found: dict[Filter, None] = {}
    for part in parts:
        found.update(dict.fromkeys(part.parts if isinstance(part, whole) else (part,)))
    return list(found)
