"""JSON schemas and examples of what `:try`, `:estimate` and `why` take and give, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from tidings.service.api.schemas import STATUSES

SHOWN_MATCHES = 5
"""Matches that an estimate shows."""

_REASON: dict[str, Any] = {
    "type": "object",
    "required": ["test", "holds", "seen"],
    "properties": {"test": {"type": "string"}, "holds": {"type": "boolean"}, "seen": {"type": "array"}},
}
_VERDICT: dict[str, Any] = {
    "matches": {"type": "boolean"},
    "text": {"type": "string", "description": "The reasons in lines for a person."},
    "beyond": {"const": True, "description": "The owner may not see this event."},
    "reasons": {"type": "array", "items": _REASON},
    "more": {"type": "integer", "minimum": 1, "description": "How many reasons there are beside those."},
    "steps": {
        "type": "array",
        "description": "Of a pattern, each of its filters.",
        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}
TRIAL_SCHEMAS: dict[str, Any] = {
    "Trial": {
        "type": "object",
        "required": ["kind", "matches", "results"],
        "properties": {
            "kind": {"enum": ["filter", "pattern", "forecast"]},
            "matches": {"type": "integer", "minimum": 0},
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["index"],
                    "properties": {
                        "index": {"type": "integer", "minimum": 0},
                        "event": {"type": "string"},
                        "error": {"type": "object"},
                        **_VERDICT,
                    },
                },
            },
            "detections": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Of a pattern, the first of its matches, whose number is `matches`.",
            },
        },
    },
    "Estimate": {
        "type": "object",
        "required": ["kind", "matches", "events", "since", "seconds", "per_day", "interval", "note", "latest"],
        "properties": {
            "kind": {"enum": ["filter", "pattern", "forecast"]},
            "matches": {"type": "integer", "minimum": 0, "description": "Matches among the events looked at."},
            "events": {
                "type": "integer",
                "minimum": 0,
                "description": "How many events were looked at: those that the owner may see.",
            },
            "since": {"type": ["string", "null"], "format": "date-time"},
            "seconds": {"type": "number", "minimum": 0, "description": "In how long they came."},
            "per_day": {"type": ["number", "null"], "minimum": 0},
            "interval": {
                "type": ["array", "null"],
                "items": {"type": "number", "minimum": 0},
                "description": "Where the number of a day lies with 95 %, if days were alike.",
            },
            "note": {"type": ["string", "null"], "description": "Why the estimate says little."},
            "latest": {"type": "array", "items": {"type": "object"}, "maxItems": SHOWN_MATCHES},
        },
    },
    "Explanation": {
        "type": "object",
        "required": ["subscription", "status", "kind", "event", "matches", "text", "values"],
        "properties": {
            "subscription": {"type": "string"},
            "status": {"type": "string", "enum": STATUSES},
            "kind": {"enum": ["filter", "pattern", "forecast"]},
            "event": {"type": "string"},
            "values": {"type": "object"},
            **_VERDICT,
        },
    },
}
"""The schemas of the answers, by name."""

WANTED: dict[str, Any] = {
    name: {}
    for name in ("id", "name", "filter", "pattern", "notation", "mode", "horizon", "threshold", "labels", "delivery")
}
"""What describes a subscription, or names one that is stored."""

WANTED_EXAMPLE = {"filter": "make = 'ford' and price < 9000"}

TRIED_EXAMPLE = {
    "index": 0,
    "event": "ad-1",
    "matches": False,
    "text": "`subscription` does not match: make = 'ford' and price < 9000\n  no   price < 9000   (saw 9500)",
    "reasons": [{"test": "price < 9000", "holds": False, "seen": [9500]}],
}
ESTIMATE_EXAMPLE = {
    "kind": "filter",
    "matches": 120,
    "events": 20000,
    "since": "2024-07-01T00:00:00Z",
    "seconds": 43200.0,
    "per_day": 240.0,
    "interval": [198.98, 286.98],
    "note": "estimated from the last 12.0 hours; other hours may differ",
    "latest": [],
}
