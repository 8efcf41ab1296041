"""A smoke test of the benchmarks: they run and print their table; timing decides nothing."""

import json
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


def test_the_store_is_measured_beside_raw_sql():
    command = [sys.executable, "-m", "benchmarks.service.store", "--quick", "-n", "2000"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in (
        "created, 1 in a transaction",
        "raw committed insert",
        "import of 2,000",
        "matches of one subscription",
    ):
        assert name in done.stdout


def test_the_api_is_measured_beside_a_bare_route():
    command = [sys.executable, "-m", "benchmarks.service.http", "--quick"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for words in ("of a raw committed insert", "of the bare route", "batches of 500 events", '"imported":500'):
        assert words in done.stdout


def test_the_scoreboard_writes_its_page(tmp_path):
    options = ["--quick", "--workloads", "equalities,concepts", "--kinds", "engine,brute,numpy", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "benchmarks.scoreboard", *options]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "scoreboard.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("## ")][1:] == ["## equalities", "## concepts"]
    assert "python -m benchmarks.scoreboard --quick" in page
    board = json.loads((tmp_path / "scoreboard" / "scoreboard.json").read_text(encoding="utf-8"))
    entries = [(entry["workload"], entry["who"], entry["wrong"]) for entry in board["entries"]]
    assert entries == [(key, who, 0) for key in ("equalities", "concepts") for who in ("engine", "brute", "numpy")][:-1]
    assert {entry["ended"] for entry in board["entries"]} == {"done"}
