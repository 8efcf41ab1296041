"""Spark Connect: the same calls through a client without a JVM, in a process of its own beside the classic session."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("grpc_status", reason="Spark Connect needs grpcio-status")

from tests.spark import class_archive

pytestmark = pytest.mark.spark

SETTINGS = {"spark.sql.shuffle.partitions": "2"}


@pytest.fixture(scope="module")
def answers():
    program = Path(__file__).with_name("on_connect.py")
    # The classic session's gateway must not leak into the other process.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    clean["PYSPARK_SUBMIT_ARGS"] = " ".join(
        [*(f"--conf {key}={value}" for key, value in SETTINGS.items()), "pyspark-shell"]
    )
    clean["SPARK_SUBMIT_OPTS"] = class_archive.options()
    done = subprocess.run(
        [sys.executable, program], env=clean, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_frames_are_connect_frames(answers):
    assert answers["kind"] == "pyspark.sql.connect.dataframe"
    assert answers["same"]


def test_a_batch_matches_as_it_does_locally(answers):
    assert answers["pairs"] == answers["local"]
    assert answers["grouped"] == len(answers["local"]) > 50


def test_sql_finds_the_table_function(answers):
    assert answers["sql"] == answers["pairs"]


def test_a_stream_matches_as_the_batch_does(answers):
    assert answers["streamed"] == answers["pairs"]


def test_shards_and_live_subscriptions_work_there_too(answers):
    assert answers["sharded"] == answers["pairs"]
    assert answers["live"] == answers["pairs"]


def test_a_bad_event_is_a_dead_letter(answers):
    assert answers["letters"] == [[3, "`price`: 'call me' is not a number"]]


def test_the_time_of_the_query_is_known_there_too(answers):
    assert answers["clock"] == 60


def test_all_columns_come_back(answers):
    assert answers["wide"][-1] == "subscription"


def test_patterns_are_detected(answers):
    assert answers["detected"] == [["pair", "x", [1, 3]]]


def test_a_model_is_trained_and_foretells(answers):
    count, keys, least = answers["foretold"]
    assert (count, keys) == (60, ["x"])
    assert least > 0.5
