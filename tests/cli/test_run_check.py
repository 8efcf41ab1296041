"""`tidings run`: what `--check` prints, what is refused, and what is handed to the runner."""

import json
import re
import sys
from datetime import timedelta
from textwrap import dedent
from types import ModuleType

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.cli.app import run
from tidings.configuration.reading import FileMistake
from tidings.errors import SparkUnavailable
from tidings.spark.pipeline.config import analysis
from tidings.spark.pipeline.config.value_kinds import Trigger

SECRET = "swordfish-4711"

KAFKA = """
    checkpoint = "state"
    trigger = "as soon as possible"

    [source]
    kind = "kafka"
    servers = "${BROKERS}"
    topic = "ads"
    columns = "id BIGINT, make STRING"
    id = "id"

    [source.options]
    kafka.sasl.jaas.config = "${LOGIN}"

    [subscriptions]
    directory = "searches"

    [[sink]]
    kind = "parquet"
    path = "matches"
"""


@pytest.fixture
def run_pipeline(tidings, tmp_path, monkeypatch):
    """Run a command on a pipeline's text; without Spark, whose word is what `spark_says` holds."""
    (tmp_path / "searches").mkdir()
    messages = []
    monkeypatch.setattr(analysis, "check_locally", lambda _: list(messages))
    monkeypatch.setenv("BROKERS", f"{SECRET}:9092")
    monkeypatch.setenv("LOGIN", SECRET)

    def on(text, *options):
        (tmp_path / "pipeline.toml").write_text(dedent(text))
        return tidings("run", "pipeline.toml", *options)

    on.spark_says = messages
    return on


@pytest.fixture
def runs(monkeypatch):
    """What the runner is given; it runs nothing."""
    calls = []
    runner = ModuleType("tidings.spark.pipeline.run.runner")
    runner.run = calls.append
    monkeypatch.setitem(sys.modules, runner.__name__, runner)
    monkeypatch.setattr("tidings.spark.pipeline.run.runner", runner, raising=False)  # where it was imported before
    return calls


def example():
    """The file that `tidings run --help` shows."""
    blocks = re.findall(r"\n\n((?: {8}.*\n|\n)+)", run.__doc__)
    return next(dedent(block) for block in blocks if "checkpoint" in block)


def test_a_check_says_what_each_part_will_do(run_pipeline, tmp_path):
    done = run_pipeline(KAFKA, "--check")
    assert (done.code, done.err) == (0, "")
    assert done.out.replace(f"{tmp_path}/", "").splitlines() == [
        "name           pipeline",
        "source         Kafka topic ads at ${BROKERS}, values as json; columns id BIGINT, make STRING; id `id`; "
        "options `kafka.sasl.jaas.config`",
        "subscriptions  change files in searches, in the order of their names; filters as text",
        "matching       a row for each match: event, subscription",
        "sink           Parquet files in matches; exactly once",
        "dead letters   JSON files in state/dead_letters; exactly once",
        "checkpoint     state",
        "trigger        as soon as the last micro-batch is done",
        "shown          view auto",
        "spark          local, or where spark-submit says; with the Kafka connector",
    ]


def test_a_check_as_json_is_one_object_of_the_same_words(run_pipeline):
    (line,) = run_pipeline(KAFKA, "--check", "--json").lines
    assert line["ok"] is True
    assert line["pipeline"]["trigger"] == "as soon as the last micro-batch is done"


def test_mistakes_of_the_file_and_of_spark_come_together(run_pipeline):
    run_pipeline.spark_says.append(FileMistake(("source", "id"), "[source] `id` is wrong"))
    done = run_pipeline(KAFKA.replace("trigger", "triger"), "--check", "--json")
    assert (done.code, done.lines) == (
        1,
        [
            {
                "ok": False,
                "mistakes": [
                    "line 3: `triger` is not a key; did you mean `trigger`?",
                    "line 10: [source] `id` is wrong",
                ],
            }
        ],
    )
    assert done.err.splitlines() == [
        "error: `pipeline.toml` has 2 mistakes:",
        "line 3: `triger` is not a key; did you mean `trigger`?",
        "line 10: [source] `id` is wrong",
    ]


def test_a_secret_is_in_nothing_that_is_printed(run_pipeline):
    run_pipeline.spark_says.append(FileMistake(("source", "columns"), f"[source] `columns` cannot be read: {SECRET}"))
    for options in (["--check"], ["--check", "--json"], []):
        done = run_pipeline(KAFKA.replace("trigger", "triger"), *options)
        assert done.code == 1
        assert SECRET not in done.out + done.err
    run_pipeline.spark_says.clear()
    for options in (["--check"], ["--check", "--json"]):
        done = run_pipeline(KAFKA, *options)
        assert done.code == 0
        assert SECRET not in done.out + done.err


def test_without_spark_the_files_own_mistakes_are_told(run_pipeline, monkeypatch):
    def refuse(events):
        msg = "Spark needs Java"
        raise SparkUnavailable(msg)

    monkeypatch.setattr(analysis, "check_locally", refuse)
    assert run_pipeline(KAFKA, "--check").err == "error: Spark needs Java\n"
    assert run_pipeline(KAFKA.replace("trigger", "triger"), "--check").err.splitlines()[1:] == [
        "line 3: `triger` is not a key; did you mean `trigger`?",
        "columns and SQL were not checked: Spark needs Java",
    ]


def test_a_file_that_is_not_there_is_refused(tidings):
    done = tidings("run", "nowhere.toml")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: cannot read ")


def test_the_runner_is_given_the_pipeline(run_pipeline, runs):
    assert run_pipeline(KAFKA).code == 0
    assert run_pipeline(KAFKA, "--once").code == 0
    assert run_pipeline(KAFKA, "--json").code == 0
    plain, once, as_json = runs
    assert (plain.trigger, once.trigger) == (Trigger(), Trigger(available_now=True))
    assert (as_json.shown.view, as_json.shown.lines) == ("off", "-")


def test_an_error_of_the_run_does_not_show_a_secret(run_pipeline, runs, monkeypatch):
    def refuse(pipeline):
        msg = f"cannot reach `{pipeline.source.servers}`"
        raise SparkUnavailable(msg)

    monkeypatch.setattr(sys.modules["tidings.spark.pipeline.run.runner"], "run", refuse)
    done = run_pipeline(KAFKA)
    assert (done.code, done.err) == (1, "error: cannot reach `${BROKERS}`\n")


def test_nothing_runs_when_something_is_wrong(run_pipeline, runs):
    assert run_pipeline(KAFKA.replace("trigger", "triger")).code == 1
    assert runs == []


def test_the_helps_example_is_a_pipeline(run_pipeline, runs):
    assert run_pipeline(example()).code == 0
    assert runs[0].trigger == Trigger(every=timedelta(seconds=1))


@pytest.mark.spark
def test_spark_is_asked_in_a_process_of_its_own(spawn, tmp_path):
    (tmp_path / "searches").mkdir()
    wrong = dedent(KAFKA).replace('id = "id"', 'id = "idd"') + "[derived]\nx = 'prce'\n"
    (tmp_path / "pipeline.toml").write_text(wrong)
    process = spawn("run", "pipeline.toml", "--check", "--json", env={"BROKERS": SECRET, "LOGIN": SECRET})
    out, err = process.communicate(timeout=180)
    assert process.returncode == 1
    mistakes = json.loads(out)["mistakes"]
    assert [": ".join(line.split(": ")[:2]) for line in mistakes] == [
        "line 22: [derived] `x` cannot be computed",
        "line 10: [source] `id` names `idd`, and there is no such column; did you mean `id`?",
    ]
    assert b"Traceback" not in err
    assert b"SQLQueryContext" not in err
    assert SECRET.encode() not in out + err
