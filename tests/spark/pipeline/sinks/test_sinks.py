"""Sinks: a batch is there once and whole, whatever was tried before, and its rows are those that came in."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, date, datetime

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console

from tidings.errors import BadFrame, SinkError
from tidings.spark.pipeline.config.settings import SinkSettings
from tidings.spark.pipeline.sinks import batch_folders
from tidings.spark.pipeline.sinks.sinks import open_sink, to_json_array

FORMATS = ("json", "parquet")
KEY = ("subscription", "event")
PAIRS = "event BIGINT, subscription STRING"

called = []
"""What the function below was called with."""


def takes(frame, batch):
    called.append((frame.count(), batch))


def fails(frame, batch):
    msg = f"no room for batch {batch}"
    raise OSError(msg)


def pairs(spark, count, first=0):
    return spark.range(first, first + count).select(
        F.col("id").alias("event"), F.concat(F.lit("s"), F.col("id") % 3).alias("subscription")
    )


def files(path):
    """The names in a sink's folder, without what no reader sees."""
    return sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("_"))


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


@pytest.fixture
def sink(tmp_path):
    return lambda kind, name="out", **about: SinkSettings(kind=kind, path=str(tmp_path / name), **about)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
def test_batches_are_read_back_with_their_numbers_as_integers(spark, tmp_path, sink, kind):
    output = open_sink(sink(kind), key=KEY)
    output.write(pairs(spark, 5), 2)
    output.write(pairs(spark, 3, first=5), 12)
    assert files(tmp_path / "out") == ["batch=00000002", "batch=00000012"]
    read = spark.read.format(kind).load(str(tmp_path / "out"))
    assert dict(read.dtypes)["batch"] == "int"
    assert rows(read.select("event", "batch")) == [(n, 2 if n < 5 else 12) for n in range(8)]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_batch_that_is_tried_again_is_not_written_again(spark, tmp_path, sink, kind):
    open_sink(sink(kind), key=KEY).write(pairs(spark, 5), 0)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    again = open_sink(sink(kind), key=KEY)
    again.write(pairs(spark, 5), 0)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("kind", FORMATS)
def test_a_batch_without_rows_leaves_nothing(spark, tmp_path, sink, kind, compression):
    output = open_sink(sink(kind, options={"compression": compression}), key=KEY)
    output.write(pairs(spark, 4).where("event > 10"), 0)
    assert list((tmp_path / "out").iterdir()) == []
    output.write(pairs(spark, 4).where("event = 3"), 1)
    assert files(tmp_path / "out") == ["batch=00000001"]


DIES = """
import os, sys
from pathlib import Path
from tidings import spark as ts
from tidings.spark.pipeline.config.settings import SinkSettings
from tidings.spark.pipeline.sinks import batch_folders
from tidings.spark.pipeline.sinks.sinks import open_sink

batch_folders.publish = lambda staging, final: os.kill(os.getpid(), 9)
session = ts.session("dies", master="local[1]")
open_sink(SinkSettings(kind="json", path=sys.argv[1]), key=()).write(session.range(100).toDF("event"), 0)
"""


def test_a_process_that_dies_before_the_rename_leaves_no_batch_and_the_next_one_writes_it(spark, tmp_path, sink):
    open_sink(sink("json"), key=())
    died = subprocess.run([sys.executable, "-c", DIES, str(tmp_path / "out")], check=False, timeout=120)
    assert died.returncode == -signal.SIGKILL
    (left,) = (tmp_path / "out").iterdir()
    assert left.name.startswith(batch_folders.STAGING)
    assert any(left.glob("part-*.json"))
    schema = "event BIGINT, batch INT"
    assert spark.read.schema(schema).json(str(tmp_path / "out")).count() == 0

    output = open_sink(sink("json"), key=())
    assert list((tmp_path / "out").iterdir()) == []
    output.write(spark.range(100).toDF("event"), 0)
    assert rows(spark.read.schema(schema).json(str(tmp_path / "out"))) == [(n, 0) for n in range(100)]


def test_opening_removes_what_is_ours_alone(spark, tmp_path, sink):
    out = tmp_path / "out"
    for name in ("_staging-3-abc", "_other", "staging-3", "batch=00000001"):
        (out / name).mkdir(parents=True)
    open_sink(sink("parquet"), key=KEY)
    assert sorted(path.name for path in out.iterdir()) == ["_other", "batch=00000001", "staging-3"]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_write_that_fails_leaves_no_trace(spark, tmp_path, sink, kind):
    broken = pairs(spark, 50).withColumn("x", F.when(F.col("event") == 49, F.raise_error(F.lit("no"))).otherwise(1))
    output = open_sink(sink(kind), key=KEY)
    with pytest.raises(Exception, match="USER_RAISED_EXCEPTION"):
        output.write(broken, 0)
    assert list((tmp_path / "out").iterdir()) == []
    output.write(pairs(spark, 50), 0)
    assert files(tmp_path / "out") == ["batch=00000000"]


def test_a_reader_sees_whole_batches_only(spark, tmp_path, sink, monkeypatch):
    """Look at the folder at the moments that matter: before the rename, after it, and all the while from a thread."""
    out, size, seen = tmp_path / "out", 60, []
    output = open_sink(sink("parquet"), key=KEY)
    output.write(pairs(spark, size), 0)
    published = batch_folders.publish

    def counts():
        read = spark.read.parquet(str(out)).groupBy("batch").count().collect()
        return {row["batch"]: row["count"] for row in read}

    def publish_and_count(staging, final):
        seen.append(counts())
        published(staging, final)
        seen.append(counts())

    monkeypatch.setattr(batch_folders, "publish", publish_and_count)
    done = threading.Event()
    watched = []

    def watch():
        while not done.is_set():
            # Without Spark's own cache of file lists, as another process would look.
            watched.extend(len(list(batch.glob("_SUCCESS"))) for batch in out.glob("batch=*"))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        for batch in (1, 2):
            output.write(pairs(spark, size, first=batch * size), batch)
    finally:
        done.set()
        thread.join()
    assert seen == [dict.fromkeys(range(upto), size) for upto in (1, 2, 2, 3)]
    assert set(watched) == {1}


def test_a_write_is_one_job(spark, sink):
    group = f"one job {os.getpid()}"
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup(group, "")
    try:
        for kind in FORMATS:
            before = len(tracker.getJobIdsForGroup(group))
            open_sink(sink(kind, kind), key=KEY).write(pairs(spark, 40), 0)
            assert len(tracker.getJobIdsForGroup(group)) == before + 1
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_batches_of_another_checkpoint_are_refused_and_not_taken_for_written_ones(spark, tmp_path, sink):
    first = open_sink(sink("json"), key=KEY, owner="checkpoint 1")
    open_sink(sink("json"), key=KEY, owner="checkpoint 2")  # nothing there yet, so anybody's
    open_sink(sink("json"), key=KEY, owner="checkpoint 1")
    first.write(pairs(spark, 3), 0)
    open_sink(sink("json"), key=KEY, owner="checkpoint 1").write(pairs(spark, 3), 0)
    with pytest.raises(SinkError, match="holds batches of another checkpoint"):
        open_sink(sink("json"), key=KEY, owner="checkpoint 2")
    (tmp_path / "out" / batch_folders.OWNER).unlink()
    with pytest.raises(SinkError, match="give the sink an empty folder"):
        open_sink(sink("json"), key=KEY, owner="checkpoint 1")
    (tmp_path / "out" / batch_folders.OWNER).write_text("not json")
    with pytest.raises(SinkError, match="not what Tidings wrote"):
        open_sink(sink("json"), key=KEY, owner="checkpoint 1")


def test_a_column_that_the_folders_hide_is_refused(spark, sink):
    frame = pairs(spark, 3).withColumn("Batch", F.lit(1))
    with pytest.raises(BadFrame, match=r"column `Batch`.*another name"):
        open_sink(sink("json"), key=KEY).write(frame, 0)


def test_folders_with_odd_names_are_local(spark, tmp_path, sink):
    odd = tmp_path / "a b%20c {x}"
    open_sink(SinkSettings(kind="json", path=f"file://{odd}"), key=KEY).write(pairs(spark, 3), 0)
    assert files(odd) == ["batch=00000000"]


def test_a_remote_folder_is_written_over(spark, tmp_path):
    """A `file:` address stands in for a remote one: what differs is that Spark alone writes it."""
    output = batch_folders.RemoteFolder(f"file://{tmp_path}/out/", "parquet", {})
    output.write(pairs(spark, 7), 3)
    output.write(pairs(spark, 5), 3)
    assert rows(spark.read.parquet(str(tmp_path / "out")).select("event", "batch")) == [(n, 3) for n in range(5)]
    assert isinstance(
        open_sink(SinkSettings(kind="json", path="s3a://bucket/out"), key=KEY), batch_folders.RemoteFolder
    )


# --- rows of every type --------------------------------------------------------------------------

SCHEMA = """
    event BIGINT, subscription STRING, flag BOOLEAN, tiny TINYINT, small SMALLINT, whole INT, single FLOAT,
    double DOUBLE, exact DECIMAL(20, 4), day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ, raw BINARY, tags ARRAY<STRING>,
    spot STRUCT<lon: DOUBLE, lat: DOUBLE>, items ARRAY<STRUCT<sku: STRING, qty: INT>>, extra MAP<STRING, BIGINT>,
    `a.dotted name` STRING
"""

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
floats = st.floats(-1e12, 1e12, allow_nan=False)
moments = st.datetimes(datetime(1901, 1, 1), datetime(2200, 1, 1))  # noqa: DTZ001 - zones are added below
whole = st.integers(-(2**63), 2**63 - 1)


def maybe(values):
    return st.none() | values


generated = st.tuples(
    whole,
    texts,
    maybe(st.booleans()),
    maybe(st.integers(-128, 127)),
    maybe(st.integers(-(2**15), 2**15 - 1)),
    maybe(st.integers(-(2**31), 2**31 - 1)),
    maybe(st.floats(-1e6, 1e6, allow_nan=False, width=32)),
    maybe(floats),
    maybe(st.decimals(-(10**15), 10**15, places=4)),
    maybe(st.dates(date(1901, 1, 1), date(2200, 1, 1))),
    maybe(moments.map(lambda at: at.replace(tzinfo=UTC))),
    maybe(moments),
    maybe(st.binary(max_size=8)),
    maybe(st.lists(maybe(texts), max_size=3)),
    maybe(st.tuples(maybe(floats), maybe(floats))),
    maybe(st.lists(st.tuples(maybe(texts), maybe(st.integers(0, 99))), max_size=2)),
    maybe(st.dictionaries(texts, whole, max_size=2)),
    maybe(texts),
)


def plain(value):
    """A value that compares: Spark's rows and byte arrays as Python's own, and times with their zone."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, (tuple, list)):
        return tuple(plain(part) for part in value)
    return sorted(value.items()) if isinstance(value, dict) else value


# Each example is two Spark jobs and more: to shrink a failing one would take minutes.
@settings(max_examples=5, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(generated, min_size=1, max_size=12))
def test_generated_rows_of_every_type_are_read_back_equal(spark, tmp_path_factory, generated_rows):
    out = tmp_path_factory.mktemp("typed")
    frame = spark.createDataFrame(generated_rows, SCHEMA)
    expected = sorted((plain(tuple(row)) for row in frame.collect()), key=repr)
    for kind in FORMATS:
        open_sink(SinkSettings(kind=kind, path=str(out / kind)), key=KEY).write(frame, 4)
        read = spark.read.schema(frame.schema).format(kind).load(str(out / kind)).drop("batch")
        assert sorted((plain(tuple(row)) for row in read.collect()), key=repr) == expected, kind


def test_grouped_rows_and_dead_letters_are_rows_like_any_other(spark, tmp_path, sink):
    grouped = spark.createDataFrame([(1, ["s1", "s2"])], "event BIGINT, subscriptions ARRAY<STRING>")
    letters = spark.createDataFrame([(2, "why", '{"a":1}')], "event BIGINT, reason STRING, row STRING")
    for frame, name in ((grouped, "grouped"), (letters, "letters")):
        open_sink(sink("json", name), key=("event",)).write(frame, 0)
        assert spark.read.schema(frame.schema).json(str(tmp_path / name)).drop("batch").collect() == frame.collect()


# --- Kafka, the console, a function --------------------------------------------------------------


def test_a_kafka_key_keeps_each_columns_type(spark):
    frame = spark.createDataFrame(
        [("s1", 17, 1.5, None), ('a"b,\\', -3, 2.0, "x]")], "subscription STRING, event BIGINT, `a.b` DOUBLE, n STRING"
    )
    keys = [json.loads(row[0]) for row in frame.select(to_json_array(frame.columns)).collect()]
    assert keys == [["s1", 17, 1.5, None], ['a"b,\\', -3, 2.0, "x]"]]
    assert frame.select(to_json_array(["subscription", "event"])).first()[0] == '["s1",17]'


def print_rows(frame, limit):
    text = io.StringIO()
    console = Console(file=text, width=60, highlight=False)
    open_sink(SinkSettings(kind="console", rows=limit), key=KEY, console=console).write(frame, 12)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_the_console_shows_the_first_rows_as_a_table(spark):
    assert print_rows(pairs(spark, 2), 20) == ["batch 12: 2 rows", "event  subscription", "0      s0", "1      s1"]
    assert print_rows(pairs(spark, 1), 20)[0] == "batch 12: 1 row"
    assert print_rows(pairs(spark, 0), 20) == []
    many = print_rows(pairs(spark, 500), 3)
    assert many[0] == "batch 12: more than 3 rows; the first 3:"
    assert len(many) == 5


def test_the_console_prints_what_strangers_wrote_as_text(spark):
    kinds = "a STRING, b STRING, c STRUCT<lon: DOUBLE, lat: DOUBLE>"
    frame = spark.createDataFrame([("[red]x\x1b[2J", None, (1.0, 2.0))], kinds)
    (row,) = print_rows(frame, 5)[2:]
    assert row.split("  ")[0] == "[red]x\N{REPLACEMENT CHARACTER}[2J"
    assert "null" in row
    assert "{'lon': 1.0, 'lat': 2.0}" in row


def test_a_function_is_called_with_the_frame_and_the_number(spark, monkeypatch):
    monkeypatch.setitem(sys.modules, "a_users_module", sys.modules[__name__])
    open_sink(SinkSettings(kind="python", function="a_users_module:takes"), key=KEY).write(pairs(spark, 9), 5)
    assert called == [(9, 5)]
    with pytest.raises(SinkError, match=r"`a_users_module:fails` failed in batch 6: OSError: no room for batch 6"):
        open_sink(SinkSettings(kind="python", function="a_users_module:fails"), key=KEY).write(pairs(spark, 1), 6)


def test_a_batch_in_kafka_that_is_tried_again_has_the_same_keys(spark, kafka):
    topic = kafka.topic("matches", partitions=2)
    at = datetime(2024, 7, 1, 12, 0, 0, 123456, tzinfo=UTC)
    frame = pairs(spark, 40).withColumn("at", F.lit(at)).withColumn("none", F.lit(None).cast("string"))
    output = open_sink(SinkSettings(kind="kafka", servers=kafka.servers, topic=topic), key=KEY)
    output.write(frame, 0)
    once = kafka.records(topic)
    output.write(frame, 0)  # as after a crash
    assert {record.key for record in once} == {f'["s{n % 3}",{n}]' for n in range(40)}
    assert len(once) == 40
    again = kafka.records(topic)
    assert len(again) == 80
    assert {(record.key, record.value) for record in again} == {(record.key, record.value) for record in once}
    values = {record.key: json.loads(record.value) for record in once}
    assert values['["s2",5]'] == {"event": 5, "subscription": "s2", "at": "2024-07-01T12:00:00.123456Z"}


def test_rows_without_key_columns_are_records_without_a_key(spark, kafka):
    topic = kafka.topic("letters")
    open_sink(SinkSettings(kind="kafka", servers=kafka.servers, topic=topic), key=()).write(pairs(spark, 2), 0)
    assert [record.key for record in kafka.records(topic)] == [None, None]


def test_options_reach_kafka_and_no_message_says_the_password(spark, kafka):
    topic = kafka.topic("locked")
    right = {name: value for name, value in kafka.sasl_options().items() if name != "kafka.bootstrap.servers"}
    open_sink(SinkSettings(kind="kafka", servers=kafka.sasl_servers, topic=topic, options=right), key=KEY).write(
        pairs(spark, 3), 0
    )
    assert len(kafka.records(topic)) == 3
    wrong = {**right, **{name: kafka.sasl_options(password="not-this-one")[name] for name in right}}
    quick = {"kafka.max.block.ms": "5000", "kafka.delivery.timeout.ms": "5000", "kafka.request.timeout.ms": "2000"}
    output = open_sink(
        SinkSettings(kind="kafka", servers=kafka.sasl_servers, topic=topic, options=wrong | quick), key=KEY
    )
    with pytest.raises(Exception, match="Authentication failed") as refused:
        output.write(pairs(spark, 1), 1)
    assert "not-this-one" not in str(refused.value)
