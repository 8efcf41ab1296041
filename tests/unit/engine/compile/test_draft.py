"""Drafts: what becomes rows, what becomes a tree, what is left to the second phase."""

import pytest

import tidings as td
from tidings.concepts import Ontology
from tidings.engine.compile.draft import FilterDraft
from tidings.engine.compile.row_table import RowTable
from tidings.engine.exact.exact_checks import LawItem, PlaceItem
from tidings.model import FALSE, TRUE


def draft_texts(*texts):
    """Return a draft of filters, and whether each one's row says all of it."""
    draft = FilterDraft(Ontology())
    faithful = [draft.add(slot, td.parse(text) if isinstance(text, str) else text) for slot, text in enumerate(texts)]
    return draft, faithful


@pytest.mark.parametrize(
    ("text", "rows", "literals"),
    [
        ("a = 1", 1, 1),
        ("a = 1 and b < 2 and not (c exists)", 1, 3),
        ("a in (1, 2, 3)", 1, 1),
        ("a = 1 or b = 2", 2, 2),
        ("a = 1 and (b = 1 or b = 2)", 2, 4),
        ("t contains 'x' and t like 'a*'", 1, 2),
        ("p near (1, 2) 3 km", 1, 2),
        ("not (p near (1, 2) 3 km)", 1, 0),
        ("a < b", 1, 0),
        ("all(t) contains 'x'", 1, 0),
        ("r has (a = 1)", 1, 0),
    ],
)
def test_a_filter_is_so_many_rows_of_so_many_literals(text, rows, literals):
    draft, _ = draft_texts(text)
    assert (len(draft.row_size), sum(draft.row_size)) == (rows, literals)
    assert not draft.trees


def test_true_is_a_row_that_asks_nothing_and_false_no_row():
    draft, _ = draft_texts(TRUE, FALSE)
    assert draft.row_slot.tolist() == [0]
    assert draft.row_size.tolist() == [0]


def test_a_filter_of_many_conjunctions_is_a_tree():
    many = " and ".join(f"(a{at} = 1 or b{at} = 2)" for at in range(6))
    draft, [faithful] = draft_texts(many)
    assert (len(draft.trees), len(draft.row_size), faithful) == (1, 0, False)
    assert len(draft.leaves) == 12


def test_leaves_of_trees_are_shared():
    many = " and ".join(f"(a{at} = 1 or b{at} = 2)" for at in range(6))
    tree = td.parse(many)
    draft, _ = draft_texts(tree, tree)
    assert len(draft.leaves) == 12


def test_equal_items_are_one():
    draft, _ = draft_texts("p near (1, 2) 3 km", "p near (1, 2) 3 km and a = 1", "x < y or x < y")
    kinds = [type(item) for item in draft.items]
    assert kinds == [PlaceItem, LawItem]


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "a = 0.5",
        "a in [1 .. 2)",
        "a in (1, 2)",
        "not (a > 1)",
        "none(t) = 'x'",
        "t exists",
        "t is null",
        "t contains 'x'",
        "ok = true",
        "at > 2024-05-01",
    ],
)
def test_rows_say_it_all_of_plain_filters(text):
    assert draft_texts(text)[1] == [True]


@pytest.mark.parametrize(
    "text", ["a = 1.0", "a in [5 .. 5]", "a = 1 or b = 2", "t starts with 'x'", "p near (1, 2) 3 km", "a < b"]
)
def test_rows_do_not_say_it_all_of_others(text):
    assert draft_texts(text)[1] == [False]


def test_columns_keep_kinds_apart():
    draft, _ = draft_texts("a > 1", "at > 2024-05-01", "ok = true", "t = 'x'", "t starts with 'x'", "t ends with 'x'")
    assert len(draft.columns) == 5  # equality and prefix look at the same text
    assert len(set(RowTable.from_draft(draft).columns)) == 5
