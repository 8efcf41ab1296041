"""Events as runs take them: times of every kind, and the same answers by rows, by columns, and by kinds."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from tidings.errors import BadEvent
from tidings.model import EventBatch
from tidings.patterns.run.event_reader import fill_times
from tidings.patterns.run.event_times import EARLIEST, LATEST, NO_TIME, parse_moment, to_datetime

AB = "a = kind = 'a' and n > 1\nb = kind = 'b' or n = 0\na ; b"
NOON = datetime(2020, 1, 2, 12, tzinfo=UTC)
SAME = [NOON, NOON.replace(tzinfo=None), NOON.isoformat(), "2020-01-02T12:00:00Z", "2020-01-02 13:00:00+01:00"]
SAME += [NOON.timestamp(), int(NOON.timestamp()), np.int64(NOON.timestamp())]
SAME += [NOON.astimezone(timezone(timedelta(hours=5)))]


@pytest.mark.parametrize("time", SAME, ids=repr)
def test_a_time_is_told_in_many_ways(time):
    assert to_datetime(parse_moment(time)) == NOON


def test_a_date_is_its_first_moment():
    assert (
        to_datetime(parse_moment(date(2020, 1, 2)))
        == to_datetime(parse_moment("2020-01-02"))
        == NOON - timedelta(hours=12)
    )


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_come_back_to_the_microsecond(time):
    assert to_datetime(parse_moment(time)) == time


@pytest.mark.parametrize("time", [True, "noon", float("nan"), float("inf"), 10**12, -(10**12), 2**70, [1], Decimal(1)])
def test_other_things_are_no_times(time):
    with pytest.raises(BadEvent, match="an event's time is a datetime, ISO text or seconds since 1970"):
        parse_moment(time)


def test_the_ends_of_time_can_be_told():
    assert to_datetime(EARLIEST) == datetime.min.replace(tzinfo=UTC)
    assert to_datetime(LATEST) == datetime.max.replace(tzinfo=UTC, microsecond=0)


def detector_of(text=AB, **options):
    made = td.Detector(**options)
    made.add("p", text, mode="any")
    return made


COLUMNS = [
    pa.array([1, 2, 3], pa.timestamp("s")),
    pa.array([1000, 2000, 3000], pa.timestamp("ms", "Europe/Berlin")),
    pa.array([10**6, 2 * 10**6, 3 * 10**6], pa.timestamp("us", "UTC")),
    pa.array([10**9, 2 * 10**9, 3 * 10**9], pa.timestamp("ns")),
    pa.array([1, 2, 3], pa.int32()),
    pa.array([1, 2, 3], pa.uint64()),
    pa.array([1.0, 2.0, 3.0]),
    pa.array(["1970-01-01T00:00:01", "1970-01-01 00:00:02", "1970-01-01T00:00:03Z"]),
]


@pytest.mark.parametrize("times", COLUMNS, ids=lambda column: str(column.type))
def test_columns_of_times_are_read_alike(times):
    table = pa.table({"id": [7, 8, 9], "time": times, "kind": ["a", "z", "b"], "n": [2, 2, 2]})
    [detection] = detector_of().detect_many(table)
    assert (detection.events, detection.at) == ((7, 9), to_datetime(3_000_000))
    [row] = detector_of().detect_many(table.to_pylist())
    assert row == detection


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_columns_of_dates_are_read_as_their_first_moments(kind):
    times = pa.array([date(2020, 1, 1), date(2020, 1, 2)], kind)
    [detection] = detector_of().detect_many(pa.table({"id": [1, 2], "time": times, "kind": ["a", "b"], "n": [2, 2]}))
    assert detection.at == NOON - timedelta(hours=12)


@pytest.mark.parametrize("seconds", [10**12, 2**62, -(10**12)])
def test_numbers_that_are_no_seconds_are_no_times(seconds):
    table = pa.table({"id": [1, 2], "time": [seconds, seconds], "kind": ["a", "b"], "n": [2, 2]})
    for form in (table, table.to_pylist()):
        assert [detection.events for detection in detector_of().detect_many(form)] == [(1, 2)], "in the order they came"
        assert not len(detector_of(AB + " within 1 s").detect_many(form))


TIMES = [
    pa.array([0, None, 2], pa.timestamp("s")),
    pa.array([0, None, 2], pa.int64()),
    pa.array([0, 2**64 - 1, 2], pa.uint64()),
    pa.array([0.0, None, 2.0]),
    pa.array([0.0, float("nan"), 2.0]),
    pa.array(["1970-01-01", "some day", "1970-01-01T00:00:02"]),
    pa.array([None, None, None], pa.null()),
    pa.array([0, 2**62, 2], pa.timestamp("s")),
    pa.array([{"at": 0}, {"at": None}, {"at": 2}]),
]


@pytest.mark.parametrize("times", TIMES, ids=lambda column: str(column.type))
def test_times_that_are_missing_or_cannot_be_read_are_the_same_by_columns_and_by_rows(times):
    name = "time.at" if pa.types.is_struct(times.type) else "time"
    table = pa.table({"time": times, "kind": ["a", "a", "b"], "n": [2, 2, 2]})
    detector = detector_of(time=name)
    reader = detector.compile().reader
    by_columns, _ = reader.read(table, detector.run.value_numbers, 0)
    by_rows, _ = reader.read(EventBatch.from_arrow(table).__iter__(), detector.run.value_numbers, 0, collect=True)
    kept = [place for place, time in enumerate(by_columns.times) if place != 1 or len(by_rows) == 3]
    assert by_columns.times[kept].tolist() == by_rows.times.tolist()
    assert by_columns.times[1] == NO_TIME


def test_the_latest_before_is_the_time_of_an_event_without_one():
    detector = detector_of()
    prepared, _ = detector.compile().reader.read(
        [{"time": 5}, {}, {"time": 3}, {}, {"time": 8}, {}], detector.run.value_numbers, 0
    )
    assert prepared.times[1] == NO_TIME
    assert (fill_times(prepared, 0).times // 10**6).tolist() == [5, 5, 3, 5, 8, 8]
    assert (fill_times(prepared, 7 * 10**6).times // 10**6).tolist() == [5, 7, 3, 7, 8, 8]


IDS = [pa.array([5, None, 7]), pa.array(["x", None, "z"]), pa.array(["x", "y", "z"]).dictionary_encode()]
IDS += [pa.array([None, None, None], pa.int64()), pa.array([1.5, 2.5, 3.5])]


@pytest.mark.parametrize("ids", IDS, ids=repr)
def test_ids_are_the_same_by_columns_and_by_rows(ids):
    table = pa.table({"id": ids, "time": [0, 1, 2], "kind": ["a", "b", "b"], "n": [2, 2, 2]})
    assert list(detector_of().detect_many(table)) == list(detector_of().detect_many(table.to_pylist()))


KEEPS = [["n"], ["nowhere"], ["nowhere", "n"], ["who.name"], ["who.age", "kind"], ["time", "id"]]


@pytest.mark.parametrize("keep", KEEPS, ids=repr)
def test_kept_fields_are_the_same_by_columns_and_by_rows(keep):
    who = [{"name": "x", "age": 1}, {"name": None, "age": 2}]
    time = pa.array([0, 1], pa.timestamp("s", "UTC"))
    table = pa.table({"id": [0, 1], "time": time, "kind": ["a", "b"], "n": [2, 2], "who": who})
    by_columns, by_rows = (detector_of(keep=keep).detect_many(form) for form in (table, table.to_pylist()))
    assert [by_column.fields for by_column in by_columns] == [by_row.fields for by_row in by_rows]
    [first] = by_rows
    assert [set(row) for row in first.fields] == [set(keep)] * 2
    assert by_columns.to_arrow()["fields"].to_pylist() == by_rows.to_arrow()["fields"].to_pylist()


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([0, 1, 2, None])), max_size=4), st.booleans()
)
def test_few_kinds_are_asked_once_and_answer_for_all(kinds, coded):
    rows = [{"id": n, "time": n, "kind": kind, "n": number} for n, (kind, number) in enumerate(kinds * 80)]
    table = pa.Table.from_pylist(
        rows, pa.schema([("id", pa.int64()), ("time", pa.int64()), ("kind", pa.string()), ("n", pa.int64())])
    )
    if coded:
        table = table.set_column(2, "kind", table["kind"].dictionary_encode())
    detector = detector_of()
    reader = detector.compile().reader
    by_columns, by_rows = (reader.read(form, detector.run.value_numbers, 0)[0] for form in (table, rows))
    assert np.array_equal(by_columns.symbols_at, by_rows.symbols_at)
    for low, high in zip(by_rows.symbols_at, by_rows.symbols_at[1:], strict=False):
        assert sorted(by_columns.symbols[low:high]) == sorted(by_rows.symbols[low:high])


def test_events_batches_and_tables_are_all_taken():
    rows = [
        td.Event(id="x", time=NOON, values={"kind": "a", "n": 2}),
        td.Event(id="y", time=NOON, values={"kind": "b"}),
    ]
    assert [detection.events for detection in detector_of().detect_many(rows)] == [("x", "y")]
    batch = pa.record_batch({"id": ["x", "y"], "time": [0, 0], "kind": ["a", "b"], "n": [2, 2]})
    for form in (batch, td.EventBatch.of(batch), td.EventBatch.of(rows)):
        assert [detection.events for detection in detector_of().detect_many(form)] == [("x", "y")]
    assert len(detector_of().detect_many(batch.slice(0, 0))) == 0


@pytest.mark.parametrize("kind", ["table", "rows"])
@pytest.mark.parametrize("timed", [False, True])
@given(ends=st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted))
def test_a_slice_has_the_events_that_are_selected_by_their_indexes(kind, timed, ends):
    detector = td.Detector(keep=["kind"])
    detector.add("twice", "a = kind = 'a' and u = $x\nb = n < 5 and u = $x\na ; b")
    rows = [{"id": n, "time": n, "kind": "ab"[n % 2], "n": n, "u": f"u{n % 3}"} for n in range(9)]
    events = pa.Table.from_pylist(rows) if kind == "table" else rows
    encoded, _ = detector.compile().reader.read(events, detector.run.value_numbers, 0)
    encoded = replace(encoded, timed=np.arange(9) % 2 == 0) if timed else encoded
    part, chosen = encoded.slice(*ends), encoded.select(np.arange(*ends))
    assert list_columns(part) == list_columns(chosen)


def list_columns(events):
    records = events.records.to_lists()
    timed = None if events.timed is None else events.timed.tolist()
    values = {name: column.tolist() for name, column in events.values.items()}
    offsets, symbols = events.symbols_at.tolist(), events.symbols.tolist()
    return events.times.tolist(), records.ids, records.fields, offsets, symbols, values, timed
