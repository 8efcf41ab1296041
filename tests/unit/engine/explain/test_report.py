"""What `explain` reckons: paths and their cost, memory, and each sentence on what makes matching slow."""

import json

import pytest

import tidings as td
from tidings.engine.explain.cost_estimate import EVENTS, AccessPath
from tidings.engine.explain.report import describe_state, measure_segment
from tidings.engine.state import EngineState

PLAIN = [f"make = 'm{number}'" for number in range(200)]


def compile_filters(filters, events=None):
    """A matcher with these filters in one segment, which has seen these events."""
    searches = td.Matcher()
    searches.add_many(enumerate(filters))
    searches.compact()
    if events is not None:
        searches.match_many(events)
    return searches


def plan(filters, events=None):
    return compile_filters(filters, events).explain().to_dict()


def segment(filters, events=None):
    (part,) = plan(filters, events)["segments"]
    return part


def test_nothing_is_slow_about_equalities():
    assert plan(PLAIN)["slow"] == []


@pytest.mark.parametrize("loose", [1, 12])
def test_filters_without_a_selective_predicate_are_counted(loose):
    slow = plan([*PLAIN, *(f"make != 'm{number}'" for number in range(loose))])["slow"]
    assert slow == [f"{loose} filter{'s have' if loose > 1 else ' has'} no selective predicate"]


def test_a_filter_with_one_selective_predicate_is_none_of_them():
    both = [f"make != 'm{number}' and price in [{number} .. {number + 1}]" for number in range(200)]
    assert segment(both)["unselective"] == 0


def test_filters_that_share_a_row_are_counted_each():
    searches = compile_filters([*PLAIN, *["make != 'm1'"] * 5])
    assert searches.explain().slow == ("5 filters have no selective predicate",)


def test_those_removed_are_not_counted():
    searches = compile_filters([*PLAIN, *["make != 'm1'"] * 5])
    searches.remove(203)
    plan = searches.explain()
    assert plan.slow == ("4 filters have no selective predicate",)
    assert plan.to_dict()["segments"][0]["removed"] == 1


def test_what_events_hold_decides_what_is_selective():
    """Half of the filters ask for what every event has; that shows only once events are known."""
    filters = [*(f"make = 'm{number}'" for number in range(100)), *["sold exists and make != 'x'"] * 50]
    never = [{"make": f"m{number}"} for number in range(100)]
    always = [{"make": f"m{number}", "sold": True} for number in range(100)]
    assert plan(filters, always)["slow"] == ["50 filters have no selective predicate"]
    assert plan(filters, never)["statistics"] == "events"


def test_expressions_without_a_literal_are_counted():
    slow = plan([*PLAIN, *(f"title matches /[a-f]{{2,{number + 3}}}[0-9]/" for number in range(38))])["slow"]
    assert slow == ["38 expressions without a literal"]
    assert plan([*PLAIN, *(f"title matches /volvo {number}[0-9]/" for number in range(38))])["slow"] == []


def large(number):
    return " and ".join(f"(a{part} = {number} or b{part} = {number})" for part in range(6))


def test_filters_kept_as_trees_are_counted():
    explanation = plan([*PLAIN, *map(large, range(3))])
    assert explanation["slow"] == ["3 filters are kept as trees (their normal form is too large)"]
    assert explanation["segments"][0]["trees"]["trees"] == 3
    assert plan([*PLAIN, large(1)])["slow"] == ["1 filter is kept as a tree (its normal form is too large)"]


def test_filters_decided_by_the_law_are_counted_and_why():
    compared = [f"make = 'm{number}' and price < limit" for number in range(40)]
    elements = [f"make = 'm{number}' and items has (sku = 'x' and qty > {number})" for number in range(17)]
    slow = plan([*PLAIN, *compared, *elements])["slow"]
    assert slow == ["57 filters are decided by the law (comparison of attributes, has)"]


def test_leaves_of_trees_decided_by_the_law_are_counted():
    slow = plan([*PLAIN, f"{large(1)} and price < limit"])["slow"]
    assert "1 leaf of trees is decided by the law (comparison of attributes)" in slow


def test_what_waits_beside_segments_is_said():
    searches = compile_filters(PLAIN)
    searches.add(1000, "make = 'x'")
    explanation = searches.explain().to_dict()
    assert explanation["slow"] == ["1 subscription is asked one by one until compiled"]
    assert explanation["waiting"]["subscriptions"] == 1
    assert explanation["nanoseconds"] >= explanation["waiting"]["nanoseconds"] > 0


def test_many_segments_are_said():
    (part,) = compile_filters(PLAIN).backend.state.parts
    assert describe_state(EngineState((part,) * 3), None)["slow"] == []
    assert describe_state(EngineState((part,) * 4), None)["slow"] == [
        "4 segments are asked one after the other until they are merged"
    ]


def test_candidates_of_a_key_are_the_rows_that_events_hit():
    events = [{"a": number % 7} for number in range(100)]
    filters = [f"a = {number % 1000} and b != {number}" for number in range(5000)]
    (path,) = segment(filters, events)["paths"]
    assert (path["kind"], path["columns"]) == ("key", ["a"])
    assert (path["rows"], path["clusters"]) == (5000, 1000)
    assert path["candidates"] == 5
    assert path["reason"] == "equality on a: 1 of 1,000"


def test_an_event_without_the_key_sees_nothing():
    filters = [f"a = {number % 1000} and b != {number}" for number in range(5000)]
    events = [{"a": number} if number % 2 else {"b": 1} for number in range(100)]
    (path,) = segment(filters, events)["paths"]
    assert path["candidates"] == 2.5


def test_candidates_of_hulls_are_the_rows_of_tiles_that_events_reach():
    filters = [f"a in [{number} .. {number + 5}]" for number in range(20_000)]
    events = [{"a": 200 * number} for number in range(100)]
    part = segment(filters, events)
    (path,) = part["paths"]
    assert path["kind"] == "hull"
    assert path["tiles"] == 20
    assert 1000 <= path["candidates"] <= 2000
    assert path["reason"].startswith("ranges of a lie together: 1 of 1")
    assert part["bitmaps"] == {"decide": 0, "need a check": 20}


def test_a_key_of_two_columns_names_both():
    filters = [f"make = 'm{number % 50}' and model = 'x{number // 50}'" for number in range(2500)]
    paths = {tuple(path["columns"]): path for path in segment(filters)["paths"]}
    path = paths["make", "model"]
    assert path["kind"] == "key of two"
    assert path["clusters"] == path["rows"]
    assert path["reason"].startswith("equality on make and model: 1 of ")


def test_paths_stand_in_order_of_cost_and_add_up():
    explanation = plan(
        [*PLAIN, *(f"price < {number}" for number in range(500)), large(1), "title contains 'x'", "a < b"]
    )
    (part,) = explanation["segments"]
    costs = [path["nanoseconds"] for path in part["paths"]]
    assert costs == sorted(costs, reverse=True)
    parts = sum(part[name]["nanoseconds"] for name in ("trees", "text", "second phase"))
    assert part["nanoseconds"] == pytest.approx(sum(costs) + parts, abs=len(costs) + 3)
    assert explanation["nanoseconds"] == part["nanoseconds"]


def test_all_rows_are_on_some_path():
    filters = [*PLAIN, *(f"price in [{n} .. {n + 9}] and year in ({n}, {n + 1})" for n in range(3000)), "a != 1"]
    part = segment(filters)
    assert sum(path["rows"] for path in part["paths"]) >= part["rows"] == len(filters)


def test_the_second_phase_costs_what_the_first_lets_through():
    few = segment([*PLAIN, *(f"make = 'm{number}' and price < limit" for number in range(100))])
    all_of_them = segment([*PLAIN, *(f"price < limit{number}" for number in range(100))])
    assert few["second phase"]["nanoseconds"] * 10 < all_of_them["second phase"]["nanoseconds"]


def test_areas_are_left_to_the_second_phase():
    areas = [f"spot within POLYGON(({n} 0, {n + 1} 0, {n + 1} 1, {n} 1, {n} 0))" for n in range(3)]
    second = segment([*PLAIN, *areas])["second phase"]
    assert (second["areas"], second["filters with areas"], second["filters by the law"]) == (3, 3, 0)


def test_bytes_are_those_of_the_arrays():
    searches = compile_filters(PLAIN)
    (part,) = searches.backend.state.parts
    whole = measure_segment(part.segment)
    rows = part.segment.index.rows
    assert whole > rows.literal.nbytes + rows.slot.nbytes
    assert whole < 200 * 500
    assert segment(PLAIN)["bytes"] == whole


def test_filters_kept_as_written_take_bytes():
    assert segment([f"(make = 'm{n}' or price < {n})" for n in range(200)])["bytes"] > segment(PLAIN)["bytes"]


def test_the_values_are_plain_and_the_same_each_time():
    filters = [*PLAIN, large(1), "title matches /[a-f]+/", "a < b", "price < 3"]
    assert json.dumps(plan(filters)) == json.dumps(plan(filters))


def test_a_reopened_snapshot_explains_itself_alike(tmp_path):
    searches = compile_filters([*PLAIN, *(f"price in [{n} .. {n + 9}]" for n in range(500)), large(1)])
    searches.save(tmp_path / "kept")
    before, after = (matcher.explain().to_dict() for matcher in (searches, td.Matcher.open(tmp_path / "kept")))
    assert before["segments"][0]["paths"] == after["segments"][0]["paths"]
    assert before["slow"] == after["slow"]


def test_an_empty_engine_has_a_plan():
    explanation = td.Matcher().explain().to_dict()
    assert (explanation["subscriptions"], explanation["segments"], explanation["slow"]) == (0, [], [])


def test_a_path_that_shows_nothing_is_one_of_many():
    assert AccessPath((0,), "key", 10, 10, 0, 0.0, 20.0).rows_per_candidate == 10 * EVENTS
