"""Training: what is taken as a history, what is refused, and what stays as it is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tidings as td
from tidings.forecast.learning.training import extend_model

PAIR = "a = kind = 'a'\nb = kind = 'b'\na , b"
EVENTS = [{"id": place, "kind": kind, "time": place} for place, kind in enumerate("abcabbaab" * 3)]


def watching(text=PAIR, **settings):
    made = td.Detector(**settings)
    made.add("pair", text)
    return made


def moves(model):
    return model["pair"].counts.moves.tolist()


HISTORIES = [
    lambda: pa.Table.from_pylist(EVENTS),
    lambda: td.EventBatch.of(EVENTS),
    lambda: iter([EVENTS]),
    lambda: (EVENTS[at : at + 4] for at in range(0, len(EVENTS), 4)),
    lambda: iter([EVENTS[:5], [], pa.Table.from_pylist(EVENTS[5:])]),
]


@pytest.mark.parametrize("history", HISTORIES)
def test_a_history_is_a_list_a_table_a_batch_or_an_iterator_of_those(history):
    assert moves(td.train(watching(), history())) == moves(td.train(watching(), EVENTS))


def test_progress_is_told_how_many_events_were_taken():
    counts = []
    td.train(watching(), iter([EVENTS[:5], EVENTS[5:12]]), progress=counts.append)
    assert counts == [5, 12]


def test_the_detector_stays_as_it_is():
    watch = watching()
    watch.on_event({"kind": "a"})
    td.train(watch, EVENTS)
    assert len(watch.on_event({"kind": "b"})) == 1


def test_a_detector_that_has_seen_something_trains_as_a_new_one():
    watch = watching()
    watch.on_event({"kind": "a"})
    watch.add("later", PAIR.replace(",", ";"))
    both = watching()
    both.add("later", PAIR.replace(",", ";"))
    first, second = td.train(watch, EVENTS), td.train(both, EVENTS)
    for name in ("pair", "later"):
        assert first[name].counts.moves.tolist() == second[name].counts.moves.tolist()


def test_spans_among_the_horizons_are_counted_and_those_of_the_patterns():
    watch = td.Detector(model=td.Model())
    watch.add("pair", PAIR, horizon="4 s")
    model = td.train(watch, EVENTS, horizons=["2 s", 5])
    assert set(model["pair"].counts.spans) == {2_000_000, 4_000_000}


def test_a_detector_without_patterns_has_nothing_to_train():
    with pytest.raises(td.TidingsError, match="add them first"):
        td.train(td.Detector(), EVENTS)


@pytest.mark.parametrize("horizons", [["soon"], [0], [5, "5 parsecs"]])
def test_a_horizon_that_means_nothing_is_refused(horizons):
    with pytest.raises(td.TidingsError, match="a horizon is"):
        td.train(watching(), EVENTS, horizons=horizons)


@pytest.mark.parametrize("horizons", [5, "5 min", None])
def test_horizons_are_a_list(horizons):
    with pytest.raises(td.TidingsError, match=f"`{horizons}`"):
        td.train(watching(), EVENTS, horizons=horizons)


@pytest.mark.parametrize("detector", [None, 5, "pair", PAIR])
def test_only_a_detector_is_trained(detector):
    with pytest.raises(td.TidingsError, match="Detector"):
        td.train(detector, EVENTS)


@pytest.mark.parametrize("history", [5, None, "events.jsonl", [5]])
def test_a_history_that_is_none_is_refused(history):
    with pytest.raises(td.TidingsError):
        td.train(watching(), history)


def test_a_further_history_begins_anew():
    """The `a` at the end of the first and the `b` at the beginning of the second are no pair."""
    model = td.train(watching(), EVENTS[:1], context=0)
    longer = extend_model(model, watching(), [{"kind": "b", "time": 5}])
    assert longer["pair"].counts.moves.sum() == 2
    assert longer["pair"].counts.moves[1].sum() == 0
    assert longer.now[0] == 2
    assert model.now[0] == 1


def test_late_events_are_put_in_order_as_the_detector_does():
    mixed = [EVENTS[at ^ 1] for at in range(len(EVENTS) - 1)] + EVENTS[-1:]
    assert moves(td.train(watching(lateness="2 s"), mixed)) == moves(td.train(watching(), EVENTS))


ORDERS = "order = kind = 'order' and key = $x\nship = kind = 'ship' and key = $x\norder ; not ship for 1 h"


def orders(keys, begin=0):
    """Return an order a minute, of which every other one is shipped after ten to forty minutes; none comes back."""
    events = [{"kind": "order", "key": f"{begin}-{key}", "time": begin + 60 * key} for key in range(keys)]
    events += [
        {"kind": "ship", "key": f"{begin}-{key}", "time": begin + 60 * key + 600 + 97 * key % 1800}
        for key in range(0, keys, 2)
    ]
    return sorted(events, key=lambda event: event["time"])


@pytest.mark.parametrize("learn", [False, True])
def test_an_absence_of_keys_that_never_come_back_is_as_likely_as_it_was(learn):
    watch = td.Detector(model=td.Model() if learn else None, learn=learn)
    watch.add("unshipped", ORDERS, **({"horizon": "2 h"} if learn else {}))
    if learn:
        watch.detect_many(orders(400))
        model = watch.model
    else:
        model = td.train(watch, orders(400), horizons=["2 h"])
    watch = td.Detector(model=model)
    watch.add("unshipped", ORDERS)
    watch.detect_many([{"kind": "order", "key": "new", "time": 10**6}])
    [mine, _] = watch.forecast("unshipped", horizon="2 h")
    assert mine.key == "new"
    assert mine.probability == pytest.approx(0.5, abs=0.1)


def test_models_of_days_have_the_pace_of_the_whole():
    """The keys of every day are the same fifty: ten days are not five hundred keys."""
    rng = np.random.default_rng(5)
    keys, times = rng.integers(0, 50, 10_000), np.sort(rng.integers(0, 10 * 86400, 10_000))
    events = [
        {"kind": "ab"[at % 2], "key": int(key), "time": int(time)}
        for at, (key, time) in enumerate(zip(keys, times, strict=True))
    ]
    watch = watching("a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; b")
    days = [[event for event in events if event["time"] // 86400 == day] for day in range(10)]
    merged = sum((td.train(watch, day) for day in days), td.Model())
    whole = td.train(watch, events)
    [ways] = {name.rpartition(" ")[0] for name in whole.traffic.own}
    assert whole.traffic.estimate_pace(ways) == pytest.approx((50, 50 * 86.4e6), rel=0.05)
    assert merged.traffic.estimate_pace(ways) == pytest.approx(whole.traffic.estimate_pace(ways), rel=0.2)
