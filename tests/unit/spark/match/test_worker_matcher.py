"""What workers do with Arrow batches, without a Spark."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import tidings as td
from tidings.bench.workloads import NOW
from tidings.matcher.live.sharded_store import compute_shard
from tidings.model import DeadLetter
from tidings.spark.match.worker_matcher import (
    Answer,
    MatchStep,
    StepColumns,
    TaggedRows,
    WorkerTuning,
    build_letters,
    build_lists,
    build_pairs,
)
from tidings.spark.subscriptions.worker_store import PackedStore, VersionStore

ROWS = pa.RecordBatch.from_pydict({"event": [10, 11, 12], "tags": [["a"], None, []]})


def build_answer(index, ids, dead=()):
    return Answer(ROWS, ROWS, np.array(index, dtype=np.int64), pa.array(ids, pa.int64()), tuple(dead))


def columns(batches):
    """Return the columns of all batches."""
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    return [column.to_pylist() for column in pa.concat_tables(tables).columns] if tables else None


def test_pairs_take_a_row_for_each_match():
    assert columns(build_pairs(build_answer([2, 0, 2], [7, 8, 9]), pa.int64())) == [
        [12, 10, 12],
        [[], ["a"], []],
        [7, 8, 9],
    ]


def test_ids_come_back_in_the_type_that_was_promised():
    assert columns(build_pairs(build_answer([2], [7]), pa.string())) == [[12], [[]], ["7"]]


def test_lists_leave_out_events_without_a_match():
    assert columns(build_lists(build_answer([2, 0, 2], [7, 8, 9]), pa.int64())) == [
        [10, 12],
        [["a"], []],
        [[8], [7, 9]],
    ]


@pytest.mark.parametrize("build", [build_pairs, build_lists, build_letters, TaggedRows(build_pairs)])
def test_nothing_found_is_no_batch(build):
    assert columns(build(build_answer([], []), pa.string())) is None


def test_letters_carry_the_reason():
    assert columns(build_letters(build_answer([], [], [DeadLetter(1, "because")]), pa.string())) == [
        [11],
        [None],
        ["because"],
    ]


def test_matches_and_letters_come_in_one_pass():
    made = columns(TaggedRows(build_pairs)(build_answer([0], [7], [DeadLetter(1, "because")]), pa.int64()))
    assert made[:3] == [[10, 11], [["a"], None], [7, None]]
    assert made[3:5] == [[None, "because"], [None, '{"event": 11, "tags": null}']]
    assert made[5:] == [[None, None], [None, None], [None, None]]


def test_a_tally_counts_the_events_of_a_batch_and_finds_the_newest():
    moments = [datetime(2024, 5, day, tzinfo=UTC) for day in (2, 9, 1)]
    rows = pa.RecordBatch.from_pydict({"posted": pa.array(moments, pa.timestamp("us", "UTC"))})
    answer = Answer(rows, rows, np.zeros(0, np.int64), pa.array([], pa.int64()), (), is_tally=True)
    assert columns(TaggedRows(build_pairs, time="posted")(answer, pa.int64()))[-3:] == [[3], [moments[1]], [None]]


def test_values_that_filters_could_not_read_come_in_a_row_of_their_own():
    answer = build_answer([], [])
    counted = replace(answer, mismatches='[0, [["model", "number", "", true, 5, {"text": 3}]]]')
    made = columns(TaggedRows(build_pairs)(counted, pa.int64()))
    assert made[-1] == [counted.mismatches]
    assert all(column == [None] for column in made[:-1])


def test_what_comes_out_is_cut_into_chunks():
    answer = replace(build_answer([0, 0, 0, 1, 2], [1, 2, 3, 4, 5]), chunk=2)
    assert [batch.num_rows for batch in build_pairs(answer, pa.int64())] == [2, 2, 1]
    assert [batch.num_rows for batch in build_lists(answer, pa.int64())] == [1, 2]
    assert columns(build_lists(answer, pa.int64()))[2] == [[1, 2, 3], [4], [5]]


def searches(*filters):
    matcher = td.Matcher()
    matcher.add_many(enumerate(filters))
    return matcher


def test_now_is_read_from_its_column():
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    batch = pa.RecordBatch.from_pydict({"posted": [datetime(2024, 4, 30, tzinfo=UTC)] * 3000, "now": [moment] * 3000})
    step = MatchStep(
        PackedStore.of(searches("age(posted) < 2 days")), build_pairs, StepColumns((0,), ("posted",), (), 1), pa.int64()
    )
    assert sum(part.num_rows for part in step(iter([batch]))) == 3000


def test_rows_that_the_source_refused_are_letters_and_are_not_matched():
    batch = pa.RecordBatch.from_pydict({"a": [1, None, 1], "why": [None, "not JSON", None]})
    step = MatchStep(
        PackedStore.of(searches("a = 1")),
        TaggedRows(build_pairs),
        StepColumns((0,), ("a",), (0,), datetime.now(UTC), refused=1),
        pa.int64(),
    )
    made = columns(step(iter([batch])))
    assert made[1:3] == [[None, None, 0, 0], ["not JSON", None, None, None]]
    assert made[4] == [None, 3, None, None]


def test_an_event_that_too_many_want_is_reported_with_the_number():
    wide = searches(*["a > 0"] * 5, "a = 2")
    batch = pa.RecordBatch.from_pydict({"a": [1, 2, 0]})
    step = MatchStep(
        PackedStore.of(wide),
        TaggedRows(build_pairs),
        StepColumns((0,), ("a",), (0,), datetime.now(UTC)),
        pa.int64(),
        limit=5,
    )
    made = columns(step(iter([batch])))
    rows = [row for row in zip(*made, strict=True) if row[4] is None]
    assert [row[0] for row in rows] == [1] * 5 + [2]
    assert rows[-1][2:4] == ("6 subscriptions match, more than the limit of 5", '{"a": 2}')


def test_copies_for_several_shards_go_to_their_shards(tmp_path):
    live = td.Live(tmp_path / "s", shards=3)
    live.add_many([(n, "a = 1") for n in range(30)])
    batch = pa.RecordBatch.from_pydict({"a": [1] * 5, "shard": [0, 1, 2, 0, 1]})
    step = MatchStep(
        VersionStore.of(str(tmp_path / "s")),
        build_pairs,
        StepColumns((0,), ("a",), (1,), datetime.now(UTC), shard=1),
        pa.int64(),
    )
    shard, ids = columns(step(iter([batch])))
    assert {(s, n) for s, n in zip(shard, ids, strict=True)} == {(compute_shard(n, 3), n) for n in range(30)}


def test_however_events_are_cut_for_their_matches_the_answers_are_the_same():
    matcher = td.Matcher()
    matcher.add_many([(n, f"price < {n}") for n in range(20)])
    prices = [str(n % 23) if n % 7 else "dear" for n in range(90)]
    batch = pa.record_batch({"id": list(range(90)), "price": prices})

    def list_answers(build, tuning=None):
        columns = StepColumns(read=(1,), names=("price",), kept=(0,), now=NOW)
        sizes = tuning or WorkerTuning()
        step = MatchStep(PackedStore.of(matcher), build, columns, pa.int64(), limit=15, tuning=sizes)
        return sorted(str(row) for out in step(iter([batch, batch])) for row in out.to_pylist())

    whole = [list_answers(build) for build in (build_pairs, build_lists, build_letters)]
    small = WorkerTuning(first_events=3, pairs=10)
    assert [list_answers(build, small) for build in (build_pairs, build_lists, build_letters)] == whole
    assert all(whole)


CROWD = """
import resource, sys
import pyarrow as pa, tidings as td
from tidings.spark.match.worker_matcher import MatchStep, StepColumns, build_lists
from tidings.spark.subscriptions.worker_store import SnapshotStore
from tidings.testing.workloads import NOW
matcher = td.Matcher()
matcher.add_many([(f"subscription-{n:08}", f"price < {10_000 + n}") for n in range(20_000)])
matcher.save(sys.argv[1])
batch = pa.record_batch({"id": list(range(1000)), "price": [1] * 1000})
columns = StepColumns(read=(1,), names=("price",), kept=(0,), now=NOW)
step = MatchStep(SnapshotStore.of(sys.argv[1]), build_lists, columns, pa.string())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
total = sum(len(out.column(1).values) for out in step(iter([batch])))
print(total, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told in other units")
def test_what_a_worker_holds_is_bounded_when_every_event_matches_everything(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", CROWD, str(tmp_path / "s")], capture_output=True, text=True, check=True, timeout=300
    )
    total, megabytes = map(int, ran.stdout.split())
    assert total == 20_000_000
    assert megabytes < 900  # 20 million pairs at once would be twice that
