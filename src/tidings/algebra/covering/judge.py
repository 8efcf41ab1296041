"""Filters prepared for comparison, in one setting: bound, in normal form, grouped by attribute.

A filter is prepared once and remembered, by identity, for as long as it is among the last `REMEMBERED`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.algebra.covering.conjunctions import Facts, conjunction
from tidings.algebra.covering.decision import Case, Effort, Sketch
from tidings.algebra.covering.literals import literal_of
from tidings.algebra.law.bind import bind
from tidings.algebra.law.requirements import RequirementTracker
from tidings.algebra.normal_form import pushed, rows_of
from tidings.errors import TooLarge
from tidings.model import And, Not, Or

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.concepts import Ontology, Regions
    from tidings.model import Filter, Schema

USUAL = Effort()

REMEMBERED = 16_384
"""Prepared filters that a judge keeps."""


class Judge:
    """Decides between filters in one setting; errors of `forgiven` classes leave a test as it is written."""

    def __init__(
        self,
        ontology: Ontology,
        *,
        schema: Schema | None = None,
        regions: Regions | None = None,
        now: datetime | None = None,
        forgiven: tuple[type[Exception], ...] = (),
        effort: Effort = USUAL,
    ) -> None:
        """Take the surroundings; they must not change afterwards."""
        self.schema, self.ontology, self.regions, self.now = schema, ontology, regions, now
        self._forgiven = forgiven
        self._effort = effort
        self.facts = Facts(RequirementTracker(schema, ontology), ontology, now=now)
        self._sketches: dict[int, Sketch] = {}

    def covers(self, outer: Filter, inner: Filter) -> bool:
        """Tell whether the first filter certainly accepts all that the second accepts."""
        one, two = self.sketch(outer), self.sketch(inner)
        self.facts.start()
        return Case(self.facts, self.drawn, steps=self._effort.steps).covers(one, two)

    def overlaps(self, one: Filter, two: Filter) -> bool:
        """Tell whether some event may satisfy both filters."""
        first, second = self.sketch(one), self.sketch(two)
        self.facts.start()
        return Case(self.facts, self.drawn, steps=self._effort.steps).overlaps(first, second)

    def cost(self, outer: Filter, inner: Filter) -> int:
        """Reckon what it costs to ask whether the first covers the second, in comparisons of conjunctions."""
        one, two = len(self.sketch(outer).rows or ()), len(self.sketch(inner).rows or ())
        return 1 + one * two + (self._effort.steps if one > 1 else 0)

    def satisfiable(self, tree: Filter) -> bool:
        """Tell whether some event may satisfy the filter."""
        rows = self.sketch(tree).rows
        return rows is None or bool(rows)

    def sketch(self, tree: Filter) -> Sketch:
        """Return the filter prepared, from memory where it is there."""
        found = self._sketches.get(id(tree))
        if found is None or found.source is not tree:
            if len(self._sketches) >= REMEMBERED:
                self._sketches.clear()
            # The sketch holds its source, so the id stays taken for as long as it is a key here.
            found = self._sketches[id(tree)] = self._prepared(tree)
        return found

    def _prepared(self, tree: Filter) -> Sketch:
        self.facts.start()
        drawn = self.drawn(self._bound(tree))
        return Sketch(tree, drawn.tree, drawn.rows)

    def drawn(self, bound: Filter) -> Sketch:
        """Prepare a filter that is bound already."""
        tree = pushed(bound)
        try:
            rows = rows_of(tree, limit=self._effort.rows)
        except TooLarge:
            return Sketch(bound, tree, None)
        found = (conjunction([literal_of(part, self.now, self.ontology) for part in row], self.facts) for row in rows)
        return Sketch(bound, tree, tuple(row for row in found if row is not None))

    def _bound(self, tree: Filter) -> Filter:
        try:
            return bind(tree, schema=self.schema, ontology=self.ontology, regions=self.regions)
        except self._forgiven:
            match tree:
                case And(parts):
                    return And(tuple(map(self._bound, parts)))
                case Or(parts):
                    return Or(tuple(map(self._bound, parts)))
                case Not(part):
                    return Not(self._bound(part))
            return tree
