"""The candidates tree of the classifieds paper: what is in the tree, what the final revision decides."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.algebra.law.typed_attribute import TypedAttribute
from tidings.bench.workloads import workload
from tidings.kernels.papers.revision import revise
from tidings.papers.classifieds.candidates_tree import TREE_NAMES, CandidatesTree
from tidings.papers.common.name_order import MIN_PATHS
from tidings.testing.strategies import cases

KIND = "candidates-tree"


def fill_matcher(filters, kind=KIND, **keywords):
    matcher = td.Matcher(kind, **keywords)
    matcher.add_many(filters.items())
    return matcher


def inside(matcher) -> CandidatesTree:
    return matcher.backend.algorithm


def candidates(matcher, event):
    setting = matcher.make_setting()
    rows = inside(matcher).find_candidates(matcher.get_view().reader.read(event, setting.now), setting)
    return sorted(inside(matcher).path_rows.owners.get_owner(row) for row in rows.tolist())


def pad_filters(filters, **more):
    """Enough filters for names to be chosen: `make` most often, then `model`."""
    often = {f"pad{at}": f"make = 'other{at % 5}' and model = 'm{at}'" for at in range(4 * MIN_PATHS)}
    return {**often, **{f"more{at}": f"make = 'o' and price < {at}" for at in range(5)}, **filters, **more}


def test_the_most_frequent_fixed_names_make_the_tree():
    matcher = fill_matcher(pad_filters({f"p{at}": f"price < {at} and age > 1" for at in range(5 * MIN_PATHS)}))
    assert matcher.explain().to_dict()["names in the tree"] == ["make as text", "model as text"][:TREE_NAMES]


def test_more_names_make_the_tree_where_two_reach_too_few():
    filters = {at: f"n{at % 10} = {at} and n{(at + 1) % 10} = 1" for at in range(20 * MIN_PATHS)}
    matcher = fill_matcher(filters)
    assert TREE_NAMES < len(matcher.explain().to_dict()["names in the tree"]) < 10
    assert candidates(matcher, {}) == []
    assert matcher.match({"n3": 43, "n4": 1}) == [43]


def test_a_price_is_no_business_of_the_tree():
    matcher = fill_matcher(
        pad_filters({"a": "make = 'ford' and price < 1", "b": "make = 'ford' and price > 5", "c": "price = 9"})
    )
    assert candidates(matcher, {"make": "ford", "price": 7}) == ["a", "b", "c"]
    assert matcher.match({"make": "ford", "price": 7}) == ["b"]


def test_what_no_tree_can_hold_is_a_candidate_at_the_root():
    wide = " and ".join(f"(a{at} = 1 or b{at} = 1)" for at in range(11))
    filters = {"not": "not make = 'ford'", "wide": wide, "compare": "price < cost", "true": "true", "false": "false"}
    matcher = fill_matcher(pad_filters(filters))
    assert candidates(matcher, {}) == ["compare", "not", "true", "wide"]
    assert sorted(matcher.match({"make": "opel", "price": 1, "cost": 2})) == ["compare", "not", "true"]
    assert sorted(matcher.match({f"a{at}": 1 for at in range(11)})) == ["not", "true", "wide"]


def test_an_or_has_a_path_for_each_of_its_conjunctions_and_comes_once():
    matcher = fill_matcher(pad_filters({"or": "make = 'ford' or make = 'opel' and model = 'astra'"}))
    assert candidates(matcher, {"make": ["ford", "opel"], "model": "astra"}) == ["or", "or"]
    assert matcher.match({"make": ["ford", "opel"], "model": "astra"}) == ["or"]
    assert candidates(matcher, {"make": "opel"}) == []


def test_a_second_test_of_a_name_is_left_to_the_revision():
    matcher = fill_matcher(pad_filters({"two": "make = 'ford' and make = 'opel'"}))
    assert candidates(matcher, {"make": "ford"}) == ["two"]
    assert [matcher.match({"make": value}) for value in ("ford", ["ford", "opel"])] == [[], ["two"]]


@pytest.mark.parametrize(
    "value", [2**53, 2**53 + 1, float(2**53), td.Range(1, 2**53), [1, td.Range(4, 5)], True, 1, []]
)
def test_numbers_are_exact_in_the_revision(value):
    texts = ["a = 9007199254740993", "a > 9007199254740992", "a in (1, 9007199254740992)", "a in (1 .. 4]", "a >= 5"]
    filters = dict(enumerate([*texts, "a < 9007199254740993", "a in [4 .. 5)"]))
    if value is True:
        filters = {0: "a = true", 1: "a in (true, false)", 2: "a != true"}
    event = {"a": value}
    assert set(fill_matcher(filters).match(event)) == set(fill_matcher(filters, "brute").match(event))


PLACES = [(179, 5), (-179, 5), (-179, 11), (0, 5), [(179, 50), (0, 5)], [(-179, 5), (0, 0)], None]


@pytest.mark.parametrize("place", PLACES)
def test_the_bounds_of_an_area_rule_out_nothing_that_it_holds(place):
    filters = {
        1: "spot within POLYGON((170 0, -170 0, -170 10, 170 10, 170 0))",
        2: "spot within POLYGON((170 0, 190 0, 190 10, 170 10, 170 0)) and none(spot) near (179, 5) 1 km",
        3: "not spot within POLYGON((170 0, 190 0, 190 10, 170 10, 170 0))",
        4: "all(spot) within POLYGON((-180 -90, 180 -90, 180 90, -180 90, -180 -90))",
    }
    assert set(fill_matcher(filters).match({"spot": place})) == set(
        fill_matcher(filters, "brute").match({"spot": place})
    )


def test_everything_goes_when_everyone_leaves():
    matcher = fill_matcher(
        pad_filters({"or": "a = 1 or color in ('red', 'blue') and spot within POLYGON((1 1, 2 1, 2 2, 1 1))"})
    )
    for id in list(matcher)[:-1]:
        matcher.remove(id)
    algorithm = inside(matcher)
    assert (algorithm.path_rows.owners.row_count, len(algorithm.law_parts)) == (2, 1)
    a, color, spot = TypedAttribute("a", "number"), TypedAttribute("color", "text"), TypedAttribute("spot", "place")
    assert set(algorithm.revision.columns.numbers) == {a, color, (spot, "lon"), (spot, "lat")}
    assert set(algorithm.revision.codes.numbers) == {"red", "blue"}
    matcher.remove("or")
    owners = algorithm.path_rows.owners
    assert (owners.row_count, algorithm.law_parts, algorithm.filters, owners.multi_row_filters) == (0, {}, {}, 0)
    assert algorithm.name_order.counts == {}


def test_rows_that_went_leave_their_room_to_those_that_come():
    matcher = fill_matcher({at: f"a < {at} and b = 'x{at}'" for at in range(50)})
    revision = inside(matcher).revision
    used = revision.blocks.length
    for at in range(50):
        matcher.remove(at)
        matcher.add(100 + at, f"a > {at} and b = 'y{at}'")
    assert (revision.blocks.length, len(revision.codes)) == (used, 50)
    assert matcher.match({"a": 30, "b": "y7"}) == [107]


@examples(60)
@given(cases(bad=False, filters=6, events=5), st.integers(0, 3))
def test_it_agrees_with_brute_however_many_names_make_the_tree(case, names):
    brute, matcher = (td.Matcher("brute", **case.world.keywords) for _ in range(2))
    tree = CandidatesTree(names, names)
    tree.name_order.reordered_at = 1  # choose names for the first filters already
    matcher.backend.algorithm = tree
    matcher.add_many(enumerate(case.filters))
    brute.add_many(enumerate(case.filters))
    for event in case.events:
        try:
            wanted = brute.match(event)
        except td.BadEvent:
            continue
        matches = matcher.match(event)
        assert (len(matches), set(matches)) == (len(wanted), set(wanted))


def test_it_agrees_with_the_engine_on_the_classifieds():
    cars = workload("classifieds")
    matcher, engine = cars.matcher(KIND), cars.matcher()
    searches, ads = cars.columns(1500, seed=3), cars.event_rows(60, seed=3)
    matcher.add_many(searches)
    engine.add_many(searches)
    assert [set(ids) for ids in matcher.match_many(ads).by_event()] == [
        set(ids) for ids in engine.match_many(ads).by_event()
    ]
    assert matcher.explain().to_dict()["names in the tree"] == ["make as text", "model as text"][:TREE_NAMES]


@pytest.mark.parametrize("kind", [KIND, "filter-tree"])
def test_events_descend_while_filters_come_and_go(kind):
    matcher = fill_matcher({at: f"a = {at % 7} and b < {at}" for at in range(200)}, kind)
    wanted, event, wrong, over = set(range(3, 200, 7)), {"a": 3, "b": -1}, [], threading.Event()

    def read():
        while not over.is_set():
            if not wanted <= set(matcher.match(event)):
                wrong.append(1)

    reader = threading.Thread(target=read)
    reader.start()
    for at in range(1000, 1300):
        matcher.add(at, f"a = {at % 7} and b < {at}")
        matcher.remove(at)
    over.set()
    reader.join()
    assert not wrong
    assert set(matcher.match(event)) == wanted


def test_the_kernel_takes_any_of_the_ways_and_all_of_the_tests():
    spans = np.array([[0, 3], [3, 0], [0, 2]])
    entries = np.array([[-1.0, 1, 1], [0, 5, 6], [1, 0, 9]])
    rows = np.array([0, 1, 2], np.int32)

    def keep_rows(first, second):
        bounds = np.array([[0, len(first)], [len(first), len(first) + len(second)]])
        return revise(rows, spans, entries, bounds, np.array([*first, *second], np.float64)).tolist()

    assert keep_rows([1], [3]) == [0, 1, 2]
    assert keep_rows([4, 6], []) == [1, 2]
    assert keep_rows([2], [3]) == [1]
