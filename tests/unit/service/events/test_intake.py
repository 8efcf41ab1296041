"""Events are refused for what a pipeline would refuse, in its words; the others are kept as lines that it reads."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

pytest.importorskip("orjson", reason="needs tidings[service]")

import tidings as td
from tidings.concepts import Vocabulary
from tidings.matcher.loading.documents import parse_document
from tidings.service.events.event_ids import EventIds
from tidings.service.events.intake import EventIntake
from tidings.service.settings import EventSettings, LimitSettings, ServiceSettings

NOON = datetime(2024, 7, 1, 12, tzinfo=UTC)
SETTINGS = ServiceSettings()
SCHEMA = td.Schema({"price": "number", "tags": "several text", "at": "time", "seller.rating": "number"})


def prepare(body, *, settings=SETTINGS, content_type="application/json", headers=None):
    intake = EventIntake(settings)
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return intake.prepare(intake.read(body, content_type, headers or {}), NOON)


def read_lines(ready):
    return [json.loads(line) for line in ready.lines]


def list_reasons(ready):
    return [(mistake.index, mistake.message) for mistake in ready.mistakes]


def test_an_event_without_an_id_or_a_time_is_given_one():
    ready = prepare([{"a": 1}, {"id": "x", "time": None}, {"id": 7, "time": "2024-01-01"}])
    first, second, third = read_lines(ready)
    assert UUID(first["id"]).version == 7
    assert first["time"] == second["time"] == "2024-07-01T12:00:00.000000Z"
    assert third == {"id": 7, "time": "2024-01-01"}
    assert ready.ids == [first["id"], "x", "7"]


def test_other_fields_may_have_the_id_and_the_time():
    settings = ServiceSettings(events=EventSettings(id="ce.id", time="made.at"))
    event = {"ce": {"id": "n1"}, "made": {"at": 0}, "id": [1], "time": "whenever"}
    ready = prepare([event, {}], settings=settings)
    assert read_lines(ready)[0] == event
    assert set(read_lines(ready)[1]) == {"ce.id", "made.at"}
    assert ready.ids[0] == "n1"
    assert parse_document(ready.lines[1].decode())["ce.id"] == ready.ids[1]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ([], "an object `{...}` is expected, not an array"),
        ({"id": True}, "`id`: true is neither a text nor a number"),
        ({"id": ""}, "`id`: an id has 1 to 1,000 characters"),
        ({"id": "x" * 1001}, "`id`: an id has 1 to 1,000 characters"),
        ({"id": 1, "time": "soon"}, "`time`: 'soon' is no time"),
        ({"id": 1, "time": [1]}, "`time`: [1] is no time"),
        ({"id": 1, "data_base64": "?"}, "`data_base64` is not base64"),
        ({"id": 1, "data_base64": 7}, "`data_base64` is not base64"),
    ],
)
def test_a_bad_event_says_why(event, reason):
    ready = prepare([{"id": 0}, event])
    assert list_reasons(ready) == [(1, reason)]
    assert [line["id"] for line in read_lines(ready)] == [0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": "\\ud83d"}', "not text: half of a pair of surrogates (`\\ud83d`) stands alone"),
        ('{"a": 1e400}', "a number is too large (1e400); numbers with a fraction or an exponent end at about 1.8e308"),
        ('{"a": %s}' % ("[" * 40 + "]" * 40), "its objects and lists are nested more than 32 levels deep"),
        ('{"a": "%s"}' % ("x" * 1_000_001), "the event has 1,000,"),
    ],
)
def test_abuse_is_refused_by_event(text, reason):
    ready = prepare(f'[{{"id": 1}}, {text}]'.encode())
    assert ready.ids == ["1"]
    [(index, message)] = list_reasons(ready)
    assert (index, message[: len(reason)]) == (1, reason)


def test_integers_of_any_size_and_the_last_of_equal_names_are_kept():
    ready = prepare(b'{"id": 123456789012345678901234567890, "a": 1, "a": 2, "b": "1234567890123456789"}')
    assert ready.ids == ["123456789012345678901234567890"]
    assert read_lines(ready)[0]["a"] == 2
    assert read_lines(ready)[0]["id"] == 123456789012345678901234567890


def test_depth_is_counted_for_each_event():
    settings = ServiceSettings(limits=LimitSettings(depth=3))
    ready = prepare([{"a": {"b": []}}, {"a": {"b": [{}]}}, {"a": [1, [2]]}], settings=settings)
    assert [index for index, _ in list_reasons(ready)] == [1]


def test_a_line_that_needs_nothing_stays_as_it_came():
    body = b'{ "time": 0, "id" : "x" }\n{"id":"y"}\n{"time":0,\r"id":"z"}'
    ready = prepare(body, content_type="application/x-ndjson")
    assert ready.lines[0] == b'{ "time": 0, "id" : "x" }'
    assert json.loads(ready.lines[1])["time"] == "2024-07-01T12:00:00.000000Z"
    assert ready.lines[2] == b'{"time":0,"id":"z"}'


VALUES = st.sampled_from(
    [1, "8500", "cheap", None, [1, 2], ["a", "b"], {"rating": "x"}, {"rating": 5}, "2024-01-01", True]
)
DECLARED = st.dictionaries(st.sampled_from(["price", "tags", "at", "seller", "other"]), VALUES, max_size=4)


@given(st.lists(DECLARED, max_size=5))
@examples(100)
def test_what_breaks_a_declaration_is_refused_as_a_matcher_refuses_it(events):
    settings = replace(SETTINGS, vocabulary=Vocabulary.of(SCHEMA))
    rows = [{**event, "id": str(number), "data_base64": "AA=="} for number, event in enumerate(events)]
    ready = prepare(rows, settings=settings)
    seen = [json.loads(json.dumps(event)) for event in rows]
    letters = td.Matcher(schema=SCHEMA, now=NOON).dead_letters(seen)
    assert list_reasons(ready) == [(letter.index, letter.reason) for letter in letters]
    assert ready.ids == [row["id"] for row in rows if row["id"] not in {str(letter.index) for letter in letters}]


def test_made_ids_ascend_also_within_a_millisecond_and_when_the_clock_goes_back():
    ids = EventIds()
    made = [*ids.make(100, 1_720_000_000_000), *ids.make(100, 1_720_000_000_000), *ids.make(1, 1_710_000_000_000)]
    assert made == sorted(set(made))
    assert {(UUID(id).version, UUID(id).variant) for id in made} == {(7, "specified in RFC 4122")}
    assert int(made[0].replace("-", "")[:12], 16) == 1_720_000_000_000
    assert ids.make(0, 1_720_000_000_000) == []
