"""Filters read back from rows, just as they were written."""

from datetime import UTC, datetime

import pytest
from tests.differential.engine_worlds import Drawer, set_to

import tidings as td
from tidings.model import And

TEXTS = [
    "a = 1", "a = 0.5", "a != 1", "a in (3, 1, 2)", "a in [1 .. 2]", "a in (1 .. 2]", "a in [1 .. 2)", "a in (1 .. 2)",
    "a > 1", "a >= 1", "a < 1", "a <= 1", "not (a < 1)", "all(a) in [1 .. 2]", "none(a) in (1, 2)",
    "a = 9007199254740993",
    "a > -9223372036854775808", "a in (2 .. 2)", "a in [5 .. 5]", "a = 2.0", "a = -0.0", "t = ''", "t = 'é'",
    "t in ('b', 'a')",
    "t in ['a' .. 'b')", "t contains 'x'", "t like 'a*' ignoring case", "t matches /^a/", "t starts with 'a'",
    "ok = true", "ok in (true, false)", "at = 2024-05-01T12:00:00.000001Z", "at < 1969-12-31",
    "at >= 0001-01-01", "a exists",
    "not (a is null)", "a = 1 and a = 1", "a = 1 and t = 'x' and a < 5", "a = 1 or t = 'x'", "true", "false",
    "not (true)", "p near (1, 2) 3 km", "x < y", "r has (a = 1)", "age(at) < 7 days", "ip in 10.0.0.0/8",
]  # fmt: skip


@pytest.mark.parametrize("way", ["everything waits", "compiled", "any plan"])
def test_what_was_written_is_read_back(way):
    with set_to(way):
        matcher = td.Matcher()
        matcher.add_many(enumerate(TEXTS))
        for _ in range(2):
            for id, text in enumerate(TEXTS):
                assert repr(matcher[id]) == repr(td.parse(text)), text
            matcher.compact()


def test_other_filters_do_not_change_it():
    with set_to("compiled"):
        matcher = td.Matcher()
        for id, text in enumerate(TEXTS):
            matcher.add(id, text)
            assert repr(matcher[id]) == repr(td.parse(text))
        assert [repr(matcher[id]) for id in range(len(TEXTS))] == [repr(td.parse(text)) for text in TEXTS]


def test_values_keep_their_types():
    with set_to("compiled"):
        matcher = td.Matcher()
        matcher.add_many([(1, "ok = true"), (2, "a = 1"), (3, "at = 2024-05-01")])
        values = [matcher[id].condition.value for id in (1, 2, 3)]
        assert values == [True, 1, datetime(2024, 5, 1, tzinfo=UTC)]
        assert [type(value) for value in values] == [bool, int, datetime]


@pytest.mark.parametrize("seed", range(6))
def test_drawn_filters_are_read_back_after_merges(seed):
    with set_to("any plan"):
        world = Drawer(900 + seed).world(60, 0)
        matcher = world.build_matcher()
        for id, tree in world.filters.items():
            matcher.add(id, tree)
        matcher.compact()
        assert {id: repr(matcher[id]) for id in matcher} == {id: repr(tree) for id, tree in world.filters.items()}


def test_what_was_accepted_is_read_back_from_a_snapshot_however_deep_and_long_its_tree_is(tmp_path):
    text = "a = 1"
    for level in range(100):  # of parentheses, with two levels of the tree in each
        text = f"(x{level} = 1 or y = 2 and {text})"
    deep, bound = td.parse(text), td.parse("z = 1 and (q = 2 or r = 3)")
    long = td.parse(" or ".join(f"x{number} = {number}" for number in range(6000)))  # 74 kB, as JSON 260 kB
    written = {"deep": And((deep, bound)), "long": And((long, bound)), "law": td.parse(f"items has {text}")}
    live = td.Live(tmp_path / "live")
    for id, tree in written.items():
        live.add(id, tree)
    again = td.Live(tmp_path / "live").open(live.version.number)
    assert {id: again[id] for id in written} == written
    event = {"x5": 5, "x99": 1, "z": 1, "q": 2, "items": [{"x99": 1}]}
    assert sorted(again.match(event)) == ["deep", "law", "long"]
    for id in written:
        td.Live(tmp_path / "live").remove(id)
