"""The guide's examples and the programs in examples/, on the session that is running already."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from typer.testing import CliRunner

from tidings.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
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


# Pipelines and notebooks -------------------------------------------------------------------------


def test_the_kafka_example_runs_against_a_broker(kafka, monkeypatch, tmp_path):
    ads, searches, matches = (
        kafka.topic(name, compacted=name == "searches") for name in ("ads", "searches", "matches")
    )
    letters = kafka.topic("bad-ads")
    kafka.produce(searches, ("cheap fords", "make = 'ford' and price < 9000"), ("gone", "price > 0"), ("gone", None))
    kafka.produce(ads, ("1", '{"make": "ford", "price": 8500}'), ("2", '{"make": "opel", "price": 4000}'), ("3", "{"))
    monkeypatch.setenv("KAFKA_SERVERS", kafka.sasl_servers)
    monkeypatch.setenv("KAFKA_PROTOCOL", "SASL_PLAINTEXT")
    monkeypatch.setenv("KAFKA_LOGIN", kafka.sasl_options()["kafka.sasl.jaas.config"])
    text = (ROOT / "examples/kafka/pipeline.toml").read_text(encoding="utf-8")
    assert text.count("${KAFKA_LOGIN}") == 4
    for name, topic in {"ads": ads, "searches": searches, "matches": matches, "bad-ads": letters}.items():
        assert f'topic = "{name}"' in text
        text = text.replace(f'topic = "{name}"', f'topic = "{topic}"')
    (tmp_path / "pipeline.toml").write_text(text, encoding="utf-8")
    assert CliRunner().invoke(app, ["run", str(tmp_path / "pipeline.toml"), "--once", "--json"]).exit_code == 0
    (match,) = kafka.records(matches)
    assert json.loads(match.key) == ["cheap fords", "1"]
    assert json.loads(match.value) == {"event": "1", "subscription": "cheap fords", "make": "ford", "price": 8500.0}
    (letter,) = kafka.records(letters)
    assert json.loads(letter.value)["event"] == "3"


def test_the_notebook_runs_from_top_to_bottom(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "examples/notebook.py").read_text(encoding="utf-8")
    assert text.count("\n# %%") >= 8
    runpy.run_path(str(ROOT / "examples/notebook.py"))
    assert "is not a number" in capsys.readouterr().out
