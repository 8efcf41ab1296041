"""Subscriptions that change while a pipeline runs: every feed, good changes and bad ones, each batch's version."""

import json
import uuid

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from pyspark.sql import Row
from tests.spark.pipeline.piping import filters, jsonl

import tidings as td
from tidings.spark.pipeline.config.value_kinds import Trigger
from tidings.spark.pipeline.run.spark_feeds import TopicFeed

FIRST = {"a": "price < 10", "gone": "price >= 0", "same": "price = 5"}
THEN = {"a": "price > 100", "same": "price = 5", "new": "price >= 0"}
BAD = {"bad": "price <<"}


class File:
    refuses = True

    def __init__(self, pipe, _):
        self.path = pipe.folder / "all.jsonl"
        self.toml = 'file = "all.jsonl"'

    def write(self, subscriptions):
        self.path.with_suffix(".new").write_text(jsonl(filters(subscriptions)))
        self.path.with_suffix(".new").replace(self.path)

    def change(self):
        self.write({**THEN, **BAD})


class Directory:
    refuses = True
    toml = 'directory = "searches"'

    def __init__(self, pipe, _):
        self.pipe = pipe

    def write(self, subscriptions):
        self.pipe.searches("1", **subscriptions)

    def change(self):
        self.pipe.searches("2", **{**THEN, **BAD, "gone": None})


class Table(File):
    def __init__(self, pipe, spark):
        self.spark, self.path = spark, pipe.folder / "subs.parquet"
        self.toml = f'table = "parquet.`{self.path}`"'

    def write(self, subscriptions):
        self.frame(subscriptions).write.mode("overwrite").parquet(str(self.path))

    def frame(self, subscriptions):
        return self.spark.createDataFrame(list(subscriptions.items()), "id STRING, filter STRING")


class View(Table):
    def __init__(self, _, spark):
        self.spark, self.name = spark, f"subs_{uuid.uuid4().hex}"
        self.toml = f'table = "{self.name}"\nshards = 2'

    def write(self, subscriptions):
        self.frame(subscriptions).createOrReplaceTempView(self.name)


class Snapshot(File):
    refuses = False

    def __init__(self, pipe, _):
        self.path = pipe.folder / "snapshot"
        self.toml = 'snapshot = "snapshot"'

    def write(self, subscriptions):
        matcher = td.Matcher(schema=td.Schema({"price": "number"}))
        matcher.add_many(subscriptions.items())
        matcher.save(self.path)

    def change(self):
        self.write(THEN)


class Live(Snapshot):
    def write(self, subscriptions):
        td.Live(self.path, schema=td.Schema({"price": "number"})).add_many(subscriptions.items())

    def change(self):
        td.Live(self.path).change(THEN.items(), ["gone"])


@pytest.mark.parametrize("feed", [File, Directory, Table, View, Snapshot, Live])
def test_a_change_is_in_force_in_the_next_batch_and_a_bad_one_is_refused_alone(pipe, spark, feed):
    feed = feed(pipe, spark)
    feed.write(FIRST)
    for id in (1, 2):
        pipe.events({"id": id, "price": 5})
    pipe.during(0, feed.change)
    outcome = pipe.toml(subscriptions=feed.toml).run()
    assert pipe.matches() == [(0, 1, "a"), (0, 1, "gone"), (0, 1, "same"), (1, 2, "new"), (1, 2, "same")]
    assert (outcome.batches, outcome.events, outcome.matches, outcome.stopped) == (2, 2, 5, False)
    assert [report["version"] for report in pipe.reports] == [pipe.claims()[batch]["version"] for batch in (0, 1)]
    assert pipe.reports[0]["version"] < pipe.reports[1]["version"]
    assert [report["subscriptions"] for report in pipe.reports] == [3, 3]
    if feed.refuses:
        assert [(refusal["id"], refusal["batch"]) for refusal in pipe.read_refused()] == [("bad", 1)]
        assert any("`bad` refused" in text for text in pipe.warnings)
        assert [report["refused_subscriptions"] for report in pipe.reports] == [0, 1]

    pipe.events({"id": 3, "price": 101})  # the next run goes on with what is there
    pipe.run()
    assert pipe.matches()[5:] == [(2, 3, "a"), (2, 3, "new")]
    assert pipe.reports[0]["version"] == pipe.claims()[1]["version"]


def test_a_topic_of_subscriptions_is_followed(pipe, spark, kafka):
    topic = kafka.topic("subs", partitions=2)  # not compacted: such a one takes no record without a key
    records = [*FIRST.items(), ("tree", json.dumps({"filter": "price_from=100", "notation": "url"}))]
    kafka.produce(topic, *[{"key": id, "value": text, "partition": 0} for id, text in records])

    def change():
        records = [("a", THEN["a"]), ("new", json.dumps({"filter": "price >= 0"})), ("gone", None), *BAD.items()]
        kafka.produce(topic, *[{"key": id, "value": text, "partition": 0} for id, text in records])
        kafka.produce(topic, {"key": None, "value": "price > 0", "partition": 0})
        kafka.produce(topic, {"key": "other", "value": "price > 4", "partition": 1})  # empty until now

    for id in (1, 2):
        pipe.events({"id": id, "price": 5})
    pipe.during(0, change)
    pipe.toml(subscriptions=f'topic = "{topic}"\nservers = "{kafka.servers}"').run()
    assert pipe.matches()[:3] == [(0, 1, "a"), (0, 1, "gone"), (0, 1, "same")]
    assert pipe.matches()[3:] == [(1, 2, "new"), (1, 2, "other"), (1, 2, "same")]
    assert sorted(str(refusal["id"]) for refusal in pipe.read_refused()) == ["None", "bad"]
    assert any(
        "there is no key" in refusal["reason"] and "partition 0" in refusal["reason"] for refusal in pipe.read_refused()
    )

    kafka.produce(topic, ("new", None))
    pipe.events({"id": 3, "price": 5})
    pipe.run()
    assert pipe.matches()[6:] == [(2, 3, "other"), (2, 3, "same")]


def test_a_refused_change_leaves_the_one_before_it_in_force_however_many_files_a_batch_sees(pipe):
    pipe.searches("1", gone="price >= 0", edited="price >= 0")
    for id in (1, 2):
        pipe.events({"id": id, "price": 5})

    def change():
        pipe.searches("2", gone=None, edited="price < 0")
        pipe.searches("3", gone="price <<", edited="price <<")

    pipe.during(0, change)
    pipe.toml(subscriptions='directory = "searches"').run()
    assert pipe.matches() == [(0, 1, "edited"), (0, 1, "gone")]
    assert [refusal["id"] for refusal in pipe.read_refused()] == ["gone", "edited"]


def test_a_filter_of_somebody_else_that_the_columns_refuse_is_left_out_and_listed_once(pipe):
    live = td.Live(pipe.folder / "live")
    live.add_many({"all": "id >= 0", "eve": "price = 'much'"})
    for id in (1, 2, 3):
        pipe.events({"id": id, "price": 5})
    pipe.during(0, lambda: live.add("mallory", "price starts with 'x'"))
    pipe.during(1, lambda: live.change([("cheap", "id < 9")], ["eve"]))
    outcome = pipe.toml(subscriptions='snapshot = "live"').run()
    assert pipe.matches() == [(0, 1, "all"), (1, 2, "all"), (2, 3, "all"), (2, 3, "cheap")]
    assert outcome.dead_letters == 0
    assert [(refusal["id"], refusal["batch"]) for refusal in pipe.read_refused()] == [("eve", 0), ("mallory", 1)]
    assert [report["refused_subscriptions"] for report in pipe.reports] == [1, 1, 0]


def test_a_topic_tells_every_record_in_order(monkeypatch, tmp_path):
    records = [
        ("s1", "a = 1"),
        ("s2", "a = 1"),
        ("s1", None),
        ("s2", "a = 2"),
        ("s1", "a ="),
        (None, "a"),
        ("s2", "a ="),
    ]
    rows = [Row(key=key, value=value, partition=0, offset=at) for at, (key, value) in enumerate(records)]
    monkeypatch.setattr(
        TopicFeed, "read_records", lambda _, offsets: [row for row in rows if row.offset >= offsets.get("0", 0)]
    )
    live = td.Live(tmp_path / "live", follow=TopicFeed(None, "subs", "nowhere"))
    change = live.sync()
    assert [id for id, _ in change.refused] == ["s1", None, "s2"]
    assert {id: td.render(live.open()[id]) for id in live} == {"s2": "a = 2"}
    assert live.version.position == {"offsets": {"0": 7}}


def test_a_feed_that_cannot_be_read_for_a_while_leaves_what_was_read_in_force(pipe, spark):
    feed = Table(pipe, spark)
    feed.write(FIRST)
    for id in (1, 2, 3):
        pipe.events({"id": id, "price": 50})
    pipe.during(0, lambda: feed.path.rename(feed.path.with_suffix(".away")))
    pipe.during(1, lambda: feed.write(THEN))
    pipe.toml(subscriptions=feed.toml).run()
    assert pipe.matches() == [(0, 1, "gone"), (1, 2, "gone"), (2, 3, "new")]
    assert any("stays in force" in text for text in pipe.warnings)


def test_a_table_that_a_crash_left_half_compiled_is_compiled_again(pipe, spark):
    feed = Table(pipe, spark)
    feed.write(FIRST)
    pipe.events({"id": 1, "price": 5})
    pipe.toml(subscriptions=feed.toml).run(trigger=Trigger(available_now=True))
    (folder,) = (pipe.folder / "state" / "subscriptions").iterdir()
    for version in (folder / "versions").iterdir():
        version.unlink()
    pipe.events({"id": 2, "price": 5})
    pipe.run()
    assert pipe.matches()[3:] == [(1, 2, "a"), (1, 2, "gone"), (1, 2, "same")]


def test_a_table_with_a_bad_row_starts_with_the_good_ones(pipe, spark):
    feed = Table(pipe, spark)
    feed.frame({**FIRST, **BAD, "none": None}).write.parquet(str(feed.path))
    pipe.events({"id": 1, "price": 50})
    pipe.toml(subscriptions=feed.toml).run()
    assert pipe.matches() == [(0, 1, "gone")]
    assert sorted(refusal["id"] for refusal in pipe.read_refused()) == ["bad", "none"]


def test_another_folder_of_changes_or_number_of_shards_is_read_from_its_beginning(pipe):
    pipe.searches("1", old="price > 0")
    pipe.events({"id": 1, "price": 5})
    pipe.toml().run()
    (pipe.folder / "others").mkdir()
    (pipe.folder / "others" / "1.jsonl").write_text(jsonl(filters({"new": "price > 0"})))
    pipe.events({"id": 2, "price": 5})
    pipe.toml(subscriptions='directory = "others"').run()
    pipe.events({"id": 3, "price": 5})
    pipe.toml(subscriptions='directory = "others"\nshards = 2').run()
    assert pipe.matches() == [(0, 1, "old"), (1, 2, "new"), (2, 3, "new")]


def test_a_thousand_changes_on_top_of_many_are_reported_and_in_force(pipe):
    pipe.searches("1", **{f"s{n}": f"price = {n}" for n in range(20_000)})
    changes = {f"s{n}": "price = -1" for n in range(600)} | {f"s{n}": None for n in range(600, 1000)}
    for id in (1, 2):
        pipe.events({"id": id, "price": 700}, {"id": 10 * id, "price": -1})
    pipe.during(0, lambda: pipe.searches("2", **changes))
    pipe.toml().run()
    assert pipe.matches()[0] == (0, 1, "s700")
    assert len(pipe.matches()) == 1 + 600
    assert [report["changes"] for report in pipe.reports] == [20_000, 1000]
    assert [report["subscriptions"] for report in pipe.reports] == [20_000, 19_600]
