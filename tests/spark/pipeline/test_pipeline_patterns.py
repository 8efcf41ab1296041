"""Pipelines with patterns: beside filters and alone, over restarts and failures, and what is lost: nothing."""

import json

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.errors import SinkError
from tidings.spark.pipeline.config.analysis import check_on_spark
from tidings.spark.pipeline.config.load import load

ATTACKS = """
pattern intrusion
  fail  = status = 'denied'  and ip = $x
  enter = status = 'success' and ip = $x and size >= 0
  fail{3,} ; enter within 5 min
"""

PIPELINE = """
checkpoint = "state"
trigger = "available now"
[source]
kind = "json"
path = "ads"
columns = "id BIGINT, ip STRING, status STRING, size STRING, ts TIMESTAMP"
id = "id"
time = "ts"
[source.options]
maxFilesPerTrigger = 1
[schema]
id = "number"
ip = "text"
status = "text"
size = "number"
[patterns]
file = "attacks.patterns"
lateness = "10 s"
KEEP
[[detections]]
kind = "json"
path = "attacks"
[[detections]]
kind = "python"
function = "tests.spark.pipeline.piping:step"
[shown]
view = "off"
lines = "lines.jsonl"
"""

MATCHING = """
[subscriptions]
directory = "searches"
[[sink]]
kind = "json"
path = "matches"
"""


LOST = "state/dead_letters_of_patterns"


def login(id, status, second, **more):
    return {"id": id, "ip": "10.0.0.1", "status": status, "ts": f"2024-07-01T12:00:{second:02}Z", **more}


FAILS = [login(id, "denied", id) for id in (1, 2, 3)]


@pytest.fixture
def watch(pipe):
    """Write a pipeline with patterns."""

    def write_pipeline(more="", keep=""):
        (pipe.folder / "attacks.patterns").write_text(ATTACKS)
        (pipe.folder / "pipeline.toml").write_text(PIPELINE.replace("KEEP", keep) + more)
        return pipe

    return write_pipeline


def detections(pipe):
    return [(row["pattern"], row["key"], row["events"]) for row in pipe.rows("attacks")]


def list_lost(pipe):
    """Return event and reason of the patterns' dead letters."""
    return sorted((row.get("event") or 0, row["reason"].partition(":")[0]) for row in pipe.rows(LOST))


def test_filters_and_patterns_read_the_same_events_and_when_one_query_fails_both_end_and_go_on(watch):
    pipe = watch(MATCHING, keep='keep = ["status"]')
    pipe.searches("1", denied="status = 'denied'")
    pipe.events(*FAILS, login(4, "success", 5, size="1"), {"id": 5, "status": "denied"}, "no JSON")
    pipe.events(login(6, "other", 40), login(7, "success", 41, size="lots"))

    def full():
        msg = "no room"
        raise OSError(msg)

    pipe.during(None, full)
    with pytest.raises(SinkError, match=r"`tests.spark.pipeline.piping:step` failed in batch \d: OSError: no room"):
        pipe.run()
    assert len(pipe.rows("attacks")) == 1  # written before the other sink failed
    pipe.events(login(8, "denied", 6))
    outcome = pipe.run()
    ((name, key, events),) = detections(pipe)
    assert (name, key, events[0]) == ("intrusion", "10.0.0.1", {"event": 1, "status": "denied"})
    assert [event["event"] for event in events] == [1, 2, 3, 4]
    assert [event for _, event, _ in pipe.matches()] == [1, 2, 3, 5, 8]
    assert [letter["reason"].partition(":")[0] for letter in pipe.letters()] == ["not JSON", "`size`"]
    assert list_lost(pipe) == [(5, "no time"), (7, "`size`"), (8, "late")]
    (late,) = [row for row in pipe.rows(LOST) if row["event"] == 8]
    assert json.loads(late["row"]) == {"event": 8, "status": "denied", "at": "2024-07-01T12:00:06.000000Z"}
    assert (outcome.detections, outcome.late) == (1, 1)
    pattern_reports = [report for report in pipe.reports if report["query"] == "patterns"]
    assert [report["detections"] for report in pattern_reports] == [1, 0]
    assert all(report["beside"] and report["patterns"] == 1 for report in pattern_reports)


def test_patterns_alone_go_on_after_a_restart_where_they_were(watch):
    pipe = watch()
    pipe.events(*FAILS, "no JSON")
    first = pipe.run()
    assert (first.events, first.detections, first.dead_letters) == (4, 0, 1)
    pipe.events(login(4, "success", 5, size="1"), login(5, "other", 40))
    second = pipe.run()
    assert detections(pipe) == [("intrusion", "10.0.0.1", [1, 2, 3, 4])]
    assert (second.events, second.matches, second.detections) == (2, 0, 1)
    assert list_lost(pipe) == [(0, "not JSON")]
    assert not (pipe.folder / "state" / "query").exists()


def test_spark_is_asked_about_the_columns_that_patterns_name(watch, spark):
    pipe = watch(keep='keep = ["url"]\nkey = "ipp"')
    assert [str(mistake) for mistake in check_on_spark(spark, load(pipe.folder / "pipeline.toml"))] == [
        "[patterns] `key` names `ipp`, and there is no such column; did you mean `ip`?",
        "[patterns] `keep` names `url`, and there is no such column; there are `id`, `ip`, `status`, `size`, `ts`",
    ]
    (pipe.folder / "attacks.patterns").write_text(ATTACKS.replace("ip = $x", "tags = $x"))
    text = (
        PIPELINE.replace("KEEP", "").replace("ip STRING", "tags ARRAY<STRING>").replace('ip = "text"', 'tags = "text"')
    )
    (pipe.folder / "pipeline.toml").write_text(text)
    (mistake_line,) = map(str, check_on_spark(spark, load(pipe.folder / "pipeline.toml")))
    assert mistake_line.startswith(
        "[patterns] `file` does not go with the columns:\n  `tags` gives a variable its value, and is"
    )
