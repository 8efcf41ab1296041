"""`covers`: every event that the second filter accepts, the first accepts; true only when that is certain."""

import pytest

import tidings as td
from tidings.concepts import Currencies, Tree
from tidings.errors import FilterError, KindConflict, UnknownRegion
from tidings.model import And, Has, Is, Not, Range, Test, TextOp, TextTest, all_of, any_of, build_area

ONE = td.Schema({"a": "number", "b": "number", "t": "text", "p": "place"}, closed=False)
TREE = Tree({"goods": [], "computer": ["goods"], "laptop": ["computer"], "phone": ["goods"]}, {"laptop": ["notebook"]})


def covers(wide, narrow, **around):
    return td.covers(td.parse(wide), td.parse(narrow), **around)


def test_one_range_is_not_two_half_lines_unless_a_schema_says_one_value():
    assert not covers("a in [2 .. 3]", "a >= 2 and a <= 3")
    assert covers("a >= 2 and a <= 3", "a in [2 .. 3]")
    assert covers("a in [2 .. 3]", "a >= 2 and a <= 3", schema=ONE)


def test_weak_negation_covers_strong_negation_and_not_the_reverse():
    assert covers("not a = 1", "a != 1")
    assert not covers("a != 1", "not a = 1")
    assert covers("a != 1", "not a = 1 and a exists")


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("a < 5", "a < 5"),
        ("a <= 5", "a < 5"),
        ("a < 5", "a in (1, 2)"),
        ("a in (1, 2, 3)", "a in (3, 1)"),
        ("a exists", "a < 5"),
        ("a < 5", "a < 5 and b = 1"),
        ("a < 5 or b = 1", "b = 1"),
        ("a < 5", "a < 3 or a = 4"),
        ("a < 5 or none(a) < 5", "a exists"),
        ("a exists or not a exists", "b = 1"),
        ("a = 1", "all(a) = 1"),
        ("none(t) = 'a'", "all(t) > 'a'"),
        ("not all(a) = 1", "a != 1"),
        ("t starts with 'a'", "t starts with 'ab'"),
        ("t starts with 'a'", "t in ('a', 'abc')"),
        ("t >= 'a'", "t starts with 'b'"),
        ("t in ['a' .. 'b')", "t starts with 'a'"),
        ("t contains 'b'", "t starts with 'abc'"),
        ("t contains 'b'", "t ends with 'abc'"),
        ("t contains 'b'", "t contains 'abc'"),
        ("t contains 'b'", "t matches /abc/"),
        ("t ends with 'c'", "t ends with 'bc'"),
        ("t like 'a*'", "t starts with 'ab'"),
        ("t starts with 'a'", "t like 'a*b?'"),
        ("t ends with 'b'", "t like 'a?b'"),
        ("t like '*a*b*'", "t like 'xa?b'"),
        ("t contains 'STRASSE' ignoring case", "t = 'hauptstraße 1'"),
        ("t contains 'b' ignoring case", "t starts with 'aB'"),
        ("t matches /^a/", "t = 'abc'"),
        ("i in 10.0.0.0/8", "i in 10.1.0.0/16"),
        ("i in (10.0.0.0/9, 10.128.0.0/9)", "i in 10.0.0.0/8"),
        ("a <= b", "a < b"),
        ("b >= a", "a < b"),
        ("b exists", "a < b"),
        ("not a < b", "not a exists"),
        ("items has (q > 1)", "items has (q > 2 and s = 'x')"),
        ("items has (q > 1) or items has (s = 'x')", "items has (q > 2 or s = 'x')"),
        ("items exists", "items has (q > 1)"),
        ("p within POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", "p within POLYGON((1 1, 2 1, 2 2, 1 2, 1 1))"),
        ("p within POLYGON((170 0, 190 0, 190 9, 170 9, 170 0))", "p within POLYGON((-179 1, -178 1, -178 2, -179 1))"),
        ("p within POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", "p near (2, 2) 100 km"),
        ("p near (0, 0) 500 km", "p near (1, 1) 100 km"),
        ("p near (0, 0) 5 km", "p near (0, 0) 5 km"),
        ("p near (1, 1) 500 km", "p within POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))"),
        ("p within POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", "p = (1, 1)"),
        ("age(posted) < 7 days", "age(posted) < 3 days"),
        ("price < 500 USD", "price < 500 USD and a = 1"),
        ("size >= 40 GB", "size >= 40000 MB"),
        ("size > 5 GB", "size > 6000 MB"),
        ("size in (1 GB, 2 GB)", "size = 2000 MB"),
        ("a < 5", "a < 3 and a = 'x' and a > 7 km"),
        ("none(a) < 5", "none(a) < 7 and all(a) = 'x'"),
    ],
)
def test_what_covers(wide, narrow):
    assert covers(wide, narrow)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("a < 5", "a <= 5"),
        ("a < 5", "b < 5"),
        ("a < 5", "a < 5 or b = 1"),
        ("a < 5 and b = 1", "a < 5"),
        ("a exists", "not a = 1"),
        ("all(a) = 1", "a = 1"),
        ("a < 5 or a > 5", "a exists"),
        ("a < 5 or a >= 5", "a exists"),  # a value may be there that is no number
        ("flag in (true, false)", "flag exists"),
        ("t starts with ''", "t exists"),
        ("i in (0.0.0.0/0, ::/0)", "i exists"),
        ("p near (0, 0) 30000 km", "p exists"),
        ("all(a) >= 2", "none(a) < 2"),
        ("a < b or a = b or a > b", "a exists and b exists"),  # they may be unlike
        ("a <= b", "a = b"),  # truth equals truth, and has no order
        ("items has (true)", "items exists"),
        ("a = 1", "a = '1'"),
        ("a > 5", "a > 6 GB"),
        ("a > 5 GB", "a > 6 km"),
        ("a < 5", "a < 5 GB"),
        ("none(a) = 1", "all(a) > 1"),  # an event range may hold both 1 and 2
        ("t starts with 'ab'", "t starts with 'a'"),
        ("t contains 'ab'", "t contains 'a'"),
        ("t contains 'b'", "t starts with 'aB'"),
        ("t ends with 'bc'", "t ends with 'c'"),
        ("a < b", "a <= b"),
        ("items has (q > 2 and s = 'x')", "items has (q > 2) and items has (s = 'x')"),
        ("p within POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", "p near (0, 0) 1 km"),
        ("p near (0, 0) 50 km", "p near (1, 1) 50 km"),
        ("price < 500 USD", "price < 400 USD"),
        ("p within @downtown", "p within @uptown"),
    ],
)
def test_what_does_not_cover(wide, narrow):
    assert not covers(wide, narrow)


DECLARED = td.Schema(
    {"a": "several number", "b": "several number", "t": "several text", "flag": "several bool", "i": "several ip",
     "p": "several place", "items": "several record", "items.q": "several number", "posted": "several time"}
)  # fmt: skip


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("a < 5 or a >= 5", "a exists"),
        ("all(a) >= 2", "none(a) < 2"),
        ("flag in (true, false)", "flag exists"),
        ("t starts with ''", "t exists"),
        ("i in (0.0.0.0/0, ::/0)", "i exists"),
        ("p near (0, 0) 30000 km", "p exists"),
        ("a < b or a = b or a > b", "a exists and b exists"),
        ("a <= b", "a = b"),
        ("items has (true)", "items exists"),
        ("age(posted) < 1 day or age(posted) >= 1 day", "posted exists"),
    ],
)
def test_what_covers_only_where_kinds_are_declared(wide, narrow):
    assert covers(wide, narrow, schema=DECLARED)
    assert not covers(wide, narrow)
    schema = td.Schema(dict.fromkeys(DECLARED, "several any"))
    assert not covers(wide, narrow, schema=schema)


def test_a_column_of_strings_is_text_for_certain_and_an_address_perhaps():
    column = td.Schema({"t": "string"})
    assert covers("t starts with ''", "t exists", schema=column)
    assert not covers("t in (0.0.0.0/0, ::/0)", "t exists", schema=column)


def test_what_is_derived_may_fail():
    ontology = td.Ontology.from_dict({"derived": {"double": "half * 2"}})
    assert not covers("double < 2 or double >= 2", "double exists", ontology=ontology)
    declared = td.Schema({"double": "number"}, closed=False)
    assert covers("double < 2 or double >= 2", "double exists", ontology=ontology, schema=declared)


def test_an_unsatisfiable_filter_is_covered_by_everything():
    assert covers("b = 1", "a = 1 and none(a) = 1")
    assert covers("b = 1", "a < 2 and a > 3", schema=ONE)
    assert not covers("b = 1", "a < 2 and a > 3")


def test_one_value_meets_and_separates():
    assert covers("a = 5", "a >= 5 and a <= 5", schema=ONE)
    assert covers("a in [0 .. 2) or a in (2 .. 5]", "a in [0 .. 5] and a != 2", schema=ONE)
    assert covers("a < b or a >= b", "a exists and b exists", schema=ONE)
    assert covers("not a = b", "a < b", schema=ONE)
    assert not covers("not a = b", "a < b")


def test_concepts_lie_below_concepts():
    shop = td.Ontology(trees={"goods": TREE})
    schema = td.Schema({"k": "concept goods"})
    assert covers("k is a 'computer'", "k is a 'notebook'", ontology=shop)
    assert covers("k is a 'computer'", "k = 'laptop'", ontology=shop)
    assert covers("k = 'laptop'", "k = 'notebook'", ontology=shop, schema=schema)
    assert not covers("k = 'laptop'", "k = 'notebook'", ontology=shop)
    assert not covers("k is a 'laptop'", "k is a 'computer'", ontology=shop)
    assert covers("k = 'laptop'", "k is a 'laptop'", ontology=shop, schema=schema)
    assert not covers("k = 'laptop'", "k is a 'laptop'", ontology=shop)


def test_without_an_ontology_a_value_may_be_of_any_concept():
    assert covers("k is a 'computer'", "k is a 'computer' and a = 1")
    assert not covers("k is a 'computer'", "k = 'laptop'")
    assert td.overlaps(td.parse("k is a 'computer'"), td.parse("all(k) = 'laptop'"))
    assert td.overlaps(td.parse("all(p) within @town"), td.parse("all(p) = (1, 1)"))


def test_amounts_compare_once_their_units_are_known():
    bank = td.Ontology(currencies=Currencies("USD", {"EUR": 1.25}))
    assert covers("price < 500 USD", "price < 400 USD", ontology=bank)
    assert covers("price <= 500 USD", "price <= 400 EUR", ontology=bank)
    assert not covers("price < 400 USD", "price < 400 EUR", ontology=bank)


def test_regions_compare_once_they_are_known():
    towns = td.Regions(
        {
            "town": build_area([[[(0, 0), (4, 0), (4, 4), (0, 4), (0, 0)]]]),
            "downtown": build_area([[[(1, 1), (2, 1), (2, 2), (1, 2), (1, 1)]]]),
        }
    )
    assert covers("p within @town", "p within @downtown", regions=towns)
    assert not covers("p within @downtown", "p within @town", regions=towns)
    with pytest.raises(UnknownRegion):
        covers("p within @town", "p within @uptown", regions=towns)


def test_a_filter_that_cannot_be_bound_raises_its_error():
    closed = td.Schema({"a": "number"})
    with pytest.raises(FilterError, match="unknown attribute `b`"):
        covers("a = 1", "b = 1", schema=closed)
    with pytest.raises(KindConflict, match="`a` is declared number"):
        covers("a = 1", "a = 'x'", schema=closed)
    with pytest.raises(KindConflict, match="without a unit"):
        covers("a = 1", "a = 1 km", schema=closed)


def test_very_old_ages_are_not_told_apart_because_floats_cannot():
    wide = td.parse("age(t) >= 300000 days or age(t) <= 300000 days")
    times = td.Schema({"t": "time"})
    assert not td.covers(wide, td.parse("t exists"), schema=times)
    assert td.covers(td.parse("age(t) >= 3 days or age(t) <= 3 days"), td.parse("t exists"), schema=times)


def test_a_disjunction_too_large_for_a_normal_form_is_taken_by_its_parts():
    wide = all_of(any_of([Test(f"a{at}", Is(0)), Test(f"b{at}", Is(0))]) for at in range(40))
    assert td.covers(wide, wide)
    assert td.covers(wide.parts[3], wide)
    assert td.covers(any_of([wide, td.parse("c = 1")]), wide)
    assert td.covers(td.parse("c < 5"), And((wide, td.parse("c < 3"))))
    assert not td.covers(wide, td.parse("c = 1"))


def test_more_conditions_than_can_be_combined_are_taken_in_pairs():
    many = [Test("t", TextTest(TextOp.CONTAINS, chr(97 + at % 26) + str(at))) for at in range(40)]
    assert td.covers(many[3], all_of(many))
    assert td.covers(Test("t", TextTest(TextOp.CONTAINS, "7")), all_of(many))
    assert not td.covers(Test("t", TextTest(TextOp.CONTAINS, "xyz")), all_of(many))


def test_arrays_within_arrays_end():
    deep = td.parse("q = 1 or r = 2")
    for _ in range(6):
        deep = any_of([Test("x", Is(1)), Not(Test("a", Has(Test("q", Is(0))))), Test("a", Has(deep))])
    assert td.covers(deep, deep)


def test_thousands_of_values_and_open_ends_are_quick():
    evens, wide = td.parse(f"a in ({', '.join(map(str, range(0, 4000, 2)))})"), Test("a", Range(0, None))
    assert td.covers(wide, evens)
    assert not td.covers(evens, wide)
    assert td.overlaps(Not(evens), td.parse("all(a) in [0 .. 10]"))
