"""Pipelines in processes of their own, held at a moment of a batch, killed there, and started again.

A pipeline has two `python` sinks around its own, `before` and `after`. The first drops the change of subscriptions that
belongs to the batch into the feed's folder, and both stay in the batch as long as a file says so. So the test knows
where in a batch a process is, and a pipeline that is never held or killed is the same pipeline.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from tests.kafka.broker import wait_for
from tests.kafka.fixture import find_connector_jars
from tests.kafka.leash import build_leashed_command

PATIENCE = 120
"""Seconds that anything here may take; other builds may run beside."""

QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "spark.driver.memory": "1g"}

HOOKS = """
import time
from pathlib import Path

HERE = Path(__file__).parent

def before(frame, batch):
    change, there = HERE / "changes" / f"{batch}.jsonl", HERE / "searches" / f"{batch + 100}.jsonl"
    if change.exists() and not there.exists():
        beside = there.with_name("." + there.name)
        beside.write_text(change.read_text())
        beside.rename(there)
    _held("before", batch)

def after(frame, batch):
    _held("after", batch)

def _held(moment, batch):
    until = time.monotonic() + 120
    if (hold := HERE / f"hold-{moment}-{batch}").exists():
        (HERE / f"held-{moment}-{batch}").touch()
    while hold.exists() and time.monotonic() < until:
        time.sleep(0.02)
"""


class CrashFolder:
    """A folder with a pipeline: its file, events, subscriptions, changes of them, and hooks."""

    def __init__(self, folder, toml):
        self.folder, self._toml = folder, toml
        self.hooks = f"hooks_{folder.name}"  # a module's name is taken once in a process
        for name in ("ads", "searches", "changes"):
            (folder / name).mkdir(parents=True)
        (folder / f"{self.hooks}.py").write_text(HOOKS)
        self.settings()

    def settings(self, **spark):
        """Write the pipeline's file, with settings of Spark."""
        lines = "\n".join(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in spark.items())
        text = self._toml.replace("HOOKS", self.hooks) + f"\n[spark]\n{lines}\n"
        (self.folder / "pipeline.toml").write_text(text)

    def events(self, batches):
        """Write a file of events for each batch; the times of files are the order in which Spark takes them."""
        for number, lines in enumerate(batches):
            path = self.folder / "ads" / f"{number}.json"
            path.write_text("".join(line + "\n" for line in lines))
            os.utime(path, (1.7e9 + number, 1.7e9 + number))

    def change(self, name, *rows):
        """Write a change of subscriptions, or with a number one that the batch will drop."""
        folder = "searches" if isinstance(name, str) else "changes"
        text = "".join(json.dumps({"id": id, "filter": filter}) + "\n" for id, filter in rows)
        (self.folder / folder / f"{name}.jsonl").write_text(text)

    def rows(self, path):
        """Return what lies in a folder of batches, as pairs of the batch's number and the row, sorted."""
        rows = []
        for part in (self.folder / path).glob("batch=*/part-*"):
            number = int(part.parent.name.partition("=")[2])
            rows += [(number, json.dumps(json.loads(line), sort_keys=True)) for line in part.read_text().splitlines()]
        return sorted(rows)

    def batches(self, path="matches"):
        return sorted(int(folder.name.partition("=")[2]) for folder in (self.folder / path).glob("batch=*"))

    def log(self):
        """Return what Spark said, of all drivers so far."""
        return (self.folder / "state" / "spark.log").read_text(errors="replace")

    def half_written(self):
        return [str(path) for path in self.folder.rglob("_staging-*")]

    def claims(self):
        """Return the versions of the subscriptions by batch."""
        paths = self.folder.glob("state/subscriptions/*/claims/*/*.json")
        return {int(path.stem): json.loads(path.read_text())["version"] for path in paths}

    def hold(self, moment, batch):
        (self.folder / f"hold-{moment}-{batch}").touch()

    def is_held(self, moment, batch):
        return (self.folder / f"held-{moment}-{batch}").exists()

    def go_on(self, moment, batch):
        (self.folder / f"hold-{moment}-{batch}").unlink()

    def run_here(self):
        """Run to the end in this process and its session, uninterrupted."""
        from tidings.spark.pipeline.config import load
        from tidings.spark.pipeline.config.value_kinds import Trigger
        from tidings.spark.pipeline.run import runner

        pipeline = load.read(self.folder / "pipeline.toml").pipeline
        console = Console(file=(self.folder / "here.log").open("w"), highlight=False)
        return runner.run(replace(pipeline, trigger=Trigger(available_now=True)), console=console)


class Driver:
    """A process of `tidings run`, and all that it starts; gone with the block, whatever happens."""

    def __init__(self, world, *arguments):
        self.world = world
        self._log = world.folder / f"driver-{time.monotonic_ns()}.log"
        command = build_leashed_command(
            sys.executable, "-m", "tidings", "run", world.folder / "pipeline.toml", *arguments
        )
        environ = {**os.environ, "TIDINGS_JARS": find_connector_jars() or ""}
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, start_new_session=True
            )

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        started = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        if not wait_for(lambda: not any(map(alive, started)), 30):  # Java ends when its driver has
            for pid in filter(alive, started):
                os.kill(pid, signal.SIGKILL)

    def words(self):
        return self._log.read_text(errors="replace")

    def until(self, condition):
        """Wait for something while the process runs; fail with what it said when it ends instead."""
        wait_for(lambda: condition() or self.process.poll() is not None, PATIENCE)
        assert condition(), f"exit code {self.process.poll()}\n{self.words()[-4000:]}"

    def until_held(self, moment, batch):
        self.until(lambda: self.world.is_held(moment, batch))

    def kill(self):
        """Kill the driver; what it has started is left to find out."""
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL

    def wait_for_end(self):
        """Return the exit code."""
        wait_for(lambda: self.process.poll() is not None, PATIENCE)
        assert self.process.poll() is not None, f"it does not end\n{self.words()[-4000:]}"
        return self.process.returncode

    def workers(self):
        """Return the Python workers of its Spark that are at work."""
        started = descendants(self.process.pid)
        daemons = {pid for pid in started if "pyspark.daemon" in command_of(pid)}
        return [pid for pid in started if parent_of(pid) in daemons]


# Processes of this machine -------------------------------------------------------------------------


def descendants(pid):
    """Return the processes that a process has started, and those have, as long as the chain holds."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        parents.setdefault(parent_of(int(path.name)), []).append(int(path.name))
    pids, left = [], [pid]
    while left:
        children = parents.get(left.pop(), [])
        pids += children
        left += children
    return pids


def parent_of(pid):
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def alive(pid):
    fields = _stat(pid)
    return bool(fields) and fields[0] != "Z"


def _stat(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
