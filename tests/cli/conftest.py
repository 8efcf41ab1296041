"""The command line as tests use it: in this process for speed, in one of its own where the process matters."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import pytest
from tests.cli.samples import ADS, SEARCHES, write_lines
from typer.testing import CliRunner

from tidings.cli.app import app


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def pairs(self):
        return {(line["event"], line["subscription"]) for line in self.lines}


@pytest.fixture
def tidings(monkeypatch, tmp_path):
    """Run a command in this process, in a folder of its own, without the variables of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TIDINGS_")]:
        monkeypatch.delenv(name)

    def run(*arguments, stdin=None):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin, prog_name="tidings")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def spawn(tmp_path):
    """Start a command in a process of its own; none outlives its test."""
    started = []
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}

    def start(*arguments, env=None, **options):
        command = [sys.executable, "-m", "tidings", *map(str, arguments)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        options = {"preexec_fn": _hear_interrupts, **pipes, **options}
        process = subprocess.Popen(command, cwd=tmp_path, env={**clean, **(env or {})}, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()


def _hear_interrupts():
    """Undo what a shell does to commands it runs in the background: they, and what they start, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def searches(tmp_path):
    return write_lines(tmp_path / "searches.jsonl", SEARCHES)


@pytest.fixture
def ads(tmp_path):
    return write_lines(tmp_path / "ads.jsonl", ADS)
