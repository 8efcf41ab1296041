"""`covers` and `overlaps`: every event that one filter accepts is accepted by the other; some event suits both.

`covers` is never true wrongly and `overlaps` never false wrongly; both are exact on conjunctions of
predicates on one ordered attribute each. Events that are bad for the filters do not count.

Filters are prepared (bound, in normal form, grouped by attribute) and cached by identity; `decision` compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.algebra.covering.attribute_literals import to_literal
from tidings.algebra.covering.conjunctions import AttributeFacts, build_conjunction
from tidings.algebra.covering.decision import Comparer, Effort, PreparedFilter
from tidings.algebra.law.bind import bind
from tidings.algebra.law.requirements import RequirementTracker
from tidings.algebra.normal_form import expand_rows, push_negations
from tidings.concepts import Vocabulary, parse_now
from tidings.errors import TooLarge
from tidings.model import Test, change_parts, require_filter

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.concepts import Ontology, Regions
    from tidings.model import Filter, Schema

DEFAULT_EFFORT = Effort()

MAX_CHECKERS = 16
"""Vocabularies whose prepared filters are cached."""

MAX_PREPARED = 16_384
"""Prepared filters that a checker caches."""

_checkers: dict[tuple[object, ...], CoverageChecker] = {}


def covers(
    f: Filter,
    g: Filter,
    *,
    schema: Schema | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
) -> bool:
    """Tell whether `f` accepts every event that `g` accepts; false also when that cannot be decided.

    >>> from tidings import parse
    >>> covers(parse("price < 9000"), parse("make = 'ford' and price < 5000"))
    True

    Attributes are multivalued unless `schema` declares one value. Without `schema`, `ontology` and `regions`,
    undefined concepts, units and regions are equal only to themselves. Without `now`, conditions on ages are
    compared for every time.
    """
    return find_checker(Vocabulary.of(schema, ontology, regions), now).covers(require_filter(f), require_filter(g))


def overlaps(
    f: Filter,
    g: Filter,
    *,
    schema: Schema | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
    now: datetime | None = None,
) -> bool:
    """Tell whether some event satisfies both filters; true also when that cannot be decided.

    >>> from tidings import Schema, parse
    >>> overlaps(parse("a < 2"), parse("a > 3"))  # by the event {"a": [1, 4]}
    True
    >>> overlaps(parse("a < 2"), parse("a > 3"), schema=Schema({"a": "number"}))
    False
    """
    return find_checker(Vocabulary.of(schema, ontology, regions), now).overlaps(require_filter(f), require_filter(g))


def find_checker(vocabulary: Vocabulary, now: datetime | None = None) -> CoverageChecker:
    """Return the cached checker of a vocabulary; it keeps the parts, so that their `id` stays valid as a cache key."""
    now = parse_now(now)
    key = (id(vocabulary.schema), id(vocabulary.ontology), id(vocabulary.regions), now)
    checker = _checkers.get(key)
    if checker is None:
        if len(_checkers) >= MAX_CHECKERS:
            _checkers.clear()
        checker = _checkers[key] = CoverageChecker(
            vocabulary, now=now, tolerated=(LookupError,) if vocabulary.is_empty else ()
        )
    return checker


class CoverageChecker:
    """Compares filters under one vocabulary; a test whose binding raises one of `tolerated` is left unbound."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        now: datetime | None = None,
        tolerated: tuple[type[Exception], ...] = (),
        effort: Effort = DEFAULT_EFFORT,
    ) -> None:
        self.vocabulary, self.now = vocabulary, now
        self._ontology, self._tolerated, self._effort = vocabulary.concepts, tolerated, effort
        self.facts = AttributeFacts(RequirementTracker(vocabulary), self._ontology, now)
        self._prepared_filters: dict[int, PreparedFilter] = {}

    def covers(self, outer: Filter, inner: Filter) -> bool:
        """Tell whether the outer filter certainly accepts every event that the inner one accepts."""
        wide, narrow = self.prepare(outer), self.prepare(inner)
        return self.start_comparison().covers(wide, narrow)

    def overlaps(self, left: Filter, right: Filter) -> bool:
        """Tell whether some event may satisfy both filters."""
        first, second = self.prepare(left), self.prepare(right)
        return self.start_comparison().overlaps(first, second)

    def start_comparison(self) -> Comparer:
        """Return a comparer of prepared filters that has not used any of its effort."""
        self.facts.start()
        return Comparer(self.facts, self.prepare_bound, steps=self._effort.steps)

    def estimate_cost(self, outer: Filter, inner: Filter) -> int:
        """Estimate the cost of `covers` on two filters, in comparisons of conjunctions."""
        outer_rows, inner_rows = len(self.prepare(outer).rows or ()), len(self.prepare(inner).rows or ())
        return 1 + outer_rows * inner_rows + (self._effort.steps if outer_rows > 1 else 0)

    def is_satisfiable(self, tree: Filter) -> bool:
        """Tell whether some event may satisfy the filter."""
        rows = self.prepare(tree).rows
        return rows is None or bool(rows)

    def prepare(self, tree: Filter) -> PreparedFilter:
        """Return the prepared filter, from the cache if it is there."""
        prepared = self._prepared_filters.get(id(tree))
        if prepared is None or prepared.source is not tree:
            if len(self._prepared_filters) >= MAX_PREPARED:
                self._prepared_filters.clear()
            self.facts.start()
            prepared = self.prepare_bound(self._bind(tree))
            # The prepared filter references its source, so the id cannot be reused while it is a key here.
            prepared.source = tree
            self._prepared_filters[id(tree)] = prepared
        return prepared

    def prepare_bound(self, bound: Filter) -> PreparedFilter:
        """Prepare a filter that is already bound."""
        tree = push_negations(bound)
        try:
            rows = expand_rows(tree, limit=self._effort.rows)
        except TooLarge:
            return PreparedFilter(bound, tree, None)
        conjunctions = (
            build_conjunction([to_literal(part, self.now, self._ontology) for part in row], self.facts) for row in rows
        )
        return PreparedFilter(bound, tree, tuple(row for row in conjunctions if row is not None))

    def _bind(self, tree: Filter) -> Filter:
        try:
            return bind(tree, self.vocabulary)
        except self._tolerated:
            return tree if isinstance(tree, Test) else change_parts(tree, self._bind)
