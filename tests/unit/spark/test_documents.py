"""Documents in Spark's workers: their columns, and what filters see of them."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.matcher.loading.test_documents import BROKEN, TABLES, TEXTS

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.matcher.loading.documents import BadDocument, find_value, parse_document, to_id, to_moment
from tidings.spark.documents import DecodeStep, DocumentFields, build_events

NAMED = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["a", 7, 1.5, None, True, [1]]),
        "ce": st.sampled_from([{"id": "c"}, {"id": 2, "time": 1700000000}, None]),
        "time": st.sampled_from(["2024-07-01T12:00:00Z", "soon", 1700000000, None]),
        "data_base64": st.just("AA=="),
    },
).map(json.dumps)
LINES = st.lists((TABLES | BROKEN | TEXTS | NAMED).map(str.encode) | st.just(b"\xff{") | st.just(b" "), max_size=6)


@given(LINES, st.sampled_from([None, "id", "ce.id"]), st.sampled_from([None, "time", "ce.time"]))
@examples(100)
def test_a_line_is_a_document_with_its_id_and_its_time_or_refused(lines, id, time):
    fields = DocumentFields(id, time)
    kept = [line for line in lines if line.decode(errors="replace").strip(" \t\r\u00a0")]
    nothing = pa.nulls(len(lines), pa.string())
    batch = pa.RecordBatch.from_arrays([pa.array(lines, pa.binary()), nothing, nothing], ["_text", "_broken", "_file"])
    decoded = DecodeStep(fields).decode(batch)
    rows = zip(*(column.to_pylist() for column in decoded.columns), strict=True)
    for line, (document, *named, refused, raw) in zip(kept, rows, strict=True):
        mapping, reason = read_slowly(line, id)
        assert (refused is None) == (reason is None), (line, refused, reason)
        assert (document, raw) == ((line.decode(), None) if reason is None else (None, line.decode(errors="replace")))
        if reason is None:
            expected = [] if id is None else [to_id(find_value(mapping, id))]
            expected += [] if time is None else [to_moment(find_value(mapping, time))]
            assert named == expected


def read_slowly(line, id):
    """Return the mapping of a line, or why there is none."""
    try:
        document = parse_document(line.decode())
    except UnicodeDecodeError as problem:
        return None, problem
    if isinstance(document, BadDocument):
        return None, document.reason
    try:
        return document, None if id is None or to_id(find_value(document, id)) is not None else "no id"
    except ValueError as problem:
        return None, problem


def test_what_reading_has_refused_stays_refused_and_other_columns_come_along():
    columns = {"_text": [b'{"id": 1}', None], "_broken": [None, "too large"], "_file": [None, "xx"], "kafka": [5, 6]}
    types = (pa.binary(), pa.string(), pa.string(), pa.int64())
    arrays = [pa.array(values, kind) for values, kind in zip(columns.values(), types, strict=True)]
    step = DecodeStep(DocumentFields("id"), others=("kafka",), drops_blank=False)
    (decoded,) = step(iter([pa.RecordBatch.from_arrays(arrays, list(columns))]))
    rows = [tuple(row.values()) for row in decoded.to_pylist()]
    assert rows == [('{"id": 1}', "1", 5, None, None), (None, None, 6, "too large", "xx")]


def test_filters_see_no_payload_and_see_derived_columns():
    texts = pa.array(['{"a": 1, "data_base64": "AA==", "in": {"data_base64": 2}}', '{"b": 2}', "[1]"])
    first, second, bad = build_events(texts, {"b": pa.array([7, None, 9])})
    assert (first, second) == ({"a": 1, "in": {"data_base64": 2}, "b": 7}, {"b": 2})
    assert isinstance(bad, BadDocument)


def test_a_time_is_in_utc():
    texts = pa.array([b'{"at": "2024-07-01T14:00:00+02:00"}'])
    nothing = pa.nulls(1, pa.string())
    batch = pa.RecordBatch.from_arrays([texts, nothing, nothing], ["_text", "_broken", "_file"])
    times = DecodeStep(DocumentFields(time="at")).decode(batch).column(1)
    assert times.to_pylist() == [datetime(2024, 7, 1, 12, tzinfo=UTC)]
