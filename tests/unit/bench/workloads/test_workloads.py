"""Workloads in bulk: the same for everyone, with the matches they promise, and one meaning in every form."""

import numpy as np
import pyarrow as pa
import pytest
import shapely
from tests.unit.bench.workloads.columns_oracle import Oracle

import tidings as td
from tidings.bench.harness.baselines import Expressions, Scan
from tidings.bench.workloads import WORKLOADS, data_folder, workload
from tidings.bench.workloads import boolean_trees as trees
from tidings.model import And, Not, Or
from tidings.model import walk_tests as leaves_of

REAL = ("used-cars", "house-sales")
without_data = pytest.mark.skipif(data_folder() is None, reason="the real data are not here")
KEYS = [pytest.param(key, marks=without_data) if key in REAL else key for key in WORKLOADS]
PAIRS = ("boolean", "boolean-and", "text", "concepts")
COLUMNS = [key for key in KEYS if key not in PAIRS]


def show_filter(filter):
    return filter if isinstance(filter, str) else td.render(filter)


@pytest.mark.parametrize("key", KEYS)
def test_a_seed_gives_the_same_workload_every_time(key):
    drawn_again, second = workload(key), workload(key)
    assert drawn_again.events(20, 3).equals(second.events(20, 3))
    assert not drawn_again.events(20, 3).equals(second.events(20, 4))
    if drawn_again.make_columns:
        assert drawn_again.columns(30, 3).equals(second.columns(30, 3))
        assert not drawn_again.columns(30, 3).equals(second.columns(30, 4))
    else:
        first = [(id, show_filter(filter)) for id, filter in drawn_again.pairs(30, 7)]
        trees.draw_pool.cache_clear()
        trees.draw_shapes.cache_clear()
        assert [(id, show_filter(filter)) for id, filter in second.pairs(30, 7)] == first


@pytest.mark.parametrize("key", KEYS)
def test_every_subscription_and_event_is_read(key):
    chosen = workload(key)
    matcher = chosen.matcher("brute")
    matcher.add_many(chosen.pairs(200, 7))
    assert list(matcher) == [f"s{row}" for row in range(200)]
    assert not matcher.match_many(chosen.events(20, 7), on_error="collect").dead_letters


def test_a_valid_polygon_of_geo_is_read():
    # Longitudes that are added up step by step do not come back to where they began, and the ring crosses itself.
    area = (
        "POLYGON((0.0832 51.4791, 0.0578 51.652, -0.1602 51.5525, -0.2684 51.5829, -0.2494 51.4675,"
        " -0.1558 51.388, -0.0866 51.4799, 0.0832 51.4791))"
    )
    assert shapely.is_valid(shapely.from_wkt(area))
    td.parse(f"spot within {area}")


@pytest.mark.parametrize("key", COLUMNS)
def test_columns_and_text_mean_the_same(key):
    chosen = workload(key)
    events = chosen.events(40, 2)
    matcher = chosen.matcher("brute")
    matcher.add_many(chosen.texts(150, 2))
    oracle, scan = Oracle(chosen.columns(150, 2)), Scan(chosen.columns(150, 2))
    rows_by_law = [sorted(int(id[1:]) for id in ids) for ids in matcher.match_many(events).by_event()]
    assert [oracle.find_rows(event).tolist() for event in chosen.event_rows(40, 2)] == rows_by_law
    assert [scan.find_rows(cells).tolist() for cells in scan.prepare_events(events)] == rows_by_law


@pytest.mark.parametrize("key", COLUMNS)
def test_rows_as_mappings_are_the_same_events(key):
    chosen = workload(key)
    rows = chosen.event_rows(5, 2)
    assert [{k: v for k, v in row.items() if v is not None} for row in chosen.events(5, 2).to_pylist()] == rows
    assert all(None not in row.values() for row in rows)


@pytest.mark.parametrize(
    ("key", "n", "events"),
    [
        ("ranges", 20_000, 1500),
        ("ranges-float", 20_000, 1500),
        ("ranges:wanted=3,attributes=6,width=0.2", 2000, 500),
        ("equalities", 20_000, 1500),
        ("hem", 2000, 4000),
        ("hem:m=3,delta=0.1", 5000, 1000),
        ("classifieds", 5000, 800),
        ("sparse", 100_000, 8000),
        ("geo", 4000, 400),
        pytest.param("used-cars", 5000, 500, marks=without_data),
        pytest.param("house-sales", 3000, 200, marks=without_data),
    ],
)
def test_events_have_the_matches_that_are_stated(key, n, events):
    chosen = workload(key)
    oracle = Oracle(chosen.columns(n, 7))
    mean_matches = np.mean([len(oracle.find_rows(event)) for event in chosen.event_rows(events, 7)])
    assert mean_matches == pytest.approx(chosen.expected(n), rel=chosen.tolerance)


@pytest.mark.parametrize("key", ["boolean", "boolean-and", "concepts:height=1"])
def test_trees_and_concepts_have_the_matches_that_are_stated(key):
    chosen = workload(key)
    matcher = chosen.matcher("brute")
    matcher.add_many(chosen.pairs(800, 7))
    mean_matches = len(matcher.match_many(chosen.events(40, 7))) / 40
    assert mean_matches == pytest.approx(chosen.expected(800), rel=chosen.tolerance)


def test_texts_have_the_matches_that_are_stated():
    chosen = workload("text")
    mean_matches = Expressions(list(chosen.pairs(2000, 7)), "title").count_matches(chosen.event_rows(400, 7)).mean()
    assert mean_matches == pytest.approx(chosen.expected(2000), rel=chosen.tolerance)


def test_concepts_have_the_matches_that_are_stated():
    chosen, height, n, count = workload("concepts"), 5, 10_000, 1000

    def find_node(name):
        path = name.partition("_")[2]
        return len(path), int(path or "0", 2)

    # For each attribute a row of numbers for each filter: its name's node, then its value's node or its two ends.
    ends_by_name = {}
    for _, tree in chosen.pairs(n, 7):
        for part in tree.parts:
            condition = part.condition
            ends = (
                find_node(condition.concept)
                if hasattr(condition, "concept")
                else (condition.low or 0.0, 1.0 if condition.high is None else condition.high)
            )
            ends_by_name.setdefault(part.attribute.partition("_")[0], []).append((*find_node(part.attribute), *ends))
    columns = {name: list(zip(*rows, strict=True)) for name, rows in ends_by_name.items()}
    columns = {name: [np.array(numbers) for numbers in rows] for name, rows in columns.items()}
    number = 0
    for event in chosen.event_rows(count, 7):
        alive = np.ones(n, bool)
        for name, value in event.items():
            level, place, low, high = columns[name.partition("_")[0]]
            alive &= find_node(name)[1] >> (height - level) == place
            if isinstance(value, str):
                alive &= find_node(value)[1] >> (height - low) == high
            else:
                alive &= (low <= value) & (value <= high)
        number += alive.sum()
    assert number / count == pytest.approx(chosen.expected(n), rel=chosen.tolerance)


def test_trees_are_as_the_workload_says():
    chosen = workload("boolean-and")
    trees = [tree for _, tree in chosen.pairs(500, 7)]
    sizes = [sum(1 for _ in leaves_of(tree)) for tree in trees]
    assert (min(sizes), max(sizes)) == (5, 15)
    assert all(isinstance(tree, And) for tree in trees)
    assert max(map(_count_levels, trees)) <= 9
    assert all(len(part.parts) in (2, 3) for tree in trees for part in _list_inner_nodes(tree))
    nodes = [node for tree in trees for node in _list_nodes(tree)]
    assert 0.05 < sum(isinstance(node, Not) for node in nodes) / len(nodes) < 0.13
    leaves = [id(test) for tree in trees for _, test in leaves_of(tree)]
    assert len(set(leaves)) < 0.8 * len(leaves)  # popular predicates are one object
    free = [tree for _, tree in workload("boolean").pairs(300, 7)]
    assert {type(tree) for tree in free} == {And, Or, Not}


def _count_levels(tree):
    if isinstance(tree, Not):
        return _count_levels(tree.part)
    return 1 + max(map(_count_levels, tree.parts)) if isinstance(tree, And | Or) else 1


def _list_nodes(tree):
    yield tree
    for part in [tree.part] if isinstance(tree, Not) else getattr(tree, "parts", ()):
        yield from _list_nodes(part)


def _list_inner_nodes(tree):
    return [node for node in _list_nodes(tree) if isinstance(node, And | Or)]


def test_pairs_are_made_as_they_are_asked_for():
    for key in ("boolean", "text", "concepts"):
        assert next(workload(key).pairs(10**9, 7))[0] == "s0"


def test_searches_have_one_to_six_predicates_and_a_polygon_in_one_of_twenty():
    chosen = workload("classifieds")
    filters = chosen.texts(20_000, 1).column("filter").to_pylist()
    sizes = {text.count(" and ") + 1 for text in filters}
    assert sizes == {1, 2, 3, 4, 5, 6}
    assert 0.04 < np.mean(["POLYGON" in text for text in filters]) < 0.06
    assert any(" in ('" in text for text in filters)


def test_parameters_come_with_the_key():
    assert workload("hem:m=3,delta=0.1").expected(1000) == pytest.approx(1.0)
    assert workload("hem:m=3,delta=0.1").key == "hem:m=3,delta=0.1"
    assert workload("concepts:height=2").events(3, 1).num_columns == 6 * 4


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("rnges", "unknown workload `rnges`; did you mean `ranges`?"),
        ("hem:k=3", "the workload `hem` has no parameter `k`; it has m, delta"),
        ("hem:m=three", "cannot read `m=three` in `hem:m=three`"),
        ("text:m=3", "the workload `text` has no parameter `m`; it has none"),
    ],
)
def test_a_wrong_key_is_refused_with_the_way_out(key, message):
    with pytest.raises(td.TidingsError, match=message.split("`")[0]) as refusal:
        workload(key)
    assert message in str(refusal.value)


@pytest.mark.parametrize("key", REAL)
def test_real_workloads_without_data_say_what_to_do(key, monkeypatch, tmp_path):
    from tidings.bench.workloads import real_data

    for cached_function in (
        real_data.load_cars,
        real_data.load_houses,
        real_data.load_counties,
        real_data.load_zip_areas,
    ):
        cached_function.cache_clear()
    monkeypatch.setenv("TIDINGS_DATA", str(tmp_path))
    with pytest.raises(td.TidingsError, match="set TIDINGS_DATA") as refusal:
        workload(key).events(3, 1)
    assert f"`{key}` needs real data" in str(refusal.value)


def test_workloads_that_are_pairs_have_no_columns():
    with pytest.raises(td.TidingsError, match="take its pairs"):
        workload("boolean").columns(3, 1)
    assert workload("text").texts(3, 1).column_names == ["id", "filter"]
    assert isinstance(workload("ranges").subscriptions(3, 1), pa.Table)
    assert next(workload("text").subscriptions(3, 1))[0] == "s0"
