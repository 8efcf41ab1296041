"""How a plan is printed: one headline, what is slow, tables cut to a length that people read."""

import json

import pytest

import tidings as td
from tidings.matcher.plan import SHOWN, Sheet, format_time


def plan(filters, **settings):
    searches = td.Matcher(**settings)
    searches.add_many(enumerate(filters))
    searches.compact()
    return searches.explain()


def test_brute_force_prints_its_figures():
    printed = str(plan(["make = 'ford'", "price < 3"], kind="brute"))
    assert printed.startswith("matcher brute\nwork\n")
    assert "brute force" in printed
    assert printed.endswith("attributes\n  make   several text\n  price  several number")


def test_the_engine_prints_the_whole_plan():
    filters = [f"make = 'm{number}' and price < {number}" for number in range(4000)]
    filters += ["make != 'm1'"] * 2 + ["make = 'm2' and a < b"]
    lines = str(plan(filters)).splitlines()
    assert lines[0].startswith("matcher engine: 4,003 subscriptions, about ")
    assert lines[0].endswith(" to judge an event, going by the values that filters name")
    assert lines[1] == "slow: 2 filters have no selective predicate"
    assert lines[2] == "slow: 1 filter is decided by the law (comparison of attributes)"
    assert lines[3].startswith("segment 1: 4,003 subscriptions, 4,003 rows, ")
    assert lines[4].split() == ["found", "by", "how", "rows", "clusters", "tiles", "candidates", "time", "because"]
    assert any(line.startswith("  make      key") and "equality on make: 1 of " in line for line in lines)
    assert any(line.startswith("  second phase: 1 test of 1 filter by the law: ") for line in lines)
    assert "attributes" in lines


def test_columns_stand_under_their_heads():
    lines = str(plan([f"make = 'm{number % 9}' and price < {number}" for number in range(300)])).splitlines()
    head, row = next((line, lines[at + 1]) for at, line in enumerate(lines) if line.startswith("  found by"))
    for name in ("rows", "clusters", "tiles", "candidates", "time"):
        end = head.index(f" {name}") + len(name)
        assert row[end] != " "
        assert row[end + 1] == " "


def test_text_trees_and_bitmaps_have_their_lines():
    large = " and ".join(f"(a{part} = 1 or b{part} = 1)" for part in range(6))
    patterns = [f"title contains 'word{number}'" for number in range(100)]
    printed = str(plan([*patterns, large, *["title matches /[0-9]/"], *(f"p < {n}" for n in range(300))]))
    assert "text of title: 101 patterns, 100 literals, 1 without a literal: " in printed
    assert "1 tree over 12 leaves, 0 sub-trees shared: " in printed
    assert "what bitmaps of 1 tile let through is checked" in printed


def test_what_waits_has_its_line():
    searches = td.Matcher()
    searches.add("s1", "a = 1")
    printed = str(searches.explain())
    assert "waiting: 1 asked one by one, " in printed
    assert "segment" not in printed


def test_a_long_list_is_cut_and_the_rest_counted():
    filters = [f"a{number % 40} = {number}" for number in range(4000)]
    explanation = plan(filters)
    paths = explanation.to_dict()["segments"][0]["paths"]
    assert len(paths) == 40
    printed = str(explanation)
    assert sum("equality on" in line for line in printed.splitlines()) == SHOWN
    rest = paths[SHOWN:]
    assert f"and {len(rest)} more ways: {sum(path['rows'] for path in rest):,} rows, " in printed
    assert "and 16 more attributes" in printed
    assert len(explanation.to_dict()["attributes"]) == 40


def test_plain_values_survive_json():
    explanation = plan([f"make = 'm{number}'" for number in range(100)]).to_dict()
    assert json.loads(json.dumps(explanation)) == explanation
    assert explanation["kind"] == "engine"


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(0, "0 ns"), (999, "999 ns"), (1000, "1.0 µs"), (12_340, "12 µs"), (2_500_000, "2.5 ms"), (4e9, "4,000 ms")],
)
def test_times_have_the_unit_that_suits(nanoseconds, text):
    assert format_time(nanoseconds) == text


def test_a_sheet_without_rows_is_its_title():
    assert str(Sheet("nothing", (), ())) == "nothing"
