"""The guide's examples, the programs in examples/ and the demo, on the session that is running already."""

import contextlib
import io
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


def test_the_readmes_example_does_what_it_says():
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("## On Spark")[1].split("\n## ")[0]
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names = {}
    exec(compile(block, "README.md", "exec"), names)
    assert sorted(map(tuple, names["pairs"].collect())) == [(1, "s1"), (2, "s2")]
    assert names["bad"].columns == ["event", "reason", "row"]
    assert names["bad"].count() == 0


def test_the_batch_example_runs(capsys):
    runpy.run_path(str(ROOT / "examples/spark_batch.py"))
    assert "cheap fords" in capsys.readouterr().out


def test_the_stream_example_runs(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["spark_stream.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples/spark_stream.py"))
    assert "ad 3 is bad: `price`: 'call me' is not a number" in capsys.readouterr().out


def told_by_demo(folder):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        demo.demo(ads=80, searches=60, out=folder, seed=3)
    return said.getvalue()


@pytest.fixture(scope="module")
def shown(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, told_by_demo(folder)


def test_the_demo_tells_what_it_found_and_where_it_lies(shown):
    folder, said = shown
    written = [json.loads(line) for path in folder.glob("matches/*.json") for line in path.open()]
    assert re.search(rf"matches +│ +{len(written)} ", said)
    assert {"event", "subscription", "make"} <= written[0].keys()
    assert "A few ads, and the searches that caught them" in said
    assert "is not" in said.partition("could not be read, and why")[2]
    assert str(folder) in said.replace("\n", "")


def test_the_demo_says_the_same_again_in_the_same_folder(shown):
    folder, said = shown
    counts = r"matches +│ +(\S+)"
    assert re.search(counts, told_by_demo(folder))[1] == re.search(counts, said)[1]
