"""States never change: each change gives another one, and the old one answers as before."""

import numpy as np
import pytest
from tests.differential.engine_worlds import set_to
from tests.unit.engine.invariants import check_state

import tidings as td
from tidings.engine.state import EngineState


@pytest.fixture
def state():
    with set_to("compiled"):
        matcher = td.Matcher()
        matcher.add_many((f"s{id}", f"a = {id}") for id in range(20))
    return matcher.backend.state


def test_a_state_without_some_is_another_state(state):
    less = state.delete_ids(["s1", "s2", "s1", "nobody"])
    assert (len(state), len(less)) == (20, 18)
    assert (less.find("s1"), state.find("s1")) == (None, (state.parts[0].segment, 1))
    assert set(state.iterate_ids()) - set(less.iterate_ids()) == {"s1", "s2"}
    check_state(less)


def test_one_and_many_are_removed_alike(state):
    single = state.delete_ids(["s3"]).delete_ids(["s4"])
    many = state.delete_ids(["s3", "s4"])
    assert list(single.iterate_ids()) == list(many.iterate_ids())
    assert single.parts[0].deleted.tolist() == many.parts[0].deleted.tolist()


def test_the_dead_are_counted_once(state):
    part = state.parts[0].delete_slots(np.array([1, 1, 2])).delete_slots(np.array([2, 3]))
    assert (part.deleted_count, len(part), part.list_live_slots().tolist()[:3]) == (3, 17, [0, 4, 5])
    assert (part.find("s1"), part.find("s4")) == (-1, 4)


def test_removing_nobody_changes_no_part(state):
    assert state.delete_ids(["nobody"]).parts[0] is state.parts[0]
    assert state.parts[0].delete_slots(np.zeros(0, np.int64)) is state.parts[0]


def test_an_empty_state_is_empty():
    assert (len(EngineState()), list(EngineState().iterate_ids()), EngineState().find("x")) == (0, [], None)
    check_state(EngineState().delete_ids(["x"]))


def test_an_old_state_goes_on_to_answer():
    with set_to("compiled"):
        matcher = td.Matcher()
        matcher.add_many((id, "a = 1") for id in range(10))
        before = matcher.backend.state
        matcher.remove_many(range(5))
        matcher.compact()
    assert sorted(before.iterate_ids()) == list(range(10))
    assert sorted(matcher.backend.state.iterate_ids()) == list(range(5, 10))
