"""A cluster of separate executor processes on this machine: one of them is killed in mid-job, and the result stands."""

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.kafka.broker import wait_for
from tests.kafka.leash import build_leashed_command
from tests.spark.pipeline.crashing import alive, command_of, descendants

import tidings as td

pytestmark = pytest.mark.slow

PATIENCE = 240
SUBSCRIPTIONS, EVENTS, PARTS = 2_000, 8_000, 8

JOB = '''
import os
import sys
from pathlib import Path
from pyspark.sql import functions as F
from tidings import spark as ts

folder, parts, events = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def held(batches):
    """Stay in the task until the test has killed an executor, once two of them are at work."""
    import os, time
    from pyspark import TaskContext
    (folder / f"at-{os.getppid()}-{TaskContext.get().partitionId()}").touch()
    until = time.monotonic() + 240
    for batch in batches:
        while not (folder / "go").exists() and time.monotonic() < until:
            time.sleep(0.02)
        yield batch

config = {"spark.sql.shuffle.partitions": "2", "spark.executor.memory": "1g", "spark.driver.memory": "1g",
          "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"]}  # the driver has them already
session = ts.session("lose one", master="local-cluster[2,1,2048]", config=config)
rows = session.range(0, events, numPartitions=parts).select("id", (F.col("id") % 1000).cast("double").alias("price"))
found = ts.match(rows.mapInArrow(held, rows.schema), str(folder / "snapshot"), event_id="id")
found.write.parquet(str(folder / "found"))
(folder / "done").touch()
session.stop()
'''


def executors(driver):
    return [pid for pid in descendants(driver.pid) if "CoarseGrainedExecutorBackend" in command_of(pid)]


def test_a_job_that_loses_an_executor_finds_what_the_local_engine_finds(tmp_path):
    import pyarrow.parquet as pq

    matcher = td.Matcher(schema=td.Schema({"price": "number"}))
    matcher.add_many([(n, f"price in [{n} .. {n + 1})") for n in range(SUBSCRIPTIONS)])
    matcher.save(tmp_path / "snapshot")
    (tmp_path / "job.py").write_text(JOB)
    log = tmp_path / "driver.log"
    command = build_leashed_command(sys.executable, tmp_path / "job.py", tmp_path, PARTS, EVENTS)
    with log.open("wb") as out:
        driver = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=tmp_path)
    try:
        wait_for(lambda: driver.poll() is not None or len([*tmp_path.glob("at-*")]) >= 2, PATIENCE)
        assert driver.poll() is None, log.read_text()[-4000:]
        both = executors(driver)
        assert len(both) == 2
        os.kill(both[0], signal.SIGKILL)  # each has one core, and a task of the job in its hands
        (tmp_path / "go").touch()
        wait_for(lambda: driver.poll() is not None, PATIENCE)
        assert driver.poll() == 0, log.read_text()[-4000:]
    finally:
        started = descendants(driver.pid)
        driver.kill()
        driver.wait()
        wait_for(lambda: not any(map(alive, started)), 30)
    parts = {path.name.rpartition("-")[2] for path in tmp_path.glob("at-*")}
    assert parts == {str(part) for part in range(PARTS)}
    assert len([*tmp_path.glob("at-*")]) > PARTS  # what the lost one held was begun again by another
    table = pq.read_table(tmp_path / "found")
    pairs = sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))
    events = [{"price": float(id % 1000)} for id in range(EVENTS)]
    assert pairs == sorted(pairs_of(matcher, events))


def pairs_of(matcher, events):
    """Return events and ids as the local engine has them."""
    matches = matcher.match_many(events)
    return zip(matches.event_index.tolist(), matches.id_array().to_pylist(), strict=True)
