"""The guide's examples, the programs in examples/ and the demo, on the session that is running already."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.spark import demo

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("spark")


def test_every_example_of_the_guide_does_what_it_says():
    text = (ROOT / "docs/guide/spark.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 4
    names = {}
    for block in blocks:
        exec(compile(block, "docs/guide/spark.md", "exec"), names)


def test_the_batch_example_runs(capsys):
    runpy.run_path(str(ROOT / "examples/spark_batch.py"))
    assert "cheap fords" in capsys.readouterr().out


def test_the_stream_example_runs(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["spark_stream.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples/spark_stream.py"))
    assert "ad 3 is bad: `price`: 'call me' is not a number" in capsys.readouterr().out


def test_the_demo_tells_what_it_found_and_where_it_lies(capsys, tmp_path):
    demo.demo(ads=80, searches=60, out=tmp_path, seed=3)
    said = capsys.readouterr().out
    assert "80" in said
    assert "A few ads, and the searches that caught them" in said
    assert "is not" in said
    written = [json.loads(line) for path in tmp_path.glob("matches/*.json") for line in path.open()]
    assert f"{len(written)}" in said
    assert {"event", "subscription", "make"} <= written[0].keys()


def test_the_demo_runs_again_in_the_same_folder_with_the_same_result(capsys, tmp_path):
    told = []
    for _ in range(2):
        demo.demo(ads=30, searches=30, out=tmp_path, seed=3)
        told.append(re.search(r"matches +│ +(\S+)", capsys.readouterr().out)[1])
    assert told[0] == told[1]
