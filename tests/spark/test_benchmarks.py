"""The benchmarks on Spark, at tiny sizes: they run, agree and tell their baseline; timing decides nothing here."""

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("duckdb", reason="needs tidings[bench]")

from benchmarks.spark import compiling, ground, join, large, share
from benchmarks.spark.producing import Producer


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


# Kafka ---------------------------------------------------------------------------------------------


def test_what_the_producer_sends_is_in_the_topic(kafka):
    topic = kafka.topic("produced")
    sent = [(str(number).encode(), b"x" * number) for number in range(300)]
    with Producer(kafka.servers, topic) as producer:
        producer.send(sent[:200], at_ms=1_700_000_000_000)
        producer.send(sent[200:], at_ms=1_700_000_000_001)
    records = [(record.key.encode(), record.value.encode()) for record in kafka.records(topic)]
    assert records == sent
