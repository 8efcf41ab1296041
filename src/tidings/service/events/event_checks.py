"""What one event is asked besides its declarations: its id, its time, its payload, and how deep it is nested."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.matcher.loading.documents import to_id
from tidings.service.refusals import RequestMistake

if TYPE_CHECKING:
    from datetime import datetime

MAX_EVENT_ID = 1_000
"""Characters of an event's id at most."""

_SHOWN = 60
"""Characters of a value that a message quotes."""


@dataclass(frozen=True, slots=True)
class EventMistake(RequestMistake):
    """Why an event of a body is refused; `index` counts the body's events from 0."""

    index: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return RequestMistake.to_dict(self) | {"index": self.index}


def read_id(id: object, name: str) -> str:
    """Return the id of an event as text; ValueError where it is no id."""
    try:
        text = to_id(id)
    except ValueError as reason:
        msg = f"`{name}`: {reason}"
        raise ValueError(msg) from None
    if not text or len(text) > MAX_EVENT_ID:
        msg = f"`{name}`: an id has 1 to {MAX_EVENT_ID:,} characters"
        raise ValueError(msg)
    return text


def refuse_time(index: int, name: str, time: object) -> EventMistake:
    """Return that the time of an event is none."""
    text = repr(time)
    shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    hint = "write it as 2024-07-01T12:00:00Z or as the seconds since 1970, or leave it out: then it is that of arrival"
    return EventMistake(f"`{name}`: {shown} is no time", hint, index=index)


def format_time(time: datetime) -> str:
    """Return a time in UTC as events are given it, in microseconds.

    >>> from datetime import UTC, datetime
    >>> format_time(datetime(2024, 7, 1, 12, tzinfo=UTC))
    '2024-07-01T12:00:00.000000Z'
    """
    return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def is_base64(payload: object) -> bool:
    """Tell whether a payload is bytes in base64."""
    try:
        base64.b64decode(payload if isinstance(payload, str) else "?", validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def is_deeper(value: object, levels: int) -> bool:
    """Tell whether objects and lists are nested in more than so many levels.

    >>> is_deeper({"a": [1]}, 2), is_deeper({"a": [[1]]}, 2)
    (False, True)
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        if not level:
            return False
        inner = (part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer))
        level = [part for part in inner if isinstance(part, dict | list)]
    return bool(level)
