"""Matches as JSON, as `GET .../matches` lists them and the stream sends them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import orjson
from starlette.responses import Response

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.service.subscription import MatchRow

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def describe_match(row: MatchRow) -> dict[str, Any]:
    """Return a match as JSON; what it has none of is left out."""
    match: dict[str, Any] = {"kind": row.kind}
    if row.event is not None:
        match["event"] = row.event
    if row.events is not None:
        match["events"] = row.events
    if row.probability is not None:
        match["probability"] = row.probability
    return match | {"at": row.at, "values": row.values}


def encode_values(value: Any) -> bytes:
    """Return JSON of values as events bring them: also of integers that orjson finds too large."""
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_format_moment).encode()


def _format_moment(value: datetime) -> str:
    return value.isoformat().removesuffix("+00:00") + "Z"


def answer_values(value: Any, status: int = 200) -> Response:
    """Return a response of such JSON."""
    return Response(encode_values(value), status, media_type="application/json")


MATCH: dict[str, Any] = {
    "type": "object",
    "required": ["kind", "at", "values"],
    "properties": {
        "kind": {"enum": ["match", "detection", "forecast"]},
        "event": {"type": "string", "description": "The id of the event that matched, or completed the pattern."},
        "events": {"type": "array", "items": {"type": "string"}, "description": "The events of a detection, in order."},
        "probability": {"type": "number", "minimum": 0, "maximum": 1},
        "at": {"type": "string", "format": "date-time"},
        "values": {"type": "object", "description": "The event as it was published.", "additionalProperties": True},
    },
}
"""The JSON schema of a match."""

MATCH_EXAMPLE: dict[str, Any] = {
    "kind": "match",
    "event": "ad-1",
    "at": "2024-07-01T12:00:00Z",
    "values": {"id": "ad-1", "make": "ford", "price": 8500, "time": "2024-07-01T12:00:00Z"},
}
