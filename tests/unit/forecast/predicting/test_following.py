"""Following: where keys stand, when alarms are told, and what is kept of keys."""

from __future__ import annotations

import random
from dataclasses import replace

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


def judge_own(tell, limit, steps):
    """Return where something is told of (probability, accepted) by definition, at accepted events alone."""
    last, alarms = None, []
    for at, (probability, is_accepted) in enumerate(steps):
        has_changed = tell == "change" and last is not None and abs(probability - last) > limit
        if tell == "crossing" and probability <= limit:
            last = None
        elif is_accepted and (tell == "every" or last is None or has_changed):
            last = probability
            alarms.append(at)
    return alarms


@pytest.mark.parametrize("pattern", ["a ; a ; b", "a ; b within 1 h", "a ; not b for 5 s", "a and b"])
@pytest.mark.parametrize("key", ["", " and key = $x"])
@pytest.mark.parametrize(("tell", "limit"), [("crossing", 0.35), ("change", 0.02), ("every", 0.0)])
def test_own_forecasts_are_told_at_events_that_a_filter_accepts_and_what_is_not_told_is_told_later(
    pattern, key, tell, limit
):
    text = f"a = kind = 'a'{key}\nb = kind = 'b'{key}\n{pattern}"
    rng, watch = random.Random(7), td.Detector(time="ts")
    events = [{"ts": place, "kind": rng.choice("abcc"), "key": rng.randrange(3)} for place in range(600)]
    watch.add("p", text)
    model = td.train(watch, events)

    def list_forecasts(own, **plan):
        detector = td.Detector(model=model, time="ts")
        detector.add("p", text, horizon="4 own events", **plan)
        detector.plans["p"] = replace(detector.plans["p"], own=own)
        pieces = [detector.detect_many(events[at : at + 50]).forecasts for at in range(0, 600, 50)]
        return [(row.event, row.forecast.key, row.forecast.probability) for piece in pieces for row in piece]

    expected, by_key = [], {}
    for row in list_forecasts(own=False, tell="every"):
        by_key.setdefault(row[1], []).append(row)
    for rows in by_key.values():
        steps = [(probability, events[event]["kind"] in "ab") for event, _, probability in rows]
        expected += [rows[at] for at in judge_own(tell, limit, steps)]
    plan = {"step": limit} if tell == "change" else {"threshold": limit}
    assert list_forecasts(own=True, tell=tell, **plan) == sorted(expected)
    assert 10 < len(expected) < 400


def test_an_episode_that_begins_at_an_event_of_others_is_told_at_the_next_own_one():
    model = td.train(watching(), [{"kind": "ab"[place % 2], "key": 1} for place in range(50)])
    detector = td.Detector(model=model)
    detector.add("p", "a = kind = 'a'\na ; a2:a", horizon=1, threshold=0.0, tell="episode")
    detector.plans["p"] = replace(detector.plans["p"], own=True)
    forecasts = detector.detect_many([{"kind": kind} for kind in "ccaca"]).forecasts
    assert [forecast.event for forecast in forecasts] == [2]


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
