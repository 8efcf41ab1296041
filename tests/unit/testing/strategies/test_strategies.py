"""The strategies reach the corners: each is found among drawn cases, the same ones every time."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise, product
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings

import tidings as td
from tidings import model as m
from tidings.model.filters import Condition
from tidings.testing import strategies
from tidings.testing.strategies import bad_values, cases, ontologies, regions, scalars, schemas
from tidings.testing.strategies.cases import RECIPES, SPECIAL
from tidings.testing.strategies.values import BLOCKS


def draw_values(strategy, count):
    values = []
    quiet = settings(max_examples=count, database=None, derandomize=True, suppress_health_check=list(HealthCheck))

    @quiet
    @given(strategy)
    def collect(value):
        values.append(value)

    collect()
    return values


@pytest.fixture(scope="module")
def sample():
    each = [case for recipe in sorted({*RECIPES, *SPECIAL}) for case in draw_values(cases(recipes=(recipe,)), 120)]
    return draw_values(cases(depth=3), 500) + each


@pytest.fixture(scope="module")
def trees(sample):
    return [part for case in sample for tree in case.filters for part in list_parts(tree)]


@pytest.fixture(scope="module")
def events(sample):
    return [event for case in sample for event in case.events]


def list_parts(tree, depth=0):
    """Every part of a filter, with how deep it lies."""
    yield tree, depth
    match tree:
        case m.And(parts) | m.Or(parts):
            inner = parts
        case m.Not(part):
            inner = (part,)
        case m.Test(condition=m.Has(part)):
            inner = (part,)
        case _:
            inner = ()
    for part in inner:
        yield from list_parts(part, depth + 1)


def list_values(event):
    """Every value of an event, and every list and record among them."""
    for value in event.values():
        yield from list_inside(value)


def list_inside(value):
    yield value
    if isinstance(value, Mapping):
        yield from list_values(value)
    elif isinstance(value, list):
        for item in value:
            yield from list_inside(item)


CONDITIONS = get_args(Condition)


@pytest.mark.parametrize("kind", CONDITIONS)
def test_every_condition_comes_with_every_quantifier(trees, kind):
    quantifiers = {
        tree.quantifier for tree, _ in trees if isinstance(tree, m.Test) and isinstance(tree.condition, kind)
    }
    assert quantifiers == ({m.Quantifier.ANY} if kind in (m.Exists, m.IsNull) else set(m.Quantifier))


def list_conditions(trees, kind):
    return [tree.condition for tree, _ in trees if isinstance(tree, m.Test) and isinstance(tree.condition, kind)]


def test_ranges_have_all_four_boundary_types_and_missing_ends(trees):
    spans = list_conditions(trees, m.Range)
    both = {(span.low_open, span.high_open) for span in spans if span.low is not None and span.high is not None}
    assert len(both) == 4
    assert {span.low_open for span in spans if span.high is None} == {True, False}
    assert {span.high_open for span in spans if span.low is None} == {True, False}
    assert any(span.low == span.high and span.low_open for span in spans), "the empty range"
    assert {span.kind for span in spans} == {m.Kind.NUMBER, m.Kind.TEXT, m.Kind.TIME}
    assert any(isinstance(span.low, m.Quantity) for span in spans)


def test_every_test_of_text_comes_with_its_case_and_without():
    tests = [test for test in draw_values(strategies.conditions("text"), 500) if isinstance(test, m.TextTest)]
    assert {(test.op, test.ignoring_case) for test in tests} == {
        (op, fold) for op in m.TextOp for fold in (True, False)
    }


def test_every_comparison_of_two_attributes_is_there(trees):
    assert {condition.op for condition in list_conditions(trees, m.Compare)} == set(m.Comparison)


def test_areas_have_holes_cross_the_antimeridian_and_come_in_several_parts():
    areas = draw_values(strategies.areas(), 200)
    assert any(len(rings) > 1 for area in areas for rings in area.polygons)
    assert any(len(area.polygons) > 1 for area in areas)
    rings = [ring for area in areas for polygon in area.polygons for ring in polygon]
    assert any(lon > 180 for ring in rings for lon, _ in ring)
    assert any(180 < abs(after - before) < 360 for ring in rings for (before, _), (after, _) in pairwise(ring))


def test_connectives_have_no_parts_two_and_more(trees):
    for kind in (m.And, m.Or):
        assert {len(tree.parts) for tree, _ in trees if isinstance(tree, kind)} >= {0, 2, 3, 4}


def test_not_goes_deep(trees):
    def chain(tree):
        return 1 + chain(tree.part) if isinstance(tree, m.Not) else 0

    assert max(chain(tree) for tree, _ in trees) >= 4
    assert max(depth for _, depth in trees) >= 4
    assert any(isinstance(tree, m.Not) and isinstance(tree.part, m.And | m.Or) for tree, _ in trees)


def test_connectives_stand_inside_has(trees):
    inner = [condition.filter for condition in list_conditions(trees, m.Has)]
    assert any(isinstance(tree, m.And | m.Or) and tree.parts for tree in inner)
    assert any(isinstance(tree, m.Not) for tree in inner)


EVENT_CORNERS = {
    "null": lambda value: value is None,
    "the empty list": lambda value: value == [],
    "a list": lambda value: isinstance(value, list) and len(value) > 1,
    "a null in a list": lambda value: isinstance(value, list) and None in value and len(value) > 1,
    "a list in a list": lambda value: isinstance(value, list) and any(isinstance(item, list) for item in value),
    "a nested record": lambda value: isinstance(value, Mapping) and "lon" not in value,
    "a list of records": lambda value: isinstance(value, list) and any(isinstance(item, Mapping) for item in value),
    "a range of numbers": lambda value: isinstance(value, m.Range) and value.kind is m.Kind.NUMBER,
    "a range of times": lambda value: isinstance(value, m.Range) and value.kind is m.Kind.TIME,
    "an open range": lambda value: isinstance(value, m.Range) and value.low_open,
    "a range without an end": lambda value: isinstance(value, m.Range) and value.high is None,
    "a number as text": lambda value: isinstance(value, str) and value.strip().isdigit(),
    "a decimal": lambda value: isinstance(value, Decimal),
    "an integer beyond 2^53": lambda value: type(value) is int and abs(value) > 2**53,
    "a float": lambda value: isinstance(value, float),
    "a naive time": lambda value: isinstance(value, datetime) and value.tzinfo is None,
    "a time in another zone": lambda value: isinstance(value, datetime) and bool(value.utcoffset()),
    "a date": lambda value: type(value) is date,
    "a time as text": lambda value: isinstance(value, str) and "T" in value and value[:4].isdigit(),
    "truth as text": lambda value: value in ("True", "FALSE"),
    "a pair": lambda value: isinstance(value, tuple),
    "a place as a mapping": lambda value: isinstance(value, Mapping) and "lon" in value,
    "a place as a point": lambda value: isinstance(value, m.Point),
    "an IPv4 address": lambda value: isinstance(value, IPv4Address),
    "an IPv6 address": lambda value: isinstance(value, IPv6Address),
    "an IPv4 address inside IPv6": lambda value: isinstance(value, str) and value.startswith("::ffff:"),
    "an amount as text": lambda value: isinstance(value, str) and value.strip().endswith(("GB", "EUR", "cm")),
    "a concept by its synonym": lambda value: value == "notebook",
    "a concept that no tree has": lambda value: value == "unheard of",
    "NaN": lambda value: isinstance(value, float) and value != value,  # noqa: PLR0124 - only NaN is not itself
    "an infinity": lambda value: isinstance(value, float) and value in (float("inf"), -float("inf")),
    "an integer beyond 64 bits": lambda value: type(value) is int and abs(value) > 2**63,
    "an amount of another dimension": lambda value: value == "5 km",
    "a range of amounts": lambda value: isinstance(value, m.Range) and isinstance(value.low, m.Quantity),
    "an empty range": lambda value: isinstance(value, m.Range) and value.low == value.high and value.low_open,
    "values of several kinds": lambda value: (
        isinstance(value, list) and len({type(item) for item in value} - {type(None)}) > 2
    ),
    "something that no kind reads": lambda value: value == 1j,
}


@pytest.mark.parametrize("corner", EVENT_CORNERS)
def test_events_reach(events, corner):
    assert any(EVENT_CORNERS[corner](value) for event in events for value in list_values(event))


def test_a_dotted_name_is_flat_in_one_event_and_nested_in_another(events):
    assert any("x.y" in event for event in events)
    assert any("y" in event.get("x", ()) for event in events if isinstance(event.get("x"), Mapping))
    assert any("er.one" in event.get("deep", ()) for event in events if isinstance(event.get("deep"), Mapping))


def test_worlds_have_no_schema_a_closed_one_and_an_open_one(sample):
    schemas = [case.world.schema for case in sample]
    assert {None if schema is None else schema.closed for schema in schemas} == {None, True, False}
    assert any(not slot.several for case in sample for slot in case.world.slots.values())
    assert {case.world.regions is None for case in sample} == {True, False}
    assert {slot.kind for case in sample for slot in case.world.slots.values()} == set(m.Kind) - {m.Kind.OPAQUE}


def test_no_filter_contradicts_its_world_and_no_event_is_bad(sample):
    for case in sample[:150] + draw_values(cases(mixed=False), 100):
        for tree, event in product(case.filters, case.events):
            td.evaluate(tree, event, **case.world.keywords)


def test_events_hit_the_very_ends_that_filters_name(sample):
    """Both answers are common, and some events carry exactly an end of a range."""
    answers = [td.evaluate(case.filters[0], case.events[0], **case.world.keywords) for case in sample[:300]]
    assert 0.2 < sum(answers) / len(answers) < 0.8
    exact = 0
    for case in sample:
        ends = {end for tree in case.filters for _, test in m.walk_tests(tree) if isinstance(test.condition, m.Range)
                for end in (test.condition.low, test.condition.high) if type(end) in (int, float)}  # fmt: skip
        exact += any(
            type(value) in (int, float) and value in ends for event in case.events for value in list_values(event)
        )
    assert exact > 5


def test_some_events_are_bad_when_asked_for():
    drawn_cases = draw_values(cases(bad=True), 150)
    assert sum(is_bad(event, case.world) for case in drawn_cases for event in case.events) > 15


def is_bad(event, world):
    try:
        td.evaluate(m.TRUE, event, **world.keywords)
    except td.BadEvent:
        return True
    return False


def list_kinds_asked(case):
    """The kinds and units that filters ask of each attribute that nobody declares."""
    free = {name for name, slot in case.world.slots.items() if not slot.declared}
    kinds = {}
    for tree in case.filters:
        for name, test in m.walk_tests(tree):
            units = {str(getattr(value, "unit", "")) for value in m.list_scalars(test.condition)}
            if case.world.canonical(name) in free and (kind := test.condition.kind):
                kinds.setdefault(case.world.canonical(name), set()).add((kind, *sorted(units)))
    return kinds


def test_one_attribute_is_asked_for_as_several_kinds_and_units_unless_that_is_switched_off(sample):
    several = [kinds for case in sample for kinds in list_kinds_asked(case).values() if len(kinds) > 1]
    assert len(several) > 50
    assert any(len({kind for kind, *_ in kinds}) > 1 for kinds in several)
    assert any(len([unit for _, unit in kinds if unit]) > 1 for kinds in several if all(len(k) == 2 for k in kinds))
    plain = [kinds for case in draw_values(cases(mixed=False), 150) for kinds in list_kinds_asked(case).values()]
    concept = {m.Kind.CONCEPT, m.Kind.TEXT}
    assert all(len({kind for kind, *_ in kinds}) == 1 or {kind for kind, *_ in kinds} == concept for kinds in plain)


def test_an_attribute_without_a_kind_and_a_column_of_strings_are_declared(sample):
    attributes = [case.world.schema[name] for case in sample if case.world.schema for name in case.world.schema]
    assert {attribute.several for attribute in attributes if attribute.kind is None} == {True, False}
    assert any(attribute.refinable for attribute in attributes)


ASKING = {
    "number": m.Is(1),
    "text": m.Is("x"),
    "concept": m.Is("x"),
    "bool": m.Is(True),
    "time": m.Age(m.Range(0)),
    "place": m.Near(m.Point(0, 0), 1),
    "ip": m.InNetworks((BLOCKS[0],)),
    "record": m.Has(m.TRUE),
}


@pytest.mark.parametrize("kind", ASKING)
def test_bad_values_are_bad_and_scalars_are_good(kind):
    tree, schema = m.Test("a", ASKING[kind]), td.Schema({"a": f"several {kind}"})
    for value in draw_values(bad_values(kind), 60):
        with pytest.raises(td.BadEvent, match="`a`"):
            td.evaluate(m.TRUE, {"a": value}, schema=schema)
        if not isinstance(value, list) and kind != "concept":  # of a list some may be good; a concept must be known
            none = m.Test("a", ASKING[kind], m.Quantifier.NONE)
            assert td.evaluate(none, {"a": value}), value
    for value in draw_values(scalars(kind), 60):
        td.evaluate(tree if kind != "concept" else m.TRUE, {"a": value}, schema=schema)


def test_schemas_ontologies_and_regions_are_what_they_say():
    values = draw_values(schemas(), 100)
    assert {schema.closed for schema in values} == {True, False}
    assert {schema[name].kind for schema in values for name in schema} >= {None, *m.schema.DECLARABLE}
    assert all(td.Ontology.from_dict(each.to_dict()) == each for each in draw_values(ontologies(), 30))
    assert all(isinstance(each[name], m.Area) for each in draw_values(regions(), 20) for name in each)


def test_every_public_strategy_is_listed():
    assert sorted(strategies.__all__) == sorted(name for name in strategies.__all__ if hasattr(strategies, name))
