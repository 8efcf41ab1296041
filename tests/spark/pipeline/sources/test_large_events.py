"""Events that are too large: let go as they are read, told of with their size, and nothing around them is lost."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")


from tests.spark.pipeline.piping import COLUMNS

from tidings.spark.pipeline.config.settings import SourceSettings
from tidings.spark.pipeline.sources import sources
from tidings.spark.pipeline.sources.size_limits import ReadTuning, describe_too_large

# Lines -----------------------------------------------------------------------------------------------


# Rows of CSV -----------------------------------------------------------------------------------------


# On Spark --------------------------------------------------------------------------------------------


def test_a_large_file_is_read_by_several_tasks_and_in_order(spark, tmp_path):
    (tmp_path / "a.json").write_text("".join(json.dumps({"id": number}) + "\n" for number in range(500)))
    source = SourceSettings("json", path=str(tmp_path), columns="id BIGINT")
    query = (
        sources.stream_events(spark, source, {}, ReadTuning(range_bytes=1000))
        .selectExpr("id", "spark_partition_id() AS task")
        .writeStream.format("memory")
        .queryName("ordered")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = [(row["task"], row["id"]) for row in spark.table("ordered").collect()]
    assert sorted(row[1] for row in rows) == list(range(500))
    assert len({task for task, _ in rows}) == 2
    assert [id for _, id in sorted(rows, key=lambda row: row[0])] == list(range(500))


def test_what_sparks_readers_hand_over_is_bounded_before_it_is_decoded(spark):
    from tidings.spark.pipeline.sources.size_limits import cut_large_texts

    rows = spark.createDataFrame([("é" * 300,), ("fits",), (None,)], "_text STRING")
    texts = [row.asDict() for row in cut_large_texts(rows, 500).collect()]
    assert texts[0] == {"_text": None, "_broken": describe_too_large(600, 500), "_file": "é" * 100}
    assert texts[1:] == [{"_text": "fits", "_broken": None, "_file": None}, dict.fromkeys(texts[0])]


def test_a_record_that_is_too_large_is_a_dead_letter_with_its_place(pipe, kafka):
    topic = kafka.topic("ads")
    kafka.produce(topic, *[{"key": str(n), "value": json.dumps({"price": n, "make": "x" * (300 * n)})} for n in (1, 5)])
    pipe.searches("1", all="price >= 0")
    source = (
        f'kind = "kafka"\nservers = "{kafka.servers}"\ntopic = "{topic}"\ncolumns = "price DOUBLE"\nlargest = "1 kB"'
    )
    pipe.toml(source=f'{source}\nid = "kafka.key"\n[source.options]\nstartingOffsets = "earliest"').run()
    assert [row["event"] for row in pipe.rows()] == ["1"]
    [letter] = pipe.letters()
    assert letter["event"] == "5"
    assert "(1 kB); `largest` in [source] says how many" in letter["reason"]
    assert json.loads(letter["row"])["raw"].startswith('{"price": 5, "make": "xx')


def test_a_line_of_50_mb_is_a_dead_letter_and_the_pipeline_goes_on(tmp_path):
    (tmp_path / "ads").mkdir()
    large = json.dumps({"id": 2, "price": 2, "make": "x" * 50_000_000})
    lines = ['{"id": 1, "price": 1}', large, '{"id": 3, "price": 3}', "no JSON"]
    (tmp_path / "ads" / "0.json").write_text("\n".join(lines))
    (tmp_path / "searches.jsonl").write_text('{"id": "all", "filter": "price >= 0"}\n')
    (tmp_path / "pipeline.toml").write_text(f"""
checkpoint = "state"
[source]
kind = "json"
path = "ads"
columns = "{COLUMNS}"
id = "id"
[subscriptions]
file = "searches.jsonl"
[[sink]]
kind = "json"
path = "matches"
""")
    command = [sys.executable, "-m", "tidings", "run", str(tmp_path / "pipeline.toml"), "--once"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    matches = [json.loads(line) for path in tmp_path.glob("matches/*/*.json") for line in path.read_text().splitlines()]
    assert sorted(row["event"] for row in matches) == [1, 3]
    files = tmp_path.glob("state/dead_letters/*/*.json")
    letters = {json.loads(row["row"])["raw"]: row["reason"] for path in files for row in map(json.loads, path.open())}
    assert letters == {
        large[:200]: describe_too_large(len(large), 8_000_000),
        "no JSON": "not JSON: 'no JSON'",
    }
