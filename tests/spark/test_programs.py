"""The guide's examples, the programs in examples/ and the demo, on the session that is running already."""

import contextlib
import io
import json
import re
import runpy
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from rich.console import Console
from tests.kafka.broker import wait_for
from tests.kafka.leash import build_leashed_command
from typer.testing import CliRunner

import tidings as td
from tidings.bench import workloads
from tidings.cli.app import app
from tidings.spark.demo import __main__
from tidings.spark.demo.demo_world import DemoWorld, publish
from tidings.spark.pipeline.config.load import load
from tidings.spark.pipeline.config.value_kinds import Trigger
from tidings.spark.pipeline.run.runner import run

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


def rows(folder, pattern):
    return [json.loads(line) for path in sorted(folder.glob(pattern)) for line in path.open()]


@pytest.fixture(scope="module")
def demo_run(spark, tmp_path_factory):
    """What the demo leaves and says, in a folder that has something of an earlier one."""
    folder = tmp_path_factory.mktemp("demo")
    for left in ("state/query/offsets/7", "matches/batch=00000000/part.json", "searches/009.jsonl"):
        (folder / left).parent.mkdir(parents=True)
        (folder / left).write_text("left over\n")
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stdout(output):
        patched.setattr(__main__, "PAUSE", 0.02)
        __main__.demo(ads=120, searches=150, out=folder, seed=3)
    return folder, output.getvalue()


def test_the_demo_tells_what_it_found_and_where_it_lies(demo_run):
    folder, output = demo_run
    written = rows(folder, "matches/batch=*/*.json")
    assert re.search(rf"matches +│ +{len(written)} ", output)
    assert {"event", "subscription", "make"} <= written[0].keys()
    assert re.search(r"ads +│ +120 in \d+ batches", output)
    assert "A few ads, and the searches that caught them" in output
    assert re.search(r"ad \d+: `(price|spot)`|a line: not JSON", output.partition("could not be read, and why")[2])
    assert str(folder) in output.replace("\n", "")


def test_every_ad_of_the_demo_is_read_once_by_the_searches_of_its_act(demo_run):
    folder, _ = demo_run
    batches = [line for line in rows(folder, "progress.jsonl") if line["kind"] == "batch"]
    assert sum(batch["events"] for batch in batches) == 120
    assert [batch["version"] for batch in batches] == sorted(batch["version"] for batch in batches)
    assert {batch["version"] for batch in batches} == {2, 3, 4, 5}
    world = DemoWorld.generate(120, 150, seed=3)
    pairs = set()
    for number, act in enumerate(world.acts):
        searches = td.Matcher(now=workloads.NOW)
        searches.add_many(list(world.find_searches_before(number + 1).items()))
        good = [ad for ad in act.ads if ad["id"] not in world.damages]
        pairs |= {(good[at]["id"], id) for at, id in searches.match_many(good)}
    assert {(row["event"], row["subscription"]) for row in rows(folder, "matches/batch=*/*.json")} == pairs
    assert len(rows(folder, "dead_letters/batch=*/*.json")) == len(world.damages)


def test_the_demo_shows_an_added_and_a_removed_search(demo_run):
    _, output = demo_run
    added = output.partition("A search that was added while it ran:")[2].partition("\n\n")[0]
    assert re.search(r"caught ads? \d.*; it was added before ad 30", added)
    removed = output.partition("A search that was removed while it ran:")[2].partition("\n\n")[0]
    assert re.search(r"it was removed before ad 90\n +ads? \d.* would have been for it, and it heard of none", removed)


def test_the_demos_pipeline_can_be_run_again(demo_run):
    folder, _ = demo_run
    pipeline = replace(load(folder / "pipeline.toml"), trigger=Trigger(available_now=True))
    ad = {"id": 999, "make": "ford", "model": "focus", "year": 2020, "price": 1}
    publish(folder / "ads" / "mine.json", [json.dumps(ad)])
    publish(folder / "searches" / "mine.jsonl", [json.dumps({"id": "mine", "filter": "make = 'ford' and price < 2"})])
    output = io.StringIO()
    outcome = run(pipeline, console=Console(file=output))
    assert (outcome.events, outcome.stopped) == (1, False)
    assert (999, "mine") in {(row["event"], row["subscription"]) for row in rows(folder, "matches/batch=*/*.json")}


def test_the_readme_shows_the_demo_as_it_is(demo_run):
    (listed,) = re.findall(r"^```text\n(wrote out/demo.*?)^```", README, re.MULTILINE | re.DOTALL)
    names = re.findall(r"^│ (.*?) +│", listed, re.MULTILINE)
    headings = re.findall(r"^A .*:$", listed, re.MULTILINE)
    assert len(names) > 5
    assert len(headings) == 4
    assert all(line in demo_run[1] for line in (*headings, *names, "saved searches", "searches are added"))


# The whole as a user has it: a process of its own ------------------------------------------------


def test_ctrl_c_ends_the_demo_without_a_trace(tmp_path):
    command = [sys.executable, "-m", "tidings.spark.demo", "--searches", "50", "--out", str(tmp_path)]
    with subprocess.Popen(
        build_leashed_command(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        begun = wait_for(lambda: list(tmp_path.glob("ads/*.json")) or process.poll() is not None, 120)
        assert begun
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        output, wrong = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "goes on from here" in output
    assert wrong == ""
    assert (tmp_path / "state" / "spark.log").exists()


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
