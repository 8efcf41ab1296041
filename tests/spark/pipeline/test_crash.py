"""Processes killed in mid-batch, and what the next ones make of it: the same rows, none missing, none twice."""

import json
import os
import signal

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.spark.pipeline.crashing import QUICK, CrashFolder, Driver

pytestmark = pytest.mark.slow

BATCHES = 7

FILES = """
checkpoint = "state"
master = "local[2,4]"
trigger = "as soon as possible"
[source]
kind = "json"
path = "ads"
columns = "id BIGINT, make STRING, price DOUBLE, posted TIMESTAMP"
id = "id"
time = "posted"
[source.options]
maxFilesPerTrigger = 1
[subscriptions]
directory = "searches"
[late]
after = "1 hour"
[matching]
keep = ["price"]
[[sink]]
kind = "python"
function = "HOOKS:before"
[[sink]]
kind = "json"
path = "matches"
[[sink]]
kind = "python"
function = "HOOKS:after"
"""


def ads(batch):
    """Return the lines of a batch: good events, one that is late from the second batch on, and two that are bad."""
    rows = [
        {"id": 100 * batch + n, "make": "ford", "price": n, "posted": f"2024-07-01T{batch:02}:{n:02}:00Z"}
        for n in range(40)
    ]
    rows.append({"id": 100 * batch + 90, "make": "ford", "price": 1, "posted": "2024-06-30T00:00:00Z"})
    return [*map(json.dumps, rows), "no JSON", json.dumps({"id": 100 * batch + 91, "price": "dear"})]


def world_of(folder):
    """Make a pipeline whose subscriptions are others in every batch, so that rows show which version a batch used."""
    world = CrashFolder(folder, FILES)
    world.events(map(ads, range(BATCHES)))
    world.change("001", ("cheap", "price < 5"), ("ford", "make = 'ford' and price > 37"))
    for batch in range(BATCHES):
        world.change(batch, (f"new in {batch + 1}", "price < 20"), (f"new in {batch}", None))
    return world


def kill_while_writing(world, batch):
    """Start a driver and kill it when something of the batch lies beside the others, or has just come to lie there."""
    with Driver(world) as driver:
        driver.until(lambda: batch in world.claims())
        driver.until(lambda: world.half_written() or batch in world.batches())
        driver.kill()
        assert world.batches()[:batch] == [*range(batch)]


@pytest.mark.parametrize(
    "killed_while_writing", [False, pytest.param(True, marks=pytest.mark.sweep)], ids=["held", "held or writing"]
)
def test_a_pipeline_killed_at_any_moment_ends_with_the_rows_of_one_that_was_not(spark, tmp_path, killed_while_writing):
    whole, world = world_of(tmp_path / "whole"), world_of(tmp_path / "killed")
    whole.run_here()
    assert whole.batches() == [*range(BATCHES)]
    reuse = {"spark.python.worker.reuse": "false"}  # a worker that is there is at work

    # A worker is killed at work in batch 1, and its task tried again. The driver is killed when batch 2 has claimed its
    # version, and nothing of it is written; its subscriptions have changed since.
    world.settings(**QUICK, **reuse)
    world.hold("after", 0)
    world.hold("before", 2)
    with Driver(world) as driver:
        driver.until_held("after", 0)
        before = set(driver.workers())
        world.go_on("after", 0)
        driver.until(lambda: 1 in world.claims() and set(driver.workers()) - before)
        os.kill(max(set(driver.workers()) - before), signal.SIGKILL)
        driver.until_held("before", 2)
        assert "exited unexpectedly" in world.log()
        driver.kill()
        claimed = world.claims()
        assert world.batches() == [0, 1]
        world.go_on("before", 2)
        world.settings(**QUICK)

        # The next one begins while what the first has started may still be ending.
        if killed_while_writing:
            kill_while_writing(world, 3)

        # Killed when the rows of batch 4 are in place, its dead letters are not, and Spark does not know.
        world.hold("after", 4)
        with Driver(world) as driver:
            driver.until_held("after", 4)
            driver.kill()
            assert world.batches() == [0, 1, 2, 3, 4]
            assert 4 not in world.batches("state/dead_letters")
            world.go_on("after", 4)
    assert world.claims()[2] == claimed[2]

    # Ctrl-C in the midst of batch 5, as a terminal sends it: to all that was started.
    world.hold("before", 5)
    with Driver(world) as driver:
        driver.until_held("before", 5)
        os.killpg(driver.process.pid, signal.SIGINT)
        driver.until(lambda: "stopping after this batch" in driver.words())
        assert 5 not in world.batches()
        world.go_on("before", 5)
        assert driver.wait_for_end() == 0, driver.words()
    assert world.batches() == [0, 1, 2, 3, 4, 5]
    assert max(world.claims()) == 5
    assert not world.half_written()

    world.settings()
    assert world.run_here().batches == 1
    assert world.rows("matches") == whole.rows("matches")
    assert world.rows("state/dead_letters") == whole.rows("state/dead_letters")
    assert world.claims() == whole.claims()
    assert not world.half_written()


# Kafka ---------------------------------------------------------------------------------------------

KAFKA = """
checkpoint = "state"
master = "local[2,4]"
trigger = "as soon as possible"
[source]
kind = "kafka"
servers = "SERVERS"
topic = "ADS"
columns = "price DOUBLE"
id = "kafka.key"
[source.options]
startingOffsets = "earliest"
maxOffsetsPerTrigger = 20
[derived]
place = "concat(kafka.partition, ':', kafka.offset)"
[subscriptions]
directory = "searches"
[matching]
keep = ["place"]
[[sink]]
kind = "python"
function = "HOOKS:before"
[[sink]]
kind = "kafka"
servers = "SERVERS"
topic = "MATCHES"
[[sink]]
kind = "python"
function = "HOOKS:after"
"""


def kafka_world(folder, kafka, ads):
    matches = kafka.topic("matches", compacted=True)
    replacements = {"SERVERS": kafka.servers, "ADS": ads, "MATCHES": matches}
    toml = KAFKA
    for name, value in replacements.items():
        toml = toml.replace(name, value)
    world = CrashFolder(folder, toml)
    world.change("001", ("all", "price >= 0"))
    for batch in range(3):
        world.change(batch, (f"new in {batch + 1}", "price < 20"), (f"new in {batch}", None))
    return world, matches


def test_a_topic_has_the_same_keys_after_a_driver_was_killed_and_no_offset_is_skipped(spark, kafka, tmp_path):
    ads = kafka.topic("ads", partitions=2)
    records = [{"key": f"e{n}", "value": json.dumps({"price": n}), "partition": n % 2} for n in range(60)]
    kafka.produce(ads, *records)
    whole, wanted = kafka_world(tmp_path / "whole_kafka", kafka, ads)
    whole.run_here()
    world, matches = kafka_world(tmp_path / "killed_kafka", kafka, ads)
    world.settings(**QUICK)

    # Killed when the records of batch 1 are with the broker, and Spark does not know.
    world.hold("after", 1)
    with Driver(world) as driver:
        driver.until_held("after", 1)
        driver.kill()
        world.go_on("after", 1)
    # SIGTERM in the midst of batch 2: it is done, and then all is.
    world.hold("before", 2)
    with Driver(world) as driver:
        driver.until_held("before", 2)
        driver.process.send_signal(signal.SIGTERM)
        driver.until(lambda: "stopping after this batch" in driver.words())
        world.go_on("before", 2)
        assert driver.wait_for_end() == 0, driver.words()

    arrived, expected = kafka.records(matches), kafka.records(wanted)
    assert {(record.key, record.value) for record in arrived} == {(record.key, record.value) for record in expected}
    assert len({record.key for record in expected}) == len(expected)
    assert len(arrived) > len(expected)  # batch 1 was sent twice
    places = {
        json.loads(record.value)["place"] for record in arrived if json.loads(record.value)["subscription"] == "all"
    }
    assert places == {f"{part}:{offset}" for part in range(2) for offset in range(30)}
    assert world.claims() == whole.claims()
