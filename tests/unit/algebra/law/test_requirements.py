"""Counted demands: the quick way counts what the long way counts; only declarations refuse anything."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.algebra.law.requirement_counts import Demand
from tidings.algebra.law.requirements import RequirementTracker
from tidings.concepts import Vocabulary
from tidings.errors import FilterError, KindConflict, TidingsError
from tidings.model import Is, Kind, Quantity, Range

TEXTS = [
    "a = 1",
    "a = 1.5 and a < 7",
    "a = 'x'",
    "a = 'x' or not a in ('y', 'z')",
    "a in (1, 2.5)",
    "a in [1 .. 2.5)",
    "a is a 'cat'",
    "a starts with 'x' and b exists",
    "a > 5 GB",
    "a > 5 MB and a > 1 GB",
    "a > 5 km",
    "a < b",
    "a = b and b = 'x'",
    "b > c",
    "b = 2024-01-01",
    "age(b) < 7 days",
    "b is null and b exists",
    "c = true",
    "c near (1, 2) 5 km",
    "c has (a = 1 and d < e)",
    "c has (a = 'x')",
    "d.x = 1",
    "unheard = 1 and unknown = 2",
    "true",
]
TREES = [td.parse(text) for text in TEXTS]
SCHEMAS = [
    None,
    td.Schema({"a": "number", "b": "any", "d.*": "number"}),
    td.Schema({"a": "concept animal", "b": "time"}, closed=False),
]
ONTOLOGIES = [td.Ontology(), td.Ontology.from_dict({"attributes": {"a": {"unit": "GB"}}})]


class LongWay(RequirementTracker):
    """The same without the quick way: every test is looked at closely."""

    def __init__(self, vocabulary):
        super().__init__(vocabulary)
        self._counts.find_counts = lambda _: None

    def restore(self, counts):
        raise NotImplementedError


def outcome(act, *arguments):
    try:
        act(*arguments)
    except TidingsError as problem:
        return type(problem), str(problem)
    return None


@given(
    st.sampled_from(SCHEMAS),
    st.sampled_from(ONTOLOGIES),
    st.lists(st.tuples(st.booleans(), st.integers(0, len(TREES) - 1)), max_size=30),
)
@examples(300)
def test_the_quick_way_is_the_long_way(schema, ontology, steps):
    quick, long = RequirementTracker(Vocabulary(schema, ontology)), LongWay(Vocabulary(schema, ontology))
    kept = []
    for number, (adding, which) in enumerate(steps):
        if adding:
            results = [outcome(needs.add, TREES[which], f"filter {number}") for needs in (quick, long)]
            kept += [which] if results[0] is None else []
        elif kept:
            gone = kept.pop(which % len(kept))
            results = [outcome(needs.discard, TREES[gone]) for needs in (quick, long)]
        else:
            continue
        assert results[0] == results[1]
        assert quick.to_dict() == long.to_dict()
        assert quick.to_requirements() == long.to_requirements()
    again = RequirementTracker(Vocabulary(schema, ontology))
    again.restore(json.loads(json.dumps(quick.to_dict())))
    assert again.to_requirements() == quick.to_requirements()
    for which in kept:
        quick.discard(TREES[which])
        again.discard(TREES[which])
    assert again.to_dict() == quick.to_dict() == {"demands": []}
    assert quick.to_requirements() == RequirementTracker(Vocabulary(schema, ontology)).to_requirements()


@given(st.sampled_from(SCHEMAS), st.sampled_from(ONTOLOGIES), st.lists(st.sampled_from(TREES), max_size=8))
def test_whether_a_filter_is_refused_hangs_on_no_other(schema, ontology, trees):
    together = RequirementTracker(Vocabulary(schema, ontology))
    for tree in trees:
        assert outcome(together.add, tree, "it") == outcome(
            RequirementTracker(Vocabulary(schema, ontology)).add, tree, "it"
        )


def count_requirements(*texts, schema=None):
    needs = RequirementTracker(Vocabulary(schema))
    for text in texts:
        needs.add(td.parse(text), f"`{text}`")
    return needs


def test_demands_of_different_kinds_and_units_stand_side_by_side():
    needs = count_requirements("a = 1", "a > 2", "a = 'x'", "a > 5 GB", "a > 7 MB", "a > 5 km", "a is a 'cat'")
    assert needs.to_dict()["demands"] == [
        ["a", "number", None, 2, "`a = 1`"],
        ["a", "text", None, 1, "`a = 'x'`"],
        ["a", "number", "bit", 2, "`a > 5 GB`"],
        ["a", "number", "meter", 1, "`a > 5 km`"],
        ["a", "concept", None, 1, "`a is a 'cat'`"],
    ]
    ways = {(need.kind, need.unit, need.bare, need.strict) for need in needs.read_specs("a")}
    assert ways == {
        (Kind.NUMBER, None, True, False),
        (Kind.TEXT, None, True, False),
        (Kind.NUMBER, "bit", False, False),
        (Kind.NUMBER, "meter", False, False),
    }


def test_the_first_to_ask_is_known():
    needs = count_requirements("a = 1", "a > 2")
    assert needs.to_dict()["demands"] == [["a", "number", None, 2, "`a = 1`"]]


DECLARED = td.Schema({"a": "number", "b": "text", "c": "any", "s": "string", "k": "concept", "flag": "bool"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = 'x'", "`a` is declared number, but it uses it as text; ask for number, or change the declaration"),
        (
            "a > 5 km",
            "`a` is declared number without a unit, but it uses it as number in meter; write the number alone",
        ),
        ("b > 5", "`b` is declared text, but it uses it as number"),
        ("b is a 'cat'", "`b` is declared text, but it uses it as concept"),
        ("s > 5", "`s` is declared string, but it uses it as number"),
        ("s > 2024-01-01", "`s` is declared string, but it uses it as time"),
        ("k > 5", "`k` is declared concept, but it uses it as number"),
        ("a < b", "compares `a`, declared number, with `b`, declared text"),
        ("flag < c", "values of the kind bool have no order"),
        ("c < flag", "values of the kind bool have no order"),
    ],
)
def test_what_a_declaration_does_not_have_is_refused_and_counts_nothing(text, reason):
    needs = count_requirements("a = 1", schema=DECLARED)
    before = needs.to_dict()
    with pytest.raises(KindConflict, match=re.escape(reason)):
        needs.add(td.parse(f"c = 1 and {text}"), "it")
    assert needs.to_dict() == before


@pytest.mark.parametrize(
    "text", ["s in 10.0.0.0/8", "s is a 'cat'", "s like 'x*'", "k = 'cat'", "c > 5 km", "c = 'x'", "s = b"]
)
def test_what_a_declaration_leaves_open_is_taken(text):
    assert count_requirements(text, schema=DECLARED).to_requirements()


def test_declared_attributes_are_needed_whether_a_filter_asks_or_not():
    required = RequirementTracker(Vocabulary(DECLARED)).to_requirements()
    assert {name for name, ways in required.attributes.items() if ways[0].strict} == {"a", "b", "s", "k", "flag"}
    assert [need.several for need in required.attributes["c"]] == [False]
    assert RequirementTracker(Vocabulary(td.Schema({"tags.*": "number"}))).to_requirements().wildcards


def test_a_column_of_strings_compares_as_what_the_other_side_is():
    schema = td.Schema({"s": "string", "i": "ip"})
    needs = RequirementTracker(Vocabulary(schema))
    assert needs.derive_comparison_demand("s", "i") == needs.derive_comparison_demand("i", "s") == Demand(Kind.IP)
    for text in ("s = i", "i = s"):
        assert td.evaluate(td.parse(text), {"s": "::ffff:10.0.0.1", "i": "10.0.0.1"}, schema=schema)


def test_counting_many_is_adding_many():
    single, many = RequirementTracker(Vocabulary()), RequirementTracker(Vocabulary())
    for _ in range(5):
        single.add(td.parse("a = 1 and b exists"), "s1")
    many.count("a", many.derive_demand("a", Is(1)), 5, witness="s1")
    many.count("b", Demand(None), 5, witness="s1")
    assert single.to_dict() == many.to_dict()
    single.discard(td.parse("a = 1 and b exists"))
    many.count("a", Demand(Kind.NUMBER), -1)
    many.count("b", Demand(None), -1)
    assert single.to_dict() == many.to_dict()
    many.count("a", Demand(Kind.NUMBER), -4)
    many.count("b", Demand(None), 0)
    assert list(many.to_requirements().attributes) == ["b"]
    many.count("a", Demand(Kind.TEXT), 1)
    assert [need.kind for need in many.read_specs("a")] == [Kind.TEXT]


def test_counting_refuses_what_adding_refuses_and_counts_nothing():
    needs = count_requirements("a = 1", schema=td.Schema({"a": "number", "b": "any"}))
    before = needs.to_dict()
    with pytest.raises(KindConflict, match="`a` is declared number, but a load uses it as text"):
        needs.count("a", Demand(Kind.TEXT), 3, witness="a load")
    with pytest.raises(TidingsError, match="`a` is asked for as number 1 times, not 2"):
        needs.count("a", Demand(Kind.NUMBER), -2)
    assert needs.to_dict() == before
    with pytest.raises(FilterError, match="unknown attribute `y`"):
        count_requirements(schema=td.Schema({"x": "number"})).count("y", Demand(Kind.NUMBER), 1)


def test_a_demand_is_a_kind_and_a_base_unit():
    needs = RequirementTracker(Vocabulary())
    assert needs.derive_demand("a", Is("x")) == Demand(Kind.TEXT)
    unit = needs.derive_demand("a", Is(Quantity(1, "MB"))).unit
    assert unit is not None
    assert needs.derive_demand("a", Range(1, Quantity(2, "GB"))) == Demand(Kind.NUMBER, unit)


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"demands": [["a"]], "compared": []},
        {"demands": [["a", "nonsense", None, 1, "s"]], "compared": []},
        {"demands": [["a", "number", None, 0, "s"]], "compared": []},
        {"demands": [], "compared": [["", "a", "?", "b", 1]]},
        {"demands": None, "compared": None},
    ],
)
def test_what_are_no_counts_is_refused_and_changes_nothing(counts):
    needs = count_requirements("a = 1 and a < b")
    before = needs.to_dict()
    with pytest.raises(TidingsError, match="no counts of demands"):
        needs.restore(counts)
    assert needs.to_dict() == before


def test_comparisons_that_were_counted_apart_are_read():
    old = {"demands": [["a", None, None, 3, "s"], ["b", None, None, 1, "s"]], "compared": [["", "a", "<", "b", 1]]}
    needs = RequirementTracker(Vocabulary(td.Schema({"b": "number"}, closed=False)))
    needs.restore(old)
    again = RequirementTracker(Vocabulary(td.Schema({"b": "number"}, closed=False)))
    for text in ("a exists", "a is null", "a < b"):
        again.add(td.parse(text), "s")
    assert needs.to_requirements() == again.to_requirements()
    needs.discard(td.parse("a < b"))
    assert needs.to_dict()["demands"] == [["a", None, None, 2, "s"]]
