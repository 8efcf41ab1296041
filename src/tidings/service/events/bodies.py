"""From the body of a request to events: one, a batch, JSON lines, or CloudEvents in their three forms.

| content type | body |
| --- | --- |
| `application/json`, none, or that of `curl -d` | an object, or an array of objects |
| `application/x-ndjson`, or another of `LINES` | an object on each line; blank lines are none |
| `application/cloudevents+json` | one CloudEvent, structured |
| `application/cloudevents-batch+json` | an array of them |
| any, with `ce-specversion` among the headers | one CloudEvent, binary: the body is its data (JSON, text, or bytes) |

What can be told of one event is a `BadDocument` in its place; a body that is no JSON at all raises `BadBody`.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from tidings.matcher.loading.documents import BadDocument, Document, parse_document
from tidings.service.events.cloud_events import EventFields, from_binary, from_structured, read_context
from tidings.service.events.json_bodies import BadBody, has_long_number, parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

FORM = "application/x-www-form-urlencoded"
"""What `curl -d` calls whatever it sends."""

OBJECTS = ("", "application/json", FORM)
"""Content types of an object or an array."""

LINES = (
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonlines",
    "application/json-lines",
)
"""Content types of JSON lines: of events, and of subscriptions that are imported."""

STRUCTURED, BATCHED = "application/cloudevents+json", "application/cloudevents-batch+json"

MAX_EVENTS = 100_000
"""Events in one body at most."""

MAX_BRACKETS = 1_000_000
"""Objects and lists in one body at most: an empty object is two bytes on the wire and sixty-four in memory."""


class UnsupportedBody(BadBody):
    """Events do not come in this content type."""


@dataclass(frozen=True, slots=True)
class PostedEvents:
    """The events of a body, in its order.

    `is_plain` where orjson can write them again; `nested` is how many objects and lists are in them besides the events
    themselves, at most; `lines` has each event as it came, or None where that is no line of its own.
    """

    documents: list[Document]
    is_plain: bool
    nested: int
    lines: list[bytes | None] | None = None


def read_body(body: bytes, content_type: str, headers: Mapping[str, str], fields: EventFields) -> PostedEvents:
    """Return the events of a body; the names of the headers are in lower case."""
    brackets = body.count(b"{") + body.count(b"[")
    if brackets > MAX_BRACKETS:
        msg = f"the body has {brackets:,} objects and lists, and may have {MAX_BRACKETS:,}"
        raise BadBody(msg, hint="send it in several requests", at=None)
    media, _, parameters = content_type.partition(";")
    media = media.strip().lower()
    _check_charset(parameters)
    if media in LINES:
        posted = _read_lines(body, brackets)
    elif media == BATCHED:
        posted = _read_cloud_batch(body, brackets, fields)
    elif media.startswith("application/cloudevents"):
        posted = _read_cloud_event(body, media, brackets, fields)
    elif "ce-specversion" in headers:
        posted = _read_binary(body, content_type, headers, fields)
    elif media in OBJECTS:
        posted = _read_objects(body, brackets)
    else:
        msg = f"events do not come as `{media:.80}`"
        raise UnsupportedBody(msg, hint=f"send application/json, {LINES[0]}, {STRUCTURED} or {BATCHED}", at=None)
    if len(posted.documents) > MAX_EVENTS:
        msg = f"the body has {len(posted.documents):,} events, and may have {MAX_EVENTS:,}"
        raise BadBody(msg, hint="send them in several requests", at=None)
    return posted


def _check_charset(parameters: str) -> None:
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "charset" and value.strip('"').lower() not in {"utf-8", "utf8", "us-ascii"}:
            msg = f"the charset `{value:.40}` is not read"
            raise UnsupportedBody(msg, hint="JSON is always sent in UTF-8", at=None)


def _read_objects(body: bytes, brackets: int) -> PostedEvents:
    parsed = parse_json(body)
    rows = parsed.value if isinstance(parsed.value, list) else [parsed.value]
    documents = [row if type(row) is dict else refuse_shape(row) for row in rows]
    return PostedEvents(documents, parsed.is_plain, nested=brackets - len(rows))


def _read_lines(body: bytes, brackets: int) -> PostedEvents:
    is_plain = not has_long_number(body)
    lines = [line.removesuffix(b"\r") for line in body.split(b"\n") if line and not line.isspace()]
    documents, kept, is_read = [], list[bytes | None](), True
    for line in lines:
        document, is_fast = _parse_line(line, is_plain)
        is_read = is_read and is_fast
        documents.append(document)
        kept.append(line if is_fast and b"\r" not in line else None)
    return PostedEvents(documents, is_plain and is_read, brackets - len(lines), kept)


def _parse_line(line: bytes, is_plain: bool) -> tuple[Document, bool]:
    if is_plain:
        try:
            document = orjson.loads(line)
        except ValueError:
            pass
        else:
            return (document if type(document) is dict else refuse_shape(document)), True
    try:
        return parse_document(line.decode()), False
    except UnicodeDecodeError as mistake:
        return BadDocument(f"not UTF-8 text (byte {mistake.start} of its line)"), False


def _read_cloud_event(body: bytes, media: str, brackets: int, fields: EventFields) -> PostedEvents:
    if media != STRUCTURED:
        msg = f"CloudEvents do not come as `{media:.80}`"
        raise UnsupportedBody(msg, hint=f"send {STRUCTURED} or {BATCHED}, or the binary form", at=None)
    parsed = parse_json(body)
    return PostedEvents([from_structured(parsed.value, fields)], parsed.is_plain, nested=brackets + 1)


def _read_cloud_batch(body: bytes, brackets: int, fields: EventFields) -> PostedEvents:
    parsed = parse_json(body)
    if not isinstance(parsed.value, list):
        msg = "a batch of CloudEvents is a JSON array"
        raise BadBody(msg, hint=f"send one CloudEvent as {STRUCTURED}", at=0)
    documents = [from_structured(envelope, fields) for envelope in parsed.value]
    return PostedEvents(documents, parsed.is_plain, nested=brackets + 1)


def _read_binary(body: bytes, content_type: str, headers: Mapping[str, str], fields: EventFields) -> PostedEvents:
    media = content_type.partition(";")[0].strip().lower()
    context = read_context(headers, "" if media == FORM else content_type)
    if not body:
        return PostedEvents([from_binary(context, None, None, fields)], is_plain=True, nested=1)
    if media in OBJECTS or media.endswith(("/json", "+json")):
        parsed = parse_json(body)
        nested = body.count(b"{") + body.count(b"[") + 1
        return PostedEvents([from_binary(context, parsed.value, None, fields)], parsed.is_plain, nested)
    if media.startswith("text/") and (text := _decode_text(body)) is not None:
        return PostedEvents([from_binary(context, text, None, fields)], is_plain=True, nested=1)
    payload = base64.b64encode(body).decode()
    return PostedEvents([from_binary(context, None, payload, fields)], is_plain=True, nested=1)


def _decode_text(body: bytes) -> str | None:
    """Return what a text says; None where it is bytes of another charset, which travel as they are."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


_SHAPES: dict[type, str] = {list: "an array", str: "a text", int: "a number", float: "a number", bool: "a truth value"}


def refuse_shape(value: Any) -> BadDocument:
    """Return why a JSON value that is no object is no event, in the words of `parse_document`."""
    return BadDocument(f"an object `{{...}}` is expected, not {_SHAPES.get(type(value), 'null')}")
