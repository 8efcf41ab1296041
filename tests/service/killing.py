"""A served folder in processes of its own, parts of which are killed while it works."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
from tests.kafka.broker import wait_for
from tests.kafka.leash import build_leashed_command
from tests.spark.pipeline.crashing import alive, command_of, descendants, parent_of

PATIENCE = 600

JAVA, DAEMON = "org.apache.spark.deploy.SparkSubmit", "pyspark.daemon"
"""What the commands of Spark's Java have in them, and of the process whose children are Spark's Python workers."""


class ServedFolder:
    """`tidings serve` over a folder, in a process group of its own; gone with the block, whatever happens."""

    def __init__(self, folder, *arguments, port):
        self.data, self.port, self.arguments = Path(folder), port, arguments
        self.process = None
        self._log = self.data.parent / f"{self.data.name}.log"

    def start(self):
        """Start it, and wait until the API answers."""
        words = [sys.executable, "-m", "tidings", "serve", "--data", self.data, "--port", self.port, *self.arguments]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                build_leashed_command(*map(str, words)), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.until(self.is_ready)
        return self

    def is_ready(self):
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/readyz", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def until(self, condition):
        """Wait for something while the process runs; fail with what it said when it ends instead."""
        wait_for(lambda: condition() or self.process.poll() is not None, PATIENCE)
        assert condition(), f"exit code {self.process.poll()}\n{self.words()}"

    def words(self):
        """What the service and its children said last."""
        texts = [self._log, *(self.data / "logs").glob("*.log")]
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in texts)

    @property
    def key(self):
        return (self.data / "admin.key").read_text().strip()

    def client(self):
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=10)

    def stop(self):
        """End it by SIGTERM, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        wait_for(lambda: self.process.poll() is not None, PATIENCE)
        return self.process.poll()

    # Deaths --------------------------------------------------------------------------------------

    def list_processes(self, part):
        """Return the processes of a part: `api`, `pipeline`, `java`, and of `worker` one of Spark's in Python."""
        started = descendants(self.process.pid)
        match part:
            case "java":
                return [pid for pid in started if JAVA in command_of(pid)]
            case "worker":
                daemons = {pid for pid in started if DAEMON in command_of(pid)}
                return [pid for pid in started if parent_of(pid) in daemons][-1:]
            case _:
                return [pid for pid in started if f" serve --only {part}" in command_of(pid)]

    def kill(self, part):
        """Kill the processes of a part, as the machine might; there must be some."""
        assert wait_for(lambda: [*filter(kill_one, self.list_processes(part))], PATIENCE), self.words()

    def kill_all(self):
        """Kill the supervisor alone, which nothing of it outlives, and start it again."""
        started = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        assert wait_for(lambda: not any(map(alive, started)), PATIENCE), [*map(command_of, filter(alive, started))]
        self.start()

    def __enter__(self):
        return self.start()

    def __exit__(self, *problem):
        started = descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        wait_for(lambda: not any(map(alive, started)), 30)
        for pid in filter(alive, started):
            kill_one(pid)


def kill_one(pid):
    """Kill a process, and tell whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
