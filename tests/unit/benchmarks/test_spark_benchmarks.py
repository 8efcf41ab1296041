"""What the benchmarks on Spark do without a session: clocks, waiting for rows, the file of the pipeline, a checksum."""

import json
import time

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from benchmarks.spark import arriving, ground, latency, processes, reading
from benchmarks.spark.producing import compute_crc32c
from tidings.spark.pipeline.config.load import read


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


def test_the_checksum_is_castagnolis():
    assert compute_crc32c(b"123456789") == 0xE3069283


# Readers -------------------------------------------------------------------------------------------


def test_rows_and_columns_of_a_file_are_what_was_written(capsys):
    reading.report(300, repeat=1)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["reading:", "csv", "parquet"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_readers_that_differ_from_what_was_written_are_not_timed(suffix, tmp_path):
    table, (read_rows, read_columns) = reading.write_files(tmp_path, 20), reading.READERS[suffix]
    file = tmp_path / f"ads.{suffix}"
    with pytest.raises(RuntimeError, match="rows"):
        reading.check_agreement(table, list(read_rows(file))[1:], read_columns(file))
    with pytest.raises(RuntimeError, match="columns"):
        reading.check_agreement(table, read_rows(file), [batch.slice(1) for batch in read_columns(file)])
