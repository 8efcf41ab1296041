"""`=`, `!=` and `in` that ignore case: points of a folded column, found by the index, and kept by snapshots."""

import pytest

import tidings as td
from tidings.algebra import covers, overlaps
from tidings.concepts import Ontology
from tidings.engine.compile.columns import View
from tidings.engine.compile.draft import FilterDraft
from tidings.engine.compile.encoders import encode_condition
from tidings.model import SameText

WORDS = ["ford", "Ford", "FORD", "opel", "straße", "STRASSE", "ﬁat", "FIAT", "İ", "i̇", ""]
FILTERS = [
    "make = 'ford' ignoring case",
    "make != 'FORD' ignoring case",
    "make in ('Opel', 'strasse', 'fiat') ignoring case",
    "make not in ('ford', 'i̇') ignoring case",
    "all(make) = 'ford' ignoring case",
    "not make = '' ignoring case",
    "make = 'ford' ignoring case and make starts with 'F'",
    "make in ('ford', 'opel') ignoring case and price < 5 or make = 'opel'",
]


def events():
    rows = [{"make": word, "price": at} for at, word in enumerate(WORDS)]
    return [*rows, {}, {"make": None}, *({"make": [word, "Ford"], "price": 9} for word in WORDS)]


def test_it_is_points_of_the_folded_column_and_nothing_is_left_to_the_law():
    condition = td.parse("make in ('Straße', 'FORD') ignoring case").condition
    encoding = encode_condition("make", condition, Ontology())
    assert encoding.column.view is View.FOLDED
    assert [span[0] for span in encoding.spans] == [b"ford", b"strasse"]
    draft = FilterDraft(Ontology())
    for at, text in enumerate(FILTERS):
        draft.add(at, td.parse(text))
    assert not draft.items


@pytest.mark.parametrize("kind", [kind for kind in td.matchers() if kind in ("engine", "brute", "counting")])
def test_every_matcher_agrees_with_the_law(kind):
    searches = td.Matcher(kind=kind)
    searches.add_many(enumerate(FILTERS))
    for event in events():
        wanted = [at for at, text in enumerate(FILTERS) if td.evaluate(td.parse(text), event)]
        assert sorted(searches.match(event)) == wanted


def test_many_are_found_and_come_back_as_they_were_written(tmp_path):
    searches = td.Matcher()
    pairs = [(n, f"make = 'Make{n}' ignoring case and price < {n}") for n in range(3000)]
    searches.add_many(pairs)
    searches.save(tmp_path / "kept")
    for matcher in (searches, td.Matcher.open(tmp_path / "kept")):
        assert matcher.match({"make": "mAKE77", "price": 5}) == [77]
        assert matcher.match({"make": "make77", "price": 77}) == []
        assert td.render(matcher[77]) == pairs[77][1]
    assert "make (folded)" in str(searches.explain())


def test_texts_that_differ_in_case_alone_are_one():
    assert SameText(("Ford", "FORD", "opel")).values == ("Ford", "opel")
    with pytest.raises(ValueError, match="compares text"):
        SameText((5,))


ONE = td.Schema({"a": "text"})


@pytest.mark.parametrize(
    ("wide", "narrow", "holds"),
    [
        ("a = 'x' ignoring case", "a = 'X'", True),
        ("a in ('x', 'y') ignoring case", "a = 'Y' ignoring case", True),
        ("a starts with 'f' ignoring case", "a in ('Ford', 'FIAT') ignoring case", True),
        ("a exists", "a = 'x' ignoring case", True),
        ("a = 'x'", "a = 'x' ignoring case", False),
        ("a = 'y' ignoring case", "a in ('x', 'y') ignoring case", False),
        ("a = 'ford' ignoring case", "a starts with 'ford' ignoring case", False),
        ("a starts with 'f'", "a = 'ford' ignoring case", False),
    ],
)
def test_coverage_knows_case(wide, narrow, holds):
    assert covers(td.parse(wide), td.parse(narrow), schema=ONE) is holds


@pytest.mark.parametrize(
    ("first", "second", "meet"),
    [
        ("a = 'x' ignoring case", "a = 'y' ignoring case", False),
        ("a in ('x', 'z') ignoring case", "a in ('Y', 'Z') ignoring case", True),
        ("a = 'x' ignoring case", "a = 'X'", True),
        ("a = 'x' ignoring case", "a = 'y'", False),
        ("a = 'x' ignoring case", "a starts with 'y' ignoring case", False),
        ("a = 'x' ignoring case", "a != 'X' ignoring case", False),
    ],
)
def test_overlap_knows_case(first, second, meet):
    assert overlaps(td.parse(first), td.parse(second), schema=ONE) is meet
