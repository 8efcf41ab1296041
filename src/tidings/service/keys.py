"""Keys that requests bring: made once, shown once, stored as a digest.

A key is `tdk_` and 256 random bits. Whoever reads the store learns the SHA-256 of it, from which the key does not
follow; a slow hash would protect guessable secrets, which these are not. The record's own id names a key in lists and
logs, and says nothing about it either.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, get_args

from tidings.concepts import did_you_mean
from tidings.errors import TidingsError
from tidings.service.store.base import KeyRecord, Scope
from tidings.service.subscription import check_owner

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

SCOPES: tuple[Scope, ...] = get_args(Scope)
"""What a key may be for; `admin` is for everything, of every owner."""

PREFIX = "tdk_"
"""What every key begins with, so that people and scanners of secrets recognise one."""


def make_key(
    owner: str, scopes: Iterable[str], *, at: datetime, expires_at: datetime | None = None, note: str = ""
) -> tuple[str, KeyRecord]:
    """Return a new key, to be shown once, and the record that is stored of it."""
    text = PREFIX + secrets.token_urlsafe(32)
    record = KeyRecord(
        id=f"key-{secrets.token_hex(6)}",
        owner=check_owner(owner),
        scopes=check_scopes(scopes),
        digest=digest_key(text),
        created_at=at,
        expires_at=expires_at,
        note=note,
    )
    return text, record


def digest_key(text: str) -> str:
    """Return what is stored of a key.

    >>> digest_key("tdk_")[:8]
    '0e01eeef'
    """
    return hashlib.sha256(text.encode()).hexdigest()


def check_scopes(scopes: Iterable[str]) -> frozenset[Scope]:
    """Return the scopes of a key; `TidingsError` for one that does not exist, and for none at all."""
    chosen = frozenset(scopes)
    for scope in sorted(chosen - set(SCOPES)):
        msg = f"`{scope:.40}` is no scope; a key is for {', '.join(f'`{name}`' for name in SCOPES)}"
        raise TidingsError(msg + did_you_mean(scope, SCOPES))
    if not chosen:
        msg = f"a key is for something: {', '.join(f'`{name}`' for name in SCOPES)}"
        raise TidingsError(msg)
    return frozenset(scope for scope in SCOPES if scope in chosen)


def is_valid(key: KeyRecord, now: datetime) -> bool:
    """Tell whether a key may be used: neither revoked nor expired."""
    return key.revoked_at is None and (key.expires_at is None or now < key.expires_at)
