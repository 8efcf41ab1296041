"""Documents: events that come as the text of one JSON object each, and are matched as the mapping it stands for.

What filters see is what `json.loads` gives for the text, so that a document matches exactly what `td.Matcher` says of
the mapping: of a name that comes twice the last value counts, integers have any size. NaN and the infinities are no
JSON. With orjson installed it decodes what both read alike; whatever it refuses, and texts with long numbers, which
are floats to it, go to `json`. Half of a surrogate pair is no text, and makes the document unreadable.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.algebra.law.coerce import to_time

try:
    import orjson
except ImportError:  # it comes with the extra [service]
    orjson = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCUMENT = "document"
"""The column of a source without `columns`: the text of each event."""

PAYLOAD = "data_base64"
"""The field of an event's opaque payload, in base64; filters cannot name it."""

_LONG_NUMBER = "[0-9]{19}"
"""What a text has that orjson may read in another way: integers beyond 64 bits are floats to it."""

_SHAPES = {list: "an array", str: "a text", int: "a number", float: "a number", bool: "a truth value"}


@dataclass(frozen=True, slots=True)
class BadDocument:
    """A document that cannot be read, and why."""

    reason: str


Document: TypeAlias = "dict[str, Any] | BadDocument"


def read_documents(column: pa.Array) -> list[Document]:
    """Return the mapping of each text; what is not one JSON object is a `BadDocument`."""
    texts = column.to_pylist()
    if orjson is None:
        return [parse_document(text) for text in texts]
    plain = ~np.asarray(pc.fill_null(pc.match_substring_regex(column, _LONG_NUMBER), True))
    return [_parse_fast(text) if fast else parse_document(text) for text, fast in zip(texts, plain, strict=True)]


def _parse_fast(text: str) -> Document:
    try:
        document = orjson.loads(text)
    except ValueError:
        return parse_document(text)  # which says why, or reads more
    return document if type(document) is dict else parse_document(text)


def _refuse_constant(name: str) -> None:
    msg = f"{name} is no number of JSON"
    raise ValueError(msg)


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


def parse_document(text: str | None) -> Document:
    """Return what `json` reads in a text; the slow twin of what orjson does."""
    if text is None:
        return BadDocument("no value (null)")
    try:
        document = _JSON.decode(text)
        if "\\u" in text:
            json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as mistake:
        return BadDocument(f"not JSON: {mistake.msg} (column {mistake.colno})")
    except RecursionError:
        return BadDocument("not JSON that can be read: it is nested too deeply")
    except UnicodeEncodeError:
        return BadDocument("not text: half of a pair of surrogates (`\\ud83d`) stands alone")
    except ValueError as mistake:
        return BadDocument(f"not JSON: {mistake}")
    if not isinstance(document, dict):
        return BadDocument(f"an object `{{...}}` is expected, not {_SHAPES.get(type(document), 'null')}")
    return document


def strip_payload(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what filters see of a document: all but its payload."""
    return document if PAYLOAD not in document else {name: value for name, value in document.items() if name != PAYLOAD}


# The columns beside a document -------------------------------------------------------------------


def find_value(document: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field, or of one in a nested object, `ce.source`; None where there is none.

    >>> find_value({"ce": {"source": "shop"}}, "ce.source")
    'shop'
    """
    if (value := document.get(name)) is not None or "." not in name:
        return value
    for end, sign in enumerate(name):
        inner = document.get(name[:end]) if sign == "." else None
        if isinstance(inner, dict) and (value := find_value(inner, name[end + 1 :])) is not None:
            return value
    return None


def to_id(value: object) -> str | None:
    """Return an event's id as text, numbers as JSON writes them; ValueError where it is neither.

    >>> to_id("a"), to_id(17), to_id(1.5), to_id(None)
    ('a', '17', '1.5', None)
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"{_shorten(value)} is neither a text nor a number"
        raise ValueError(msg)
    return json.dumps(value)


def to_moment(value: object) -> datetime | None:
    """Return an event's time, from ISO text or the seconds since 1970; None where it is neither.

    >>> to_moment("2024-07-01T12:00:00+02:00"), to_moment(1719828000)
    (datetime.datetime(2024, 7, 1, 10, 0, tzinfo=datetime.timezone.utc), \
datetime.datetime(2024, 7, 1, 10, 0, tzinfo=datetime.timezone.utc))
    """
    try:
        if isinstance(value, str):
            return to_time(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):  # no time that Python knows
        pass
    return None


def _shorten(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
