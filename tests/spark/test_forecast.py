"""Forecasts on Spark: what the local detector foretells with the same model, on batches and on streams."""

import random
from collections import Counter
from datetime import UTC, timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.spark.test_detect import LOGIN, START, at
from tests.spark.test_detect_stream import Stream, disordered, streamed
from tests.spark.test_detect_stream import written as written_down
from tests.spark.test_pipeline_patterns import ATTACKS, PIPELINE, login
from tests.spark.test_train import NAMES, TOLD, in_order, log, lying, watching

import tidings as td
from tidings import spark as ts
from tidings.errors import BadPipeline, FileError, StateError, TidingsError
from tidings.lang import read_patterns
from tidings.patterns.run.portions import written
from tidings.spark.detect.bucket_forecasts import NOTHING_SAID, Foresight
from tidings.spark.detect.worker_plan import Plan
from tidings.spark.pipeline.config.load import load

TELLS = ("crossing", "episode", "every", "change")
LOGS = "id BIGINT, ts TIMESTAMP, status STRING, ip STRING"


@pytest.fixture(scope="module")
def model():
    return td.train(watching(TOLD), in_order(log(600, seed=9)), horizons=["4 s"])


def foreseeing(model, told=TOLD, *, own=False):
    """Return a detector of the patterns; with `own`, keys are foretold by their own events alone."""
    detector = td.Detector(model=model, time="ts")
    for number, (name, pattern) in enumerate(told.items()):
        horizon = "4 own events" if own and "$x" in pattern else (6, "4 s", 6, "4 s", 20)[number % 5]
        tell = "every" if name == "crossed" else TELLS[number % 4]
        options = {"horizon": horizon, "threshold": 0.3, "tell": tell, "step": 0.2}
        detector.add(name, pattern, mode="overlap" if name == "then" else "restart", **options)
    return detector


def told_locally(detector, events):
    rows = detector.detect_many(events).forecasts.to_arrow().to_pylist()
    return Counter(
        (row["pattern"], row["key"], row["at"], row["event"], round(row["probability"], 9), row["horizon"])
        for row in rows
    )


def told_by(rows):
    told = [row for row in rows if row["kind"] == "forecast"]
    moments = [row["at"].replace(tzinfo=UTC) for row in told]
    return Counter(
        (row["pattern"], row["key"], moment, *row["events"], round(row["probability"], 9), row["horizon"])
        for row, moment in zip(told, moments, strict=True)
    )


def as_events(rows):
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def planned(detector, *, buckets=3):
    told = Foresight.of(detector, detector, model=None, asked=NOTHING_SAID)
    plain = td.Detector(time="ts")
    plain.add_many(map(written, detector.watched))
    return Plan.of(plain, buckets=buckets, shards=2, event_id="id", keep=(), model=told.model, plans=told.plans)


def test_a_batch_foretells_what_the_local_detector_does(spark, model):
    rows = log(200, seed=2)
    found = [row.asDict() for row in ts.detect(lying(spark, rows), foreseeing(model), buckets=3, shards=2).collect()]
    expected = told_locally(foreseeing(model), in_order(rows))
    assert told_by(found) == expected
    assert {pattern for pattern, *_ in expected} == TOLD.keys()
    assert {key for _, key, *_ in expected} >= {None, "1", "2"}
    told = {row["estimator"] for row in found if row["kind"] == "forecast"}
    assert told >= {"both", "approximate both"}
    assert all(row["probability"] is None for row in found if row["kind"] == "match")
    assert sum(row["kind"] == "match" for row in found) == len(foreseeing(model).detect_many(in_order(rows)))


def test_a_stream_foretells_what_a_batch_does(model):
    rows, rng, newest = log(150, seed=3), random.Random(4), START
    arriving = disordered(rows, bound=4)
    expected = told_locally(foreseeing(model, own=True), as_events(sorted(arriving, key=lambda row: row[1])))
    stream = Stream(planned(foreseeing(model, own=True)))
    while arriving:
        size = rng.randrange(1, 30)
        some, arriving = arriving[:size], arriving[size:]
        stream.batch(some, pieces=rng.choice((1, 3)))
        newest = max(newest, *(row[1] for row in some))
        stream.passes(newest - timedelta(seconds=4))
    stream.passes(newest)
    assert told_by(stream.rows) == expected


def test_a_stream_goes_on_from_its_checkpoint_also_with_other_patterns(spark, model, tmp_path):
    rows = log(60, seed=5)
    last = (999, rows[-1][1] + timedelta(hours=1), "x", None, None)
    some = {name: TOLD[name] for name in ("then", "plain")}
    written_down(tmp_path / "in", [rows[:30]])
    streamed(spark, tmp_path, foreseeing(model, some | {"next": TOLD["next"]}, own=True), buckets=2, shards=1)
    written_down(tmp_path / "in", [[*rows[30:], last]])
    found = streamed(spark, tmp_path, foreseeing(model, some, own=True), buckets=2, shards=1)
    mine = told_by(row.asDict() for row in found.where("pattern <> 'next'").collect())
    assert mine == told_locally(foreseeing(model, some, own=True), as_events([*rows, last]))
    assert {pattern for pattern, *_ in mine} == {"then", "plain"}


@pytest.fixture(scope="module")
def logins(spark):
    status = ["denied", "denied", "success", "denied"] * 20
    rows = [(n, at(n), one, f"10.0.0.{n % 5}") for n, one in enumerate(status)]
    return spark.createDataFrame(rows, LOGS)


def test_patterns_as_text_share_a_horizon_and_a_saved_model_is_a_path(logins, tmp_path):
    ts.train(logins, {"intrusion": LOGIN}, context=1).save(tmp_path / "model")
    asked = {"model": tmp_path / "model", "horizon": "3 own events", "threshold": 0.1, "keep": ["status"]}
    found = ts.detect(logins, {"intrusion": LOGIN, "again": LOGIN}, **asked).where("kind = 'forecast'").collect()
    assert {row.pattern for row in found} == {"intrusion", "again"}
    [first, *_] = sorted(found, key=lambda row: row.at)
    assert [event.asDict() for event in first.events] == [{"id": first.events[0].id, "status": "denied"}]
    assert (first.horizon, first.key.startswith("10.0.0."), 0.1 < first.probability <= 1) == (
        "3 own events",
        True,
        True,
    )


def test_a_streams_buckets_reckon_where_their_events_stand(model):
    """With one bucket, and a key in every event, they know; of several, each takes others to be as quick as itself."""
    rows = [row for row in log(300, seed=6) if row[3] is not None]
    told = {"soon": TOLD["next"], "late": TOLD["then"], "all": TOLD["soon"]}  # the third is told at every event
    expected = told_locally(foreseeing(model, told), as_events(rows))

    def streamed(buckets):
        stream = Stream(planned(foreseeing(model, told), buckets=buckets))
        for start in range(0, len(rows), 40):
            stream.batch(rows[start : start + 40])
            stream.passes(rows[min(start + 39, len(rows) - 1)][1])
        return told_by(stream.rows)

    assert streamed(1) == expected
    mine = {(pattern, event): chance for pattern, _, _, event, chance, _ in streamed(3)}
    theirs = {(pattern, event): chance for pattern, _, _, event, chance, _ in expected}
    both = mine.keys() & theirs.keys()
    assert len(both) > 50
    assert sum(abs(mine[one] - theirs[one]) for one in both) / len(both) < 0.1


@pytest.mark.parametrize(
    ("problem", "words", "given"),
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
def test_what_makes_no_sense_is_refused_before_any_job(logins, problem, words, given):
    given, told = dict(given), {"intrusion": LOGIN}
    if given.pop("patterns", None):
        detector = td.Detector()
        detector.add("intrusion", LOGIN)
        told = detector
    with pytest.raises(problem, match=words):
        ts.detect(logins, told, **given)


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
    told = [row for row in rows if row["kind"] == "forecast"]
    assert all(row["probability"] > 0.2 and row["horizon"] == "3 own events" for row in told)
    assert {row["key"] for row in told} == {"10.0.0.1"}
    assert "approximate both" in {row["estimator"] for row in told}  # the model knows the pattern


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("horizon = 10", "`horizon` needs `model`: forecasts are made with one"),
        ('tell = "every"', "`tell` needs `model`"),
        ('model = "attacks.patterns"', "`model` needs `horizon`"),
        ('model = "attacks.patterns"\nhorizon = 10', "`model` does not load:"),
        ('model = "nowhere"\nhorizon = 10', "`model`"),
        (
            'model = "nowhere"\nhorizon = "soon"',
            '`horizon` must be a number of events, "10 own events" or "5 min", not `soon`',
        ),
        ('model = "nowhere"\nhorizon = 0', '`horizon` must be a number of events, "10 own events" or "5 min", not `0`'),
        ('model = "nowhere"\nthreshold = 2', "`threshold` must be a probability from 0 to 1, not `2`"),
        ('model = "nowhere"\nstep = true', "`step` must be a probability from 0 to 1, not true or false"),
        ('model = "nowhere"\ntell = "often"', "`tell` cannot be `often`"),
    ],
)
def test_mistakes_about_forecasts_in_a_pipeline_are_told(tmp_path, said, words):
    (tmp_path / "ads").mkdir()
    (tmp_path / "attacks.patterns").write_text(ATTACKS)
    (tmp_path / "pipeline.toml").write_text(PIPELINE.replace("KEEP", said))
    with pytest.raises(BadPipeline) as told:
        load(tmp_path / "pipeline.toml")
    assert f"[patterns] {words}" in str(told.value)
