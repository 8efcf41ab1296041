"""The benchmarks on Spark, at tiny sizes: they run, agree and tell their baseline; timing decides nothing here."""

import json
import time

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("duckdb", reason="needs tidings[bench]")

from benchmarks.spark import arriving, compiling, ground, join, large, latency, processes, share
from benchmarks.spark.producing import Producer, compute_crc32c
from tidings.spark.pipeline.config.load import read


def test_the_three_joins_agree_and_are_measured(spark, tmp_path, capsys):
    made = join.prepare_files(10_000, 200, 100, folder=tmp_path)
    assert join.check_agreement(spark, made) > 0
    join.report(join.measure_joins(spark, made, repeat=1, warm_up=0), many=200, few=100)
    assert "x nested loop" in capsys.readouterr().out


def test_joins_that_differ_are_not_measured(spark, tmp_path):
    made = join.prepare_files(20_000, 0, 100, folder=tmp_path)
    other = join.prepare_files(10_000, 0, 100, folder=tmp_path)
    wrong = join.JoinFiles(made.snapshot, other.columns, made.many, made.few, made.none)
    with pytest.raises(RuntimeError, match=r"nested loop and DuckDB"):
        join.check_agreement(spark, wrong)


def test_spark_and_plain_processes_find_as_many_pairs(spark, tmp_path, capsys):
    snapshot, events = ground.snapshot("ranges", 20_000, tmp_path), ground.write_events("ranges", 400, tmp_path)
    shares = share.measure_shares(spark, snapshot, events, repeat=1)
    assert shares.pairs > 0
    share.report(shares, 400)
    share.report_parts(spark, events, repeat=1)
    assert "baseline" in capsys.readouterr().out


def test_compiling_is_measured_and_checked(spark, tmp_path, capsys):
    compiling.report(compiling.measure_compiling(spark, "classifieds", 1_200, folder=tmp_path, shards=2), 1_200)
    assert "baseline" in capsys.readouterr().out


def test_subscriptions_are_made_on_the_executors_and_matched_in_shards(spark, tmp_path, capsys):
    measurement = large.measure_large(spark, 2_000, 100, shards=3, folder=tmp_path)
    assert measurement.pairs[0] == measurement.pairs[1] > 0
    assert measurement.disk > 0
    large.report(measurement, 2_000, 100)
    assert "baseline" in capsys.readouterr().out


def test_processor_time_of_what_ended_still_counts():
    before = processes.read_cpu_seconds()
    spent = processes.run_in_turn({"busy": lambda: sum(range(2_000_000))}, repeat=2)["busy"]
    assert len(spent.wall) == 2
    assert processes.read_cpu_seconds() > before


# How late ------------------------------------------------------------------------------------------

RATE = arriving.Rate(files=50, events=4, warm_up_s=0.1, measured_s=0.2)
PAIRS = np.tile([1, 0, 2, 1], RATE.count)


def sink(folder, *, lost=()):
    """A writer that is its own pipeline: the rows of a file are in the sink a little later, in a batch of their own."""
    (folder / "out").mkdir()

    def write(number, table):
        staged = folder / f"_staging-{number}"
        staged.mkdir()
        events = [id for id in table["id"].to_pylist() if id not in lost]
        rows = [json.dumps({"event": id, "subscription": "s"}) + "\n" for id in events for _ in range(PAIRS[id])]
        (staged / "part-0.json").write_text("".join(rows))
        staged.rename(folder / "out" / f"batch={number:08}")
        return time.time() - 1

    return write


def test_an_event_is_as_late_as_its_batch(tmp_path):
    late = arriving.watch_folder(tmp_path, RATE, sink(tmp_path), PAIRS)
    assert len(late.seconds) == 10 * 3  # ten files are measured, and one event of four has no rows
    assert late.seconds.min() >= 1.0
    assert late.batches == RATE.count
    assert "p99" in str(late)


def test_rows_that_do_not_come_are_waited_for_and_then_told(tmp_path, monkeypatch):
    monkeypatch.setattr(arriving, "PATIENCE_S", 0.5)
    with pytest.raises(TimeoutError, match="the last rows did not come"):
        arriving.watch_folder(tmp_path, RATE, sink(tmp_path, lost={20}), PAIRS)


@pytest.mark.parametrize("servers", [None, "127.0.0.1:9092"])
def test_the_pipeline_that_is_measured_has_no_mistakes(tmp_path, servers):
    snapshot = ground.snapshot("ranges", 10, tmp_path)
    (tmp_path / "in").mkdir()
    text = latency.render_pipeline(snapshot, sink="json", trigger="as soon as possible", servers=servers)
    (tmp_path / "pipeline.toml").write_text(text if servers is None else text.replace("jars = ", "# jars = "))
    draft = read(tmp_path / "pipeline.toml")
    assert draft.pipeline is not None, draft.reading.mistakes


# Kafka ---------------------------------------------------------------------------------------------


def test_the_checksum_is_castagnolis():
    assert compute_crc32c(b"123456789") == 0xE3069283


def test_what_the_producer_sends_is_in_the_topic(kafka):
    topic = kafka.topic("produced")
    sent = [(str(number).encode(), b"x" * number) for number in range(300)]
    with Producer(kafka.servers, topic) as producer:
        producer.send(sent[:200], at_ms=1_700_000_000_000)
        producer.send(sent[200:], at_ms=1_700_000_000_001)
    records = [(record.key.encode(), record.value.encode()) for record in kafka.records(topic)]
    assert records == sent
