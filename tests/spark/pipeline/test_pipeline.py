"""Whole pipelines in one session: sources, dead letters, late and double events, limits, shards and restarts."""

import json
import os
import shutil
import signal
import socket
import threading
import time
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.kafka.broker import wait_for

from tidings.cli import run as command
from tidings.errors import BadPipeline, CheckpointError, PipelineFailed, SinkError
from tidings.spark.pipeline.config.load import load
from tidings.spark.pipeline.config.value_kinds import Trigger
from tidings.spark.pipeline.run import runner

ALL = {"all": "price >= 0"}

# Sources -------------------------------------------------------------------------------------------


def test_csv_files_are_read_and_a_line_that_is_none_is_a_dead_letter(pipe):
    pipe.searches("1", **ALL)
    pipe.events("id,price", "1,5", "2,dear", name="csv")
    source = 'kind = "csv"\npath = "ads"\ncolumns = "id BIGINT, price DOUBLE"\nid = "id"'
    pipe.toml(source=source, options="header = true").run()
    assert pipe.matches() == [(0, 1, "all")]
    (letter,) = pipe.letters()
    assert "dear" in letter["row"]


def test_parquet_files_are_read_and_written(pipe, spark):
    pipe.searches("1", **ALL)
    frame = spark.createDataFrame([(1, 5.0), (2, -1.0)], "id BIGINT, price DOUBLE")
    frame.coalesce(1).write.mode("overwrite").parquet(str(pipe.folder / "ads"))
    source = 'kind = "parquet"\npath = "ads"\ncolumns = "id BIGINT, price DOUBLE"\nid = "id"'
    pipe.toml(source=source, sink='kind = "parquet"\npath = "matches"', more='[matching]\nkeep = ["price"]').run()
    matches = spark.read.parquet(str(pipe.folder / "matches")).collect()
    assert [tuple(row) for row in matches] == [(1, "all", 5.0, 0)]


def stop_after_matches(pipe):
    """Ask it to stop as a supervisor does, when the first matches are there."""
    pipe.during(None, lambda: os.kill(os.getpid(), signal.SIGTERM))


def test_a_rate_is_matched_until_somebody_asks_to_stop(pipe):
    pipe.searches("1", early="value < 3")
    stop_after_matches(pipe)
    source = 'kind = "rate"\nid = "value"\n[source.options]\nrowsPerSecond = 50'
    outcome = pipe.toml(source=source).run(trigger=Trigger())
    assert outcome.stopped
    assert {row["event"] for row in pipe.rows()} <= {0, 1, 2}
    assert pipe.rows()


def test_lines_of_a_socket_are_matched(pipe):
    pipe.searches("1", **ALL)
    stop_after_matches(pipe)
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = []

        def serve():
            line, _ = server.accept()
            connections.append(line)
            line.sendall(b'{"id": 1, "price": 5}\nno JSON\n')

        threading.Thread(target=serve, daemon=True).start()
        port = server.getsockname()[1]
        source = f'kind = "socket"\nhost = "127.0.0.1"\nport = {port}\ncolumns = "id BIGINT, price DOUBLE"\nid = "id"'
        assert pipe.toml(source=source).run(trigger=Trigger()).stopped
        for line in connections:
            line.close()
    assert {(row["event"], row["subscription"]) for row in pipe.rows()} == {(1, "all")}


def test_a_topic_is_read_with_its_place_in_dead_letters_and_its_lag_in_reports(pipe, kafka):
    topic = kafka.topic("ads", partitions=2)
    for part in (0, 1):
        values = ['{"price": 1}', "no JSON", '{"price": 2}', '{"price": 3}']
        kafka.produce(
            topic, *[{"key": f"k{part}{n}", "value": text, "partition": part} for n, text in enumerate(values)]
        )
    pipe.searches("1", all=f"price >= 0 and kafka.topic = '{topic}'")
    source = (
        f'kind = "kafka"\nservers = "{kafka.servers}"\ntopic = "{topic}"\ncolumns = "price DOUBLE"\nid = "kafka.key"'
    )
    options = '\n[source.options]\nstartingOffsets = "earliest"\nmaxOffsetsPerTrigger = 4'
    pipe.toml(source=source + options).run()
    assert sorted(row["event"] for row in pipe.rows()) == ["k00", "k02", "k03", "k10", "k12", "k13"]
    assert [letter["event"] for letter in pipe.letters()] == ["k01", "k11"]
    letter_row = json.loads(pipe.letters()[1]["row"])
    assert (letter_row["raw"], letter_row["kafka"]["partition"], letter_row["kafka"]["offset"]) == ("no JSON", 1, 1)
    assert [sum(report["lag"].values()) for report in pipe.reports] == [4, 0]
    assert set(pipe.reports[0]["lag"]) == {f"{topic}-0", f"{topic}-1"}


def test_a_password_from_the_environment_is_never_shown_not_even_when_it_is_wrong(pipe, kafka, monkeypatch, capfd):
    secret = "wrong-pass-4711"
    monkeypatch.setenv("KAFKA_SECRET", secret)
    topic = kafka.topic("ads")
    login = kafka.sasl_options(password="${KAFKA_SECRET}")["kafka.sasl.jaas.config"]
    options = f"""[source.options]
kafka.security.protocol = "SASL_PLAINTEXT"
kafka.sasl.mechanism = "PLAIN"
kafka.sasl.jaas.config = '{login}'
startingOffsets = "earliest"
"""
    source = f'kind = "kafka"\nservers = "{kafka.sasl_servers}"\ntopic = "{topic}"\ncolumns = "price DOUBLE"'
    pipe.searches("1", **ALL)
    pipe.toml(source=f"{source}\n{options}")
    with pytest.raises(PipelineFailed) as failed:
        command.run(pipe.folder / "pipeline.toml", check=False, once=True, as_json=False)
    out, err = capfd.readouterr()
    assert "uthentication" in str(failed.value)
    written = [path.read_text(errors="replace") for path in pipe.folder.rglob("*") if path.suffix in (".jsonl", ".log")]
    for text in (str(failed.value), out, err, *written):
        assert secret not in text


# Dead letters, limits, shards ----------------------------------------------------------------------


def test_dead_letters_of_the_source_and_of_matching_lie_together(pipe):
    pipe.searches("1", heavy="weight > 1", **ALL)
    pipe.events({"id": 1, "price": 5}, "no JSON", {"id": 2, "price": "dear"}, {"id": 3, "price": 6, "make": "lots"})
    schema = '[schema]\nprice = "number"\nweight = "number"\n[derived]\nweight = "make"'
    outcome = pipe.toml(more=schema).run()
    assert pipe.matches() == [(0, 1, "all")]
    reasons = {json.loads(letter["row"]).get("raw", letter.get("event")): letter["reason"] for letter in pipe.letters()}
    assert set(reasons) == {"no JSON", '{"id": 2, "price": "dear"}', 3}
    assert "weight" in reasons[3]  # it is no number: matching says so, not the source
    assert (outcome.events, outcome.matches, outcome.dead_letters) == (4, 1, 3)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("per", ["match", "event"])
def test_an_event_that_too_many_want_is_a_dead_letter_and_the_others_are_matched(pipe, shards, per):
    pipe.searches("1", **{f"s{n}": f"price > {n}" for n in range(8)})
    pipe.events(
        {"id": 1, "price": 3}, {"id": 1, "price": 2}, {"id": 2, "price": 7.5}, {"id": 3, "make": "x"}, "no JSON"
    )
    subscriptions = f'directory = "searches"\nshards = {shards}'
    pipe.toml(subscriptions=subscriptions, more=f'[matching]\nper = "{per}"\nlimit = 4\nkeep = ["price"]')
    outcome = pipe.run()
    if per == "match":
        pairs = sorted((row["event"], row["price"], row["subscription"]) for row in pipe.rows())
        assert pairs == [(1, 2.0, "s0"), (1, 2.0, "s1"), (1, 3.0, "s0"), (1, 3.0, "s1"), (1, 3.0, "s2")]
    else:
        lists = sorted((row["price"], sorted(row["subscriptions"])) for row in pipe.rows())
        assert lists == [(2.0, ["s0", "s1"]), (3.0, ["s0", "s1", "s2"])]
    over = [letter for letter in pipe.letters() if letter.get("event") == 2]
    assert [letter["reason"] for letter in over] == ["8 subscriptions match, more than the limit of 4"]
    assert json.loads(over[0]["row"]) == {"id": 2, "make": None, "price": 7.5, "posted": None}
    assert (outcome.events, outcome.dead_letters, pipe.reports[0]["over_limit"]) == (5, 2, 1)


def test_derived_columns_and_an_ontology_are_what_filters_see(pipe):
    (pipe.folder / "cars.toml").write_text(
        '[trees.car]\noutline = """\ncar\n  ford\n  opel\n"""\n[attributes]\nmake = "concept car"\n'
    )
    pipe.searches("1", cars="make is a 'car'", dear="in_cents > 1000")
    pipe.events({"id": 1, "make": "opel", "price": 5}, {"id": 2, "make": "bike", "price": 50})
    derived = '[derived]\nin_cents = "price * 100"\nsite = "\'a\'"\n[matching]\nkeep = ["in_cents", "site"]'
    pipe.toml(top='ontology = "cars.toml"', more=derived).run()
    assert pipe.matches() == [(0, 1, "cars"), (0, 2, "dear")]
    assert [(row["in_cents"], row["site"]) for row in pipe.rows()] == [(500.0, "a"), (5000.0, "a")]


# Late and double events ----------------------------------------------------------------------------


def test_late_events_are_dead_letters_across_batches_and_over_a_restart(pipe):
    at = "2024-07-01T{:02}:00:00Z".format
    pipe.searches("1", **ALL)
    pipe.events({"id": 1, "price": 1, "posted": at(10)}, {"id": 2, "price": 1, "posted": at(0)})
    pipe.events({"id": 3, "price": 1, "posted": at(8)}, {"id": 4, "price": 1, "posted": at(9)}, {"id": 5, "price": 1})
    pipe.toml(more='[late]\nafter = "90 minutes"').run()
    assert [event for _, event, _ in pipe.matches()] == [1, 2, 4, 5]  # of the first batch none is late
    assert [(letter["batch"], letter["event"]) for letter in pipe.letters()] == [(1, 3)]
    assert pipe.letters()[0]["reason"] == "late: 2024-07-01 08:00:00 is before 2024-07-01 08:30:00"
    assert [report["late"] for report in pipe.reports] == [0, 1]
    pipe.events({"id": 6, "price": 1, "posted": at(8)}, {"id": 7, "price": 1, "posted": at(20)})
    pipe.run()
    assert [event for _, event, _ in pipe.matches()[4:]] == [7]
    assert pipe.claims()[2]["facts"]["newest"] == "2024-07-01T10:00:00+00:00"


def test_doubles_are_left_out_within_across_batches_and_over_a_restart_and_what_has_no_id_is_none(pipe):
    pipe.searches("1", **ALL)
    pipe.events({"id": 1, "price": 1}, {"id": 1, "price": 2}, "no JSON", "no JSON", {"price": 3}, {"price": 3})
    pipe.events({"id": 1, "price": 4}, {"id": 2, "price": 4})
    pipe.toml(more='[duplicates]\nwithin = "1 hour"').run()
    assert sorted((row["batch"], row.get("event")) for row in pipe.rows() if row.get("event")) == [(0, 1), (1, 2)]
    assert sum(row.get("event") is None for row in pipe.rows()) == 2
    assert len(pipe.letters()) == 2
    assert [report["duplicates"] for report in pipe.reports[:2]] == [1, 1]
    pipe.events({"id": 2, "price": 5}, {"id": 3, "price": 5})
    pipe.run()
    assert [row["event"] for row in pipe.rows() if row["batch"] > 1] == [3]


def test_nothing_is_left_out_because_the_clock_was_ahead_when_it_last_ran(pipe):
    pipe.searches("1", **ALL)
    pipe.events({"id": 1, "price": 1})
    pipe.toml(more='[duplicates]\nwithin = "1 hour"').run()
    ahead = int(time.time() * 1000) + 7_200_000
    for folder, line, name, value in (
        ("offsets", 1, "batchTimestampMs", ahead),
        ("offsets", 1, "batchWatermarkMs", ahead - 3_600_000),
        ("commits", 1, "nextBatchWatermarkMs", ahead - 3_600_000),
    ):
        newest = max((pipe.folder / "state" / "query" / folder).glob("[0-9]*"), key=lambda path: int(path.name))
        lines = newest.read_text().splitlines()
        lines[line] = json.dumps({**json.loads(lines[line]), name: value})
        newest.write_text("\n".join(lines))
        newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
    pipe.events({"id": 1, "price": 1}, {"id": 2, "price": 1})
    pipe.run()
    assert [event for _, event, _ in pipe.matches()] == [1, 2]


# Columns, schemas and checkpoints ------------------------------------------------------------------


def test_columns_may_come_and_go_while_it_runs_and_be_others_after_a_restart(pipe):
    pipe.searches("1", new="color = 'red'", **ALL)
    pipe.events({"id": 1, "price": 5})
    pipe.events({"id": 2, "color": "red"}, {"id": 3, "price": 5, "wheels": [1, {"x": 2}]})
    pipe.toml().run()
    assert pipe.matches() == [(0, 1, "all"), (1, 3, "all")]
    pipe.events({"id": 4, "color": "red", "price": 5})
    columns = "id BIGINT, color STRING, price DECIMAL(9, 2)"
    source = f'kind = "json"\npath = "ads"\ncolumns = "{columns}"\nid = "id"'
    pipe.toml(source=source).run()
    assert pipe.matches()[2:] == [(2, 4, "all"), (2, 4, "new")]


def test_a_schema_is_closed_and_refuses_filters_on_anything_else(pipe):
    pipe.searches("1", other="make = 'ford'", **ALL)
    pipe.events({"id": 1, "make": "ford", "price": 5})
    pipe.toml(more='[schema]\nprice = "number"').run()
    assert pipe.matches() == [(0, 1, "all")]
    assert [refusal["id"] for refusal in pipe.read_refused()] == ["other"]


def test_a_checkpoint_of_a_newer_format_and_a_folder_of_somebody_else_are_refused_by_name(pipe):
    pipe.searches("1", **ALL)
    pipe.toml()
    state = pipe.folder / "state"
    state.mkdir()
    (state / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="is not empty and was not made by `tidings run`"):
        pipe.run()
    (state / "notes.txt").unlink()
    (state / "tidings.json.17.tmp").write_text('{"for')  # what a crash left
    pipe.events({"id": 1, "price": 5})
    pipe.run()
    facts = json.loads((state / "tidings.json").read_text())
    (state / "tidings.json").write_text(json.dumps({**facts, "format": 99, "tidings": "9.9"}))
    with pytest.raises(CheckpointError, match=r"format 99 \(by tidings 9.9\); this version reads up to 1"):
        pipe.run()


def test_a_checkpoint_that_a_running_pipeline_has_is_refused_to_another(pipe):
    pipe.searches("1", **ALL)
    pipe.events({"id": 1, "price": 5})
    messages = []

    def again():
        with pytest.raises(CheckpointError) as refused:
            runner.run(load(pipe.folder / "pipeline.toml"))
        messages.append(str(refused.value))

    pipe.during(0, again)
    pipe.toml().run()
    assert "is in use by another `tidings run`" in messages[0]
    assert pipe.matches() == [(0, 1, "all")]


def test_what_only_spark_can_tell_is_told_before_the_query_starts(pipe):
    pipe.searches("1", **ALL)
    pipe.toml(more='[derived]\nbad = "prise + 1"')
    with pytest.raises(BadPipeline, match="`bad` cannot be computed"):
        pipe.run()
    assert not (pipe.folder / "state" / "query").exists()


def test_a_batch_that_failed_is_done_again_with_the_subscriptions_and_the_time_that_it_had(pipe):
    pipe.searches("1", young="age(posted) < 1 hour", **ALL)
    pipe.events({"id": 1, "price": 5, "posted": datetime.now(UTC).isoformat()})
    pipe.events({"id": 2, "price": 5})

    def full():
        pipe.searches("2", new="price > 0")
        msg = "no room"
        raise OSError(msg)

    pipe.during(0, full)
    with pytest.raises(SinkError, match="failed in batch 0: OSError: no room"):
        pipe.toml(sink='kind = "json"\npath = "matches"').run()
    claim = pipe.claims()[0]
    shutil.rmtree(pipe.folder / "matches" / "batch=00000000")  # as if the crash had come before
    pipe.run()
    assert pipe.matches() == [(0, 1, "all"), (0, 1, "young"), (1, 2, "all"), (1, 2, "new")]
    assert pipe.claims()[0] == claim


def test_a_stop_that_is_asked_between_two_batches_does_not_wait_for_ever(pipe):
    pipe.searches("1", **ALL)
    for id in range(12):
        pipe.events({"id": id, "price": 5})
    done = pipe.folder / "matches" / "batch=00000001"

    def ask():
        wait_for(done.exists, 120)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=ask, daemon=True).start()
    outcome = pipe.toml().run(trigger=Trigger())
    assert outcome.stopped
    pipe.run()
    assert pipe.matches() == [(id, id, "all") for id in range(12)]
