import pickle
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

import tidings as td
from tidings.model import DeadLetter, Matches
from tidings.spark import codec
from tidings.spark.codec import Shipment, Step, letters, lists, pairs

ROWS = pa.RecordBatch.from_pydict({"event": [10, 11, 12], "tags": [["a"], None, []]})


def found(index, ids, dead=()):
    return Matches(np.array(index, dtype=np.int64), ids, 3, tuple(dead))


def columns(batch):
    return [column.to_pylist() for column in batch.columns]


def test_pairs_take_a_row_for_each_match():
    made = pairs(ROWS, found([2, 0, 2], ["x", "y", "z"]), pa.string())
    assert columns(made) == [[12, 10, 12], [[], ["a"], []], ["x", "y", "z"]]


def test_lists_leave_out_events_without_a_match():
    made = lists(ROWS, found([2, 0, 2], [7, 8, 9]), pa.int64())
    assert columns(made) == [[10, 12], [["a"], []], [[8], [7, 9]]]


@pytest.mark.parametrize("build", [pairs, lists, letters])
def test_nothing_found_is_an_empty_batch_of_the_same_columns(build):
    made = build(ROWS, found([], []), pa.string())
    assert columns(made) == [[], [], []]
    assert made.schema.types[:2] == ROWS.schema.types


def test_letters_carry_the_reason():
    made = letters(ROWS, found([], [], [DeadLetter(1, "because")]), pa.string())
    assert columns(made) == [[11], [None], ["because"]]


def searches(*filters):
    matcher = td.Matcher()
    matcher.add_many(enumerate(filters))
    return matcher


def test_a_worker_unpacks_a_matcher_once():
    shipment = Shipment.of(searches("a = 1"))
    again = pickle.loads(pickle.dumps(shipment))
    assert shipment.open() is again.open()


def test_a_shipment_does_not_follow_later_changes():
    matcher = searches("a = 1")
    shipment = Shipment.of(matcher)
    matcher.remove(0)
    assert list(shipment.open()) == [0]


def test_a_worker_keeps_a_few_matchers_and_forgets_the_longest_unused(monkeypatch):
    monkeypatch.setattr(codec, "_open", type(codec._open)())
    shipments = [Shipment.of(searches(f"a = {n}")) for n in range(codec.KEPT + 1)]
    opened = [shipment.open() for shipment in shipments]
    assert shipments[1].open() is opened[1]
    assert shipments[0].open() is not opened[0]


def test_now_is_read_from_its_column():
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    batch = pa.RecordBatch.from_pydict({"posted": [datetime(2024, 4, 30, tzinfo=UTC)] * 3000, "now": [moment] * 3000})
    step = Step(Shipment.of(searches("age(posted) < 2 days")), pairs, (0,), ("posted",), (), pa.int64(), 1)
    assert sum(part.num_rows for part in step(iter([batch]))) == 3000
    assert all(part.num_rows <= codec.SLICE for part in step(iter([batch])))
