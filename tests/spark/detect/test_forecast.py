"""Forecasts on Spark: what the local detector foretells with the same model, on batches and on streams."""

from datetime import timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.spark.detect.test_detect_stream import run_stream, write_batches
from tests.spark.pipeline.test_pipeline_patterns import ATTACKS, PIPELINE, login
from tests.spark.train.test_train import lying
from tests.unit.spark.detect.forecast_cases import (
    PATTERN_TEXTS,
    as_events,
    count_forecasts,
    count_forecasts_locally,
    in_order,
    log,
    watch_patterns,
    watch_with_model,
)
from tests.unit.spark.detect.pattern_cases import LOGIN, at

import tidings as td
from tidings import spark as ts
from tidings.errors import FileError, StateError, TidingsError
from tidings.lang import read_patterns

LOGS = "id BIGINT, ts TIMESTAMP, status STRING, ip STRING"


@pytest.fixture(scope="module")
def model():
    return td.train(watch_patterns(PATTERN_TEXTS), in_order(log(600, seed=9)), horizons=["4 s"])


def test_a_batch_foretells_what_the_local_detector_does(spark, model):
    rows = log(200, seed=2)
    rows_found = [
        row.asDict() for row in ts.detect(lying(spark, rows), watch_with_model(model), buckets=3, shards=2).collect()
    ]
    expected = count_forecasts_locally(watch_with_model(model), in_order(rows))
    assert count_forecasts(rows_found) == expected
    assert {pattern for pattern, *_ in expected} == PATTERN_TEXTS.keys()
    assert {key for _, key, *_ in expected} >= {None, "1", "2"}
    estimators = {row["estimator"] for row in rows_found if row["kind"] == "forecast"}
    assert estimators >= {"both", "approximate both"}
    assert all(row["probability"] is None for row in rows_found if row["kind"] == "match")
    assert sum(row["kind"] == "match" for row in rows_found) == len(watch_with_model(model).detect_many(in_order(rows)))


def test_a_stream_goes_on_from_its_checkpoint_also_with_other_patterns(spark, model, tmp_path):
    rows = log(60, seed=5)
    last = (999, rows[-1][1] + timedelta(hours=1), "x", None, None)
    some = {name: PATTERN_TEXTS[name] for name in ("then", "plain")}
    write_batches(tmp_path / "in", [rows[:30]])
    run_stream(
        spark, tmp_path, watch_with_model(model, some | {"next": PATTERN_TEXTS["next"]}, own=True), buckets=2, shards=1
    )
    write_batches(tmp_path / "in", [[*rows[30:], last]])
    detections = run_stream(spark, tmp_path, watch_with_model(model, some, own=True), buckets=2, shards=1)
    mine = count_forecasts(row.asDict() for row in detections.where("pattern <> 'next'").collect())
    assert mine == count_forecasts_locally(watch_with_model(model, some, own=True), as_events([*rows, last]))
    assert {pattern for pattern, *_ in mine} == {"then", "plain"}


@pytest.fixture(scope="module")
def logins(spark):
    status = ["denied", "denied", "success", "denied"] * 20
    rows = [(n, at(n), outcome, f"10.0.0.{n % 5}") for n, outcome in enumerate(status)]
    return spark.createDataFrame(rows, LOGS)


def test_patterns_as_text_share_a_horizon_and_a_saved_model_is_a_path(logins, tmp_path):
    ts.train(logins, {"intrusion": LOGIN}, context=1).save(tmp_path / "model")
    asked = {"model": tmp_path / "model", "horizon": "3 own events", "threshold": 0.1, "keep": ["status"]}
    forecasts = ts.detect(logins, {"intrusion": LOGIN, "again": LOGIN}, **asked).where("kind = 'forecast'").collect()
    assert {row.pattern for row in forecasts} == {"intrusion", "again"}
    [first, *_] = sorted(forecasts, key=lambda row: row.at)
    assert [event.asDict() for event in first.events] == [{"id": first.events[0].id, "status": "denied"}]
    assert (first.horizon, first.key.startswith("10.0.0."), 0.1 < first.probability <= 1) == (
        "3 own events",
        True,
        True,
    )


@pytest.mark.parametrize(
    ("problem", "words", "options"),
    [
        (TidingsError, "forecasts need a model", {"horizon": 10}),
        (TidingsError, "a model needs a horizon", {"model": td.Model()}),
        (TidingsError, "model is a td.Model, or the path of one", {"model": 7, "horizon": 10}),
        (FileError, "cannot be read", {"model": "nowhere.model", "horizon": 10}),
        (StateError, "not a model", {"model": __file__, "horizon": 10}),
        (TidingsError, "a horizon is a number of events", {"model": td.Model(), "horizon": "soon"}),
        (TidingsError, "a threshold is a probability", {"model": td.Model(), "horizon": 9, "threshold": 5}),
        (TidingsError, "forecasts are told on", {"model": td.Model(), "horizon": 9, "tell": "never"}),
        (TidingsError, "brings its own horizons", {"patterns": td.Detector, "horizon": 9}),
        (TidingsError, "a model needs a horizon", {"patterns": td.Detector, "model": td.Model()}),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_job(logins, problem, words, options):
    options, patterns = dict(options), {"intrusion": LOGIN}
    if options.pop("patterns", None):
        detector = td.Detector()
        detector.add("intrusion", LOGIN)
        patterns = detector
    with pytest.raises(problem, match=words):
        ts.detect(logins, patterns, **options)


# Pipelines ----------------------------------------------------------------------------------------


FORETOLD = 'model = "attacks.model"\nhorizon = "3 own events"\nthreshold = 0.2'


def test_a_pipeline_with_a_model_writes_forecasts_where_detections_go(pipe, logins):
    fails, model = [login(id, "denied", id) for id in (1, 2, 3)], pipe.folder / "attacks.model"
    (pipe.folder / "attacks.patterns").write_text(ATTACKS)
    (pipe.folder / "pipeline.toml").write_text(PIPELINE.replace("KEEP", FORETOLD))
    ts.train(logins.selectExpr("*", "1 AS size"), read_patterns(ATTACKS), context=0).save(model)
    pipe.events(*fails, login(4, "success", 5, size="1"), login(5, "other", 40))
    assert pipe.run().detections == 1
    rows = pipe.rows("attacks")
    assert {row["kind"] for row in rows} == {"match", "forecast"}
    [match] = [row for row in rows if row["kind"] == "match"]
    assert (match["events"], match.get("probability")) == ([1, 2, 3, 4], None)
    forecasts = [row for row in rows if row["kind"] == "forecast"]
    assert all(row["probability"] > 0.2 and row["horizon"] == "3 own events" for row in forecasts)
    assert {row["key"] for row in forecasts} == {"10.0.0.1"}
    assert "approximate both" in {row["estimator"] for row in forecasts}  # the model knows the pattern
