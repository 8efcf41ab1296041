"""Models add up; a history in pieces, a stream that is resumed and a file that is read give the same as the whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from forecast_worlds import (
    build_events,
    build_pattern,
    check_same_counts,
    check_same_traffic,
    list_forecasts,
    train_model,
    watch_pattern,
)
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.errors import FileError, StateError
from tidings.forecast.learning.training import extend_model
from tidings.forecast.tuning import ForecastTuning
from tidings.patterns.tuning import DetectorTuning
from tidings.testing.strategies.patterns import patterns, streams

PLAIN = {"conditions": False, "absence": False}
KEYED = " and key = $x"
FEW = DetectorTuning(kept_values=20)
"""Values are numbered anew after every batch."""
SETTINGS = st.fixed_dictionaries(
    {
        "context": st.integers(0, 2),
        "half_life": st.sampled_from((None, "2 s")),
        "estimator": st.sampled_from(("both", "chain", "direct")),
    }
)


def compute_curves(model, most=8):
    return {key: model.estimates(pattern_model).compute_curve(most)[0] for key, pattern_model in model.patterns.items()}


def check_same_forecasts(first, second, within=1e-9):
    mine, theirs = compute_curves(first), compute_curves(second)
    assert mine.keys() == theirs.keys()
    for key in mine:
        np.testing.assert_allclose(mine[key], theirs[key], atol=within)


def check_same(first, second, within=0.0):
    check_same_counts(first, second, within)
    check_same_traffic(first.traffic, second.traffic, within)
    assert first.now == second.now
    check_same_forecasts(first, second, max(within, 1e-12))


# Sums -------------------------------------------------------------------------------------------------


@examples(33)
@given(patterns(), st.lists(streams(), min_size=3, max_size=3), SETTINGS)
def test_models_add_up_in_any_order(pattern, histories, settings):
    first, second, third = (train_model(pattern, history, **settings) for history in histories)
    within = 0.0 if settings["half_life"] is None else 1e-12
    check_same(first + second, second.merge(first), within)
    check_same((first + second) + third, first + (second + third), within or 1e-12)


@examples(50)
@given(patterns(), st.lists(streams(), min_size=2, max_size=2), SETTINGS)
def test_a_sum_is_the_count_of_both_histories(pattern, histories, settings):
    first, second = (train_model(pattern, history, **settings) for history in histories)
    watch = watch_pattern(pattern)
    both = extend_model(td.train(watch, histories[0], **settings), watch, histories[1])
    if settings["half_life"] is None:
        check_same_counts(first + second, both)
        assert (first + second).traffic.seen == both.traffic.seen
    for key, mine in first.patterns.items():
        theirs = second.patterns[key]
        latest = max(first.now[1], second.now[1])
        by = [1.0 if settings["half_life"] is None else 0.5 ** ((latest - of.now[1]) / 2e6) for of in (first, second)]
        wanted = by[0] * mine.counts.waits + by[1] * theirs.counts.waits
        np.testing.assert_allclose((first + second).patterns[key].counts.waits, wanted, atol=1e-12)


def test_models_of_different_patterns_hold_both():
    word = build_events("abcabc")
    first, second = train_model(build_pattern("a , b"), word), train_model(build_pattern("b , c"), word)
    assert len(first + second) == 2


def test_models_of_different_settings_do_not_add_up():
    first, second = (train_model(build_pattern("a , b"), build_events("ab"), context=context) for context in (0, 1))
    with pytest.raises(td.TidingsError, match="different settings"):
        first + second


def test_an_empty_model_adds_nothing():
    model = train_model(build_pattern("a , b"), build_events("abcab"))
    check_same(model + td.Model(), model)
    check_same(td.Model() + model, model)


# Pieces -----------------------------------------------------------------------------------------------


@examples(50)
@given(patterns(variables="joins"), streams(most=12), SETTINGS, st.lists(st.integers(0, 12), max_size=4))
def test_a_history_in_pieces_counts_as_the_whole(pattern, history, settings, cuts):
    cuts = [0, *sorted(cuts), len(history)]
    pieces = [history[begin:end] for begin, end in pairwise(cuts)]
    check_same(train_model(pattern, iter(pieces), **settings), train_model(pattern, history, **settings), 1e-12)


def test_long_waits_go_on_over_pieces():
    rng = np.random.default_rng(2)
    word = ["b" if draw < 0.002 else "a" if draw < 0.1 else "c" for draw in rng.random(4000)]
    events = build_events(word, rng.integers(0, 3, len(word)).tolist())
    for key in ("", KEYED):
        watch, pattern = td.Detector(), build_pattern("a ; b", key=key)
        watch.add("p", pattern)
        watch.add("q", build_pattern("a ; b within 60 s", key=key))
        whole = td.train(watch, events, half_life=1000)
        pieces = td.train(watch, iter([events[at : at + 700] for at in range(0, len(events), 700)]), half_life=1000)
        check_same(pieces, whole, 1e-9)


def test_counting_at_once_or_little_by_little_is_the_same():
    """Waits are settled when many events wait to be counted: when that is changes nothing."""
    rng = np.random.default_rng(4)
    events = build_events(rng.choice(list("abc"), 4000).tolist(), rng.integers(0, 2, 4000).tolist())
    watch, patient = td.Detector(), td.Detector(forecast_tuning=ForecastTuning(counted_at_once=100))
    for detector in (watch, patient):
        detector.add("p", build_pattern("a , b , a , b", key=KEYED))
        detector.add("q", build_pattern("a , a , a ; c"))
        detector.add("r", build_pattern("a ; b within 5 s", key=KEYED))
    whole = td.train(watch, events, horizons=["30 s"], half_life="10 min")
    little = td.train(
        patient, iter([events[at : at + 99] for at in range(0, 4000, 99)]), horizons=["30 s"], half_life="10 min"
    )
    check_same(little, whole, 1e-9)


@pytest.mark.parametrize("timed", [False, True])
def test_many_keys_are_trained_although_their_names_are_forgotten(timed):
    """A detector numbers values anew when they are many; what is counted of a key must go along."""
    rng = np.random.default_rng(6)
    events = build_events(rng.choice(list("abc"), 3000).tolist(), rng.integers(0, 200, 3000).tolist())
    watch, cramped = td.Detector(), td.Detector(tuning=FEW)
    for detector in (watch, cramped):
        detector.add("p", build_pattern("a ; b ; c", key=KEYED))
        if timed:
            detector.add("q", build_pattern("a ; b within 99 s", key=KEYED))
    whole = td.train(watch, events)
    pieces = [events[at : at + 100] for at in range(0, 3000, 100)]
    check_same(td.train(cramped, iter(pieces)), whole)
    check_same(td.train(open_with_model(watch, whole), iter(pieces)), whole)


def open_with_model(watch, model):
    detector = td.Detector(model=model, tuning=FEW)
    for pattern in watch.patterns:
        detector.add(pattern.name, pattern.pattern, mode=pattern.mode)
    return detector


def test_many_keys_are_learned_although_their_names_are_forgotten():
    rng = np.random.default_rng(7)
    events = build_events(rng.choice(list("abc"), 1500).tolist(), rng.integers(0, 100, 1500).tolist())
    pattern = build_pattern("a ; b ; c", key=KEYED)

    def run(tuning=None):
        watch, forecasts = watch_pattern(pattern, learn=True, horizon=10, threshold=0.2, tuning=tuning), []
        for at in range(0, 1500, 50):
            forecasts += list_forecasts(watch.detect_many(events[at : at + 50]).forecasts)
        return forecasts, watch.model

    wanted, whole = run()
    forecasts, model = run(FEW)
    check_same(model, whole)
    assert forecasts == wanted
    assert wanted


# Learning in the stream -------------------------------------------------------------------------------


@examples(50)
@given(patterns(variables="joins"), streams(most=12), SETTINGS)
def test_a_detector_that_learns_counts_what_training_counts(pattern, history, settings):
    watch = watch_pattern(pattern, model=td.Model(**settings), learn=True)
    watch.detect_many(history)
    watch.forecast("p", horizon=1)  # before the first event nothing is there to be asked, unless somebody asks
    check_same(watch.model, train_model(pattern, history, **settings), 1e-12)


@examples(50)
@given(patterns(), streams(most=12), st.integers(0, 12))
def test_it_does_not_matter_how_a_stream_is_cut(pattern, events, cut):
    first = watch_pattern(pattern, learn=True, horizon=3, tell="every")
    second = watch_pattern(pattern, learn=True, horizon=3, tell="every")
    whole = list_forecasts(first.detect_many(events).forecasts)
    forecasts = list_forecasts(second.detect_many(events[:cut]).forecasts) + list_forecasts(
        second.detect_many(events[cut:]).forecasts
    )
    assert forecasts == whole
    check_same(second.model, first.model, 1e-12)


@pytest.mark.parametrize("horizon", [8, "9 s"])
@pytest.mark.parametrize("key", ["", KEYED])
def test_a_deadline_is_not_known_before_it_is_over(key, horizon):
    """A batch is detected at once, and learned from in between: what its end completes must not be known then."""
    rng = np.random.default_rng(9)
    events = build_events(rng.choice(list("abc"), 120).tolist(), rng.integers(0, 6, 120).tolist())
    pattern = build_pattern("a ; not b for 3 s", key=key)
    first, second = (watch_pattern(pattern, learn=True, horizon=horizon, tell="every") for _ in range(2))
    whole = list_forecasts(first.detect_many(events).forecasts)
    assert [row for event in events for row in list_forecasts(second.detect_many([event]).forecasts)] == whole
    check_same(second.model, first.model, 1e-12)


# Resuming ---------------------------------------------------------------------------------------------


def get_event_key(detector):
    return str(detector[:2]), detector[2]


def check_resumed(make, events, splits, horizon=4):
    """Hold a detector that is resumed at each of the splits to one that never stopped."""
    whole = make()
    wanted = sorted(list_forecasts(whole.detect_many(events).forecasts), key=get_event_key)
    for split in splits:
        first = make()
        forecasts = list_forecasts(first.detect_many(events[:split]).forecasts)
        second = td.Detector.resume(first.snapshot())
        assert second.horizons() == first.horizons()
        for name in whole:
            mine, theirs = (detector.forecast(name, horizon=horizon) for detector in (first, second))
            assert sorted(map(repr, mine)) == sorted(map(repr, theirs))
        forecasts += list_forecasts(second.detect_many(events[split:]).forecasts)
        forecasts.sort(key=get_event_key)
        assert [forecast[:2] for forecast in forecasts] == [forecast[:2] for forecast in wanted], split
        assert [p for *_, p in forecasts] == pytest.approx([p for *_, p in wanted], abs=1e-9), split
        if events and whole.model is not None:
            check_same(second.model, whole.model, 1e-12)


@examples(33)
@given(patterns(), streams(most=10), st.booleans(), st.sampled_from(("every", "crossing", "episode", "change")))
def test_resumed_at_every_event_it_goes_on_as_if_it_had_not_stopped(pattern, events, learn, tell):
    model = train_model(pattern, events, context=1)
    check_resumed(
        lambda: watch_pattern(pattern, model=model, learn=learn, horizon=4, threshold=0.3, tell=tell),
        events,
        range(len(events) + 1),
    )


@examples(25)
@given(patterns(variables="joins"), streams(most=10), st.sampled_from(("every", "episode")))
def test_so_do_keys(pattern, events, tell):
    check_resumed(
        lambda: watch_pattern(pattern, model=td.Model(context=1), learn=True, horizon=4, threshold=0.3, tell=tell),
        events,
        range(len(events) + 1),
    )


def test_a_longer_stream_of_many_patterns_is_resumed():
    rng = np.random.default_rng(8)
    events = build_events(rng.choice(list("abcd"), 200).tolist(), rng.integers(0, 5, 200).tolist())

    def make():
        watch = td.Detector(model=td.Model(half_life="5 min"), learn=True)
        watch.add("steps", build_pattern("a , b ; c"), horizon=5, tell="every")
        watch.add("keyed", build_pattern("a ; b ; c", key=KEYED), horizon=10, threshold=0.2)
        watch.add("timed", build_pattern("a ; b within 4 s", key=KEYED), horizon="20 s", tell="change")
        watch.add("absent", build_pattern("a ; c ; not b for 3 s"), horizon="20 s", threshold=0.2, tell="episode")
        watch.add("silent", build_pattern("d , d"), mode="overlap")
        return watch

    check_resumed(make, events, [1, 17, 150])


def test_a_snapshot_leaves_the_detector_as_it_was():
    events = build_events("abcabcbcaabbcc" * 4)
    first, second = (watch_pattern(build_pattern("a ; b , c"), learn=True, horizon=3, tell="every") for _ in range(2))
    forecasts, wanted = [], []
    for event in events:
        first.snapshot()
        forecasts += list_forecasts(first.detect_many([event]).forecasts)
        wanted += list_forecasts(second.detect_many([event]).forecasts)
    assert forecasts == wanted
    check_same(first.model, second.model)


# Files ------------------------------------------------------------------------------------------------


@examples(50)
@given(patterns(overlapping=True, variables="joins"), streams(), SETTINGS)
def test_a_file_holds_all_of_a_model(pattern, history, settings):
    model = train_model(pattern, history, horizons=["3 s"], smoothing=0.25, **settings)
    read = td.Model.from_bytes(model.to_bytes())
    check_same(read, model)
    assert read.settings == model.settings
    assert read.to_bytes() == model.to_bytes()
    assert list(read) == list(model)
    more = watch_pattern(pattern)
    check_same(extend_model(read, more, history), extend_model(model, more, history))


@pytest.fixture
def model():
    return train_model(build_pattern("a , b ; c"), build_events("abcabacbc" * 9), horizons=["3 s"])


def test_a_file_is_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "some.model")
    check_same(td.Model.load(tmp_path / "some.model"), model)
    watch = td.Detector(model=str(tmp_path / "some.model"))
    watch.add("p", build_pattern("a , b ; c"))
    assert watch.forecast("p", horizon=4) == watch_pattern(build_pattern("a , b ; c"), model=model).forecast(
        "p", horizon=4
    )
    assert [path.name for path in tmp_path.iterdir()] == ["some.model"]


def test_a_file_that_is_cut_short_anywhere_is_refused(model):
    data = model.to_bytes()
    for size in [*range(60), *range(60, len(data), 37), len(data) - 1]:
        with pytest.raises(StateError):
            td.Model.from_bytes(data[:size])


def test_a_byte_that_is_wrong_anywhere_is_noticed(model):
    data = model.to_bytes()
    rng = np.random.default_rng(1)
    for place in [*range(40), *rng.integers(40, len(data), 150).tolist()]:
        broken = bytearray(data)
        broken[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(StateError):
            td.Model.from_bytes(bytes(broken))


def test_more_bytes_than_a_model_are_refused(model):
    with pytest.raises(StateError):
        td.Model.from_bytes(model.to_bytes() + b"more")


@pytest.mark.parametrize("data", [b"", b"tidings", b"PK\x03\x04 something else", b"\n" * 100, b"{}"])
def test_what_is_no_model_is_refused(data, tmp_path):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(StateError, match=r"x: .*not a model"):
        td.Model.load(tmp_path / "x")


def test_a_newer_file_is_refused_by_its_version(model):
    head, _, rest = model.to_bytes().partition(b"\n")
    with pytest.raises(StateError, match="version 99"):
        td.Model.from_bytes(head[:-1] + b"99\n" + rest)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileError, match="nowhere"):
        td.Model.load(tmp_path / "nowhere")
    with pytest.raises(FileError, match="nowhere"):
        td.Detector(model=tmp_path / "nowhere")
    with pytest.raises(FileError, match="some"):
        td.Model().save(tmp_path / "nowhere" / "some")
