"""What Spark and the disk report becomes one line that says what to do."""

import errno
import os

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from pyspark.errors import PySparkException

from tidings.errors import PipelineFailed, SinkError
from tidings.spark.pipeline.run import failures
from tidings.spark.pipeline.run.failures import FailureReport, diagnose_folder
from tidings.spark.pipeline.sinks.batch_folders import LocalFolder


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "its disk is full; make room there"),
        (errno.EROFS, "its file system is read-only"),
        (errno.EACCES, "give this user the right to"),
        (errno.EIO, "Input/output error; see to it"),
    ],
)
def test_what_the_disk_says_becomes_a_way_out(tmp_path, monkeypatch, number, message):
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(number, os.strerror(number))))
    assert message in diagnose_folder(tmp_path, "")
    assert not any(tmp_path.iterdir())


def test_a_file_in_place_of_a_folder_and_a_folder_that_is_gone(tmp_path):
    (tmp_path / "file").touch()
    assert diagnose_folder(tmp_path, "") is None
    assert "a file stands where a folder should be" in diagnose_folder(tmp_path / "file", "")
    assert "it is gone; mount its volume" in diagnose_folder(tmp_path / "nowhere", "")
    with pytest.raises(SinkError, match="a file stands where a folder should be; move that away"):
        LocalFolder.open(tmp_path / "file", "json", options={})


def test_a_disk_that_was_full_a_moment_ago_is_told_of(tmp_path, monkeypatch):
    monkeypatch.setattr(failures, "is_nearly_full", lambda _: True)
    assert diagnose_folder(tmp_path, "FSError: No space left on device") == "its disk is full; make room there"
    assert diagnose_folder(tmp_path, "something else") is None


@pytest.mark.parametrize(
    ("message", "folder"),
    [
        ("[CANNOT_LOAD_STATE_STORE.X] Error reading delta file file:{}/query/state/0/1/1.delta", "query/state"),
        ("Failed to read log file file:{}/patterns/commits/1. [MALFORMED_LOG_FILE] malformed", "patterns/commits"),
        ("next on empty iterator", "query"),
    ],
)
def test_what_is_damaged_is_named_by_its_folder(tmp_path, message, folder):
    problem = FailureReport(tmp_path, tmp_path / "spark.log").explain(PySparkException(message.format(tmp_path)))
    assert isinstance(problem, PipelineFailed)
    assert f"what it wrote to `{tmp_path}/{folder}`, it is damaged" in str(problem)
    assert f"restore `{tmp_path}` as a whole" in str(problem)
    assert "\n" not in str(problem)


def test_spark_tells_of_tasks_at_length_and_we_come_to_the_point(tmp_path):
    message = (
        "SparkException: Job aborted due to stage failure: Task 0 in stage 4.0 failed 4 times, most recent failure: "
    )
    message += "Lost task 0.3 in stage 4.0 (TID 9) (10.0.0.1 executor driver): java.lang.Bad: no"
    assert failures.strip_task(message) == "java.lang.Bad: no"
    assert "has more" not in str(FailureReport(tmp_path, None).explain(KeyError("x")))
    assert str(FailureReport(tmp_path, None).explain(KeyError("x"))).endswith("start it again to go on")
