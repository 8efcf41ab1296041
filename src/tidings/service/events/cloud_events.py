"""CloudEvents 1.0 as events: the fields of `data`, with the context attributes in `ce`.

An event of our own is one flat JSON object that filters name the fields of. So `data` is that object, and what the
envelope says (source, type, subject, extensions) is nested under `ce`: `ce.type = 'order.paid'`. The envelope's id is
the event's: two events about one order are two, though `data` has the order's `id` in both; that one is kept as
`ce.data.id`. The envelope's time is the event's where `data` has none of its own. `data` that is no object is the field
`data`; bytes are `data_base64`, which travel along unread. Rules: CloudEvents 1.0.2, its JSON format and its HTTP
binding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tidings.matcher.loading.documents import PAYLOAD, BadDocument, Document, find_value, to_moment

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTEXT = "ce"
"""The field that has the context attributes."""

DATA = "data"
"""The field of an envelope that has the event; under `ce`, what the envelope's id took the place of."""

HEADER = "ce-"
"""What the names of a binary event's headers begin with."""

_NAME = re.compile(r"[a-z0-9]+")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_REFERENCE = re.compile(r"[^\s\x00-\x1f\x7f<>\"{}|\\^`]+")
_REQUIRED = ("specversion", "id", "source", "type")
_TEXTS = (*_REQUIRED, "subject", "time", "datacontenttype", "dataschema")
"""Attributes that are texts, and not empty; those of extensions may also be truth values and integers."""


@dataclass(frozen=True, slots=True)
class EventFields:
    """The fields that name an event and have its time."""

    id: str = "id"
    time: str = "time"


def from_structured(envelope: object, fields: EventFields) -> Document:
    """Return the event of a CloudEvent that came as one JSON object."""
    if not isinstance(envelope, dict):
        return BadDocument("a CloudEvent is a JSON object with `specversion`, `id`, `source` and `type`")
    context = {name: value for name, value in envelope.items() if name not in {DATA, PAYLOAD} and value is not None}
    if (reason := find_context_mistake(context)) is not None:
        return BadDocument(reason)
    if envelope.get(DATA) is not None and envelope.get(PAYLOAD) is not None:
        return BadDocument("a CloudEvent has `data` or `data_base64`, not both")
    return _build_event(context, envelope.get(DATA), envelope.get(PAYLOAD), fields)


def from_binary(context: Mapping[str, Any], data: Any, payload: str | None, fields: EventFields) -> Document:
    """Return the event of a CloudEvent whose context came as headers; `payload` is its body where that is not JSON."""
    if (reason := find_context_mistake(context)) is not None:
        return BadDocument(reason)
    return _build_event(context, data, payload, fields)


def read_context(headers: Mapping[str, str], content_type: str) -> dict[str, Any]:
    """Return the context attributes in the headers of a binary event; the names of headers are in lower case."""
    context: dict[str, Any] = {
        name.removeprefix(HEADER): decode_header(value) for name, value in headers.items() if name.startswith(HEADER)
    }
    return context | ({"datacontenttype": content_type} if content_type else {})


def decode_header(value: str) -> str:
    """Return the text of an attribute in a header: quotes are removed, percent signs are resolved.

    >>> decode_header("Euro%20%E2%82%AC"), decode_header('"two words"')
    ('Euro €', 'two words')
    """
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    return unquote(value, errors="replace")


def find_context_mistake(context: Mapping[str, Any]) -> str | None:
    """Return why these are no context attributes of CloudEvents 1.0, or None."""
    for name in _REQUIRED:
        if name not in context:
            return f"the CloudEvent has no `{name}`"
    for name, value in context.items():
        if (reason := _find_attribute_mistake(name, value)) is not None:
            return f"the CloudEvent's `{name:.80}` {reason}"
    return None


def _find_attribute_mistake(name: str, value: Any) -> str | None:
    if name == DATA:
        return "is no attribute; the body is the data"
    if not _NAME.fullmatch(name):
        return "has a name of other characters than a to z and 0 to 9"
    if name in _TEXTS:
        return _find_text_mistake(name, value)
    is_integer = isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31
    if isinstance(value, str | bool) or is_integer:
        return None
    return "is not a text, a truth value or an integer of 32 bits; put it into `data`"


def _find_text_mistake(name: str, value: Any) -> str | None:
    if not isinstance(value, str) or not value:
        return "is not a text, or empty"
    match name:
        case "specversion" if value != "1.0":
            return f"is `{value:.20}`; only 1.0 is read"
        case "source" if not _REFERENCE.fullmatch(value):
            return "is not a URI reference"
        case "dataschema" if not _REFERENCE.fullmatch(value) or ":" not in value:
            return "is not an absolute URI"
        case "time" if not _TIME.fullmatch(value) or to_moment(value.upper()) is None:
            return "is not a time as RFC 3339 writes it (2024-07-01T12:00:00Z)"
        case "datacontenttype" if "/" not in value:
            return "is not a media type (application/json)"
    return None


def _build_event(context: Mapping[str, Any], data: Any, payload: Any, fields: EventFields) -> dict[str, Any]:
    event = dict(data) if isinstance(data, dict) else {} if data is None else {DATA: data}
    if payload is not None:
        event[PAYLOAD] = payload
    event[CONTEXT] = dict(context)
    if (own := event.get(fields.id)) is not None:
        event[CONTEXT][DATA] = {fields.id: own}
    event[fields.id] = context["id"]
    if "time" in context and find_value(event, fields.time) is None:
        event[fields.time] = context["time"].upper()
    return event
