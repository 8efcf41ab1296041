"""JSON in the bodies of requests: read by orjson where it reads what `json` reads, by `json` where it does not.

Both give one law, that of `tidings.matcher.loading.documents`: of a name that comes twice the last value counts,
integers have any size, NaN and the infinities are no JSON. orjson makes floats of integers beyond 64 bits, so a body
that may have one goes to `json`; what orjson refuses goes there too, for the reason and its place, or because `json`
reads more. Cost: a millisecond for a megabyte, ten on the slow way.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import orjson

from tidings.errors import TidingsError
from tidings.lang.diagnostics import refuse_constant

_ZEROS = bytes(48 if 48 <= code <= 57 else code for code in range(256))
"""Makes every digit a zero: nineteen in a row are then found by one search."""

_LONG_RUN = b"0" * 19

_LONG_NUMBER = re.compile(rb"(?:^|[\[:,\s])-?[0-9]{19}")
"""Where a number of so many digits begins; in a text, digits mostly follow its quote."""

_JSON = json.JSONDecoder(parse_constant=refuse_constant)


class BadBody(TidingsError, ValueError):
    """The body of the request cannot be read."""

    hint: str | None
    at: int | None


@dataclass(frozen=True, slots=True)
class JsonValue:
    """What a text stands for; `is_plain` where orjson read it, so that orjson writes it again."""

    value: Any
    is_plain: bool


def has_long_number(body: bytes) -> bool:
    """Tell whether a body may have an integer that is a float to orjson."""
    return _LONG_RUN in body.translate(_ZEROS) and _LONG_NUMBER.search(body) is not None


def parse_json(body: bytes) -> JsonValue:
    """Return the value of a body that is one JSON text; `BadBody` with the place of the mistake where it is none."""
    if not has_long_number(body):
        try:
            return JsonValue(orjson.loads(body), is_plain=True)
        except ValueError:
            pass  # json says why, or reads more
    return JsonValue(_parse_slowly(body), is_plain=False)


def _parse_slowly(body: bytes) -> Any:
    if not body.strip():
        msg = "the body is empty"
        raise BadBody(msg, hint="send one event as a JSON object, or several in an array", at=0)
    try:
        return _JSON.decode(body.decode())
    except UnicodeDecodeError as mistake:
        msg = f"the body is not UTF-8 text (byte {mistake.start})"
        raise BadBody(msg, hint="JSON is always sent in UTF-8", at=mistake.start) from None
    except json.JSONDecodeError as mistake:
        msg = f"the body is not JSON: {mistake.msg} (line {mistake.lineno}, column {mistake.colno})"
        raise BadBody(msg, hint=None, at=mistake.pos) from None
    except RecursionError:
        msg = "the body is not JSON that can be read: it is nested too deeply"
        raise BadBody(msg, hint=None, at=None) from None
    except ValueError as mistake:
        msg = f"the body is not JSON: {mistake}"
        raise BadBody(msg, hint=None, at=None) from None


def encode_json(value: Any, *, is_plain: bool) -> bytes:
    """Return a value as a line of JSON; ValueError where it has no such form: half a surrogate pair, an infinity."""
    if is_plain:
        return orjson.dumps(value)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        msg = "not text: half of a pair of surrogates (`\\ud83d`) stands alone"
    except RecursionError:
        msg = "nested too deeply"
    except ValueError:
        msg = "a number is too large (1e400); numbers with a fraction or an exponent end at about 1.8e308"
    raise ValueError(msg)
