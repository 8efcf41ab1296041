"""Patterns on streams: rows wait for the watermark, late ones are told, and a restart goes on exactly.

`TwsTester` is Spark's stateful operator without Spark: most of this needs no session.
"""

import json
import os
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.spark.detect.test_detect import count_detections
from tests.unit.spark.detect.pattern_cases import (
    COLUMNS,
    LOGIN,
    NAMES,
    PATTERN_TEXTS,
    at,
    count_detections_locally,
    disorder_rows,
    log,
)

from tidings import spark as ts
from tidings.errors import BadFrame, SparkUnavailable
from tidings.spark.state_store import IN_MEMORY, ROCKSDB, STATE_STORE, use_state_store


def write_batches(folder, batches):
    """Write a file for each micro-batch; the times of files are the order in which Spark takes them."""
    folder.mkdir(exist_ok=True)
    first = len([*folder.iterdir()])
    for number, rows in enumerate(batches, first):
        path = folder / f"{number}.json"
        path.write_text("".join(json.dumps(dict(zip(NAMES, row, strict=True)), default=str) + "\n" for row in rows))
        os.utime(path, (1.7e9 + number, 1.7e9 + number))


def run_stream(spark, folder, patterns, **options):
    """Read the files to their end, one in a micro-batch, and return all that was found so far."""
    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    detections = ts.detect(stream.withWatermark("ts", "4 seconds"), patterns, **options)
    query = detections.writeStream.format("json").option("checkpointLocation", str(folder / "state"))
    query.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    return spark.read.schema(detections.schema).json(str(folder / "out"))


def test_a_stream_finds_what_a_batch_finds_and_goes_on_from_its_checkpoint(spark, tmp_path):
    rows = log(90)
    last = (999, rows[-1][1] + timedelta(hours=1), "x", 9, 9.0)
    arriving = disorder_rows(rows, bound=4)
    in_order = sorted(arriving, key=lambda row: row[1])
    write_batches(tmp_path / "in", [arriving[:40]])
    run_stream(spark, tmp_path, PATTERN_TEXTS, buckets=2, shards=1)
    write_batches(tmp_path / "in", [[*arriving[40:], (500, at(-100), "a", 1, 1.0), last]])
    detections = run_stream(spark, tmp_path, PATTERN_TEXTS[1:], buckets=2, shards=1)  # the first pattern is gone
    expected = count_detections_locally(in_order, PATTERN_TEXTS, until=last[1])
    mine = Counter(
        {detection: count for detection, count in count_detections(detections).items() if detection[0] != "p0"}
    )
    assert mine == Counter({detection: count for detection, count in expected.items() if detection[0] != "p0"})
    [late] = detections.where("kind = 'late'").collect()
    assert (late.pattern, late.key, late.events) == (None, None, [500])
    assert late.at.replace(tzinfo=UTC) == at(-100)
    assert isinstance(late.at, datetime)


def test_a_stream_without_a_watermark_is_refused(spark, tmp_path):
    columns = "id BIGINT, ts TIMESTAMP, status STRING, ip STRING"
    stream = spark.readStream.schema(columns).json(str(tmp_path))
    with pytest.raises(BadFrame, match=r"needs a watermark on `ts`: events.withWatermark\('ts', '10 minutes'\)"):
        ts.detect(stream, {"intrusion": LOGIN})


def test_a_session_of_ours_keeps_state_in_rocksdb_and_one_with_another_store_is_refused_with_the_way_out(
    spark, tmp_path
):
    assert spark.conf.get(STATE_STORE) == ROCKSDB
    columns = "id BIGINT, ts TIMESTAMP, status STRING, ip STRING"
    stream = spark.readStream.schema(columns).json(str(tmp_path)).withWatermark("ts", "1 minute")
    with use_state_store(spark, IN_MEMORY):
        assert spark.conf.get(STATE_STORE) == IN_MEMORY
        with pytest.raises(SparkUnavailable, match=rf"take ts\.session\(\), or session\.conf\.set\('{STATE_STORE}', "):
            ts.detect(stream, {"intrusion": LOGIN})
        assert spark.conf.get(STATE_STORE) == IN_MEMORY  # the call sets nothing
    assert spark.conf.get(STATE_STORE) == ROCKSDB


def test_a_store_that_was_chosen_for_the_session_stays(spark):
    with use_state_store(spark, IN_MEMORY):
        assert ts.session().conf.get(STATE_STORE) == IN_MEMORY
