"""Cursors: where a list goes on, as an opaque text that only this service makes.

A cursor holds a place and a checksum over the place and what is listed (whose things, by which route). One that was
altered, belongs to another list, or has no place of that list in it is refused with 400. The checksum is no secret: a
cursor gives no right, since what is listed is decided by the key alone; one who builds one by hand sees nothing but
another page of their own.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

import orjson

from tidings.service.api.problems import Problem

MAX_LENGTH = 2_000
"""Characters of a cursor at most."""

_CHECKSUM_BYTES = 9

_MAX_NUMBER = 2**63 - 1
"""The largest number of a row that databases have."""


def write_cursor(subject: str, place: list[Any]) -> str:
    """Return the cursor of a place in the list of a subject.

    >>> read_cursor("audit of shop", write_cursor("audit of shop", [7]), (int,))
    [7]
    """
    data = orjson.dumps(place)
    return base64.urlsafe_b64encode(_compute_checksum(subject, data) + data).decode().rstrip("=")


def read_cursor(subject: str, cursor: str, kinds: tuple[type, ...]) -> list[Any]:
    """Return the place of a cursor, a value of each kind; 400 for one that is not of this list."""
    try:
        if len(cursor) > MAX_LENGTH or not cursor.isascii():
            raise ValueError
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        checksum, data = raw[:_CHECKSUM_BYTES], raw[_CHECKSUM_BYTES:]
        if checksum != _compute_checksum(subject, data):
            raise ValueError
        place = _check_place(orjson.loads(data), kinds)
        if write_cursor(subject, place) != cursor:
            raise ValueError
    except (ValueError, binascii.Error):
        msg = "this is no cursor of this list; begin without one"
        raise Problem(msg, status=400) from None
    return place


def _check_place(place: Any, kinds: tuple[type, ...]) -> list[Any]:
    """Return what can be asked of a store: texts of ids and owners, and numbers of rows; `ValueError` otherwise."""
    if type(place) is not list or [type(part) for part in place] != list(kinds):
        raise ValueError
    for part in place:
        if not (part.isprintable() if type(part) is str else 0 <= part <= _MAX_NUMBER):
            raise ValueError
    return place


def _compute_checksum(subject: str, data: bytes) -> bytes:
    return hashlib.blake2b(
        subject.encode() + b"\0" + data, digest_size=_CHECKSUM_BYTES, person=b"tidings cursor"
    ).digest()
