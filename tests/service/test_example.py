"""examples/service/README.md, followed: a broker, the API with two workers and the pipeline by the page's commands.

PostgreSQL is the one of the tests, since the page's own wants a user that is not root; ports are not the page's.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("fastapi", reason="needs tidings[service]")
pytest.importorskip("confluent_kafka", reason="needs tidings[kafka]")

from tests.kafka.broker import find_free_port, find_java, wait_for
from tests.kafka.fixture import skip_without_jars
from tests.kafka.leash import build_leashed_command

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "service"
PAGE = (EXAMPLE / "README.md").read_text(encoding="utf-8")
EXPORTS, _, BROKER, TOPIC, SERVE, KEYS, USE, _ = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
PATIENCE_S = 120

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.sweep,
    pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl"),
]


class Walk:
    """A copy of the example, whose commands are run in shells that begin as the page says."""

    def __init__(self, folder, store):
        self.folder, self.processes = folder / "service", {}
        shutil.copytree(EXAMPLE, self.folder)
        ports = {page: find_free_port() for page in ("8080", "9092", "9093")}
        places = {rf"\b{page}\b": str(port) for page, port in ports.items()}
        self._places = {**places, r"(\$PWD/)?\.\./\.\.": str(ROOT), r"postgresql\+psycopg://[^'\s]*": store}
        for name in ("service.toml", "broker.properties"):
            path = self.folder / name
            path.write_text(self._adapt(path.read_text()))
        self._make_programs(folder / "bin")

    def run(self, block):
        """Return what a block printed; one that fails is an error."""
        command = ["bash", "-ec", self._begin(block)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, name, block):
        """Let a block keep running; the last of its commands takes the place of the shell."""
        *first, last = self._adapt(block).rstrip("\n").split("\n")
        last = last.replace("kafka kafka.Kafka", f"java -cp '{ROOT}/.kafka/broker/*' kafka.Kafka")
        text = "\n".join([*first, f"exec {last}"])
        with (self.folder / f"{name}.said").open("w") as output:
            self.processes[name] = subprocess.Popen(
                build_leashed_command("bash", "-ec", self._begin(text)),
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def read_words(self, name):
        """Return what a process said so far."""
        return (self.folder / f"{name}.said").read_text()

    def wait_until(self, condition):
        """Wait for something; a process that ends instead is an error that says what it said."""
        wait_for(lambda: condition() or any(process.poll() is not None for process in self.processes.values()), 120)
        assert condition(), {name: self.read_words(name) for name in self.processes}

    def stop(self, *names):
        """Press Ctrl-C in the shells, and return the exit codes."""
        for name in names:
            self.processes[name].send_signal(signal.SIGINT)
        return [self.processes[name].wait(PATIENCE_S) for name in names]

    def kill(self):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _begin(self, block):
        mine = f"PATH={self.folder.parent}/bin:$PATH TIDINGS_URL=http://127.0.0.1:8080"
        return self._adapt(f"export {mine}\n{EXPORTS}\n{block}")

    def _adapt(self, text):
        for pattern, place in self._places.items():
            text = re.sub(pattern, lambda _, place=place: place, text)
        return text

    def _make_programs(self, folder):
        """Make what the page takes for granted: `tidings`, `python` and `java` of this checkout."""
        folder.mkdir()
        programs = {
            "tidings": f"{sys.executable} -m tidings",
            "python": sys.executable,
            "java": shutil.which(find_java()),
        }
        for name, command in programs.items():
            (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (folder / name).chmod(0o755)


@pytest.fixture
def walk(tmp_path, postgres_url, monkeypatch):
    skip_without_jars()
    for name in [name for name in os.environ if name.startswith("TIDINGS_")]:
        monkeypatch.delenv(name)
    walk = Walk(tmp_path, postgres_url)
    yield walk
    walk.kill()


def test_the_walkthrough_ends_where_the_page_says(walk):
    walk.start("broker", BROKER)
    walk.wait_until(lambda: "voter directory" in walk.read_words("broker"))
    walk.run(TOPIC)
    check, api, pipeline = SERVE.rstrip("\n").split("\n")
    assert "${KAFKA_SERVERS} (PLAINTEXT)" in walk.run(check)
    walk.start("api", api)
    walk.start("pipeline", pipeline)
    walk.run(KEYS)
    walk.wait_until(lambda: "ready:" in walk.read_words("api") and "ready:" in walk.read_words("pipeline"))
    add, *post, matches = USE.rstrip("\n").split("\n")
    assert walk.run(add) == "cheap-ford\n"
    assert json.loads(walk.run("\n".join(post))) == {"accepted": 2}
    walk.wait_until(lambda: walk.run(matches))
    (line,) = walk.run(matches).splitlines()
    assert "  ad-1  " in line
    assert walk.stop("api", "pipeline") == [0, 0]
    assert not (walk.folder / "tidings-data" / "store.db").exists()
