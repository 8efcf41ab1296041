"""What only Spark can tell of a pipeline: columns, derived SQL, and names that must be columns."""

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.configuration.environment import ExpandedText
from tidings.spark.pipeline.config.analysis import check_locally, check_on_spark
from tidings.spark.pipeline.config.settings import MatchingSettings, PipelineFile, SinkSettings, SourceSettings

COLUMNS = "id BIGINT, make STRING, price DOUBLE, posted TIMESTAMP, tags ARRAY<STRING>"
SECRET = "swordfish"


def events(columns=COLUMNS, *, derived=None, keep=None, sinks=(), **source):
    source = {"kind": "json", "columns": columns, **source}
    return PipelineFile(
        checkpoint="state",
        source=SourceSettings(**source),
        derived=derived or {},
        matching=MatchingSettings(keep=keep),
        sinks=tuple(sinks),
    )


KAFKA = {"kind": "kafka", "servers": "b:1", "topic": "t"}

SOUND = [
    events(id="id", time="posted", derived={"eur": "price * 0.9", "dear": "eur > 100"}, keep=("dear",)),
    events(id="name", derived={"name": "upper(make)"}),
    events("make STRING, day DATE", id="kafka.key", time="day", **KAFKA),
    events("make STRING", id="kafka.headers.id", time="kafka.timestamp", derived={"t": "kafka.topic"}, **KAFKA),
    events(None, value="text", derived={"n": "length(value)"}, **KAFKA),
    events(None, kind="rate", id="value", time="timestamp"),
    events("`dotted.name` INT, id INT", id="dotted.name", keep=("dotted.name",)),
    events("id INT, batch INT", id="id", sinks=[SinkSettings("json")]),
]

WRONG = [
    (events("id BIGNT"), ['[source] `columns` cannot be read: Unsupported data type "BIGNT"']),
    (events("id BIGINT make STRING"), ["[source] `columns` cannot be read: Syntax error at or near 'make'"]),
    (events("BIGINT"), ["[source] `columns` must be names and types, not `BIGINT`"]),
    (events("id INT, ID INT"), ["[source] `columns` has names that cannot be: `ID` is there twice"]),
    (
        events("_raw INT"),
        ["[source] `columns` has names that cannot be: `_raw` is a column of Tidings' own"],
    ),
    (
        events("kafka INT", **KAFKA),
        ["[source] `columns` has names that cannot be: `kafka` is there twice, once for what Kafka says of a record"],
    ),
    (events(id="idd"), ["[source] `id` names `idd`, and there is no such column; did you mean `id`?"]),
    (
        events("make STRING", id="kafka.ky", **KAFKA),
        ["[source] `id` names `kafka.ky`, and there is no such column; did you mean `kafka.key`?"],
    ),
    (events(id="make.x"), ["[source] `id` names `make.x`, and there is no such column"]),
    (events(id="tags"), ["[source] `id` names `tags`, not a text or a number but array<string>"]),
    (
        events(time="make"),
        [
            "[source] `time` names `make`, not a timestamp or a date but string; "
            "make one in [derived], by to_timestamp(...)"
        ],
    ),
    (
        events("id INT", keep=("url",)),
        ["[matching] `keep` names `url`, and there is no such column; there are `id`"],
    ),
    (
        events("id INT", keep=("kafka.topic",), **KAFKA),
        [
            "[matching] `keep` names `kafka.topic`, and there is no such column; "
            'a field gets its name in [derived]: topic = "kafka.topic"'
        ],
    ),
    (
        events("id INT, subscription STRING"),
        ["[matching] the events have a column `subscription` themselves; say `keep`"],
    ),
    (
        events("id INT, batch INT", sinks=[SinkSettings("json")]),
        [
            "[matching] the column `batch` would be hidden by the sinks' folders `batch=N`; "
            "call it otherwise in [derived], and say `keep`"
        ],
    ),
    (events(derived={"Make": "upper(make)"}), ["[derived] `Make` is a column already; take another name"]),
    (
        events(derived={"a": "prce * 2", "b": "a + 1", "c": "upper(", "d": "sum(price)"}, id="a", time="x"),
        [
            "[derived] `a` cannot be computed: A column, variable, or function parameter with name `prce` cannot be "
            "resolved. Did you mean one of the following? [`price`, ",
            "[derived] `c` cannot be computed: Syntax error at or near end of input",
            "[derived] `d` cannot be computed: ",
            "[source] `time` names `x`, and there is no such column; there are `id`, `make`, `price`, `posted`, "
            "`tags`, `a`, `b`, `c`, `d`",
        ],
    ),
]


@pytest.mark.parametrize("sound", SOUND, ids=lambda sound: sound.source.kind)
def test_nothing_is_wrong_with_what_is_sound(spark, sound):
    assert check_on_spark(spark, sound) == []


@pytest.mark.parametrize(("wrong", "beginnings"), WRONG, ids=[beginnings[0] for _, beginnings in WRONG])
def test_each_mistake_is_one_line(spark, capfd, wrong, beginnings):
    mistakes = [str(mistake) for mistake in check_on_spark(spark, wrong)]
    assert len(mistakes) == len(beginnings)
    assert [line for line, begins in zip(mistakes, beginnings, strict=True) if not line.startswith(begins)] == []
    assert not any("\n" in line or "SQLSTATE" in line for line in mistakes)
    assert "SQLQueryContextLogger" not in capfd.readouterr().err  # PySpark's own word, with the plan


@pytest.mark.parametrize(
    "wrong",
    [
        events(ExpandedText(f"{SECRET} BIGNT", "${COLUMNS}")),
        events(ExpandedText(f"{SECRET} BIGINT", "${COLUMNS}"), id="x", keep=("y",), derived={"a": "z"}),
        events(ExpandedText(SECRET, "${COLUMNS}")),
        events(id=ExpandedText(SECRET, "${ID}")),
        events(keep=(ExpandedText(f"id.{SECRET}", "${KEEP}"),)),
        events(derived={"a": ExpandedText(f"price + {SECRET}", "price + ${X}")}),
    ],
    ids=["type", "names", "no type", "id", "keep", "sql"],
)
def test_what_a_variable_holds_is_not_told(spark, capfd, wrong):
    mistakes = [str(mistake) for mistake in check_on_spark(spark, wrong)]
    assert mistakes
    assert all(line.endswith("; a variable is part of it, so the reason is not shown") for line in mistakes)
    assert SECRET not in f"{mistakes} {capfd.readouterr()}"


def test_a_session_that_runs_is_used_and_left_running(spark):
    assert check_locally(events(id="id")) == []
    assert spark.range(1).count() == 1
