"""The session that `ts.session` starts, and what it gives when one is running."""

import sys

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings import spark as ts


def test_the_session_is_quiet_in_utc_and_runs_this_python(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    workers = spark.range(2).mapInArrow(name_the_python, "python string").distinct().collect()
    assert [row.python for row in workers] == [sys.executable]


def name_the_python(batches):
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.executable] * batch.num_rows})


def test_asking_again_gives_the_running_session(spark):
    assert ts.session("another name").sparkContext is spark.sparkContext
