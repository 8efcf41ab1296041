"""What goes wrong around a pipeline: few lines on standard error, the last says what to do, traces in the log."""

import io
import json
import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from rich.console import Console

from tidings.errors import SinkError
from tidings.spark.pipeline.config import load
from tidings.spark.pipeline.run import runner

TOML = """
checkpoint = "state"
trigger = "available now"
[source]
kind = "json"
path = "ads"
columns = "id BIGINT, price DOUBLE"
id = "id"
[source.options]
maxFilesPerTrigger = 1
[subscriptions]
file = "searches.jsonl"
[[sink]]
kind = "json"
path = "matches"
[duplicates]
within = "1 hour"
"""

MOST = 15
"""Lines that standard error may have."""


class TroubledFolder:
    """A pipeline in a folder of its own, that fails in a process of its own and goes on in the session of the tests."""

    def __init__(self, folder):
        self.folder, self._files = folder, 0
        (folder / "ads").mkdir()
        (folder / "searches.jsonl").write_text('{"id": "all", "filter": "price >= 0"}\n')
        (folder / "pipeline.toml").write_text(TOML)

    def events(self, count=2):
        path = self.folder / "ads" / f"{self._files}.json"
        path.write_text("".join(json.dumps({"id": self._files * 10**6 + n, "price": n}) + "\n" for n in range(count)))
        os.utime(path, (1.7e9 + self._files, 1.7e9 + self._files))
        self._files += 1

    def run_here(self):
        """Run to the end in the session of the tests; a failure raises."""
        return runner.run(load.load(self.folder / "pipeline.toml"), console=Console(file=io.StringIO()))

    def run_to_failure(self):
        """Run it to its failure in a process of its own, and return the last line and the log."""
        command = [sys.executable, "-m", "tidings", "run", str(self.folder / "pipeline.toml"), "--once"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 1, ran.stderr
        lines = ran.stderr.splitlines()
        assert len(lines) < MOST, ran.stderr
        assert "\tat " not in ran.stderr + ran.stdout
        assert "Traceback" not in ran.stderr + ran.stdout
        return lines[-1], (self.folder / "state" / "spark.log").read_text()


@pytest.fixture
def world(spark, tmp_path):
    return TroubledFolder(tmp_path)


@pytest.fixture
def mount():
    """Mount something for the test, or skip it where that is not allowed; gone afterwards."""
    done = []

    def mount(path, *arguments):
        try:
            ran = subprocess.run(["mount", *arguments, str(path)], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no `mount`")
        if ran.returncode:
            pytest.skip(f"mounting is not allowed here: {ran.stderr.strip()}")
        done[:] = [*(place for place in done if place != path), path]  # a remount is no mount more

    yield mount
    for path in reversed(done):
        subprocess.run(["umount", str(path)], check=False)


def test_a_sink_that_becomes_read_only_is_named_with_the_way_out(world, mount):
    sink = world.folder / "matches"
    sink.mkdir()
    mount(sink, "-t", "tmpfs", "tmpfs")
    world.events()
    assert world.run_here().batches
    world.events()
    mount(sink, "-o", "remount,ro")
    last, log = world.run_to_failure()
    assert f"the sink's folder `{sink}` does not take batch " in last
    assert ": its file system is read-only; let it be written to" in last
    assert "then start the pipeline again" in last
    assert "\tat " in log


def test_a_sink_that_is_full_is_named_with_the_way_out_and_goes_on_when_there_is_room(world, mount):
    sink = world.folder / "matches"
    sink.mkdir()
    mount(sink, "-t", "tmpfs", "-o", "size=64k", "tmpfs")
    world.events(count=4_000)
    last, log = world.run_to_failure()
    assert f"the sink's folder `{sink}` does not take batch 0: its disk is full; make room there" in last
    assert "No space left on device" in log
    assert "\tat " in log
    mount(sink, "-o", "remount,size=64m")
    assert world.run_here().batches
    assert sum(len(path.read_text().splitlines()) for path in sink.glob("*/*.json")) == 4_000


def test_a_state_that_was_cut_short_is_named_with_what_to_restore(world):
    world.events()
    assert world.run_here().batches
    kept = shutil.copytree(world.folder / "state", world.folder / "copy")
    written = [*(world.folder / "state" / "query" / "state").rglob("*.delta")]
    assert written
    for path in written:
        os.truncate(path, 3)
    world.events()
    last, log = world.run_to_failure()
    state = world.folder / "state"
    assert f"Spark cannot read what it wrote to `{state}/query" in last
    assert f"restore `{state}` as a whole from a copy" in last
    assert f"Spark's own words are in `{state}/spark.log`" in last
    assert "CANNOT_LOAD_STATE_STORE" in log
    assert "\tat " in log
    shutil.rmtree(state)
    kept.rename(state)
    assert world.run_here().batches


def test_a_sink_that_vanishes_while_it_runs_is_named_and_nothing_is_written_in_its_place(pipe):
    pipe.searches("1", all="price >= 0")
    pipe.events({"id": 1, "price": 1})
    pipe.events({"id": 2, "price": 2})
    sink = pipe.folder / "matches"
    pipe.during(0, lambda: sink.rename(pipe.folder / "away"))
    with pytest.raises(SinkError, match="it is gone; mount its volume or put it back, then start the pipeline again"):
        pipe.toml().run()
    assert not sink.exists()
    (pipe.folder / "away").rename(sink)
    pipe.toml().run()
    assert pipe.matches() == [(0, 1, "all"), (1, 2, "all")]


def test_an_empty_folder_in_place_of_a_sink_is_not_taken_for_it(pipe):
    pipe.searches("1", all="price >= 0")
    pipe.events({"id": 1, "price": 1})
    pipe.events({"id": 2, "price": 2})
    sink = pipe.folder / "matches"
    pipe.during(0, lambda: (sink.rename(pipe.folder / "away"), sink.mkdir()))
    with pytest.raises(
        SinkError, match=r"it lacks `_tidings\.json`, so it is not the folder that the other batches are in"
    ):
        pipe.toml().run()
    assert not any(sink.iterdir())


# Without Spark ---------------------------------------------------------------------------------------
