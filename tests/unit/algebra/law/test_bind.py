"""Binding: what needs none comes back as the same object; what it cannot resolve is refused."""

import pytest
from hypothesis import given
from tests.examples import examples

import tidings as td
from tidings.algebra import Binder, fold_names
from tidings.concepts import Vocabulary
from tidings.errors import UnitMismatch, UnknownConcept
from tidings.model import Compare, Comparison, In, IsA, Kind, Quantity, Range, list_scalars
from tidings.model import walk_tests as each_test
from tidings.testing.strategies import filters

SHOP = td.Ontology.from_dict(
    {
        "trees": {"pet": {"children": {"cat": {"tabby": {}}}}},
        "attributes": {
            "price": {"unit": "EUR", "synonyms": ["cost"]},
            "size": {"unit": "GB"},
            "animal": {"kind": "concept pet"},
            "items.animal": {"kind": "concept pet"},
        },
        "currencies": {"base": "EUR", "rates": {"USD": 0.5}},
    }
)
SAME = [
    "a = 1 and b = 'x' and c in ('x', 'y')",
    "not (a < 5 or b in (1, 2))",
    "items has (a = 1 and b < c)",
    "a in [1 .. 2) and d within POLYGON((0 0, 1 0, 1 1, 0 0))",
    "age(a) < 7 days or b starts with 'x' or d near (1, 2) 5 km or e exists or f is null",
    "animal = 'cat' and animal in ('cat', 'tabby')",
    "price < 5 and size > 7",
]
CHANGED = {
    "cost < 5 and a = 1": "price < 5 and a = 1",
    "a = 1 and not (b = 2 or size > 500 MB)": "a = 1 and not (b = 2 or size > 0.5)",
    "size in (500 MB, 2)": "size in (0.5, 2)",
    "size in [500 MB .. 2 GB]": "size in [0.5 .. 2]",
    "animal = 'CAT'": "animal = 'cat'",
    "animal in ('Cat', 'tabby')": "animal in ('cat', 'tabby')",
    "items has (animal = 'Cat')": "items has (animal = 'cat')",
    "items has (cost < 5)": "items has (price < 5)",
}


def bind_tree(tree, ontology=SHOP):
    return Binder(Vocabulary(ontology=ontology)).bind_filter(fold_names(tree, ontology))


@pytest.mark.parametrize("text", SAME)
def test_what_means_what_it_says_is_the_same_object(text):
    tree = td.parse(text)
    assert bind_tree(tree) is tree
    assert bind_tree(tree, td.Ontology()) is tree


@pytest.mark.parametrize(("text", "expected"), CHANGED.items())
def test_names_units_and_concepts_are_resolved_wherever_they_stand(text, expected):
    binder = Binder(Vocabulary(ontology=SHOP))
    for _ in range(2):  # the second time all is looked up
        assert binder.bind_filter(fold_names(td.parse(text), SHOP)) == td.parse(expected)


def test_a_comparison_takes_kind_and_unit_of_the_side_that_is_declared():
    for text, op, other in (("a < cost", "<", "price"), ("cost > a", ">", "a")):
        assert bind_tree(td.parse(text)).condition == Compare(Comparison(op), other, Kind.NUMBER, "EUR")
    assert bind_tree(td.parse("a < b")).condition == Compare(Comparison.LT, "b")


def test_an_amount_without_a_declared_unit_keeps_the_unit_of_its_dimension():
    assert bind_tree(td.parse("a > 5 GB")).condition == Range(Quantity(4 * 10**10, "bit"), low_open=True)
    assert bind_tree(td.parse("a in (5 GB, 7 MB)")).condition == In(
        (Quantity(4 * 10**10, "bit"), Quantity(56 * 10**6, "bit"))
    )
    assert bind_tree(td.parse("a > 5 meter")) == td.parse("a > 5 meter")


@pytest.mark.parametrize("text", ["a in (5 GB, 7 km)", "a in [5 GB .. 7 km]"])
def test_amounts_of_different_things_do_not_go_together(text):
    with pytest.raises(UnitMismatch, match="`a`: amounts in bit and meter do not go together"):
        bind_tree(td.parse(text))


def test_a_range_whose_ends_change_places_once_their_units_agree_is_refused():
    with pytest.raises(td.FilterError, match="`a`: the low end of the range is above its high end"):
        bind_tree(td.parse("a in [5 GB .. 7 MB]"))


def test_what_did_not_change_beside_what_did_is_the_same_object():
    tree = td.parse("(a = 1 or b = 2) and size > 500 MB")
    assert bind_tree(tree).parts[0] is tree.parts[0]


def test_a_bound_filter_binds_to_itself():
    once = bind_tree(td.parse("animal is a 'Cat' and cost < 5 USD"))
    assert next(test.condition for _, test in each_test(once)) == IsA("cat", "pet")
    assert bind_tree(once) is once


def test_a_concept_that_no_tree_has_is_refused_each_time():
    binder = Binder(Vocabulary(ontology=SHOP))
    for _ in range(2):
        with pytest.raises(UnknownConcept):
            binder.bind_filter(td.parse("a = 1 and animal = 'dog'"))


@given(filters())
@examples(150)
def test_what_has_nothing_to_resolve_is_the_same_object(tree):
    names = {type(test.condition).__name__ for _, test in each_test(tree)}
    units = any(isinstance(value, Quantity) for _, test in each_test(tree) for value in list_scalars(test.condition))
    if not units and not names & {"IsA", "WithinRegion"}:
        assert bind_tree(tree, td.Ontology()) is tree
