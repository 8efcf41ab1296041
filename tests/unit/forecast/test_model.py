"""Models: settings that are refused, what they know, and how they are put together."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

import tidings as td
from tidings.forecast.learning.counts import Traffic
from tidings.forecast.learning.group_counter import HalfLife
from tidings.forecast.model import compute_label_prior

PAIR = "a = kind = 'a'\nb = kind = 'b'\na , b"
EVENTS = [{"kind": kind, "time": place} for place, kind in enumerate("abcabbaab")]


def watching(text=PAIR, name="pair", **settings):
    made = td.Detector(**settings)
    made.add(name, text)
    return made


def train_model(text=PAIR, events=EVENTS, **settings):
    return td.train(watching(text), events, **settings)


BAD = [
    ({"context": -1}, "context", "-1"),
    ({"context": 17}, "context", "17"),
    ({"context": 1.0}, "context", "1.0"),
    ({"context": True}, "context", "True"),
    ({"context": "3"}, "context", "3"),
    ({"smoothing": -0.1}, "smoothing", "-0.1"),
    ({"smoothing": float("nan")}, "smoothing", "nan"),
    ({"smoothing": float("inf")}, "smoothing", "inf"),
    ({"smoothing": "much"}, "smoothing", "much"),
    ({"smoothing": True}, "smoothing", "True"),
    ({"half_life": 0}, "half-life", "0"),
    ({"half_life": -3}, "half-life", "-3"),
    ({"half_life": 2.5}, "half-life", "2.5"),
    ({"half_life": "a while"}, "half-life", "a while"),
    ({"half_life": timedelta(0)}, "half-life", "0:00:00"),
    ({"estimator": "best"}, "estimator", "best"),
    ({"estimator": None}, "estimator", "None"),
]


@pytest.mark.parametrize(("settings", "name", "value"), BAD)
def test_a_setting_that_means_nothing_is_refused_by_name(settings, name, value):
    for make in (td.Model, train_model):
        with pytest.raises(td.TidingsError, match=f"{name} .*`{value}`"):
            make(**settings)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        (None, None),
        (100, HalfLife(100, timed=False)),
        ("100", HalfLife(100, timed=False)),
        ("7 days", HalfLife(7 * 86400 * 10**6, timed=True)),
        (timedelta(hours=1), HalfLife(3600 * 10**6, timed=True)),
    ],
)
def test_a_half_life_is_events_or_a_span(settings, wanted):
    assert td.Model(half_life=settings).settings.half_life == wanted


def test_a_model_tells_what_it_knows():
    model = train_model()
    assert (len(model), list(model)) == (1, ["pair"])
    assert model["pair"].name == "pair"
    assert "1 patterns, 9 events" in repr(model)
    assert model.now == (9, 8_000_000)
    assert model.traffic.seen == 9
    assert model.traffic.filters == {"kind = 'a'": 4.0, "kind = 'b'": 4.0}
    assert model.traffic.rate == pytest.approx(1e-6)


def test_a_pattern_it_does_not_know_is_named_with_those_it_does():
    with pytest.raises(td.TidingsError, match="no pattern called `other`; it knows `pair`"):
        train_model()["other"]
    with pytest.raises(KeyError):
        td.Model()["pair"]


def test_a_pattern_is_known_by_itself_not_by_its_name():
    watch = watching(name="called otherwise", model=train_model())
    [forecast] = watch.forecast("called otherwise", horizon=2)
    [wanted] = watching(model=train_model()).forecast("pair", horizon=2)
    assert forecast.probability == wanted.probability
    assert forecast.pattern == "called otherwise"


def test_counts_can_be_reckoned_in_another_way():
    model = train_model()
    other = model.using(estimator="chain", smoothing=0)
    assert (other.settings.estimator, other.settings.smoothing) == ("chain", 0)
    assert other["pair"].counts is model["pair"].counts
    assert model.using().settings == model.settings
    for bad in ({"estimator": "best"}, {"smoothing": -1}):
        with pytest.raises(td.TidingsError):
            model.using(**bad)


def test_estimators_do_not_keep_models_apart():
    assert (train_model() + train_model(estimator="chain")).settings.estimator == "both"


@pytest.mark.parametrize("settings", [{"smoothing": 0.1}, {"half_life": 5}, {"context": 2}])
def test_other_settings_do(settings):
    with pytest.raises(td.TidingsError, match="different settings"):
        train_model() + train_model(**settings)


def test_models_with_different_schemas_do_not_add_up():
    """With several values an event may satisfy both filters at once: the labels are others."""
    watch = td.Detector(schema=td.Schema({"kind": "several text"}))
    watch.add("pair", PAIR)
    with pytest.raises(td.TidingsError, match="in different ways"):
        train_model() + td.train(watch, EVENTS)


def test_the_global_event_model_tells_labels_by_shares():
    pattern_model = train_model()["pair"]
    assert pattern_model.course.labels == ("*", "a", "b")
    shares = {"kind = 'a'": 2.0, "kind = 'b'": 5.0}
    assert compute_label_prior(pattern_model, Traffic(10.0, shares), 0) == pytest.approx([0.3, 0.2, 0.5])
    assert compute_label_prior(pattern_model, Traffic(), 0) == pytest.approx([1 / 3] * 3)


def test_with_smoothing_what_never_came_is_not_impossible():
    pattern_model = train_model()["pair"]
    shares = {"kind = 'a'": 0.0, "kind = 'b'": 5.0}
    assert compute_label_prior(pattern_model, Traffic(9.0, shares), 0.5) == pytest.approx([0.4, 0.05, 0.55])
    assert compute_label_prior(pattern_model, Traffic(9.0, shares), 0)[1] == 0


def test_of_filters_that_overlap_it_tells_labels_as_if_they_were_independent():
    pattern_model = train_model("low = price < 5\nfew = count < 3\nlow ; few", [{"price": 1, "count": 9}])["pair"]
    traffic = Traffic(10.0, {"price < 5": 2.0, "count < 3": 5.0})
    priors = dict(zip(pattern_model.course.labels, compute_label_prior(pattern_model, traffic, 0), strict=True))
    assert priors == pytest.approx({"*": 0.4, "low": 0.1, "few": 0.4, "few+low": 0.1})


KEYS = {"k gaps": 2.0, "k events": 8.0, "k time": 6e6}


def test_traffic_adds_up_and_fades():
    first = Traffic(4, {"x": 2}, 3, 6, KEYS, {"x": 4})
    second = Traffic(1, {"y": 1}, 1, 2, {"k gaps": 2, "k events": 4, "k time": 2e6}, {"x": 1, "y": 1})
    both = first.plus(second)
    assert (both.seen, both.filters, both.rate) == (5, {"x": 2, "y": 1}, 0.5)
    assert (both.own, both.asked) == ({"k gaps": 4, "k events": 12, "k time": 8e6}, {"x": 5, "y": 1})
    half = both.scale(0.5)
    assert (half.seen, half.filters, half.rate) == (2.5, {"x": 1, "y": 0.5}, 0.5)
    assert (half.own, half.asked) == ({"k gaps": 2, "k events": 6, "k time": 4e6}, {"x": 2.5, "y": 0.5})
    assert first.plus(second) == second.plus(first)
    assert half != both


def test_the_pace_of_keys_is_their_mean_gap():
    assert Traffic(own=KEYS).estimate_pace("k") == (4, 3e6)
    assert Traffic(own=KEYS).scale(0.25).estimate_pace("k") == (4, 3e6)
    assert Traffic(own={"k gaps": 2, "k events": 2, "k time": 0}).estimate_pace("k") == (
        1,
        1,
    )  # at one time: at least some


def test_a_pace_that_is_not_known_is_a_guess():
    assert Traffic().estimate_pace("k") == (1, 1e6)
    assert Traffic(seen=5, gaps=4, elapsed=8e6, own=KEYS).estimate_pace("other") == (1, 2e6)
    assert Traffic(own=dict.fromkeys(KEYS, 0.0)).estimate_pace("k") == (1, 1e6)


def test_a_share_is_of_the_events_that_the_filter_was_asked_of():
    """A filter that came late was not asked of the events before."""
    pattern_model = train_model()["pair"]
    traffic = Traffic(100.0, {"kind = 'a'": 2.0, "kind = 'b'": 5.0}, asked={"kind = 'a'": 10.0, "kind = 'b'": 10.0})
    assert compute_label_prior(pattern_model, traffic, 0) == pytest.approx([0.3, 0.2, 0.5])


def test_shown_it_names_states_and_counts():
    text = train_model().show("pair", horizon=3)
    assert "pair" in text
    assert "start" in text
    assert train_model().show()
    with pytest.raises(td.TidingsError, match="`other`"):
        train_model().show("other")


def test_nothing_but_a_model_is_merged():
    with pytest.raises(td.TidingsError, match="`3`"):
        td.Model().merge(3)


def test_times_before_1970_are_as_old_as_any():
    """A half-life in time counts from the latest event, whenever that was."""
    old, new = ([event | {"time": event["time"] + begin} for event in EVENTS] for begin in (-(10**9), 10**9))
    first, second = (train_model(events=events, half_life="4 s")["pair"].counts for events in (old, new))
    np.testing.assert_allclose(first.moves, second.moves)


def test_counts_of_patterns_that_are_not_watched_fade_too():
    from tidings.forecast.learning.training import extend_model

    model = train_model(half_life=9)
    longer = extend_model(model, watching(PAIR.replace(",", ";"), "later"), EVENTS)
    np.testing.assert_allclose(longer["pair"].counts.moves, model["pair"].counts.moves / 2)
