"""The same call on a stream: a directory of JSON files, read to its end, equals the batch."""

import json
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from pyspark.sql import functions as F  # noqa: N812
from tests.spark.ad_columns import ADS

from tidings import spark as ts
from tidings.bench.workloads import NOW, car_ads, saved_searches

PRICED = {"price": "number"}
"""The column is text, since sellers write what they like; here it is declared a number."""

SEARCHES = saved_searches(150, seed=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ads")
    ads = car_ads(300, seed=3)
    ads[17]["price"] = "call me"
    for start in range(0, 300, 50):
        lines = [json.dumps(ad, default=str) + "\n" for ad in ads[start : start + 50]]
        (folder / f"{start}.json").write_text("".join(lines))
    return str(folder)


def run_stream(spark, frame, name):
    """Run a stream to its end and return its rows."""
    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    return sorted(tuple(row) for row in spark.table(name).collect()), len(query.recentProgress)


def both(spark, folder):
    batch = spark.read.schema(ADS).json(folder)
    return batch, spark.readStream.schema(ADS).option("maxFilesPerTrigger", 3).json(folder)


def test_a_stream_of_json_files_matches_as_the_batch_does(spark, folder):
    batch, stream = both(spark, folder)
    about = {"event_id": "id", "keep": ["make", "price"], "schema": PRICED, "now": NOW}
    rows, steps = run_stream(spark, ts.match(stream, SEARCHES, **about), "pairs")
    assert rows == sorted(tuple(row) for row in ts.match(batch, SEARCHES, **about).collect())
    assert len(rows) > 300
    assert steps > 1


def test_dead_letters_of_a_stream_do_not_stop_it(spark, folder):
    _, stream = both(spark, folder)
    rows, _ = run_stream(spark, ts.dead_letters(stream, SEARCHES, event_id="id", schema=PRICED, now=NOW), "letters")
    assert [(event, reason) for event, reason, _ in rows] == [(17, "`price`: 'call me' is not a number")]


def test_the_whole_of_a_micro_batch_has_one_now(spark, folder):
    _, stream = both(spark, folder)
    fresh = stream.withColumn("read", F.current_timestamp())
    rows, _ = run_stream(spark, ts.match(fresh, [("now", "age(read) = 0 s")], event_id="id"), "fresh")
    assert len(rows) == 300


def test_now_goes_on_from_batch_to_batch(spark, tmp_path):
    posted = datetime.now(UTC) - timedelta(days=7) + timedelta(hours=1)
    (tmp_path / "one.json").write_text(json.dumps({"id": 1, "posted": posted.isoformat()}) + "\n")
    stream = spark.readStream.schema("id int, posted timestamp").json(str(tmp_path))
    rows, _ = run_stream(spark, ts.match(stream, [("week", "age(posted) < 7 days")], event_id="id"), "week")
    assert rows == [(1, "week")]


def test_a_watermark_survives_matching(spark, folder):
    _, stream = both(spark, folder)
    pairs = ts.match(stream.withWatermark("posted", "60 days"), SEARCHES, keep=["posted"], schema=PRICED, now=NOW)
    daily = pairs.groupBy(F.window("posted", "1 day")).count()
    query = daily.writeStream.format("memory").queryName("daily").trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.lastProgress.eventTime["watermark"] > "2023"
