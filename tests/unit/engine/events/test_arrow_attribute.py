"""Columns that feed one attribute are read together as their rows are read one by one."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from tidings.concepts import Declared, Ontology, Tree
from tidings.engine.events import arrow_values
from tidings.model import Kind

NAMES = ("contact", "phone", "email", "work", "home")
TREE = Tree({"contact": [], "phone": ["contact"], "email": ["contact"], "work": ["phone"], "home": ["phone"]})
GOODS = Tree({"goods": [], "computer": ["goods"], "laptop": ["computer"], "car": ["goods"]})


def ontology(kind, tree=None):
    declared = Declared(kind, tree) if tree else Declared(kind)
    return Ontology(
        trees={"goods": GOODS}, attribute_trees={"contact": TREE}, attributes=dict.fromkeys(NAMES, declared)
    )


KINDS = {
    "number": (
        ontology(Kind.NUMBER),
        st.integers(-3, 3) | st.just(2**53 + 1),
        "= 1",
        "in [-1 .. 2)",
        "> 9007199254740992",
    ),
    "float": (ontology(Kind.NUMBER), st.sampled_from([0.5, 1.0, -2.0]), "= 1", "in [-1 .. 2)", "> 0.5"),
    "text": (ontology(Kind.TEXT), st.sampled_from(["a", "b", "ab"]), "= 'a'", "starts with 'a'", "contains 'b'"),
    "concept": (
        ontology(Kind.CONCEPT, "goods"),
        st.sampled_from(["laptop", "car", "goods", "unheard of"]),
        "is a 'computer'",
        "= 'car'",
        "is a 'goods'",
    ),
}


@st.composite
def batches(draw):
    kind, values, *tests = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    count = draw(st.integers(1, 6))
    columns = {}
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
        lists = draw(st.booleans())
        column = st.lists(st.none() | values, max_size=3) if lists else values
        columns[name] = draw(st.lists(st.none() | column, min_size=count, max_size=count))
    filters = [f"{name} {test}" for name in NAMES for test in (*tests, "exists", "is null")]
    filters += [f"all({name}) {tests[0]}" for name in NAMES]
    return kind, columns, filters


@given(batches())
def test_a_table_is_read_as_its_rows_are(case):
    kind, columns, filters = case
    matcher = td.Matcher(ontology=kind)
    matcher.add_many(enumerate(filters))
    table = pa.table(columns)
    assert [set(ids) for ids in matcher.match_many(table).by_event()] == [
        set(matcher.match(row)) for row in table.to_pylist()
    ]


def test_columns_of_an_attribute_tree_are_read_without_their_rows(monkeypatch):
    matcher = td.Matcher(ontology=ontology(Kind.TEXT))
    matcher.add_many((name, f"{name} = 'x'") for name in NAMES)
    read = []
    monkeypatch.setattr("tidings.matcher.event_input.BatchReader._read_rows", lambda *_, **__: read.append(1) or [])
    table = pa.table({"email": ["x", None, "y"], "work": [None, "x", "x"], "home": ["x", None, None]})
    answers = [set(ids) for ids in matcher.match_many(table).by_event()]
    assert answers == [
        {"contact", "phone", "email", "home"},
        {"contact", "phone", "work"},
        {"contact", "phone", "work"},
    ]
    assert not read


def test_what_a_schema_says_of_each_name_holds_column_by_column_too():
    schema = td.Schema({"contact": "text", "phone": "text", "email": "text"})
    tree = Tree({"contact": [], "phone": ["contact"], "email": ["contact"]})
    matcher = td.Matcher(schema=schema, ontology=Ontology(attribute_trees={"contact": tree}))
    matcher.add_many([("any", "contact = 'x'"), ("mail", "email = 'x'"), ("all", "all(contact) = 'x'")])
    for columns in ({"email": ["x", "x"], "phone": [None, "y"]}, {"email": [["x"], None], "phone": ["x", "x"]}):
        table = pa.table(columns)
        whole = matcher.match_many(table, on_error="collect")
        rows = matcher.match_many(table.to_pylist(), on_error="collect")
        assert [set(ids) for ids in whole.by_event()] == [set(ids) for ids in rows.by_event()]
        assert [letter.index for letter in whole.dead_letters] == [letter.index for letter in rows.dead_letters]


def test_a_column_is_read_once_for_all_the_names_it_feeds(monkeypatch):
    matcher = td.Matcher(ontology=ontology(Kind.TEXT))
    matcher.add_many((name, f"{name} = 'x'") for name in NAMES)
    read = []
    read_array = arrow_values.read_array

    def count_reads(array, source, **keywords):
        read.append(source)
        return read_array(array, source, **keywords)

    monkeypatch.setattr(arrow_values, "read_array", count_reads)
    matcher.match_many(pa.table({name: ["x", None] for name in NAMES}))
    assert sorted(read) == sorted(NAMES)


@pytest.mark.parametrize("count", [3, 60])
def test_events_are_read_by_their_own_fields_where_attributes_are_many(count):
    matcher = td.Matcher()
    matcher.add_many((number, f"a.b{number} = 1 or `c.{number}` = 2 or d{number} is null") for number in range(count))
    assert matcher.match({"a": {"b1": 1}}) == [1]
    assert matcher.match({"a.b2": 1, "c": {"0": 2}}) == [0, 2] or set(matcher.match({"a.b2": 1, "c": {"0": 2}})) == {
        0,
        2,
    }
    assert matcher.match({"d0": None}) == [0]
