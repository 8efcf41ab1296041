"""Streams whose subscriptions change: every micro-batch uses one version, written down, and finds it again."""

import json
import os
import shutil

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import tidings as td
from tidings import spark as ts
from tidings.matcher.live import claims

ADS = "id int, make string, price int, town string"


class StreamFolder:
    """A folder of events that a stream reads, and what the stream found."""

    def __init__(self, spark, folder):
        self.spark, self.folder, self.events = spark, folder, folder / "ads"
        self.events.mkdir()
        self.matches, self.batches, self.queries = {}, 0, []

    def write(self, *ads):
        """Write a file of events, complete when it gets its name; the next micro-batch has it."""
        rows = [dict(zip(("id", "make", "price", "town"), ad, strict=False)) for ad in ads]
        beside = self.events / f".{self.batches}"
        beside.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(beside, (1_700_000_000 + self.batches,) * 2)  # Spark takes the oldest file first
        beside.rename(self.events / f"{self.batches:04}.json")
        self.batches += 1

    def run(self, live, each=None, **options):
        """Read to the end, one file in a micro-batch; `each` sees the matches of every batch."""
        stream = self.spark.readStream.schema(ADS).option("maxFilesPerTrigger", 1).json(str(self.events))
        matches = ts.match(stream, live, event_id="id", **options)

        def take(frame, batch):
            self.matches[batch] = pairs(frame)
            if each is not None:
                each(frame, batch)

        writer = matches.writeStream.foreachBatch(take).option("checkpointLocation", str(self.folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        self.queries.append(str(query.id))
        return self.matches


def pairs(frame):
    return sorted((row.event, row.subscription) for row in frame.collect())


@pytest.fixture
def world(spark, tmp_path):
    return StreamFolder(spark, tmp_path)


@pytest.fixture
def live(tmp_path):
    return td.Live(tmp_path / "live", shards=2)


def test_a_change_is_in_force_in_the_first_batch_that_begins_after_it(world, live):
    live.add("ford", "make = 'ford'")
    for number in range(3):
        world.write((number, "ford", 5000, "bern"))
    seen = []

    def each(frame, batch):
        live.add(f"new{batch}", "town = 'bern' and price < 9000")  # a column that nobody read before
        live.remove("new0") if batch == 1 else None
        seen.append(pairs(frame))  # the same batch again, after the change: the same rows

    matches = world.run(live, each)
    assert matches == {
        0: [(0, "ford")],
        1: [(1, "ford"), (1, "new0")],
        2: [(2, "ford"), (2, "new1")],
    }
    assert seen == [matches[batch] for batch in range(3)]
    versions = {batch: claims.read_claim(live.folder, world.queries[0], batch).version for batch in range(3)}
    assert versions == {0: 2, 1: 3, 2: 5}
    assert [set(live.open(versions[batch])) for batch in range(3)] == [{"ford"}, {"ford", "new0"}, {"ford", "new1"}]


def test_a_query_that_is_stopped_and_started_again_goes_on(world, live):
    live.add("ford", "make = 'ford'")
    world.write((1, "ford", 1))
    world.run(live)
    live.change([("fiat", "make = 'fiat'")], ["ford"])
    world.write((2, "ford", 1), (3, "fiat", 1))
    assert world.run(td.Live(live.folder), spread=2) == {0: [(1, "ford")], 1: [(3, "fiat")]}
    assert len(set(world.queries)) == 1
    assert claims.read_claim(live.folder, world.queries[0], 1).version == 3


def test_a_batch_that_is_run_again_gives_the_same_rows_whatever_changed_since(world, live):
    live.add("ford", "make = 'ford'")
    world.write((1, "ford", 1))

    def fail(_, __):
        live.change([("other", "make = 'ford'")], ["ford"])
        raise RuntimeError("the sink is gone")  # noqa: EM101 - a test's own

    with pytest.raises(Exception, match="the sink is gone"):
        world.run(live, fail)
    first = dict(world.matches)
    assert world.run(live) == first == {0: [(1, "ford")]}
    world.write((2, "ford", 1))
    assert world.run(live)[1] == [(2, "other")]


def test_an_empty_set_follows_a_folder_of_changes(world, tmp_path):
    changes = tmp_path / "changes"
    changes.mkdir()
    live = td.Live(tmp_path / "live", follow=changes)
    for number in range(4):
        world.write((number, "ford", number))

    def write(number, *rows):
        (changes / ".new").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (changes / ".new").rename(changes / f"{number}.jsonl")

    def each(_, batch):
        if batch == 0:
            write(0, {"id": "s1", "filter": "make = 'ford'"}, {"id": "bad", "filter": "make ="})
        elif batch == 1:
            write(1, {"id": "s1", "filter": None}, {"id": "s2", "filter": "price >= 2"})

    assert world.run(live, each) == {0: [], 1: [(1, "s1")], 2: [(2, "s2")], 3: [(3, "s2")]}


def test_ids_that_are_integers_stay_integers(world, live):
    live.add_many([(1, "make = 'ford'"), (2**40, "price > 0")])
    world.write((7, "ford", 1))
    assert world.run(live) == {0: [(7, 1), (7, 2**40)]}


def test_integers_that_come_to_an_empty_set_come_as_text(world, live):
    world.write((7, "ford", 1))
    world.write((8, "ford", 1))
    assert world.run(live, lambda *_: live.add(5, "price = 1")) == {0: [], 1: [(8, "5")]}


def test_all_tasks_of_a_batch_job_use_the_version_of_the_moment_it_was_made(spark, live):
    live.add("ford", "make = 'ford'")
    ads = spark.createDataFrame([(n, "ford", 1, "x") for n in range(4)], ADS).repartition(2)
    matches = ts.match(ads, live, event_id="id")
    live.change([("new", "price = 1")], ["ford"])
    assert {row.subscription for row in matches.collect()} == {"ford"}
    assert {row.subscription for row in ts.match(ads, live, event_id="id").collect()} == {"new"}


def test_a_folder_made_anew_under_an_old_name_is_not_taken_for_the_old_one(spark, tmp_path):
    ads = spark.createDataFrame([(1, "ford", 1, "x")], ADS)
    for name in ("old", "new"):
        live = td.Live(tmp_path / "live")
        live.add(name, "make = 'ford'")
        assert [row.subscription for row in ts.match(ads, live, event_id="id").collect()] == [name]
        assert [row.subscription for row in ts.match(ads, live.folder, event_id="id").collect()] == [name]
        shutil.rmtree(live.folder)


@pytest.mark.parametrize("shards", [1, 3])
def test_a_filter_that_the_columns_refuse_is_left_out_and_listed_and_the_others_count(spark, tmp_path, caplog, shards):
    live = td.Live(tmp_path / "live", shards=shards)
    live.add_many({f"s{n}": f"price < {n}" for n in range(1, 20)})
    live.add_many({"eve": "sold < 3", "mallory": "sold = 'yes' or price < 1"})
    ads = spark.createDataFrame([(1, 10, True), (2, 0, False)], "id int, price int, sold boolean")
    expected = [(1, f"s{n}") for n in range(11, 20)] + [(2, f"s{n}") for n in range(1, 20)]
    with caplog.at_level("WARNING", "tidings.spark"):
        assert pairs(ts.match(ads, live, event_id="id")) == sorted(expected)
    bad = ["eve", "mallory"]
    assert "2 subscriptions of" in caplog.text
    assert "`eve`: `sold` is bool in the DataFrame" in caplog.text
    assert ts.dead_letters(ads, live).count() == 0
    refusals = ts.refused(ads, live)
    assert [field.simpleString() for field in refusals.schema] == ["subscription:string", "reason:string"]
    assert sorted(row.subscription for row in refusals.collect()) == bad
    assert set(bad) <= set(live)  # the folder stays as it is
    live.change((), bad)
    assert ts.refused(ads, live).count() == 0


def test_a_filter_that_the_columns_refuse_does_not_stop_a_stream_that_runs(world):
    live = td.Live(world.folder / "live")
    live.add("any", "make = 'ford' or make = 'opel'")  # asks nothing of the price
    world.write((1, "ford", 5))
    world.write((2, "opel", 6))
    world.write((3, "ford", 7))

    def change(_, batch):
        if batch == 0:
            live.add("eve", "price = 'much'")
        if batch == 1:
            live.remove("eve")

    assert world.run(live, change) == {0: [(1, "any")], 1: [(2, "any")], 2: [(3, "any")]}


def test_refused_is_asked_of_a_live_alone(spark):
    ads = spark.createDataFrame([(1,)], "id int")
    with pytest.raises(td.TidingsError, match=r"takes a td\.Live, not `list`"):
        ts.refused(ads, [("s1", "a = 1")])
