"""Bodies become the events that plain `json` reads in them, whatever their form, or say why they do not."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

pytest.importorskip("orjson", reason="needs tidings[service]")

from tidings.matcher.loading.documents import BadDocument, parse_document
from tidings.service.events import bodies
from tidings.service.events.bodies import BATCHED, LINES, STRUCTURED, UnsupportedBody, read_body
from tidings.service.events.cloud_events import EventFields
from tidings.service.events.json_bodies import BadBody, encode_json, parse_json

FIELDS = EventFields()
NUMBERS = st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8) | st.sampled_from(
    ["9" * 20, "a\u2028b", "{[", ""]
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.dictionaries(TEXTS, VALUES, max_size=4)
ENCODERS = st.sampled_from([json.dumps, lambda value: json.dumps(value, ensure_ascii=False, indent=1)])


def read(body, content_type="application/json", headers=None):
    return read_body(body, content_type, headers or {}, FIELDS)


@given(VALUES, ENCODERS)
@examples(150)
def test_a_body_means_what_json_reads(value, encode):
    parsed = parse_json(encode(value).encode())
    assert repr(parsed.value) == repr(json.loads(encode(value)))
    again = encode_json(parsed.value, is_plain=parsed.is_plain)
    assert repr(json.loads(again)) == repr(parsed.value)
    assert b"\n" not in again


@given(st.lists(EVENTS | VALUES, max_size=5), ENCODERS)
@examples(100)
def test_an_array_has_the_documents_of_its_members(rows, encode):
    posted = read(encode(rows).encode())
    assert list(map(repr, posted.documents)) == [repr(parse_document(json.dumps(row))) for row in rows]


@given(EVENTS, ENCODERS)
@examples(50)
def test_an_object_is_one_event(event, encode):
    posted = read(encode(event).encode())
    assert list(map(repr, posted.documents)) == [repr(event)]


BROKEN = st.sampled_from(
    ["{", "[1]", "null", "17", '{"a": NaN}', '{"a": "\\ud800"}', '{"a":' * 40_000, '{"a": 1, "a": 2}']
)


@given(st.lists(EVENTS.map(json.dumps) | BROKEN, max_size=5), st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"]))
@examples(100)
def test_each_line_is_the_document_that_a_pipeline_reads(lines, end):
    posted = read(end.join(lines).encode(), LINES[0])
    assert list(map(repr, posted.documents)) == [repr(parse_document(line)) for line in lines]
    for line, sent in zip(lines, posted.lines, strict=True):
        assert sent is None or (b"\n" not in sent and b"\r" not in sent and sent.decode() == line)


def test_a_line_that_is_not_utf_8_is_refused_by_itself():
    posted = read(b'{"a": 1}\n{"a": "\xff"}\n{"a": 3}', LINES[1])
    assert posted.documents == [{"a": 1}, BadDocument("not UTF-8 text (byte 7 of its line)"), {"a": 3}]


@pytest.mark.parametrize(
    ("body", "message", "at"),
    [
        (b"", "the body is empty", 0),
        (b"  ", "the body is empty", 0),
        (b"{", "the body is not JSON: Expecting property name enclosed in double quotes (line 1, column 2)", 1),
        (b'{"a": "\xff"}', "the body is not UTF-8 text (byte 7)", 7),
        (b'{"a": NaN}', "the body is not JSON: NaN is not a finite number", None),
        (b"[" * 100_000, "the body is not JSON that can be read: it is nested too deeply", None),
        (b"9" * 5_000, "the body is not JSON: Exceeds the limit (4300 digits)", None),
        (b"\xef\xbb\xbf{}", "the body is not JSON: Expecting value (line 1, column 1)", 0),
    ],
)
def test_what_is_no_json_says_why_and_where(body, message, at):
    with pytest.raises(BadBody) as refusal:
        read(body)
    assert str(refusal.value).startswith(message)
    assert refusal.value.at == at


def test_other_content_types_and_charsets_are_refused_with_those_that_are_read():
    with pytest.raises(UnsupportedBody, match="`text/xml`") as refusal:
        read(b"<a/>", "text/xml; charset=utf-8")
    assert STRUCTURED in refusal.value.hint
    with pytest.raises(UnsupportedBody, match="`latin-1`"):
        read(b"{}", "application/json; charset=latin-1")
    assert read(b"{}", 'application/json;charset="UTF-8"').documents == [{}]
    assert read(b"{}", "").documents == [{}]
    assert read(b"[{}]", "application/x-www-form-urlencoded").documents == [{}]


def test_a_body_of_countless_objects_is_refused_before_it_is_decoded(monkeypatch):
    monkeypatch.setattr(bodies, "MAX_BRACKETS", 10)
    with pytest.raises(BadBody, match="11 objects and lists"):
        read(b"[" + b",".join([b"{}"] * 10) + b"]")
    monkeypatch.setattr(bodies, "MAX_EVENTS", 3)
    with pytest.raises(BadBody, match="4 events"):
        read(b"[{},{},{},{}]")


# CloudEvents ----------------------------------------------------------------------------------------------

ENVELOPE = {"specversion": "1.0", "id": "A-1", "source": "/shop", "type": "ad.new", "time": "2024-07-01T12:00:00Z"}


def test_a_structured_event_is_its_data_with_its_context():
    body = {
        **ENVELOPE,
        "subject": "cars",
        "traceparent": "00-1",
        "tries": 3,
        "dataschema": None,
        "data": {"make": "ford"},
    }
    (event,) = read(json.dumps(body).encode(), f"{STRUCTURED}; charset=UTF-8").documents
    context = {name: value for name, value in body.items() if name not in ("data", "dataschema")}
    assert event == {"make": "ford", "ce": context, "id": "A-1", "time": "2024-07-01T12:00:00Z"}


def test_the_id_of_an_envelope_is_the_event_s_and_that_of_its_data_is_kept():
    body = {**ENVELOPE, "data": {"id": 7, "time": "2024-01-01", "ce": "gone"}}
    (event,) = read(json.dumps(body).encode(), STRUCTURED).documents
    assert (event["id"], event["time"]) == ("A-1", "2024-01-01")
    assert event["ce"] == ENVELOPE | {"data": {"id": 7}}


def test_two_events_about_one_thing_have_two_ids():
    created, paid = ({**ENVELOPE, "id": id, "data": {"id": "order-9"}} for id in ("A-1", "A-2"))
    events = read(json.dumps([created, paid]).encode(), BATCHED).documents
    assert [(event["id"], event["ce"]["data"]["id"]) for event in events] == [("A-1", "order-9"), ("A-2", "order-9")]


def test_the_id_of_an_envelope_goes_into_the_field_that_names_events():
    fields = EventFields(id="number", time="at")
    body = json.dumps({**ENVELOPE, "data": {"id": 7, "number": 8}}).encode()
    (event,) = read_body(body, STRUCTURED, {}, fields).documents
    assert event == {
        "id": 7,
        "number": "A-1",
        "at": ENVELOPE["time"],
        "ce": ENVELOPE | {"data": {"number": 8}},
    }


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        ({"data": "text"}, {"data": "text"}),
        ({"data": [1, {"a": 2}]}, {"data": [1, {"a": 2}]}),
        ({"data": False}, {"data": False}),
        ({"data": None}, {}),
        ({}, {}),
        ({"data_base64": "AAE="}, {"data_base64": "AAE="}),
        ({"data": None, "data_base64": "AAE="}, {"data_base64": "AAE="}),
        ({"data": {"data_base64": "AAE="}}, {"data_base64": "AAE="}),
    ],
)
def test_data_of_any_kind_is_kept(more, fields):
    (event,) = read(json.dumps(ENVELOPE | more).encode(), STRUCTURED).documents
    assert {name: value for name, value in event.items() if name not in ("ce", "id", "time")} == fields


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"specversion": None}, "the CloudEvent has no `specversion`"),
        ({"specversion": "0.3"}, "`specversion` is `0.3`; only 1.0 is read"),
        ({"id": ""}, "`id` is not a text, or empty"),
        ({"id": 7}, "`id` is not a text, or empty"),
        ({"source": "a b"}, "`source` is not a URI reference"),
        ({"type": None}, "the CloudEvent has no `type`"),
        ({"subject": ""}, "`subject` is not a text, or empty"),
        ({"time": "2024-07-01"}, "`time` is not a time as RFC 3339 writes it"),
        ({"time": "2024-13-01T00:00:00Z"}, "`time` is not a time as RFC 3339 writes it"),
        ({"dataschema": "relative"}, "`dataschema` is not an absolute URI"),
        ({"datacontenttype": "json"}, "`datacontenttype` is not a media type"),
        ({"Bad_Name": "x"}, "`Bad_Name` has a name of other characters"),
        ({"tries": 2**31}, "`tries` is not a text, a truth value or an integer of 32 bits"),
        ({"tries": {"a": 1}}, "`tries` is not a text, a truth value or an integer of 32 bits"),
        ({"data": 1, "data_base64": "AAE="}, "a CloudEvent has `data` or `data_base64`, not both"),
    ],
)
def test_an_envelope_that_breaks_a_rule_says_which(change, reason):
    (event,) = read(json.dumps(ENVELOPE | change).encode(), STRUCTURED).documents
    assert isinstance(event, BadDocument)
    assert reason in event.reason


def test_a_batch_has_an_event_for_each_envelope():
    body = [{**ENVELOPE, "data": {"a": 1}}, {"specversion": "1.0"}, 7]
    first, *others = read(json.dumps(body).encode(), BATCHED).documents
    assert first["a"] == 1
    assert [type(event) for event in others] == [BadDocument, BadDocument]
    assert read(b"[]", BATCHED).documents == []
    with pytest.raises(BadBody, match="JSON array"):
        read(json.dumps(ENVELOPE).encode(), BATCHED)
    with pytest.raises(UnsupportedBody, match="avro"):
        read(b"", "application/cloudevents+avro")


HEADERS = {f"ce-{name}": value for name, value in ENVELOPE.items()} | {"host": "x"}


def test_a_binary_event_has_its_context_in_headers():
    headers = {**HEADERS, "ce-subject": "Euro%20%E2%82%AC", "ce-comment": '"say \\"hi\\""'}
    (event,) = read(b'{"make": "ford"}', "application/json", headers).documents
    context = {**ENVELOPE, "subject": "Euro €", "comment": 'say "hi"', "datacontenttype": "application/json"}
    assert event == {"make": "ford", "ce": context, "id": "A-1", "time": ENVELOPE["time"]}


@pytest.mark.parametrize("content_type", ["", "application/x-www-form-urlencoded", "text/json", "application/JSON"])
def test_data_of_a_binary_event_is_json_unless_its_type_says_otherwise(content_type):
    (event,) = read(b'{"make": "ford"}', content_type, HEADERS).documents
    assert (event["make"], event["id"]) == ("ford", "A-1")
    assert "urlencoded" not in event["ce"].get("datacontenttype", "")


@given(TEXTS.filter(bool), st.sampled_from(["text/plain", "text/xml; charset=utf-8"]))
@examples(50)
def test_a_text_is_the_same_event_in_both_forms(text, content_type):
    (binary,) = read(text.encode(), content_type, HEADERS).documents
    envelope = ENVELOPE | {"datacontenttype": content_type, "data": text}
    (structured,) = read(json.dumps(envelope).encode(), STRUCTURED).documents
    assert binary == structured
    assert binary["data"] == text


@given(st.binary(min_size=1, max_size=40))
@examples(50)
def test_other_data_of_a_binary_event_is_a_payload(data):
    (event,) = read(data, "application/octet-stream", HEADERS).documents
    assert base64.b64decode(event["data_base64"]) == data


def test_a_text_in_another_charset_is_a_payload():
    (event,) = read(b"caf\xe9", "text/plain", HEADERS).documents
    assert base64.b64decode(event["data_base64"]) == b"caf\xe9"


def test_a_binary_event_may_be_empty_and_must_keep_the_rules():
    (event,) = read(b"", "", HEADERS).documents
    assert event == {"ce": ENVELOPE, "id": "A-1", "time": ENVELOPE["time"]}
    (bad,) = read(b"{}", "application/json", {"ce-specversion": "1.0", "ce-id": "1"}).documents
    assert bad == BadDocument("the CloudEvent has no `source`")
    (bad,) = read(b"{}", "application/json", HEADERS | {"ce-data": "x"}).documents
    assert bad == BadDocument("the CloudEvent's `data` is no attribute; the body is the data")
    for content_type in ("application/vnd.x+json", ""):
        with pytest.raises(BadBody, match="not JSON"):
            read(b"{", content_type, HEADERS)
