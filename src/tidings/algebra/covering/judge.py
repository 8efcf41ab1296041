"""Prepare filters for comparison (bound, in normal form, grouped by attribute) and compare them.

A prepared filter is cached by identity; the cache holds at most `MAX_PREPARED`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.algebra.covering.conjunctions import AttributeFacts, build_conjunction
from tidings.algebra.covering.decision import Comparer, Effort, PreparedFilter
from tidings.algebra.covering.literals import to_literal
from tidings.algebra.law.bind import bind
from tidings.algebra.law.requirements import RequirementTracker
from tidings.algebra.normal_form import expand_rows, push_negations
from tidings.errors import TooLarge
from tidings.model import And, Not, Or

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.concepts import Ontology, Regions
    from tidings.model import Filter, Schema

DEFAULT_EFFORT = Effort()

MAX_PREPARED = 16_384
"""Prepared filters that a judge caches."""


class Judge:
    """Compares filters under one vocabulary; a test whose binding raises one of `tolerated` is left unbound."""

    def __init__(
        self,
        ontology: Ontology,
        *,
        schema: Schema | None = None,
        regions: Regions | None = None,
        now: datetime | None = None,
        tolerated: tuple[type[Exception], ...] = (),
        effort: Effort = DEFAULT_EFFORT,
    ) -> None:
        """Take the vocabulary, which must not change afterwards."""
        self.schema, self.ontology, self.regions, self.now = schema, ontology, regions, now
        self._tolerated = tolerated
        self._effort = effort
        self.facts = AttributeFacts(RequirementTracker(schema, ontology), ontology, now=now)
        self._prepared_filters: dict[int, PreparedFilter] = {}

    def covers(self, outer: Filter, inner: Filter) -> bool:
        """Tell whether the outer filter certainly accepts every event that the inner one accepts."""
        wide, narrow = self.prepare(outer), self.prepare(inner)
        self.facts.start()
        return Comparer(self.facts, self.prepare_bound, steps=self._effort.steps).covers(wide, narrow)

    def overlaps(self, left: Filter, right: Filter) -> bool:
        """Tell whether some event may satisfy both filters."""
        first, second = self.prepare(left), self.prepare(right)
        self.facts.start()
        return Comparer(self.facts, self.prepare_bound, steps=self._effort.steps).overlaps(first, second)

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
            # The prepared filter references its source, so the id cannot be reused while it is a key here.
            prepared = self._prepared_filters[id(tree)] = self._prepare_source(tree)
        return prepared

    def _prepare_source(self, tree: Filter) -> PreparedFilter:
        self.facts.start()
        prepared = self.prepare_bound(self._bind(tree))
        return PreparedFilter(tree, prepared.tree, prepared.rows)

    def prepare_bound(self, bound: Filter) -> PreparedFilter:
        """Prepare a filter that is already bound."""
        tree = push_negations(bound)
        try:
            rows = expand_rows(tree, limit=self._effort.rows)
        except TooLarge:
            return PreparedFilter(bound, tree, None)
        conjunctions = (
            build_conjunction([to_literal(part, self.now, self.ontology) for part in row], self.facts) for row in rows
        )
        return PreparedFilter(bound, tree, tuple(row for row in conjunctions if row is not None))

    def _bind(self, tree: Filter) -> Filter:
        try:
            return bind(tree, schema=self.schema, ontology=self.ontology, regions=self.regions)
        except self._tolerated:
            match tree:
                case And(parts):
                    return And(tuple(map(self._bind, parts)))
                case Or(parts):
                    return Or(tuple(map(self._bind, parts)))
                case Not(part):
                    return Not(self._bind(part))
            return tree
