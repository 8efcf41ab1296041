"""What is told and when, against slow twins; forecasts on demand; and many patterns together."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import numpy as np
import pytest
from forecast_worlds import (
    changes,
    crossings,
    episodes,
    events_of,
    labels_of,
    mean_gaps,
    own_gaps,
    pattern_of,
    random_events,
    same_counts,
    streams_of,
    thinned,
    told,
    trained,
    watching,
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
    course, found = model["p"].course, {}
    labels = labels_of(course, pattern, events)
    for key, places in streams_of(pattern, events).items():
        cell, hits, idle = course.start, [], []
        for place in places:
            hits.append(bool(course.hits[cell, labels[place]]))
            cell = int(course.table[cell, labels[place]])
            idle.append(bool(course.idle[cell]))
        found[key] = places, hits, idle
    return found


def alarms(model, pattern, events, mode, **plan):
    """Return the events that are told, cut in two anywhere."""
    whole = watching(pattern, mode, model=model, horizon=2, **plan)
    found = told(whole.detect_many(events).forecasts)
    for cut in {0, 1, len(events) // 2, len(events)}:
        parts = watching(pattern, mode, model=model, horizon=2, **plan)
        assert (
            told(parts.detect_many(events[:cut]).forecasts) + told(parts.detect_many(events[cut:]).forecasts) == found
        )
    return found


def check_alarms(pattern, history, events, mode, limit):
    """Hold all ways of telling to the probabilities at every event; `limit` picks one of those as the threshold."""
    model = trained(pattern, history, mode, context=1)
    every = {event: p for event, _, p in alarms(model, pattern, events, mode, tell="every")}
    limit = sorted(every.values())[limit % len(every)] if every else 0.5
    wanted = defaultdict(list)
    for places, hits, idle in walk(model, pattern, events).values():
        chances = [every[place] for place in places]
        wanted["crossing"] += [places[at] for at in crossings(chances, limit)]
        wanted["episode"] += [places[at] for at in episodes(chances, limit, hits, idle)]
        wanted["change"] += [places[at] for at in changes(chances, limit)]
    for tell in ("crossing", "episode", "change"):
        found = alarms(model, pattern, events, mode, tell=tell, threshold=limit, step=limit)
        assert [event for event, *_ in found] == sorted(wanted[tell]), (tell, limit)
        assert [p for *_, p in found] == [every[event] for event, *_ in found]


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
    events = events_of("abab")
    model = trained(pattern_of("a , b"), events_of("bab"), context=0, smoothing=0, estimator="chain")
    for threshold, wanted in ((0.5, [2]), (0.49, [0])):  # where nothing has begun it is one half
        watch = watching(pattern_of("a , b"), model=model, horizon=2, threshold=threshold)
        assert watch.forecast("p")[0].probability == 0.5
        found = watch.detect_many(events_of("cca")).forecasts
        assert [one.event for one in found] == wanted
    watch = watching(pattern_of("a , b"), model=model, horizon=2, threshold=1)
    assert len(watch.detect_many(events).forecasts) == 0


def test_an_alarm_that_stays_is_told_once_where_nothing_has_begun():
    model = trained(pattern_of("a , b"), events_of("ab" * 20 + "cab" * 10))
    watch = watching(pattern_of("a , b"), model=model, horizon=5, threshold=0.3, tell="episode")
    assert [one.event for one in watch.detect_many(events_of("cccccc")).forecasts] == [0]


def test_forecasts_are_in_the_order_of_the_events_whatever_the_patterns_keys():
    watch = td.Detector(learn=True)
    watch.add("one", pattern_of("a , b"), horizon=5, tell="every")
    watch.add("two", pattern_of("a ; b", key=KEYED), horizon=5, tell="every")
    watch.add("three", pattern_of("a ; b within 3 s"), horizon=5, tell="every")
    found = watch.detect_many(random_events(50, keys=3)).forecasts
    assert [one.event for one in found] == sorted(list(range(50)) * 3)
    table = found.to_arrow()
    assert table.column("event").to_pylist() == [one.event for one in found]
    assert table.column("probability").to_pylist() == [one.forecast.probability for one in found]
    assert found.probabilities.tolist() == table.column("probability").to_pylist()
    assert table.column("pattern").to_pylist() == [one.forecast.pattern for one in found]
    assert table.column("at").to_pylist() == [one.at for one in found]
    assert table.column("key").to_pylist() == [
        None if one.forecast.key is None else str(one.forecast.key) for one in found
    ]
    assert len(found) == 150


# Forecasts on demand ----------------------------------------------------------------------------------


@examples(25)
@given(patterns(), streams(), streams(), st.sampled_from((3, "4 own events", "2 s")))
def test_a_pattern_without_a_key_has_one_forecast(pattern, history, events, horizon):
    history = [*history, *events_of("ab", [None, None])]
    for place, event in enumerate(history):
        event["time"] = events_of("a")[0]["time"] + timedelta(seconds=place)
    watch = watching(pattern, model=trained(pattern, history))
    watch.detect_many(events)
    [found] = watch.forecast("p", horizon=horizon)
    assert found.key is None
    assert 0 <= found.probability <= 1


@examples(33)
@given(patterns(variables=True, **PLAIN), streams(most=14), streams(most=14))
def test_a_keyed_pattern_has_one_for_each_key_that_has_begun_something_and_one_for_the_others(pattern, history, events):
    model = trained(pattern, history)
    watch = watching(pattern, model=model)
    watch.detect_many(events)
    found = [one.key for one in watch.forecast("p", horizon=3)]
    idle = {key: idle[-1] for key, (_, _, idle) in walk(model, pattern, events).items()}
    assert found[-1] is None
    assert None not in found[:-1]
    assert len(found) == 1 + sum(not of for of in idle.values())
    live = {(type(key) is bool, type(key) is str, key) for key in found[:-1]}
    assert live == {key for key, of in idle.items() if not of}


def tabled(curve, count, gap):
    """The same from a table by half octaves: in proportion between two shares."""
    place = 2 * np.log2(gap)
    low = int(place)
    part = place - low
    return thinned(curve, count, 2 ** (-low / 2)) * (1 - part) + thinned(curve, count, 2 ** (-(low + 1) / 2)) * part


KEYS = 4


@pytest.mark.parametrize("every", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("count", [1, 5, 30])
def test_a_horizon_in_events_is_thinned_by_the_keys_share(every, count):
    """A key that has every n-th event: its gap is drawn towards that of the average key, as if that were one more."""
    pattern = pattern_of("a ; b , c", key=KEYED)
    history = random_events(400, keys=KEYS)
    model = trained(pattern, history, estimator="chain")
    events = [
        event | {"key": "mine" if place % every == 0 else f"other {place % every}"}
        for place, event in enumerate(events_of("a" * (every * 12 + 1)))
    ]
    watch = watching(pattern, model=model)
    watch.detect_many(events)

    def probability(horizon):
        [found] = [one for one in watch.forecast("p", horizon=horizon) if one.key == "mine"]
        return found.probability

    curve = [0.0, *(probability(f"{k} own events") for k in range(1, count + 1))]
    assert mean_gaps([place for place, event in enumerate(events) if event["key"] == "mine"])[-1] == every
    gaps, total, _ = own_gaps(pattern, history)
    gap = (every**12 * total / gaps) ** (1 / 13)  # twelve gaps of its own
    assert probability(count) == pytest.approx(tabled(curve, count, gap), rel=1e-9)
    assert probability(count) == pytest.approx(thinned(curve, count, 1 / gap), rel=0.06)  # half octaves apart


@pytest.mark.parametrize("count", [1, 5, 30])
def test_a_share_that_is_tabled_is_thinned_exactly(count):
    pattern, word = pattern_of("a ; b , c", key=KEYED), random_events(400)
    history = [event | {"key": place % KEYS} for place, event in enumerate(word)]  # every gap is of so many events
    watch = watching(pattern, model=trained(pattern, history, estimator="chain"))
    [mean] = watch.forecast("p", horizon=count)
    curve = [0.0] + [watch.forecast("p", horizon=f"{k} own events")[0].probability for k in range(1, count + 1)]
    assert mean.probability == pytest.approx(thinned(curve, count, 1 / KEYS), rel=1e-9)


@pytest.mark.parametrize("silent", [0, 1, 3, 4, 40])
def test_a_key_that_is_silent_for_longer_than_it_used_to_be_is_taken_for_slower(silent):
    """Its gap is the longer one of its mean and of the silence so far."""
    pattern, word, count = pattern_of("a ; b , c", key=KEYED), random_events(400), 10
    history = [event | {"key": place % KEYS} for place, event in enumerate(word)]
    watch = watching(pattern, model=trained(pattern, history, estimator="chain"))
    watch.detect_many(events_of(["a"] * 9 + ["d"] * silent, ["mine", "other"] * 4 + ["mine"] + ["other"] * silent))

    def probability(horizon):
        return next(one for one in watch.forecast("p", horizon=horizon) if one.key == "mine").probability

    curve = [0.0, *(probability(f"{k} own events") for k in range(1, count + 1))]
    gap = (max(2, silent) ** 4 * KEYS) ** (1 / 5)  # four gaps of two events
    assert probability(count) == pytest.approx(tabled(curve, count, gap), rel=1e-9)


def test_own_events_are_not_thinned():
    keyed, plain = pattern_of("a ; b , c", key=KEYED), pattern_of("a ; b , c")
    word = random_events(300)
    one = trained(keyed, [event | {"key": "k"} for event in word])
    two = trained(plain, word)
    mine, other = watching(keyed, model=one), watching(plain, model=two)
    for watch in (mine, other):
        watch.detect_many([event | {"key": "k"} for event in word[:50]] + [events_of("a", ["k"])[0] | word[60]])
    for count in (1, 3, 10):
        found = mine.forecast("p", horizon=f"{count} own events")[0].probability
        assert found == pytest.approx(other.forecast("p", horizon=count)[0].probability, abs=1e-12)


def test_a_span_of_time_is_a_mixture_over_how_many_events_it_holds():
    from math import exp, factorial

    pattern = pattern_of("a ; b , c")
    watch = watching(pattern, model=trained(pattern, random_events(400), estimator="chain"))
    watch.detect_many(events_of("ca"))
    curve = [0.0] + [watch.forecast("p", horizon=k)[0].probability for k in range(1, 60)]
    for seconds in (1, 4, 10):  # one event in a second
        wanted = sum(exp(-seconds) * seconds**k / factorial(k) * p for k, p in enumerate(curve))
        [found] = watch.forecast("p", horizon=timedelta(seconds=seconds))
        assert found.probability == pytest.approx(wanted, rel=1e-6)
        assert found.horizon == timedelta(seconds=seconds)


def test_a_span_of_time_needs_times():
    pattern = pattern_of("a , b")
    model = td.train(watching(pattern), [{"kind": kind} for kind in "abab"])
    with pytest.raises(td.TidingsError, match=r"`5 min` needs .* events with times"):
        watching(pattern, model=model).forecast("p", horizon="5 min")


@examples(25)
@given(patterns(**PLAIN), streams(most=14), streams(most=6), st.sampled_from(("both", "chain", "direct")))
def test_quantiles_of_the_waiting_time_are_those_of_the_probabilities(pattern, history, events, estimator):
    watch = watching(pattern, model=trained(pattern, history, estimator=estimator))
    watch.detect_many(events)
    [found] = watch.forecast("p", horizon=5)
    assert list(found.waiting) == [0.1, 0.25, 0.5, 0.75, 0.9]
    for quantile, count in found.waiting.items():
        if count is None:
            assert watch.forecast("p", horizon=1000)[0].probability < quantile
            continue
        assert watch.forecast("p", horizon=count)[0].probability >= quantile
        if count > 1:
            assert watch.forecast("p", horizon=count - 1)[0].probability < quantile


def test_quantiles_are_told_in_the_horizons_measure():
    pattern = pattern_of("a ; b", key=KEYED)
    watch = watching(pattern, model=trained(pattern, random_events(400, keys=4)))
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
    watch = watching(pattern_of(body, key=key), model=td.Model(), learn=learn, horizon=20, tell="every")
    [before] = watch.forecast("p")
    assert 0 < before.probability < 1
    found = watch.detect_many(random_events(1, keys=1)).forecasts
    assert len(found) == 1
    assert 0 < next(iter(found)).forecast.probability < 1


def test_a_new_pattern_is_told_by_how_often_events_satisfy_its_filters():
    history = random_events(3000, kinds="aaab")
    model = trained(pattern_of("a or b"), history)
    watch = td.Detector(model=model)
    watch.add("often", pattern_of("a , a"))
    watch.add("seldom", pattern_of("b , b"))
    often, seldom = (watch.forecast(name, horizon=2)[0] for name in ("often", "seldom"))
    assert often.probability == pytest.approx(9 / 16, abs=0.03)
    assert seldom.probability == pytest.approx(1 / 16, abs=0.03)
    assert often.estimator == "chain"


# Together --------------------------------------------------------------------------------------------


def test_another_patterns_match_does_not_absorb():
    """Two patterns that begin alike, and two names of one pattern: each is told as when it is alone."""
    history, events = random_events(500, seed=4), random_events(100, seed=5)
    bodies = {"short": "a , b", "long": "a , b ; c", "again": "a , b", "timed": "a ; b within 3 s"}
    both = td.Detector()
    for name, body in bodies.items():
        both.add(name, pattern_of(body))
    model = td.train(both, history)
    watch = td.Detector(model=model)
    for name, body in bodies.items():
        watch.add(name, pattern_of(body), horizon=4, tell="every")
    found = watch.detect_many(events).forecasts
    for name, body in bodies.items():
        alone = watching(pattern_of(body), name=name, model=trained(pattern_of(body), history), horizon=4, tell="every")
        assert told(found, name) == told(alone.detect_many(events).forecasts)
    assert told(found, "short") == told(found, "again")


def test_learning_predicts_first():
    """What is told of a batch does not know the batch: nothing of it is in the model before."""
    events = random_events(15)
    one = watching(pattern_of("a , b"), learn=True, horizon=2, tell="every")
    two = watching(pattern_of("a , b"), model=td.Model(), horizon=2, tell="every")
    assert told(one.detect_many(events).forecasts) == told(two.detect_many(events).forecasts)
    same_counts(one.model, td.train(watching(pattern_of("a , b")), events))
    assert two.model.now == (0, 0)
