"""Documents are read as `json` reads them, whoever decodes, and what is no document says why."""

import json
import math
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tidings.matcher.loading import documents
from tidings.matcher.loading.documents import BadDocument, find_value, parse_document, read_documents, to_id, to_moment

NUMBERS = st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
BROKEN = st.sampled_from(
    [
        "{",
        "",
        "[1]",
        "null",
        '"text"',
        "17",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e400}',
        '{"a": 01}',
        "{'a': 1}",
        '{"a": "\\ud800"}',
        '{"a": "\\ud83d\\ude00"}',
        '{"a": 1, "a": 2}',
        '{"a": 123456789012345678901234567890, "b": -0}',
        '\ufeff{"a": 1}',
        '{"a": 1} {"a": 2}',
        '{"a": ' * 5000 + "1" + "}" * 5000,
        "{" + '"a":[' * 5000,
        '{"a": "' + "9" * 5000 + '"}',
        '{"a": ' + "9" * 5000 + "}",
    ]
)
TABLES = st.dictionaries(TEXTS, VALUES, max_size=4).map(json.dumps)


@given(st.lists(TABLES | BROKEN | TEXTS | st.none(), max_size=6))
@examples(100)
def test_a_fast_decoder_reads_what_json_reads(texts):
    fast = read_documents(pa.array(texts, pa.string()))
    slow = [parse_document(text) for text in texts]
    assert [repr(document) for document in fast] == [repr(document) for document in slow]


@given(st.lists(TABLES, max_size=4))
@examples(50)
def test_json_alone_will_do(texts):
    column = pa.array(texts, pa.string())
    fast, before = read_documents(column), documents.orjson
    documents.orjson = None
    try:
        assert repr(read_documents(column)) == repr(fast)
    finally:
        documents.orjson = before


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
@examples(50)
def test_a_document_is_the_mapping_that_was_written(table):
    (document,) = read_documents(pa.array([json.dumps(table)]))
    assert document == table


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "no value (null)"),
        ("{", "not JSON: Expecting property name enclosed in double quotes (column 2)"),
        ("[1]", "an object `{...}` is expected, not an array"),
        ("null", "an object `{...}` is expected, not null"),
        ("1.5", "an object `{...}` is expected, not a number"),
        ('{"a": NaN}', "not JSON: NaN is no number of JSON"),
        ('{"a": "\\udc00"}', "not text: half of a pair of surrogates (`\\ud83d`) stands alone"),
        ('{"a": ' * 5000 + "1" + "}" * 5000, "not JSON that can be read: it is nested too deeply"),
    ],
)
def test_a_text_that_is_no_document_says_why(text, reason):
    assert read_documents(pa.array([text], pa.string())) == [BadDocument(reason)]


def test_a_field_is_found_by_its_name_or_in_an_object():
    document = {"id": 1, "ce": {"source": "shop", "a.b": {"c": 3}}, "x.y": 2, "x": {"y": 5}, "n": None}
    assert [find_value(document, name) for name in ("id", "ce.source", "ce.a.b.c", "x.y")] == [1, "shop", 3, 2]
    assert [find_value(document, name) for name in ("ID", "ce.type", "id.x", "n", "")] == [None] * 5


def test_an_id_is_text_or_what_json_writes_of_a_number():
    assert [to_id(value) for value in ("s", "", 17, -1.5, 10**30, None)] == ["s", "", "17", "-1.5", str(10**30), None]
    for value in (True, [1], {"a": 1}):
        with pytest.raises(ValueError, match="neither a text nor a number"):
            to_id(value)


def test_a_time_is_iso_text_or_seconds_and_else_nothing():
    noon = datetime(2024, 7, 1, 12, tzinfo=UTC)
    texts = ("2024-07-01T12:00:00Z", "2024-07-01T14:00:00+02:00", "2024-07-01T12:00:00", " 2024-07-01 12:00 ")
    assert {to_moment(text) for text in texts} == {noon}
    assert to_moment(noon.timestamp()) == to_moment(int(noon.timestamp())) == noon
    nothing = ("soon", "", None, True, [1], {}, 1e300, -1e300, math.inf, 10**400)
    assert [to_moment(value) for value in nothing] == [None] * len(nothing)
