"""Events over HTTP: taken whole or refused with the reason of each, durable before they are acknowledged."""

import base64
import json
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.service.api.asking import ENDLESS, check_problem, to_lines

import tidings as td
from tidings.concepts import Vocabulary
from tidings.matcher.loading.documents import parse_document
from tidings.service.api.routes.events import get_event_parts
from tidings.service.events.bodies import BATCHED, LINES, STRUCTURED
from tidings.service.events.event_writer import EventsDelayed
from tidings.service.settings import EventSettings, LimitSettings, ServiceSettings

ENVELOPE = {"specversion": "1.0", "id": "A-1", "source": "/shop", "type": "ad.new", "time": "2024-07-01T12:00:00Z"}


@pytest.fixture
def make_door(make_api):
    """Makes APIs whose writers of events end with the test."""
    made = []

    def make(**keywords):
        made.append(make_api(**keywords))
        return made[-1]

    yield make
    for api in made:
        get_event_parts(api.state).writer.close()


@pytest.fixture
def api(make_door):
    return make_door()


def read_kept(api):
    folder = api.settings.events_folder
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def read_lines_kept(api):
    folder = api.settings.events_folder
    return [line for path in folder.glob("*.jsonl") for line in path.read_bytes().decode().split("\n")[:-1]]


def test_one_event_a_batch_and_lines_are_taken(api):
    key = api.make_key("shop", "publish")
    assert api.post("/v1/events", json={"id": 1, "a": 1}, key=key).json() == {"accepted": 1}
    assert api.post("/v1/events", json=[{"id": 2}, {"id": 3}], key=key).json() == {"accepted": 2}
    answer = api.post(
        "/v1/events", content=to_lines([{"id": 4}]), headers={"Content-Type": "application/jsonl"}, key=key
    )
    assert (answer.status_code, answer.json()) == (202, {"accepted": 1})
    assert api.post("/v1/events", json=[], key=key).json() == {"accepted": 0}
    assert [event["id"] for event in read_kept(api)] == [1, 2, 3, 4]
    assert {event["time"] for event in read_kept(api)} == {"2030-01-01T00:00:00.000000Z"}
    check_problem(api.post("/v1/events", json={}, key=api.make_key("shop", "read", "write")), 403)


def test_cloud_events_are_taken_in_their_three_forms(api):
    structured = json.dumps({**ENVELOPE, "data": {"make": "ford"}})
    batch = json.dumps([{**ENVELOPE, "id": "A-2", "data_base64": "AAE="}])
    headers = {f"ce-{name}": value for name, value in ENVELOPE.items()} | {"ce-id": "A-3", "Content-Type": "image/png"}
    sent = [
        api.post("/v1/events", content=structured, headers={"Content-Type": "application/cloudevents+json"}),
        api.post("/v1/events", content=batch, headers={"Content-Type": "application/cloudevents-batch+json"}),
        api.post("/v1/events", content=b"<a/>", headers=headers),
        api.post("/v1/events", content=b"<a/>", headers=headers | {"Content-Type": "text/xml"}),
        api.post("/v1/events", content=b'{"make": "opel"}', headers=headers | {"Content-Type": ""}),
    ]
    assert [answer.status_code for answer in sent] == [202] * 5
    first, second, third, fourth, fifth = read_kept(api)
    assert (first["id"], first["make"], first["ce"]["type"]) == ("A-1", "ford", "ad.new")
    assert second["data_base64"] == "AAE="
    assert base64.b64decode(third["data_base64"]) == b"<a/>"
    assert (fourth["data"], fifth["make"]) == ("<a/>", "opel")
    assert third["ce"]["datacontenttype"] == "image/png"


def test_a_batch_is_taken_whole_or_not_at_all_unless_asked_for_its_good_part(api):
    batch = [{"id": "good"}, {"id": []}, 7, {"id": "late", "time": "soon"}]
    body = check_problem(api.post("/v1/events", json=batch), 422)
    assert [error["index"] for error in body["errors"]] == [1, 2, 3]
    assert body["errors"][1]["message"] == "an object `{...}` is expected, not a number"
    assert read_kept(api) == []
    answer = api.post("/v1/events", json=batch, params={"partial": "true"})
    assert answer.status_code == 202
    assert (answer.json()["accepted"], answer.json()["refused"]) == (1, 3)
    assert [error["index"] for error in answer.json()["errors"]] == [1, 2, 3]
    assert [event["id"] for event in read_kept(api)] == ["good"]


def test_what_breaks_a_declaration_is_refused_in_the_words_of_a_matcher(make_door):
    schema = td.Schema({"price": "number"})
    api = make_door(settings=ServiceSettings(vocabulary=Vocabulary.of(schema)))
    event = {"id": "x", "price": "cheap"}
    body = check_problem(api.post("/v1/events", json=event), 422)
    [letter] = td.Matcher(schema=schema).dead_letters([event])
    assert [error["message"] for error in body["errors"]] == [letter.reason]
    assert body["detail"] == letter.reason
    many = [{"id": str(n), "price": "cheap" if n == 900 else n, "text": "x" * 100} for n in range(1000)]
    body = check_problem(api.post("/v1/events", json=many), 422)  # in a thread
    assert [error["index"] for error in body["errors"]] == [900]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"a": "\xff"}', 400),
        (b"[" * 100_000, 400),
        (b'{"a": NaN}', 400),
        (b'{"a": 1e999}', 422),
        (b'{"a": "\\ud800"}', 422),
        (b'{"a": ' + b"9" * 5000 + b"}", 400),
        (b'{"a":' * 33 + b"1" + b"}" * 33, 422),
        (b'{"a": "' + b"x" * 1_100_000 + b'"}', 422),
        (b"[" + b"{}," * 2_000_000 + b"{}]", 400),
        (b'"' + b"x" * 10_000_000 + b'"', 413),
        (b'{"id": 1, "id": 2}', 202),
    ],
)
def test_abuse_is_refused_clearly(make_door, content, status):
    api = make_door()
    answer = api.post("/v1/events", content=content, headers={"Content-Type": "application/json"})
    if status == 202:
        assert answer.status_code == 202
    else:
        check_problem(answer, status)
        assert read_kept(api) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "time", "a", "data"]), inner),
    max_leaves=10,
)
TYPES = st.sampled_from(["application/json", *LINES, STRUCTURED, BATCHED, "text/plain", "", "x;charset=\u0130"])
HEADERS = st.dictionaries(
    st.sampled_from(["ce-id", "ce-source", "ce-specversion", "ce-Type", "ce-"]), st.text(max_size=5)
)


def test_whatever_comes_is_taken_or_refused_with_a_problem(make_door):
    api = make_door()

    @examples(60)
    @given(JSON.map(json.dumps).map(str.encode) | st.binary(max_size=50), TYPES, HEADERS)
    def post(content, content_type, headers):
        sent = {name: quote(value) for name, value in headers.items()} | {
            "Content-Type": quote(content_type, safe="/;=+ ")
        }
        answer = api.post("/v1/events", content=content, headers=sent)
        if answer.status_code != 202:
            check_problem(answer, answer.status_code)
            assert answer.status_code in {400, 415, 422}

    post()
    assert all(parse_document(line).__class__ is dict for line in read_lines_kept(api))


def test_other_media_types_and_compressed_bodies_are_refused(api):
    check_problem(api.post("/v1/events", content=b"<a/>", headers={"Content-Type": "text/xml"}), 415)
    check_problem(api.post("/v1/events", content=b"x", headers={"Content-Encoding": "gzip"}), 415)
    form = {"Content-Type": "application/x-www-form-urlencoded"}  # what curl -d says
    assert api.post("/v1/events", content=b'{"id": 1}', headers=form).status_code == 202
    check_problem(api.post("/v1/events", content=b"a=1&b=2", headers=form), 400)


def test_an_owner_publishes_so_many_events_a_second(make_door):
    api = make_door(limits=replace(ENDLESS, events_per_second=10.0))
    assert api.post("/v1/events", json=[{}] * 20).status_code == 202
    answer = api.post("/v1/events", json=[{}] * 5)
    check_problem(answer, 429)
    assert int(answer.headers["Retry-After"]) >= 1
    api.time.pass_time(1)
    assert api.post("/v1/events", json=[{}] * 5).status_code == 202


def test_publishers_are_asked_to_wait_while_the_pipeline_is_behind(make_door, monkeypatch):
    settings = ServiceSettings(events=EventSettings(waiting=100))
    api = make_door(settings=settings, limits=LimitSettings(requests_per_second=1e9))
    assert api.post("/v1/events", json={"id": 1}).status_code == 202
    answer = api.post("/v1/events", json={"id": 2, "text": "x" * 100})
    assert "the pipeline is behind" in check_problem(answer, 503)["detail"]
    assert int(answer.headers["Retry-After"]) >= 1

    async def fail(events):
        msg = "the disk of the service is full"
        raise EventsDelayed(msg, retry_after=30)

    monkeypatch.setattr(get_event_parts(api.state).writer, "write", fail)
    assert "disk" in check_problem(api.post("/v1/events", json={"id": 3}), 503)["detail"]
