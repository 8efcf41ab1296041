"""The broker of the tests ends with the process that started it, however that ends."""

import subprocess
import sys
from pathlib import Path

from tests.kafka.broker import wait_for
from tests.kafka.fixture import skip_without_jars

ROOT = Path(__file__).resolve().parents[2]

HOLDS_A_BROKER = """
import sys, time
from tests.kafka.broker import Broker
print(Broker(sys.argv[1]).pid, flush=True)
time.sleep(600)
"""


def test_the_broker_is_gone_when_the_one_that_started_it_is_killed(tmp_path):
    skip_without_jars()
    parent = subprocess.Popen(
        [sys.executable, "-c", HOLDS_A_BROKER, tmp_path], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    with parent:
        broker = int(parent.stdout.readline())
        assert is_java(broker)
        parent.kill()
    assert wait_for(lambda: not is_java(broker), 20)


def is_java(pid):
    """Tell whether a process runs; one that has ended and waits to be noticed has no command."""
    try:
        return b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False
