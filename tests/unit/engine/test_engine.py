"""The store: what waits, what is compiled, when segments merge, and what a change leaves behind."""

import pytest
from tests.differential.engine_worlds import set_to
from tests.unit.engine.invariants import check_state

import tidings as td
from tidings.engine.tuning import EngineTuning, use_tuning

FEW = EngineTuning().waiting_limit


@pytest.fixture
def compile_at_once():
    with set_to("compiled"):
        yield


def state(matcher):
    return matcher.backend.state


def test_a_few_wait_and_more_are_compiled():
    matcher = td.Matcher()
    for id in range(FEW):
        matcher.add(id, f"a = {id}")
    assert (len(state(matcher).waiting), len(state(matcher).parts)) == (FEW, 0)
    matcher.add(-1, "a = 0")
    assert (len(state(matcher).waiting), len(state(matcher).parts)) == (0, 1)
    assert sorted(matcher.match({"a": 0})) == [-1, 0]


def test_many_are_compiled_at_once():
    matcher = td.Matcher()
    matcher.add_many((id, f"a = {id}") for id in range(FEW + 1))
    assert not state(matcher).waiting


def test_a_replaced_subscription_is_the_new_one_wherever_the_old_one_was(compile_at_once):
    matcher = td.Matcher()
    matcher.add_many((id, "a = 1") for id in range(10))
    matcher.add(3, "a = 2")
    matcher.add_many([(4, "a = 2"), (4, "a = 3"), (5, "a = 2")])
    assert (len(matcher), sorted(matcher.match({"a": 1}))) == (10, [0, 1, 2, 6, 7, 8, 9])
    assert (sorted(matcher.match({"a": 2})), matcher.match({"a": 3})) == ([3, 5], [4])
    check_state(state(matcher))


def test_what_waits_replaces_what_is_compiled_and_the_other_way_round():
    matcher = td.Matcher()
    matcher.add_many((id, "a = 1") for id in range(100))
    matcher.add(5, "a = 2")
    assert list(state(matcher).waiting) == [5]
    assert matcher.match({"a": 2}) == [5]
    matcher.add_many((id, "a = 3") for id in range(100))
    assert (len(matcher), len(matcher.match({"a": 3})), state(matcher).waiting) == (100, 100, {})
    check_state(state(matcher))


def test_small_segments_merge_at_once(compile_at_once):
    matcher = td.Matcher()
    for id in range(40):
        matcher.add(id, f"a > {id}")
    assert len(state(matcher).parts) < 8
    assert matcher.backend.merges > 5
    assert len(matcher.match({"a": 100})) == 40


def test_large_ones_merge_beside():
    with use_tuning(EngineTuning(waiting_limit=0, inline_merge_limit=10)):
        matcher = td.Matcher()
    for first in range(0, 200, 20):
        matcher.add_many((id, f"a > {id}") for id in range(first, first + 20))
    matcher.backend.settle()
    assert len(state(matcher).parts) <= 3
    assert len(matcher.match({"a": 1000})) == 200
    check_state(state(matcher))


def test_a_segment_with_many_dead_is_built_anew(compile_at_once):
    matcher = td.Matcher()
    matcher.add_many((id, f"a > {id}") for id in range(100))
    matcher.remove_many(range(50))
    matcher.backend.settle()
    assert sum(part.deleted_count for part in state(matcher).parts) == 0
    assert sorted(matcher.match({"a": 1000})) == list(range(50, 100))


def test_a_segment_all_dead_is_dropped(compile_at_once):
    matcher = td.Matcher()
    matcher.add_many((id, f"a > {id}") for id in range(10))
    matcher.remove_many(range(10))
    matcher.backend.settle()
    assert (len(matcher), len(state(matcher).parts), list(matcher), matcher.match({"a": 100})) == (0, 0, [], [])
    matcher.add(1, "a = 1")
    assert matcher.match({"a": 1}) == [1]


def test_compact_leaves_one_segment_and_nothing_waiting():
    matcher = td.Matcher()
    matcher.add_many((id, f"a > {id}") for id in range(100))
    matcher.remove_many(range(10))
    matcher.add(500, "b = 1 or b = 2")
    matcher.compact()
    assert [(len(part), part.deleted_count) for part in state(matcher).parts] == [(91, 0)]
    assert not state(matcher).waiting
    matcher.compact()
    assert len(matcher) == 91


def test_compacting_nothing_is_fine():
    matcher = td.Matcher()
    matcher.compact()
    assert (len(matcher), matcher.match({})) == (0, [])


def test_the_planner_learns_from_events():
    with set_to("compiled"):
        matcher = td.Matcher()
        matcher.add_many((id, f"a = {id % 20} and b < {id % 9}") for id in range(200))
        events = [{"a": at % 20, "b": at % 9, "c": 1} for at in range(100)]
        before = [set(ids) for ids in matcher.match_many(events).by_event()]
        assert matcher.explain().to_dict()["statistics"] == "events"
        matcher.add(1000, "c = 1 or d contains 'x'")
        matcher.compact()
        assert [set(ids) - {1000} for ids in matcher.match_many(events).by_event()] == before


def test_demands_of_the_removed_are_taken_back(compile_at_once):
    matcher = td.Matcher()
    matcher.add_many(
        [
            (1, "a = 1 and t contains 'x'"),
            (2, "a = 1 or b exists"),
            (3, "c is null and not (d > 1)"),
            (4, "e in (1, 2)"),
        ]
    )
    matcher.remove_many([1, 3])
    assert sorted(matcher.needs()) == ["a", "b", "e"]
    matcher.remove_many([2, 4])
    assert matcher.needs() == {}
    matcher.add(5, "a = 'text now'")
    assert matcher.match({"a": "text now"}) == [5]


def test_a_failed_change_leaves_everything_as_it_was(compile_at_once):
    matcher = td.Matcher()
    matcher.add_many([(1, "a = 1")])
    before = state(matcher)
    with pytest.raises(td.TidingsError):
        matcher.add_many([(2, "b = 1"), (1, "a = 'x' and a >")])
    assert state(matcher) is before
    assert (list(matcher), sorted(matcher.needs())) == ([1], ["a"])


@pytest.mark.parametrize("bad", [2**63, -(2**63) - 1, "\ud800"])
def test_an_id_that_cannot_be_kept_is_refused_at_the_door(bad):
    """Not later, when it is compiled together with others that are fine."""
    matcher = td.Matcher()
    with pytest.raises(td.TidingsError, match="id"):
        matcher.add(bad, "a = 1")
    assert (len(matcher), matcher.needs()) == (0, {})
    assert [id for id, _ in matcher.add_many([(bad, "a = 1")], on_error="collect")] == [bad]
    for at in range(2 * FEW):
        matcher.add(at if isinstance(bad, int) else str(at), "b = 1")
    assert len(matcher.match({"b": 1})) == 2 * FEW


def test_a_change_that_fails_half_way_asks_for_nothing(monkeypatch):
    matcher = td.Matcher()
    matcher.add(1, "a = 1")
    monkeypatch.setattr(matcher.backend, "commit", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        matcher.add(2, "b = 1")
    assert sorted(matcher.needs()) == ["a"]


def test_ranges_over_two_keys_visit_the_keys_there_are(compile_at_once):
    """Not every pair of points between their ends: of 3,000 by 3,000 that would be nine million look-ups."""
    matcher = td.Matcher()
    matcher.add_many((id, f"a = {id} and b = {id * 7919 % 3000}") for id in range(3000))
    assert state(matcher).parts[0].segment.choice["key of two columns"] > 2900
    matches = matcher.match({"a": td.Range(10, 2000), "b": td.Range(None, 1500, high_open=True)})
    assert set(matches) == {id for id in range(10, 2001) if id * 7919 % 3000 < 1500}
    assert len(matches) == len(set(matches))
