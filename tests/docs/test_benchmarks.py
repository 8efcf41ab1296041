"""A smoke test of the benchmarks: they run and print their table; timing decides nothing."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["parse", "match", "living"])
def test_a_benchmark_runs_and_prints_its_baseline(name):
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "baseline" in done.stdout
