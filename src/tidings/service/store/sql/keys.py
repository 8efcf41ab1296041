"""Keys in a database: found by the digest of what a request brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from tidings.model.values import to_datetime, to_microseconds
from tidings.service.store.base import IdTaken, KeyRecord, KeyStore
from tidings.service.store.rows import is_storable, require_storable
from tidings.service.store.sql.statements import bind, bind_columns
from tidings.service.store.sql.tables import KEYS
from tidings.service.store.sql.writing import LogRecords

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidings.service.store.base import Scope
    from tidings.service.store.sql.database import Database

_K = KEYS.c
FIND = select(KEYS).where(_K.digest == bind(_K.digest))
LIST = select(KEYS).order_by(_K.created_at, _K.id)
LIST_OWNER = LIST.where(_K.owner == bind(_K.owner))
INSERT = insert(KEYS).values(bind_columns(KEYS.c)).on_conflict_do_nothing()
REVOKE = (
    KEYS.update()
    .where(_K.id == bind(_K.id, "its_id"), _K.revoked_at.is_(None))
    .values(revoked_at=bind(_K.revoked_at))
    .returning(_K.owner)
)


class SqlKeys(KeyStore):
    """`KeyStore` over a table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, key: KeyRecord, *, actor: str) -> None:
        """Store a key, whose id and digest are new."""
        require_storable(id=key.id, owner=key.owner, note=key.note, actor=actor)
        at = to_microseconds(key.created_at)
        with self._database.write() as transaction:
            if not transaction.run(INSERT, **_encode_key(key)):
                msg = f"there is a key `{key.id}` already; make a new one"
                raise IdTaken(msg)
            LogRecords(at, audit=[(at, actor, key.owner, "add key", key.id, None)]).append_to(transaction)

    def find(self, digest: str) -> KeyRecord | None:
        """Return the key of a digest."""
        row = self._database.fetch_one(FIND, digest=digest) if is_storable(digest) else None
        return None if row is None else _decode_key(row)

    def list(self, owner: str | None = None) -> Sequence[KeyRecord]:
        """Return keys by creation."""
        if owner is None:
            rows = self._database.fetch_all(LIST)
        else:
            rows = self._database.fetch_all(LIST_OWNER, owner=owner) if is_storable(owner) else []
        return [_decode_key(row) for row in rows]

    def revoke(self, id: str, *, actor: str, at: datetime) -> bool:
        """Revoke a key."""
        if not is_storable(id):
            return False
        now = to_microseconds(at)
        with self._database.write() as transaction:
            row = transaction.fetch_one(REVOKE, its_id=id, revoked_at=now)
            if row is not None:
                LogRecords(now, audit=[(now, actor, row[0], "revoke key", id, None)]).append_to(transaction)
        return row is not None


def _encode_key(key: KeyRecord) -> dict[str, Any]:
    return {
        "id": key.id,
        "owner": key.owner,
        "scopes": " ".join(sorted(key.scopes)),
        "digest": key.digest,
        "created_at": to_microseconds(key.created_at),
        "expires_at": None if key.expires_at is None else to_microseconds(key.expires_at),
        "revoked_at": None if key.revoked_at is None else to_microseconds(key.revoked_at),
        "note": key.note,
    }


def _decode_key(row: tuple[Any, ...]) -> KeyRecord:
    id, owner, scopes, digest, created_at, expires_at, revoked_at, note = row
    return KeyRecord(
        id=id,
        owner=owner,
        scopes=cast("frozenset[Scope]", frozenset(scopes.split())),
        digest=digest,
        created_at=to_datetime(created_at),
        expires_at=None if expires_at is None else to_datetime(expires_at),
        revoked_at=None if revoked_at is None else to_datetime(revoked_at),
        note=note,
    )
