"""Hypothesis strategies for everything a filter's meaning depends on.

The heart is a world: attributes with their kinds, a schema or none, an ontology, regions. Filters and
events drawn for one world fit together, and events aim at the very values that the filters name::

    @given(cases())
    def test_normal_form_keeps_the_meaning(case):
        for tree in case.filters:
            for event in case.events:
                assert evaluate(normal_form(tree), event, **case.world.keywords) == evaluate(...)
"""

from tidings.testing.strategies.areas import areas
from tidings.testing.strategies.cases import Case, cases, events, filters, worlds
from tidings.testing.strategies.concepts import ontologies, regions, schemas
from tidings.testing.strategies.conditions import conditions, tests
from tidings.testing.strategies.mixed import mixed_cases, mixed_events, mixed_filters, mixed_world
from tidings.testing.strategies.values import NOW, attributes, bad_values, points, scalars
from tidings.testing.strategies.world import Lore, Slot, World

__all__ = [
    "NOW",
    "Case",
    "Lore",
    "Slot",
    "World",
    "areas",
    "attributes",
    "bad_values",
    "cases",
    "conditions",
    "events",
    "filters",
    "mixed_cases",
    "mixed_events",
    "mixed_filters",
    "mixed_world",
    "ontologies",
    "points",
    "regions",
    "scalars",
    "schemas",
    "tests",
    "worlds",
]
