"""The façade: what is asked of a detector that forecasts, and what it refuses."""

from __future__ import annotations

import pickle
from datetime import timedelta

import numpy as np
import pytest

import tidings as td
from tidings import lang

PAIR = "a = kind = 'a'\nb = kind = 'b'\na , b"
KEYED = "a = kind = 'a' and k = $x\nb = kind = 'b' and k = $x\na , b"
EVENTS = [{"id": place, "kind": kind, "time": place} for place, kind in enumerate("abcabbaab" * 5)]


@pytest.fixture(scope="module")
def model():
    watch = td.Detector()
    watch.add("pair", PAIR)
    return td.train(watch, EVENTS)


def watching(model, **plan):
    made = td.Detector(model=model)
    made.add("pair", PAIR, **plan)
    return made


def write_pattern(name, text=PAIR):
    return lang.WrittenPattern(name, lang.parse_pattern(text), "restart", None)


BAD = [
    ({"horizon": 0}, "a horizon is", "0"),
    ({"horizon": "soon"}, "a horizon is", "soon"),
    ({"horizon": 5, "threshold": 1.5}, "threshold", "1.5"),
    ({"horizon": 5, "threshold": -0.1}, "threshold", "-0.1"),
    ({"horizon": 5, "threshold": "high"}, "threshold", "high"),
    ({"horizon": 5, "threshold": True}, "threshold", "True"),
    ({"horizon": 5, "threshold": float("nan")}, "threshold", "nan"),
    ({"horizon": 5, "step": 2}, "step", "2"),
    ({"horizon": 5, "step": None}, "step", "None"),
    ({"horizon": 5, "tell": "always"}, "forecasts are told on", "always"),
    ({"horizon": 5, "tell": None}, "forecasts are told on", "None"),
]


@pytest.mark.parametrize(("plan", "name", "value"), BAD)
def test_a_plan_that_means_nothing_is_refused_and_nothing_is_added(model, plan, name, value):
    watch = td.Detector(model=model)
    with pytest.raises(td.TidingsError, match=f"{name}.*`{value}`"):
        watch.add("pair", PAIR, **plan)
    assert len(watch) == 0
    assert watch.horizons() == {}
    with pytest.raises(td.TidingsError, match=f"{name}.*`{value}`"):
        watch.add_many([write_pattern("one"), write_pattern("two")], **plan)
    assert len(watch) == 0
    assert watch.horizons() == {}


def test_a_refused_pattern_leaves_the_old_one_with_its_plan(model):
    watch = watching(model, horizon=5)
    with pytest.raises(td.TidingsError):
        watch.add("pair", "a , b", horizon=7)
    assert {name: horizon.amount for name, horizon in watch.horizons().items()} == {"pair": 5}


def test_forecasts_need_a_model():
    watch = td.Detector()
    with pytest.raises(td.TidingsError, match=r"model=.*learn=True.*`pair`"):
        watch.add("pair", PAIR, horizon=5)
    with pytest.raises(td.TidingsError, match="need a model"):
        watch.add_many([write_pattern("pair")], horizon=5)
    watch.add("pair", PAIR)
    with pytest.raises(td.TidingsError, match="need a model"):
        watch.forecast("pair", horizon=5)


@pytest.mark.parametrize("model", [5, 1.5, b"model", ["x"]])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(td.TidingsError):
        td.Detector(model=model)


def test_a_pattern_that_is_not_there_is_named(model):
    with pytest.raises(td.TidingsError, match="`other`"):
        watching(model).forecast("other", horizon=3)
    with pytest.raises(KeyError):
        watching(model).forecast("other", horizon=3)


@pytest.mark.parametrize("horizon", [0, "soon", -1, 1.5])
def test_a_horizon_that_means_nothing_is_refused(model, horizon):
    with pytest.raises(td.TidingsError, match=f"`{horizon}`"):
        watching(model).forecast("pair", horizon=horizon)


def test_a_horizon_is_given_with_the_pattern_or_when_it_is_asked(model):
    with pytest.raises(td.TidingsError, match="horizon=10"):
        watching(model).forecast("pair")
    [forecast] = watching(model, horizon=4).forecast("pair")
    assert forecast.horizon == 4
    [forecast] = watching(model, horizon=4).forecast("pair", horizon="3 own events")
    assert forecast.horizon == "3 own events"
    [forecast] = watching(model).forecast("pair", horizon="5 s")
    assert forecast.horizon == timedelta(seconds=5)


def test_a_forecast_says_which_estimator_gave_it(model):
    for estimator in ("both", "chain", "direct", "printed"):
        watch = watching(model.using(estimator=estimator))
        watch.detect_many(EVENTS[:4])  # where it has been before
        [forecast] = watch.forecast("pair", horizon=1)
        assert forecast.estimator == estimator
    watch = td.Detector(model=td.Model())
    watch.add("pair", PAIR)
    watch.add("timed", f"{PAIR} within 5 s")
    assert watch.forecast("pair", horizon=2)[0].estimator == "chain"
    assert watch.forecast("timed", horizon=2)[0].estimator == "approximate chain"


def test_forecasts_lie_beside_the_detections(model):
    watch = watching(model, horizon=2, threshold=0.5)
    detections = watch.detect_many(EVENTS[:9])
    assert len(detections) == 3
    assert [forecast.event for forecast in detections.forecasts] == [0, 2, 6]  # after `c` the pair always followed
    first = next(iter(detections.forecasts))
    assert (first.forecast.pattern, first.forecast.key, first.forecast.horizon) == ("pair", None, 2)
    assert first.at.timestamp() == 0
    assert first.forecast.probability > 0.5
    assert "3" in repr(detections.forecasts)


def test_without_a_horizon_nothing_is_foretold(model):
    detections = watching(model).detect_many(EVENTS)
    assert len(detections.forecasts) == 0
    assert detections.forecasts.to_arrow().num_rows == 0
    assert len(detections.forecasts.probabilities) == 0


def test_an_empty_batch_foretells_nothing(model):
    assert len(watching(model, horizon=3, tell="every").detect_many([]).forecasts) == 0


def test_the_model_is_what_it_was_given_unless_it_learns(model):
    watch = watching(model, horizon=2)
    watch.detect_many(EVENTS)
    assert watch.model is model
    learning = td.Detector(model=model, learn=True)
    learning.add("pair", PAIR)
    learning.detect_many(EVENTS)
    assert learning.model.now[0] == 90
    assert model.now[0] == 45
    assert td.Detector().model is None


def test_many_patterns_may_have_one_plan(model):
    watch = td.Detector(model=model)
    watch.add_many([write_pattern("one"), write_pattern("two")], horizon=3, tell="every")
    assert len(watch.detect_many(EVENTS[:4]).forecasts) == 8
    watch.remove("one")
    assert list(watch.horizons()) == ["two"]


def test_a_pattern_that_is_replaced_without_a_plan_is_foretold_no_more(model):
    watch = watching(model, horizon=3, tell="every")
    watch.add("pair", PAIR)
    assert watch.horizons() == {}
    watch = watching(model, horizon=3, tell="every")
    watch.add_many([write_pattern("pair")])
    assert watch.horizons() == {}


def test_it_is_pickled_with_its_model(model):
    watch = watching(model, horizon=3)
    watch.detect_many(EVENTS[:4])
    again = pickle.loads(pickle.dumps(watch))
    assert again.forecast("pair") == watch.forecast("pair")
    assert again.horizons() == watch.horizons()


def test_events_that_wait_for_their_turn_are_foretold_then(model):
    watch = td.Detector(model=model, lateness="3 s")
    watch.add("pair", PAIR, horizon=2, tell="every")
    forecasts = watch.detect_many(EVENTS[:6]).forecasts
    two = watch.detect_many(EVENTS[6:20]).forecasts
    assert [of.event for of in forecasts] + [of.event for of in two] == list(range(17))


def test_numbers_of_numpy_are_numbers(model):
    watch = watching(model, horizon=np.int64(3), threshold=np.float64(0.5))
    assert watch.forecast("pair")[0].horizon == 3


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("text", [PAIR, KEYED, f"{KEYED} within 9 s"])
def test_a_forecast_that_cannot_be_reckoned_does_not_disturb_detection(text, at_once):
    """As long as all events have one time, nobody knows how many come in five minutes."""
    watch, plain = td.Detector(learn=True), td.Detector()
    watch.add("pair", text, horizon="5 min", tell="every")
    plain.add("pair", text)
    events = [{"id": at, "kind": "ab"[at % 2], "k": at // 2 % 3, "time": max(0, at - 19)} for at in range(60)]
    batches = [events] if at_once else [[event] for event in events]
    reports = [watch.detect_many(batch) for batch in batches]
    detected_events = [detection.events for of in reports for detection in of]
    assert (
        detected_events
        == [detection.events for detection in plain.detect_many(events)]
        == [(at, at + 1) for at in range(0, 60, 2)]
    )
    probabilities = [forecast.forecast.probability for of in reports for forecast in of.forecasts]
    assert len(probabilities) == 60
    assert all(0 <= p <= 1 for p in probabilities)


def test_a_span_is_refused_before_the_pattern_is_added():
    watch = td.Detector()
    watch.add("pair", PAIR)
    timeless = td.train(watch, [{"kind": kind} for kind in "abab"])
    watch = td.Detector(model=timeless)
    for add in (
        lambda: watch.add("pair", PAIR, horizon="5 min"),
        lambda: watch.add_many([write_pattern("x")], horizon="1 h"),
    ):
        with pytest.raises(td.TidingsError, match="needs a model trained on events with times"):
            add()
    assert len(watch) == 0
    assert watch.horizons() == {}
    watch = td.Detector(model=timeless, learn=True)  # times may come
    watch.add("pair", PAIR, horizon="5 min", tell="every")
    assert len(watch.detect_many(EVENTS[:9]).forecasts) == 9


def test_events_that_time_lets_go_are_foretold_too(model):
    watch = td.Detector(model=model, lateness="3 s")
    watch.add("pair", PAIR, horizon=2, tell="every")
    watch.detect_many(EVENTS[:6])
    assert [forecast.event for forecast in watch.latest_forecasts] == [0, 1, 2]
    assert len(watch.on_time(20)) == 1
    assert [forecast.event for forecast in watch.latest_forecasts] == [3, 4, 5]
    watch.on_time(21)
    assert len(watch.latest_forecasts) == 0


AGED = {
    "whole": PAIR.replace("a , b", "a , b within 3 s"),
    "keyed": KEYED.replace("a , b", "a , b within 3 s"),
}


@pytest.mark.parametrize("text", AGED.values(), ids=AGED)
def test_events_without_times_are_not_there_for_forecasts_of_patterns_that_ask_for_times(text):
    timed = [event | {"k": event["id"] % 2} for event in EVENTS]
    mixed = [row for event in timed for row in (event, {"id": -1, "kind": "b", "k": event["k"], "time": "some day"})]
    models, probabilities = [], []
    for events in (timed, mixed):
        watch = td.Detector()
        watch.add("aged", text)
        models.append(td.train(watch, events))
    assert (models[0]["aged"].counts.moves == models[1]["aged"].counts.moves).all()
    for events in (timed, mixed):
        watch = td.Detector(model=models[0])
        watch.add("aged", text, horizon="2 own events" if "$x" in text else 2, tell="every")
        watch.add("pair", PAIR)
        rows = watch.detect_many(events).forecasts.to_arrow().to_pylist()
        probabilities.append([(row["event"], row["key"], row["probability"]) for row in rows])
    assert probabilities[0] == probabilities[1]
    assert probabilities[0]
