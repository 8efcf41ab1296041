"""Learning: half-lives, waits that go on, and how much is kept."""

from __future__ import annotations

import numpy as np
import pytest

import tidings as td
from tidings.forecast.learning.group_counter import HalfLife
from tidings.forecast.tuning import ForecastTuning

PAIR = "a = kind = 'a'\nb = kind = 'b'\na , b"


def train(word, text=PAIR, **settings):
    watch = td.Detector()
    watch.add("pair", text)
    return td.train(watch, [{"kind": kind, "time": place} for place, kind in enumerate(word)], context=0, **settings)


def test_a_count_is_worth_half_after_a_half_life():
    half = HalfLife(4, timed=False)
    assert half.compute_weights(np.array([0, 4, 8]), np.zeros(3), (8, 0)).tolist() == [0.25, 0.5, 1]
    assert half.compute_fading((0, 0), (8, 99)) == 0.25
    timed = HalfLife(10, timed=True)
    assert timed.compute_weights(np.zeros(2), np.array([0, 10]), (5, 20)).tolist() == [0.25, 0.5]
    assert timed.compute_fading((0, 5), (9, 15)) == 0.5
    assert timed.compute_fading((0, 5), (9, 0)) == 1  # never more than it was


def test_what_is_told_later_is_told_by_what_came_last():
    word = "ab" * 200 + "ac" * 50
    slow, quick = train(word), train(word, half_life=20)
    cell = slow["pair"].course.states.index("a")
    assert slow.estimates(slow["pair"]).compute_curve(1)[0][1, cell] > 0.7
    assert quick.estimates(quick["pair"]).compute_curve(1)[0][1, cell] < 0.3


def test_seen_and_filters_fade_too():
    traffic = train("ab" * 100, half_life=2).traffic
    assert traffic.seen == pytest.approx(sum(0.5 ** (age / 2) for age in range(1, 201)))
    assert traffic.rate == pytest.approx(1e-6)


def test_of_too_many_waits_the_oldest_are_taken_as_cut_off():
    watch = td.Detector(forecast_tuning=ForecastTuning(pending_waits=50, counted_at_once=100))
    watch.add("pair", PAIR)
    events = [{"kind": kind} for kind in "abc" * 300]
    model = td.train(watch, iter([events[at : at + 100] for at in range(0, 900, 100)]), context=0)
    whole = td.train(watch, events, context=0)
    assert model["pair"].counts.moves.tolist() == whole["pair"].counts.moves.tolist()
    assert model["pair"].counts.waits.sum() == 900


def test_every_event_is_counted_once():
    model = train("abcabacb" * 10, horizons=["3 s"])
    counts = model["pair"].counts
    assert counts.moves.sum() == counts.waits.sum() == counts.spans[3_000_000].sum() == 80


def test_asking_for_the_model_changes_nothing():
    watch = td.Detector(learn=True)
    watch.add("pair", PAIR)
    for kind in "abcab":
        watch.on_event({"kind": kind})
        first, second = watch.model, watch.model
        assert first["pair"].counts.waits.tolist() == second["pair"].counts.waits.tolist()
    assert watch.model["pair"].counts.moves.sum() == 5


def test_a_filter_that_comes_later_is_asked_of_the_events_since():
    watch = td.Detector(learn=True)
    watch.add("pair", PAIR)
    watch.detect_many([{"kind": kind} for kind in "abcabc"])
    watch.add("later", "b = kind = 'b'\nc = kind = 'c'\nb , c")
    watch.detect_many([{"kind": kind} for kind in "abcc"])
    traffic = watch.model.traffic
    assert traffic.seen == 10
    assert traffic.asked == {"kind = 'a'": 10, "kind = 'b'": 10, "kind = 'c'": 4}
    assert traffic.filters == {"kind = 'a'": 3, "kind = 'b'": 3, "kind = 'c'": 2}


def test_counts_are_looked_at_again_soon_after_the_patterns_changed():
    """After 16 events, then a tenth of all since: however much the model knew before."""
    watch = td.Detector(model=train("abc" * 1000), learn=True)
    watch.add("pair", PAIR, horizon=3)

    def looks(count):
        times = []
        for _ in range(count):
            watch.on_event({"kind": "a"})
            times.append(watch.prepare_forecasting().forecaster.model.now[0])
        return sorted(set(times))

    assert looks(40) == [3000, 3016, 3032]
    watch.add("later", PAIR.replace(",", ";"))
    assert looks(40) == [3040, 3056, 3072]
