"""What is told and when, against slow twins; forecasts on demand; and many patterns together."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import numpy as np
import pytest
from forecast_worlds import (
    build_events,
    build_pattern,
    check_same_counts,
    compute_mean_gaps,
    compute_own_gaps,
    draw_events,
    find_labels,
    list_changes,
    list_crossings,
    list_episodes,
    list_forecasts,
    split_streams,
    thin_curve,
    train_model,
    watch_pattern,
)
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.testing.strategies.patterns import patterns, streams

PLAIN = {"conditions": False, "absence": False}
KEYED = " and key = $x"
MODES = st.sampled_from(("restart", "overlap"))


# Alarms -----------------------------------------------------------------------------------------------


def walk(model, pattern, events):
    """Return for each stream its places, and of each of them whether it was a match and whether nothing has begun."""
    course, chances = model["p"].course, {}
    labels = find_labels(course, pattern, events)
    for key, places in split_streams(pattern, events).items():
        cell, hits, idle = course.start, [], []
        for place in places:
            hits.append(bool(course.hits[cell, labels[place]]))
            cell = int(course.table[cell, labels[place]])
            idle.append(bool(course.idle[cell]))
        chances[key] = places, hits, idle
    return chances


def list_alarms(model, pattern, events, mode, **plan):
    """Return the events that are told, cut in two anywhere."""
    whole = watch_pattern(pattern, mode, model=model, horizon=2, **plan)
    forecasts = list_forecasts(whole.detect_many(events).forecasts)
    for cut in {0, 1, len(events) // 2, len(events)}:
        parts = watch_pattern(pattern, mode, model=model, horizon=2, **plan)
        assert (
            list_forecasts(parts.detect_many(events[:cut]).forecasts)
            + list_forecasts(parts.detect_many(events[cut:]).forecasts)
            == forecasts
        )
    return forecasts


def check_alarms(pattern, history, events, mode, limit):
    """Hold all ways of telling to the probabilities at every event; `limit` picks one of those as the threshold."""
    model = train_model(pattern, history, mode, context=1)
    every = {event: p for event, _, p in list_alarms(model, pattern, events, mode, tell="every")}
    limit = sorted(every.values())[limit % len(every)] if every else 0.5
    wanted = defaultdict(list)
    for places, hits, idle in walk(model, pattern, events).values():
        chances = [every[place] for place in places]
        wanted["crossing"] += [places[at] for at in list_crossings(chances, limit)]
        wanted["episode"] += [places[at] for at in list_episodes(chances, limit, hits, idle)]
        wanted["change"] += [places[at] for at in list_changes(chances, limit)]
    for tell in ("crossing", "episode", "change"):
        alarm_list = list_alarms(model, pattern, events, mode, tell=tell, threshold=limit, step=limit)
        assert [event for event, *_ in alarm_list] == sorted(wanted[tell]), (tell, limit)
        assert [p for *_, p in alarm_list] == [every[event] for event, *_ in alarm_list]


@examples(33)
@given(patterns(**PLAIN), streams(most=12), streams(most=12), MODES, st.integers(0, 11))
def test_alarms_are_told_when_they_are_due(pattern, history, events, mode, limit):
    """A threshold that is one of the probabilities is not passed by it: alarms are strictly above."""
    check_alarms(pattern, history, events, mode, limit)


@examples(33)
@given(patterns(variables=True, **PLAIN), streams(most=12), streams(most=14), MODES, st.integers(0, 13))
def test_so_are_those_of_each_key(pattern, history, events, mode, limit):
    check_alarms(pattern, history, events, mode, limit)


def test_a_probability_that_is_the_threshold_is_no_alarm():
    events = build_events("abab")
    model = train_model(build_pattern("a , b"), build_events("bab"), context=0, smoothing=0, estimator="chain")
    for threshold, wanted in ((0.5, [2]), (0.49, [0])):  # where nothing has begun it is one half
        watch = watch_pattern(build_pattern("a , b"), model=model, horizon=2, threshold=threshold)
        assert watch.forecast("p")[0].probability == 0.5
        forecasts = watch.detect_many(build_events("cca")).forecasts
        assert [forecast.event for forecast in forecasts] == wanted
    watch = watch_pattern(build_pattern("a , b"), model=model, horizon=2, threshold=1)
    assert len(watch.detect_many(events).forecasts) == 0


def test_an_alarm_that_stays_is_told_once_where_nothing_has_begun():
    model = train_model(build_pattern("a , b"), build_events("ab" * 20 + "cab" * 10))
    watch = watch_pattern(build_pattern("a , b"), model=model, horizon=5, threshold=0.3, tell="episode")
    assert [forecast.event for forecast in watch.detect_many(build_events("cccccc")).forecasts] == [0]


def test_forecasts_are_in_the_order_of_the_events_whatever_the_patterns_keys():
    watch = td.Detector(learn=True)
    watch.add("one", build_pattern("a , b"), horizon=5, tell="every")
    watch.add("two", build_pattern("a ; b", key=KEYED), horizon=5, tell="every")
    watch.add("three", build_pattern("a ; b within 3 s"), horizon=5, tell="every")
    forecasts = watch.detect_many(draw_events(50, keys=3)).forecasts
    assert [forecast.event for forecast in forecasts] == sorted(list(range(50)) * 3)
    table = forecasts.to_arrow()
    assert table.column("event").to_pylist() == [forecast.event for forecast in forecasts]
    assert table.column("probability").to_pylist() == [forecast.forecast.probability for forecast in forecasts]
    assert forecasts.probabilities.tolist() == table.column("probability").to_pylist()
    assert table.column("pattern").to_pylist() == [forecast.forecast.pattern for forecast in forecasts]
    assert table.column("at").to_pylist() == [forecast.at for forecast in forecasts]
    assert table.column("key").to_pylist() == [
        None if forecast.forecast.key is None else str(forecast.forecast.key) for forecast in forecasts
    ]
    assert len(forecasts) == 150


# Forecasts on demand ----------------------------------------------------------------------------------


@examples(25)
@given(patterns(), streams(), streams(), st.sampled_from((3, "4 own events", "2 s")))
def test_a_pattern_without_a_key_has_one_forecast(pattern, history, events, horizon):
    history = [*history, *build_events("ab", [None, None])]
    for place, event in enumerate(history):
        event["time"] = build_events("a")[0]["time"] + timedelta(seconds=place)
    watch = watch_pattern(pattern, model=train_model(pattern, history))
    watch.detect_many(events)
    [forecast] = watch.forecast("p", horizon=horizon)
    assert forecast.key is None
    assert 0 <= forecast.probability <= 1


@examples(33)
@given(patterns(variables=True, **PLAIN), streams(most=14), streams(most=14))
def test_a_keyed_pattern_has_one_for_each_key_that_has_begun_something_and_one_for_the_others(pattern, history, events):
    model = train_model(pattern, history)
    watch = watch_pattern(pattern, model=model)
    watch.detect_many(events)
    keys = [forecast.key for forecast in watch.forecast("p", horizon=3)]
    idle = {key: idle[-1] for key, (_, _, idle) in walk(model, pattern, events).items()}
    assert keys[-1] is None
    assert None not in keys[:-1]
    assert len(keys) == 1 + sum(not of for of in idle.values())
    live = {(type(key) is bool, type(key) is str, key) for key in keys[:-1]}
    assert live == {key for key, of in idle.items() if not of}


def tabulate_curve(curve, count, gap):
    """The same from a table by half octaves: in proportion between two shares."""
    place = 2 * np.log2(gap)
    low = int(place)
    part = place - low
    return (
        thin_curve(curve, count, 2 ** (-low / 2)) * (1 - part) + thin_curve(curve, count, 2 ** (-(low + 1) / 2)) * part
    )


KEYS = 4


@pytest.mark.parametrize("every", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("count", [1, 5, 30])
def test_a_horizon_in_events_is_thinned_by_the_keys_share(every, count):
    """A key that has every n-th event: its gap is drawn towards that of the average key, as if that were one more."""
    pattern = build_pattern("a ; b , c", key=KEYED)
    history = draw_events(400, keys=KEYS)
    model = train_model(pattern, history, estimator="chain")
    events = [
        event | {"key": "mine" if place % every == 0 else f"other {place % every}"}
        for place, event in enumerate(build_events("a" * (every * 12 + 1)))
    ]
    watch = watch_pattern(pattern, model=model)
    watch.detect_many(events)

    def read_probability(horizon):
        [forecast] = [forecast for forecast in watch.forecast("p", horizon=horizon) if forecast.key == "mine"]
        return forecast.probability

    curve = [0.0, *(read_probability(f"{k} own events") for k in range(1, count + 1))]
    assert compute_mean_gaps([place for place, event in enumerate(events) if event["key"] == "mine"])[-1] == every
    gaps, total, _ = compute_own_gaps(pattern, history)
    gap = (every**12 * total / gaps) ** (1 / 13)  # twelve gaps of its own
    assert read_probability(count) == pytest.approx(tabulate_curve(curve, count, gap), rel=1e-9)
    assert read_probability(count) == pytest.approx(thin_curve(curve, count, 1 / gap), rel=0.06)  # half octaves apart


@pytest.mark.parametrize("count", [1, 5, 30])
def test_a_share_that_is_tabled_is_thinned_exactly(count):
    pattern, word = build_pattern("a ; b , c", key=KEYED), draw_events(400)
    history = [event | {"key": place % KEYS} for place, event in enumerate(word)]  # every gap is of so many events
    watch = watch_pattern(pattern, model=train_model(pattern, history, estimator="chain"))
    [mean] = watch.forecast("p", horizon=count)
    curve = [0.0] + [watch.forecast("p", horizon=f"{k} own events")[0].probability for k in range(1, count + 1)]
    assert mean.probability == pytest.approx(thin_curve(curve, count, 1 / KEYS), rel=1e-9)


@pytest.mark.parametrize("silent", [0, 1, 3, 4, 40])
def test_a_key_that_is_silent_for_longer_than_it_used_to_be_is_taken_for_slower(silent):
    """Its gap is the longer one of its mean and of the silence so far."""
    pattern, word, count = build_pattern("a ; b , c", key=KEYED), draw_events(400), 10
    history = [event | {"key": place % KEYS} for place, event in enumerate(word)]
    watch = watch_pattern(pattern, model=train_model(pattern, history, estimator="chain"))
    watch.detect_many(build_events(["a"] * 9 + ["d"] * silent, ["mine", "other"] * 4 + ["mine"] + ["other"] * silent))

    def read_probability(horizon):
        return next(forecast for forecast in watch.forecast("p", horizon=horizon) if forecast.key == "mine").probability

    curve = [0.0, *(read_probability(f"{k} own events") for k in range(1, count + 1))]
    gap = (max(2, silent) ** 4 * KEYS) ** (1 / 5)  # four gaps of two events
    assert read_probability(count) == pytest.approx(tabulate_curve(curve, count, gap), rel=1e-9)


def test_own_events_are_not_thinned():
    keyed, plain = build_pattern("a ; b , c", key=KEYED), build_pattern("a ; b , c")
    word = draw_events(300)
    model = train_model(keyed, [event | {"key": "k"} for event in word])
    two = train_model(plain, word)
    mine, other = watch_pattern(keyed, model=model), watch_pattern(plain, model=two)
    for watch in (mine, other):
        watch.detect_many([event | {"key": "k"} for event in word[:50]] + [build_events("a", ["k"])[0] | word[60]])
    for count in (1, 3, 10):
        expected_probability = mine.forecast("p", horizon=f"{count} own events")[0].probability
        assert expected_probability == pytest.approx(other.forecast("p", horizon=count)[0].probability, abs=1e-12)


def test_a_span_of_time_is_a_mixture_over_how_many_events_it_holds():
    from math import exp, factorial

    pattern = build_pattern("a ; b , c")
    watch = watch_pattern(pattern, model=train_model(pattern, draw_events(400), estimator="chain"))
    watch.detect_many(build_events("ca"))
    curve = [0.0] + [watch.forecast("p", horizon=k)[0].probability for k in range(1, 60)]
    for seconds in (1, 4, 10):  # one event in a second
        wanted = sum(exp(-seconds) * seconds**k / factorial(k) * p for k, p in enumerate(curve))
        [forecast] = watch.forecast("p", horizon=timedelta(seconds=seconds))
        assert forecast.probability == pytest.approx(wanted, rel=1e-6)
        assert forecast.horizon == timedelta(seconds=seconds)


def test_a_span_of_time_needs_times():
    pattern = build_pattern("a , b")
    model = td.train(watch_pattern(pattern), [{"kind": kind} for kind in "abab"])
    with pytest.raises(td.TidingsError, match=r"`5 min` needs .* events with times"):
        watch_pattern(pattern, model=model).forecast("p", horizon="5 min")


@examples(25)
@given(patterns(**PLAIN), streams(most=14), streams(most=6), st.sampled_from(("both", "chain", "direct")))
def test_quantiles_of_the_waiting_time_are_those_of_the_probabilities(pattern, history, events, estimator):
    watch = watch_pattern(pattern, model=train_model(pattern, history, estimator=estimator))
    watch.detect_many(events)
    [forecast] = watch.forecast("p", horizon=5)
    assert list(forecast.waiting) == [0.1, 0.25, 0.5, 0.75, 0.9]
    for quantile, count in forecast.waiting.items():
        if count is None:
            assert watch.forecast("p", horizon=1000)[0].probability < quantile
            continue
        assert watch.forecast("p", horizon=count)[0].probability >= quantile
        if count > 1:
            assert watch.forecast("p", horizon=count - 1)[0].probability < quantile


def test_quantiles_are_told_in_the_horizons_measure():
    pattern = build_pattern("a ; b", key=KEYED)
    watch = watch_pattern(pattern, model=train_model(pattern, draw_events(400, keys=4)))
    own, events, span = (watch.forecast("p", horizon=of)[-1].waiting[0.5] for of in ("5 own events", 5, "5 s"))
    assert events == pytest.approx(4 * own, abs=2)
    assert span == pytest.approx(timedelta(seconds=4 * own), abs=timedelta(seconds=2))


# Beginnings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("key", ["", KEYED])
@pytest.mark.parametrize("body", ["a , b ; c", "a ; b within 5 s", "a ; not b for 3 s"])
def test_a_new_pattern_has_a_forecast_from_its_first_event(body, key, learn):
    if "for" in body and key:
        body = "a ; b ; not c for 3 s"
    watch = watch_pattern(build_pattern(body, key=key), model=td.Model(), learn=learn, horizon=20, tell="every")
    [before] = watch.forecast("p")
    assert 0 < before.probability < 1
    forecasts = watch.detect_many(draw_events(1, keys=1)).forecasts
    assert len(forecasts) == 1
    assert 0 < next(iter(forecasts)).forecast.probability < 1


def test_a_new_pattern_is_told_by_how_often_events_satisfy_its_filters():
    history = draw_events(3000, kinds="aaab")
    model = train_model(build_pattern("a or b"), history)
    watch = td.Detector(model=model)
    watch.add("often", build_pattern("a , a"))
    watch.add("seldom", build_pattern("b , b"))
    often, seldom = (watch.forecast(name, horizon=2)[0] for name in ("often", "seldom"))
    assert often.probability == pytest.approx(9 / 16, abs=0.03)
    assert seldom.probability == pytest.approx(1 / 16, abs=0.03)
    assert often.estimator == "chain"


# Together --------------------------------------------------------------------------------------------


def test_another_patterns_match_does_not_absorb():
    """Two patterns that begin alike, and two names of one pattern: each is told as when it is alone."""
    history, events = draw_events(500, seed=4), draw_events(100, seed=5)
    bodies = {"short": "a , b", "long": "a , b ; c", "again": "a , b", "timed": "a ; b within 3 s"}
    both = td.Detector()
    for name, body in bodies.items():
        both.add(name, build_pattern(body))
    model = td.train(both, history)
    watch = td.Detector(model=model)
    for name, body in bodies.items():
        watch.add(name, build_pattern(body), horizon=4, tell="every")
    forecasts = watch.detect_many(events).forecasts
    for name, body in bodies.items():
        alone = watch_pattern(
            build_pattern(body), name=name, model=train_model(build_pattern(body), history), horizon=4, tell="every"
        )
        assert list_forecasts(forecasts, name) == list_forecasts(alone.detect_many(events).forecasts)
    assert list_forecasts(forecasts, "short") == list_forecasts(forecasts, "again")


def test_learning_predicts_first():
    """What is told of a batch does not know the batch: nothing of it is in the model before."""
    events = draw_events(15)
    watch = watch_pattern(build_pattern("a , b"), learn=True, horizon=2, tell="every")
    two = watch_pattern(build_pattern("a , b"), model=td.Model(), horizon=2, tell="every")
    assert list_forecasts(watch.detect_many(events).forecasts) == list_forecasts(two.detect_many(events).forecasts)
    check_same_counts(watch.model, td.train(watch_pattern(build_pattern("a , b")), events))
    assert two.model.now == (0, 0)
