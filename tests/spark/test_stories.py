"""Stories of what once broke, each from beginning to end, as people met it: those on Spark."""

import json

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import tidings as td
from tidings import spark as ts
from tidings.errors import BadSubscriptions

DDL = "id int, make string, price double, year int, model string"
ADS = [(at, "ford", 8500.0, 2016, "focus" if at % 5 else "500") for at in range(20)]
GOOD = [("ann", "make = 'ford' and price < 9000"), ("bob", "year >= 2015")]
EVE = ("eve", "model > 5")
ALL = sorted((at, who) for at in range(20) for who in ("ann", "bob"))


def pairs(frame):
    return sorted((row["event"], row["subscription"]) for row in frame.collect())


@pytest.fixture
def ads(spark):
    return spark.createDataFrame(ADS, DDL)


def test_eve_asks_a_column_of_text_for_a_number_and_is_told_so(ads):
    with pytest.raises(BadSubscriptions, match=r"(?s)`eve`.*declared text, and this is number.*declare it number"):
        ts.match(ads, [*GOOD, EVE], event_id="id")
    declared = ts.match(ads, [*GOOD, EVE], event_id="id", schema={"model": "any"})
    assert pairs(declared) == sorted([*ALL, *((at, "eve") for at in range(0, 20, 5))])
    assert ts.dead_letters(ads, [*GOOD, EVE], event_id="id", schema={"model": "any"}).count() == 0


def test_eve_in_a_live_stream_is_left_out_and_listed_and_the_others_hear_all(spark, ads, tmp_path):
    live = td.Live(tmp_path / "live")
    live.add_many(GOOD)
    source = tmp_path / "ads"
    pairs_by_batch = {}
    ads.coalesce(1).write.json(str(source))
    stream = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).json(str(source))

    def run():
        writer = ts.match(stream, live, event_id="id").writeStream
        query = writer.foreachBatch(lambda frame, batch: pairs_by_batch.update({batch: pairs(frame)}))
        query = query.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
        assert query.awaitTermination(180)

    run()
    live.add(*EVE)
    live.add("dan", "pirce < 9000")
    ads.coalesce(1).write.mode("append").json(str(source))
    run()
    assert [pairs_by_batch[batch] for batch in sorted(pairs_by_batch)] == [ALL, ALL]
    assert {row["subscription"] for row in ts.refused(ads, live).collect()} == {"eve", "dan"}


def test_eve_in_a_pipeline_with_columns_is_refused_and_listed_and_nothing_is_a_dead_letter(pipe):
    pipe.searches("1", ann="make = 'ford' and price < 9000", bob="price >= 1", eve="make > 5", dan="pirce < 9000")
    pipe.events(*({"id": at, "make": "ford", "price": 8500} for at in range(10)))
    outcome = pipe.toml().run()
    assert len(pipe.matches()) == 20
    assert outcome.dead_letters == 0
    reasons = {row["id"]: row["reason"] for row in pipe.read_refused()}
    assert set(reasons) == {"eve", "dan"}
    assert "`make` is declared" in reasons["eve"]
    assert "did you mean `price`?" in reasons["dan"]


def test_values_that_nobody_declared_and_somebody_cannot_read_are_told_by_the_pipeline(pipe):
    columns = "id BIGINT, price DOUBLE, facts MAP<STRING, STRING>"
    source = f'kind = "json"\npath = "ads"\ncolumns = "{columns}"\nid = "id"'
    pipe.searches("1", bob="price >= 1", eve="facts.model > 5")
    pipe.events(*({"id": at, "price": 1, "facts": {"model": "focus" if at else "500"}} for at in range(10)))
    outcome = pipe.toml(source=source).run()
    assert outcome.dead_letters == 0
    assert len(pipe.matches()) == 11
    warning = "facts.model: 9 of 10 values are text, asked as numbers by 1 subscription (eve)"
    assert warning in pipe.warnings
    assert [mismatch["said"] for mismatch in pipe.reports[-1]["mismatches"]] == [warning]
    lines = [json.loads(line) for line in (pipe.folder / "lines.jsonl").read_text().splitlines()]
    assert any(warning in json.dumps(line) for line in lines)


def test_an_infinite_number_is_bad_whether_a_filter_asks_for_its_column_or_not(spark):
    rows = [(1, 5.0, 1.0, (1.0, 2.0)), (2, 5.0, float("inf"), (1.0, 2.0)), (3, 5.0, float("nan"), (500.0, 2.0))]
    frame = spark.createDataFrame(rows, "id int, price double, size double, spot struct<lon: double, lat: double>")
    for wanted in ([("p", "price > 1")], [("p", "price > 1"), ("s", "size > 0")], [("near", "spot near (1, 2) 5 km")]):
        assert {row["event"] for row in ts.match(frame, wanted, event_id="id").collect()} == {1}
        letters = {row["event"]: row["reason"] for row in ts.dead_letters(frame, wanted, event_id="id").collect()}
        assert set(letters) == {2, 3}
        assert "size" in letters[2]
        assert "spot" in letters[3]
