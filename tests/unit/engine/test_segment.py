"""Segments: each subscription once, whatever rows, keys and values led to it."""

import numpy as np
import pytest
from tests.differential.engine_worlds import WAYS, set_to

import tidings as td
from tidings.engine.tuning import EngineTuning, use_tuning


@pytest.mark.parametrize("way", WAYS)
def test_a_subscription_comes_once(way):
    with set_to(way):
        matcher = td.Matcher()
        matcher.add_many(
            [
                (1, "a = 1 or a = 2 or a in (1, 2, 3) or b exists"),
                (2, "a in (1, 2, 3) and t in ('x', 'y')"),
                (3, "a in (1, 2, 3) and t in ('x', 'y')"),
                (4, "p near (0, 0) 1 km or p near (0, 0) 2 km or a = 1"),
            ]
        )
        events = [
            {"a": [1, 2, 3], "b": 1, "t": ["x", "y"], "p": (0, 0)},
            {"a": 1, "t": "x"},
            {"p": [(0, 0), (0, 0.001)]},
        ]
        assert [sorted(ids) for ids in matcher.match_many(events).by_event()] == [[1, 2, 3, 4], [1, 2, 3, 4], [4]]
        assert [sorted(matcher.match(event)) for event in events] == [[1, 2, 3, 4], [1, 2, 3, 4], [4]]


@pytest.mark.parametrize("way", WAYS)
def test_many_share_one_filter(way):
    with set_to(way):
        matcher = td.Matcher()
        matcher.add_many((f"s{id}", ("a = 1 and b < 5", "a = 2", "a = 1 or a = 2")[id % 3]) for id in range(300))
        assert len(matcher.match({"a": 1, "b": 1})) == 200
        assert len(matcher.match({"a": 2})) == 200
        matcher.remove_many(f"s{id}" for id in range(0, 300, 2))
        assert len(matcher.match({"a": 1, "b": 1})) == 100


@pytest.mark.parametrize("way", WAYS)
def test_contradictions_hold_of_several_values_alone(way):
    texts = [
        "a >= 2 and a <= 3",
        "a = 1 and a = 10",
        "a < 2 and a > 5",
        "tags = 'x' and tags = 'y'",
        "a = 1 and not (all(a) in [0 .. 2])",
        "a in (1, 2) and none(a) = 10",
        "a = 1 and a in (10, 20)",
    ]
    with set_to(way):
        matcher = td.Matcher()
        matcher.add_many(enumerate(texts))
        events = [{"a": [1, 10]}, {"a": 2}, {"a": td.Range(1, 10)}, {"tags": ["x", "y"]}, {"tags": "x"}, {"a": 1}]
        answers = [sorted(ids) for ids in matcher.match_many(events).by_event()]
    assert answers == [
        sorted(at for at, text in enumerate(texts) if td.evaluate(td.parse(text), event)) for event in events
    ]
    assert answers[0] == [0, 1, 2, 4, 6]


def test_row_of_finds_each_slots_row():
    with set_to("any plan"):
        matcher = td.Matcher()
        matcher.add_many((id, f"a = {id % 7}") for id in range(50))
        [part] = matcher.backend.state.parts
    rows = part.segment.index.rows
    entry = rows.entry if len(rows.entry) else np.arange(len(rows.slot) + 1)
    for slot, row in enumerate(part.segment.row_of.tolist()):
        assert slot in rows.slot[entry[row] : entry[row + 1]].tolist()


def test_text_patterns_stay_with_their_segment():
    with use_tuning(EngineTuning(waiting_limit=0, growth=0, merges_in_background=False)):
        matcher = td.Matcher()
        matcher.add_many([(id, f"t contains 'a{id}'") for id in range(20)])
        matcher.add_many([(100, "t contains 'zz'")])
        assert sorted(matcher.match({"t": "a1 zz a19"})) == [1, 19, 100]
        assert [sorted(ids) for ids in matcher.match_many([{"t": "zz"}, {"t": ["a2", "zz"]}]).by_event()] == [
            [100],
            [2, 100],
        ]
