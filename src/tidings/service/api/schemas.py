"""JSON schemas of what the API takes and gives, and examples of them, for the OpenAPI document.

A schema says as much as can be said of the form; whether a filter is one, the language decides (422).
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tidings.service.checking import MAX_LABEL, MAX_LABELS, MAX_NAME, MODES
from tidings.service.delivery import GROUPS, TRANSPORTS
from tidings.service.subscription import ALL_STATUSES, MAX_ID, OWNER_PATTERN

JsonSchema: TypeAlias = dict[str, Any]
"""A JSON schema."""

ID: JsonSchema = {"type": "string", "minLength": 1, "maxLength": MAX_ID, "description": "Unique for its owner."}
OWNER: JsonSchema = {"type": "string", "pattern": f"^{OWNER_PATTERN}$"}
TIME: JsonSchema = {"type": "string", "format": "date-time"}
LABEL: JsonSchema = {"type": "string", "minLength": 1, "maxLength": MAX_LABEL}
STATUSES = list(ALL_STATUSES)
SETTABLE = ["active", "learning", "paused"]


def make_reference(name: str) -> JsonSchema:
    """Return a reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def make_nullable(schema: JsonSchema) -> JsonSchema:
    """Return a schema that takes null as well."""
    if isinstance(schema.get("type"), str):
        more = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return {**schema, "type": [schema["type"], "null"], **more}
    return {"anyOf": [schema, {"type": "null"}]}


def _make_object(properties: JsonSchema, required: list[str] | None = None, **more: Any) -> JsonSchema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
        **more,
    }


SCHEDULE: JsonSchema = {
    "oneOf": [
        {"type": "string", "pattern": "^(immediate|every .+)$", "examples": ["immediate", "every 5 min"]},
        _make_object({"cron": {"type": "string"}, "zone": {"type": "string", "default": "UTC"}}, ["cron"]),
    ],
    "description": "When matches are delivered: at once, every so often, or by a cron expression in a time zone.",
}

_DELIVERY_WORDS = "Where matches go. `secret` of a webhook and `url` of Apprise are written and never read back."
_DELIVERY_KEYS: JsonSchema = {
    "transport": {"type": "string", "enum": list(TRANSPORTS)},
    "url": {"type": "string"},
    "secret": {"type": "string", "writeOnly": True},
    "to": {"type": "string"},
    "path": {"type": "string"},
    "topic": {"type": "string"},
    "schedule": SCHEDULE,
    "group": {"type": "string", "enum": list(GROUPS)},
}
DELIVERY = _make_object(_DELIVERY_KEYS, ["transport"], description=_DELIVERY_WORDS)
MERGED_DELIVERY = _make_object({name: make_nullable(key) for name, key in _DELIVERY_KEYS.items()}, [])

_FILTER: JsonSchema = {
    "type": ["string", "object", "boolean"],
    "description": "A filter: text, the JSON tree, or a URL query (`notation`).",
}
_PATTERN: JsonSchema = {
    "type": ["string", "object"],
    "description": "A pattern over several events: text, or a JSON tree.",
}
_NOTATION: JsonSchema = {"type": "string", "enum": ["text", "json", "url"]}

_STATUS_WORDS = (
    "`paused`, or else it is in force; `learning` is what the service writes of a forecast, and may be sent back."
)

_WRITABLE: JsonSchema = {
    "filter": _FILTER,
    "pattern": _PATTERN,
    "notation": _NOTATION,
    "mode": {"type": "string", "enum": list(MODES)},
    "horizon": {"type": ["string", "integer"], "description": "How far a forecast looks: `10 own events`, `5 min`."},
    "threshold": {"type": "number", "minimum": 0, "maximum": 1},
    "name": {"type": "string", "maxLength": MAX_NAME},
    "labels": {"type": "array", "items": LABEL, "maxItems": MAX_LABELS},
    "delivery": make_reference("Delivery"),
    "expires_at": {**TIME, "description": "In the future; the subscription expires then."},
    "status": {"type": "string", "enum": SETTABLE, "description": _STATUS_WORDS},
}
_READ_ONLY: JsonSchema = {
    "owner": OWNER,
    "kind": {"type": "string", "enum": ["filter", "pattern", "forecast"]},
    "created_at": TIME,
    "changed_at": TIME,
    "revision": {"type": "integer", "minimum": 1},
}
_NULLABLE = {name: make_nullable(schema) for name, schema in _WRITABLE.items()}
_SENT_BACK = {name: {"description": "Written by the service; may be sent back."} for name in _READ_ONLY}
_ONE_OF = {"oneOf": [{"required": ["filter"]}, {"required": ["pattern"]}]}

SCHEMAS: dict[str, JsonSchema] = {
    "Problem": _make_object(
        {
            "type": {"type": "string", "format": "uri"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "errors": {"type": "array", "items": make_reference("Mistake")},
            "imported": {"type": "integer"},
            "refused": {"type": "integer"},
        },
        ["type", "title", "status", "detail", "errors"],
        description="RFC 9457; `errors` has every mistake with its place.",
    ),
    "Mistake": _make_object(
        {
            "message": {"type": "string"},
            "hint": {"type": ["string", "null"], "description": "The way out."},
            "at": {"type": ["integer", "string", "null"], "description": "An offset in the text, or a path."},
            "length": {"type": ["integer", "null"]},
            "field": {"type": ["string", "null"], "description": "The member of the body that it is about."},
            "index": {"type": "integer", "minimum": 0, "description": "The event of a body, counted from 0."},
            "line": {"type": "integer", "minimum": 1, "description": "The line of an import."},
            "id": {"type": ["string", "null"], "description": "The subscription in that line."},
        },
        ["message", "hint", "at", "length", "field"],
    ),
    "Delivery": DELIVERY,
    "NewSubscription": _make_object(
        {"id": {**ID, "description": "Made by the service where none is sent."}, **_WRITABLE, **_SENT_BACK},
        [],
        **_ONE_OF,
    ),
    "SubscriptionChange": _make_object(
        {"id": ID, **_NULLABLE, "delivery": make_nullable(MERGED_DELIVERY), **_SENT_BACK},
        [],
        minProperties=0,
        description="RFC 7396: members replace those of the subscription, null removes one.",
    ),
    "Subscription": _make_object(
        {
            "id": ID,
            **_NULLABLE,
            "delivery": make_nullable(make_reference("Delivery")),
            "status": {"type": "string", "enum": STATUSES},
            **_READ_ONLY,
        },
        ["id", "owner", "kind", "notation", "status", "labels", "created_at", "changed_at", "revision"],
    ),
    "SubscriptionPage": _make_object(
        {
            "subscriptions": {"type": "array", "items": make_reference("Subscription")},
            "next": {"type": ["string", "null"], "description": "The cursor of the next page."},
        }
    ),
}
"""The schemas that operations refer to; route modules add theirs."""

EXAMPLE_FILTER: dict[str, Any] = {
    "id": "s1",
    "filter": "make = 'ford' and price < 9000",
    "name": "cheap fords",
    "labels": ["cars"],
}
EXAMPLE_FORECAST: dict[str, Any] = {
    "id": "f1",
    "pattern": "a = kind = 'a'\nb = kind = 'b'\na ; b within 5 min",
    "horizon": "10 events",
    "threshold": 0.6,
}
EXAMPLE_WEBHOOK: dict[str, Any] = {
    "filter": "price < 9000",
    "delivery": {"transport": "webhook", "url": "https://example.org/hook", "schedule": "every 5 min"},
}
EXAMPLE_SUBSCRIPTION: dict[str, Any] = {
    **EXAMPLE_FILTER,
    "owner": "shop",
    "kind": "filter",
    "notation": "text",
    "mode": None,
    "horizon": None,
    "threshold": None,
    "delivery": None,
    "status": "active",
    "expires_at": None,
    "created_at": "2030-01-31T08:00:00Z",
    "changed_at": "2030-01-31T08:00:00Z",
    "revision": 1,
}
