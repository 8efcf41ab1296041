"""Many keys: what happens to forecasts and counts when names are numbered anew, and across snapshots."""

import numpy as np
import pytest

import tidings as td
from tidings.forecast.tuning import ForecastTuning
from tidings.patterns.tuning import DetectorTuning

NEXT = "a = kind = 'a' and k = $x\nb = kind = 'b' and k = $x\na , b"
TIMED = "a = kind = 'a' and k = $x\nb = kind = 'b' and k = $x\na ; b within 1 min"


@pytest.fixture(scope="module")
def history():
    rng = np.random.default_rng(3)
    kinds, keys = rng.choice(list("abcd"), 3000).tolist(), rng.integers(0, 300, 3000).tolist()
    return [
        {"id": at, "time": at, "kind": kind, "k": key} for at, (kind, key) in enumerate(zip(kinds, keys, strict=True))
    ]


def detector_of(**settings):
    made = td.Detector(**settings)
    made.add("next", NEXT)
    made.add("timed", TIMED)
    return made


@pytest.fixture(scope="module")
def model(history):
    return td.train(detector_of(), history)


def watching(model):
    made = td.Detector(model=model)
    made.add("next", NEXT, horizon=10, tell="every")
    made.add("timed", TIMED, horizon="30 s", tell="every")
    return made


def list_probabilities(forecasts):
    rows = forecasts.forecasts.to_arrow().to_pylist()
    return {(row["event"], row["pattern"]): row["probability"] for row in rows}


def test_names_that_are_numbered_anew_change_no_count(history, model):
    detector = detector_of(tuning=DetectorTuning(kept_values=100))
    cut = td.train(detector, iter([history[at : at + 250] for at in range(0, len(history), 250)]))
    for name in ("next", "timed"):
        for column in ("moves", "waits", "later"):
            assert np.array_equal(getattr(cut[name].counts, column), getattr(model[name].counts, column)), (
                name,
                column,
            )
    assert cut.traffic == model.traffic


def test_a_snapshot_keeps_the_last_events_and_the_pace_of_keys_that_have_begun_nothing(history, model):
    whole, parts, made = list_probabilities(watching(model).detect_many(history[:1000])), {}, watching(model)
    for at in range(0, 1000, 100):
        parts |= list_probabilities(made.detect_many(history[at : at + 100]))
        made = td.Detector.resume(made.snapshot())
    assert parts == whole


def test_keys_that_are_given_up_leave_the_others_as_they_are(history, model):
    often = DetectorTuning(kept_values=-100_000)  # tidy up after every batch
    made = td.Detector(model=model, tuning=often, forecast_tuning=ForecastTuning(idle_keys=20))
    made.add("next", NEXT, horizon=10, tell="every")
    for at in range(0, len(history), 100):
        detections = list_probabilities(made.detect_many(history[at : at + 100]))
        assert all(0 <= p <= 1 for p in detections.values())
    assert len(made.run.value_numbers) < 200
    lasts = {row["k"]: row["kind"] for row in history}
    assert {forecast.key for forecast in made.forecast("next")} - {None} == {
        key for key, kind in lasts.items() if kind == "a"
    }
