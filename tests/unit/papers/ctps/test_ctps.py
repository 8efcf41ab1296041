"""CTPS answers as the law does, also where the paper's text does not."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.papers.ctps.concept_worlds import build_matcher, check_steps, events, list_answers, steps

import tidings as td
from tidings.bench.workloads import workload
from tidings.errors import BadSubscriptions, Unsupported
from tidings.papers.ctps.ctps import Ctps

QUIET = examples(150, suppress_health_check=list(HealthCheck))


@QUIET
@given(steps(), st.lists(events(), min_size=1, max_size=4))
def test_every_step_leaves_the_answers_of_the_law(done, seen):
    emptied = check_steps("ctps", done, seen).explain().to_dict()
    assert [emptied[part] for part in ("bits", "roots", "nodes", "grids")] == [0, 0, 0, 0]


def test_a_subscription_whose_attribute_is_absent_is_not_kept():
    # Algorithm 6 visits the event's attributes only, and starts with all subscriptions alive.
    assert list_answers("ctps", {"a": "email = 'x'", "b": "size > 3"}, {"call": "x"}) == []


def test_two_names_of_one_tree_do_not_clear_each_other():
    # `email` finds `a` and clears `b`; `call` finds `b` and clears `a`.
    both = {"email": "x", "call": "y"}
    assert list_answers("ctps", {"a": "email = 'x'", "b": "call = 'y'", "c": "contact = 'y'"}, both) == [
        "a",
        "b",
        "c",
    ]


def test_a_name_and_a_value_must_belong_to_one_pair():
    # Name and value are checked in two steps: `email` is there, and so is `y`, but not together.
    assert list_answers("ctps", {"a": "email = 'y'"}, {"email": "x", "call": "y"}) == []


def test_several_values_do_not_clear_each_other():
    assert list_answers("ctps", {"a": "item is a 'toy'", "b": "item is a 'phone'"}, {"item": ["toy", "phablet"]}) == [
        "a",
        "b",
    ]


def test_value_trees_are_found_by_the_attribute_that_uses_them():
    # m2 is filled by value name and read by attribute name: nothing is ever found there.
    assert list_answers("ctps", {"a": "place is a 'device'", "b": "item is a 'device'"}, {"desk": "notebook"}) == ["a"]


def test_two_constraints_on_one_root_both_count():
    # One bit for each subscription and tree: `size > 1` and `size < 3` both set it, and one lifts the other.
    filters = {"in": "size > 1 and size < 3", "names": "width > 1 and depth < 1"}
    assert list_answers("ctps", filters, {"width": 2}) == ["in"]
    assert list_answers("ctps", filters, {"width": 5}) == []
    assert list_answers("ctps", filters, {"width": 5, "depth": 0}) == ["in", "names"]


def test_all_parents_of_a_concept_are_walked():
    filters = {"a": "item is a 'computer'", "b": "item is a 'phone'", "c": "item is a 'toy'", "d": "item = 'tablet'"}
    assert list_answers("ctps", filters, {"item": "phablet"}) == ["a", "b"]


def test_what_no_tree_knows_is_a_leaf_of_its_own():
    assert list_answers("ctps", {"a": "item exists", "b": "item is a 'device'"}, {"item": "unheard of"}) == ["a"]


def test_ends_are_kept_beside_the_cells():
    # Algorithm 5 sets a bit in a cell and never fills `list`, which Algorithm 9 compares the value with.
    wide = {"far": "price in [0 .. 1000]"}  # so the others share one cell, and only their ends tell them apart
    near = {"a": "price in [501 .. 503]", "b": "price in (503 .. 505]", "c": "price = 503", "d": "price < 503"}
    assert list_answers("ctps", wide | near, {"price": 503}) == ["a", "c", "far"]
    assert list_answers("ctps", wide | near, {"price": 504}) == ["b", "far"]


@pytest.mark.parametrize("value", [-50, 0, 19.5, 20, 45, 60, 99, 100, 1000])
def test_every_part_of_the_grid_is_compared_where_it_must_be(value):
    # Line 19 of Algorithm 9 reads cell[x][r] for part D, where x has left its loop.
    ends = [0, 10, 20, 39, 40, 45, 50, 60, 61, 99, 100]
    filters = {f"{low}..{high}": f"price in [{low} .. {high}]" for low in ends for high in ends if low <= high}
    filters |= {f"({low}": f"price > {low}" for low in ends} | {f"{high})": f"price < {high}" for high in ends}
    list_answers("ctps", filters, {"price": value})


def test_ends_beyond_the_domain_seen_so_far_are_found():
    made = build_matcher("ctps")
    made.add_many({"a": "price in [0 .. 1]", "b": "price in [2 .. 3]"}.items())
    made.add("far", "price in [1000 .. 2000]")
    made.add("low", "price < -1000")
    assert [made.match({"price": value}) for value in (0, 2.5, 1500, -1e300, 1e300)] == [
        ["a"],
        ["b"],
        ["far"],
        ["low"],
        [],
    ]


def test_a_grid_is_dealt_out_anew_when_it_has_doubled():
    made = Ctps(td.Ontology(), cells=10)
    for at in range(200):
        made.add_many([(at, made.compile_filter(td.parse(f"a in [{at} .. {at + 1}]")))])
    grids = made.grids.arrays
    assert grids.domain.scale[0] > 0
    used = np.count_nonzero(grids.rows[0] >= 0)
    assert used >= 10  # the diagonal, and not one cell for all that came after the first


def test_what_it_has_not_is_refused_by_name():
    made = build_matcher("ctps")
    for text in ("email != 'x'", "email starts with 'x'", "not (size > 3)", "all(size) > 3", "email in ['a' .. 'b']"):
        with pytest.raises(Unsupported, match=r"td\.Matcher\(\)") as caught:
            made.add("s", text)
        assert caught.value.kind == "ctps"
    with pytest.raises(BadSubscriptions):
        made.add_many([("a", "size > 3"), ("b", "size is null")])
    assert len(made) == 0


def test_slots_are_used_again():
    made = build_matcher("ctps")
    for turn in range(50):
        made.add_many({f"{turn}-{at}": f"size > {at} and item is a 'phone'" for at in range(20)}.items())
        made.remove_many(list(made))
    algorithm = made.backend.algorithm
    assert algorithm.owners.capacity <= 20
    assert len(algorithm.bit_rows.bits) < 100


@pytest.mark.parametrize("height", [1, 4])
def test_the_papers_workload_has_the_answers_of_brute_force(height):
    work = workload(f"concepts:height={height}")
    subscriptions, seen = list(work.pairs(600, 3)), work.event_rows(30, 3)
    ids = []
    for kind in ("brute", "ctps"):
        made = work.matcher(kind)
        made.add_many(subscriptions[:400])
        made.add_many(subscriptions[300:])
        made.remove_many([id for id, _ in subscriptions[100:150]])
        ids.append([sorted(ids) for ids in made.match_many(seen).by_event()])
    assert ids[0] == ids[1]
    assert any(ids[0]) or height > 1
