"""Following: where keys stand, when alarms are told, and what is kept of keys."""

from __future__ import annotations

import pytest

import tidings as td
from tidings.forecast.predicting.following import POLICIES
from tidings.kernels.forecast.forecasts import CHANGE, CROSSING, EPISODE, EVERY, apply_alarm_rule
from tidings.patterns.tuning import DetectorTuning

KEYED = "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; b"
NAN = float("nan")


def judge(policy, limit, steps):
    """Return where something is told of a list of (probability, hit, idle)."""
    memory, alarms = NAN, []
    plain = getattr(apply_alarm_rule, "py_func", apply_alarm_rule)
    for at, (probability, hit, idle) in enumerate(steps):
        tells, memory = plain(policy, limit, probability, memory, hit, idle)
        alarms += [at] * bool(tells)
    return alarms


def list_begun(*chances):
    return [(chance, False, False) for chance in chances]


def test_there_are_four_ways_to_tell():
    assert set(POLICIES) == {"crossing", "episode", "every", "change"}


def test_every_tells_always():
    assert judge(EVERY, 0, list_begun(0, 1, 0)) == [0, 1, 2]


def test_crossing_tells_when_it_rises_above():
    assert judge(CROSSING, 0.5, list_begun(0.5, 0.6, 0.7, 0.5, 0.6)) == [1, 4]


def test_change_tells_by_what_was_told_last():
    assert judge(CHANGE, 0.1, list_begun(0.5, 0.55, 0.6, 0.65, 0.5)) == [0, 3, 4]


def test_an_episode_is_told_once_although_it_falls_in_between():
    assert judge(EPISODE, 0.5, list_begun(0.6, 0.4, 0.6)) == [0]


def test_a_match_ends_an_episode():
    assert judge(EPISODE, 0.5, [(0.6, False, False), (0.4, True, False), (0.6, False, False)]) == [0, 2]
    assert judge(EPISODE, 0.5, [(0.6, False, False), (0.7, True, False), (0.6, False, False)]) == [0, 1]


def test_so_does_the_end_of_all_that_had_begun():
    assert judge(EPISODE, 0.5, [(0.6, False, False), (0.1, False, True), (0.6, False, False)]) == [0, 2]


def test_where_nothing_has_begun_an_alarm_that_stays_is_told_once():
    assert judge(EPISODE, 0.5, [(0.6, False, True)] * 3) == [0]
    assert judge(EPISODE, 0.5, [(0.6, False, True), (0.4, False, True), (0.6, False, True)]) == [0, 2]
    assert judge(EPISODE, 0.5, [(0.6, False, True), (0.6, False, False), (0.6, False, True)]) == [0, 2]


def watching(**settings):
    made = td.Detector(learn=True, **settings)
    made.add("pair", KEYED, horizon=5, tell="every")
    return made


@pytest.fixture
def watch():
    return watching()


@pytest.fixture
def forgetful_watch():
    return watching(tuning=DetectorTuning(kept_values=2))


def test_keys_that_have_begun_something_are_live(watch):
    watch.detect_many([{"kind": "a", "key": 1}, {"kind": "a", "key": 2}, {"kind": "b", "key": 1}, {"kind": "a"}])
    assert [forecast.key for forecast in watch.forecast("pair")] == [2, None]


def test_events_without_a_key_are_foretold_of_none(watch):
    forecasts = watch.detect_many([{"kind": "a"}, {"kind": "a", "key": 1}, {"kind": "c", "key": 7}]).forecasts
    assert [(forecast.event, forecast.forecast.key) for forecast in forecasts] == [(1, 1), (2, 7)]


def test_keys_are_told_as_they_were_given(watch):
    forecasts = watch.detect_many([{"kind": "a", "key": key} for key in ("x", 1, True)]).forecasts
    assert [forecast.forecast.key for forecast in forecasts] == ["x", 1, True]
    assert forecasts.to_arrow().column("key").to_pylist() == ["x", "1", "true"]


def test_keys_that_are_numbered_anew_go_on(watch, forgetful_watch):
    events = [{"kind": "abc"[place % 3], "key": place % 7 if place < 200 else place % 13} for place in range(400)]
    wanted = [
        (forecast.event, forecast.forecast)
        for at in range(0, 400, 40)
        for forecast in watch.detect_many(events[at : at + 40]).forecasts
    ]
    keys = [
        (forecast.event, forecast.forecast)
        for at in range(0, 400, 40)
        for forecast in forgetful_watch.detect_many(events[at : at + 40]).forecasts
    ]
    assert keys == wanted


def test_forecasts_are_read_later_although_keys_were_numbered_anew(forgetful_watch):
    kept = [forgetful_watch.detect_many([{"kind": "b", "key": f"k{place}"}]).forecasts for place in range(50)]
    assert [forecast.forecast.key for of in kept for forecast in of] == [f"k{place}" for place in range(50)]
