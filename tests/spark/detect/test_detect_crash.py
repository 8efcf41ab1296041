"""A stream of patterns killed in mid-batch, and gone on with: the same rows, none missing, none twice."""

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.kafka.leash import build_leashed_command
from tests.spark.detect.on_detect import start_query
from tests.spark.detect.test_detect import count_detections
from tests.spark.detect.test_detect_stream import write_batches
from tests.spark.pipeline.crashing import Driver
from tests.unit.spark.detect.pattern_cases import PATTERN_TEXTS, count_detections_locally, disorder_rows, log

pytestmark = pytest.mark.slow


class Killed(Driver):
    """The process of a stream; as the others', but for its command."""

    def __init__(self, folder):
        self._log = folder / f"driver-{time.monotonic_ns()}.log"
        root = Path(__file__).parents[3]
        environ = {**os.environ, "PYTHONPATH": str(root)}
        command = build_leashed_command(sys.executable, "-m", "tests.spark.detect.on_detect", folder)
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, cwd=root, start_new_session=True
            )


def test_a_stream_of_patterns_killed_in_mid_batch_goes_on_exactly(spark, tmp_path):
    rows = log(90)
    last = (999, rows[-1][1] + timedelta(hours=1), "x", 9, 9.0)
    arriving = disorder_rows(rows, bound=4)
    write_batches(tmp_path / "in", [arriving[:30], arriving[30:60], [*arriving[60:], last]])
    with Killed(tmp_path) as driver:
        driver.until((tmp_path / "state" / "commits" / "0").exists)
        driver.until((tmp_path / "state" / "offsets" / "1").exists)
        driver.kill()
    done = len([*(tmp_path / "state" / "commits").glob("[0-9]*")])
    assert done < 3
    start_query(spark, tmp_path, trigger={"availableNow": True}).awaitTermination()
    detections = spark.read.schema("kind STRING, pattern STRING, at TIMESTAMP, events ARRAY<BIGINT>").json(
        str(tmp_path / "out")
    )
    assert count_detections(detections) == count_detections_locally(
        sorted(arriving, key=lambda row: row[1]), PATTERN_TEXTS, until=last[1]
    )
    assert detections.where("kind = 'late'").count() == 0
