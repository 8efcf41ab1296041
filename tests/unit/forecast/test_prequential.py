"""Trials: forecasts before what they foretell is counted, and what came of them, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

import tidings as td
from tidings.forecast.prequential import BASE, prequential

PAIR = "a = kind = 'a'\nb = kind = 'b'\na ; b"
KEYED = "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; b"
RNG = np.random.default_rng(3)
EVENTS = [
    {"id": place, "kind": "abc"[kind], "key": int(key), "time": 3 * place + (place % 3)}
    for place, (kind, key) in enumerate(zip(RNG.integers(0, 3, 120), RNG.integers(0, 4, 120), strict=True))
]


def watching(text=PAIR, **settings):
    made = td.Detector(**settings)
    made.add("pair", text)
    return made


def matches(text, **settings):
    by_key = {}
    for detection in watching(text, **settings).detect_many(EVENTS):
        by_key.setdefault(detection.bindings.get("x"), set()).add(max(detection.events))
    return by_key


def judge_events(text, horizon):
    """Return of each event that belongs to a stream whether a match came in time, and whether that is known."""
    hits, rows = matches(text), []
    for place, event in enumerate(EVENTS):
        key = event["key"] if text == KEYED else None
        own = [at for at in range(place + 1, len(EVENTS)) if key is None or EVENTS[at]["key"] == key]
        match horizon:
            case int():
                later, is_known = [at for at in own if at <= place + horizon], place + horizon < len(EVENTS)
            case "4 own events":
                later, is_known = own[:4], len(own) >= 4
            case _:
                end = event["time"] + 10
                later, is_known = [at for at in own if EVENTS[at]["time"] <= end], end <= EVENTS[-1]["time"]
        rows.append((place, any(at in hits.get(key, ()) for at in later), is_known))
    return rows


@pytest.mark.parametrize("text", [PAIR, KEYED])
@pytest.mark.parametrize("horizon", [1, 5, "4 own events", "10 s"])
def test_what_came_of_a_forecast_is_as_it_is_defined(text, horizon):
    [trial] = prequential(watching(text), EVENTS, horizon=horizon)
    order = np.lexsort((trial.key, trial.event))
    columns = zip(trial.event[order].tolist(), trial.y[order].tolist(), trial.decided[order].tolist(), strict=True)
    assert [(at, y, is_known) for at, y, is_known in columns if is_known] == [
        row for row in judge_events(text, horizon) if row[2]
    ]
    assert trial.event[order].tolist() == list(range(len(EVENTS)))
    assert int(trial.decided.sum()) == sum(is_known for *_, is_known in judge_events(text, horizon))


@pytest.mark.parametrize("text", [PAIR, KEYED])
def test_the_base_rate_is_of_what_was_known_before(text):
    [trial] = prequential(watching(text), EVENTS, horizon=5)
    y = dict(zip(trial.event.tolist(), trial.y.tolist(), strict=True))
    for place, p in zip(trial.event.tolist(), trial.p[BASE].tolist(), strict=True):
        decided = [y[before] for before in range(place - 4)]
        assert p == pytest.approx((sum(decided) + 0.5) / (len(decided) + 1))


def test_forecasts_are_those_of_a_detector_that_learns():
    [trial] = prequential(watching(), EVENTS, horizon=3, estimators=("both", "chain"))
    for estimator in ("both", "chain"):
        watch = td.Detector(model=td.Model(estimator=estimator), learn=True)
        watch.add("pair", PAIR, horizon=3, tell="every")
        assert trial.p[estimator].tolist() == watch.detect_many(EVENTS).forecasts.probabilities.tolist()
    assert set(trial.p) == {"both", "chain", BASE}


def test_without_learning_the_model_is_judged_as_it_is():
    model = td.train(watching(), EVENTS)
    [trial] = prequential(watching(), EVENTS, horizon=3, estimators=("both",), model=model, learn=False)
    watch = td.Detector(model=model)
    watch.add("pair", PAIR, horizon=3, tell="every")
    assert trial.p["both"].tolist() == watch.detect_many(EVENTS).forecasts.probabilities.tolist()
    assert model.now[0] == 120


def test_there_is_a_trial_for_each_pattern_and_scores_leave_out_what_is_not_known():
    watch = watching()
    watch.add("keyed", KEYED)
    watch.add("timed", f"{PAIR} within 9 s")
    watch.add("absent", PAIR.replace("a ; b", "a ; not b for 5 s"))
    trials = prequential(watch, EVENTS, horizon=5)
    assert [trial.pattern for trial in trials] == ["pair", "keyed", "timed", "absent"]
    for trial in trials:
        assert trial.score("both").n == 115
        assert trial.warnings("both", 0.3).judged == 115
        assert trial.matches == len(watching_one(watch, trial.pattern))


def watching_one(watch, name):
    alone = td.Detector()
    alone.add("one", watch[name])
    return list(alone.detect_many(EVENTS))


def test_the_ahead_of_a_forecast_is_in_own_events():
    [trial] = prequential(watching(KEYED), EVENTS, horizon=5)
    hits = matches(KEYED)
    for place, ahead in zip(trial.event.tolist(), trial.ahead.tolist(), strict=True):
        key = EVENTS[place]["key"]
        own = [at for at in range(place + 1, len(EVENTS)) if EVENTS[at]["key"] == key]
        wanted = next((count for count, at in enumerate(own, 1) if at in hits.get(key, ())), -1)
        assert ahead == wanted


@pytest.mark.parametrize("text", [PAIR, KEYED])
@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5])
def test_warnings_are_those_of_a_loop(text, threshold):
    [trial] = prequential(watching(text), EVENTS, horizon=5)
    rows = zip(trial.key.tolist(), trial.event.tolist(), trial.p["both"].tolist(), trial.y.tolist(), strict=True)
    decided = dict(zip(trial.event.tolist(), trial.decided.tolist(), strict=True))
    leads, alarms, false, undecided, before = {}, 0, 0, 0, {}
    ahead = dict(zip(trial.event.tolist(), trial.ahead.tolist(), strict=True))
    own = {key: sorted(trial.event[trial.key == key].tolist()) for key in set(trial.key.tolist())}
    for key, event, p, y in sorted(rows):
        on = p > threshold
        if on and not before.get(key, False):
            alarms += 1
            false += decided[event] and not y
            undecided += not decided[event]
        if on and y:
            leads.setdefault((key, own[key].index(event) + ahead[event]), ahead[event])
        before[key] = on
    warnings = trial.warnings("both", threshold)
    assert sorted(lead for lead in warnings.leads if lead is not None) == sorted(leads.values())
    assert (warnings.matches, warnings.warned_count) == (trial.matches, len(leads))
    assert (warnings.alarms, warnings.false, warnings.undecided, warnings.judged) == (alarms, false, undecided, 115)


def test_the_detector_stays_as_it_is():
    watch = watching()
    watch.on_event({"kind": "a"})
    prequential(watch, EVENTS, horizon=5)
    assert len(watch.on_event({"kind": "b"})) == 1


def test_events_that_wait_for_their_turn_are_judged_too():
    [trial] = prequential(watching(lateness="5 s"), EVENTS, horizon=5)
    assert len(trial.event) == 120


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"horizon": 0}, "a horizon is"),
        ({"horizon": "soon"}, "`soon`"),
        ({"horizon": 5, "estimators": ("best",)}, "`best`"),
    ],
)
def test_what_means_nothing_is_refused(arguments, match):
    with pytest.raises(td.TidingsError, match=match):
        prequential(watching(), EVENTS, **arguments)


def test_a_detector_without_patterns_has_nothing_to_score():
    with pytest.raises(td.TidingsError, match="add them first"):
        prequential(td.Detector(), EVENTS, horizon=5)
