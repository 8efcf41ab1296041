"""Keys and owners in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.service.store.base import AuditRecord, IdTaken, KeyRecord, OwnerRules
from tidings.service.store.rows import list_kept, require_storable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tidings.service.store.memory.tables import MemoryTables


class MemoryKeys:
    """`KeyStore` over a dictionary by id."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def add(self, key: KeyRecord, *, actor: str) -> None:
        """Store a key, whose id and digest are new."""
        require_storable(id=key.id, owner=key.owner, note=key.note, actor=actor)
        with self._tables.changed:
            if key.id in self._tables.keys or any(key.digest == kept.digest for kept in self._tables.keys.values()):
                msg = f"there is a key `{key.id}` already; make a new one"
                raise IdTaken(msg)
            self._tables.keys[key.id] = key
            record = AuditRecord(at=key.created_at, actor=actor, owner=key.owner, action="add key", id=key.id)
            self._tables.append_audit(record)

    def find(self, digest: str) -> KeyRecord | None:
        """Return the key of a digest."""
        with self._tables.changed:
            return next((key for key in self._tables.keys.values() if key.digest == digest), None)

    def list(self, owner: str | None = None) -> Sequence[KeyRecord]:
        """Return keys by creation."""
        with self._tables.changed:
            rows = [key for key in self._tables.keys.values() if owner in (None, key.owner)]
            return sorted(rows, key=lambda key: (key.created_at, key.id))

    def revoke(self, id: str, *, actor: str, at: datetime) -> bool:
        """Revoke a key."""
        with self._tables.changed:
            key = self._tables.keys.get(id)
            if key is None or key.revoked_at is not None:
                return False
            self._tables.keys[id] = replace(key, revoked_at=at)
            record = AuditRecord(at=at, actor=actor, owner=key.owner, action="revoke key", id=id)
            self._tables.append_audit(record)
            return True


class MemoryOwners:
    """`OwnerStore` over a dictionary by owner."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def set(self, rules: Sequence[OwnerRules], *, actor: str, at: datetime) -> Sequence[str]:
        """Replace the rules of these owners; another `only` changes all subscriptions of that owner."""
        with self._tables.changed:
            before, named = self._tables.rules, {rule.owner: rule for rule in rules}
            self._tables.rules = {**before, **named}
            for owner, new in sorted(named.items()):
                old = before.get(owner, OwnerRules(owner=owner))
                if old != new:
                    record = AuditRecord(at=at, actor=actor, owner=owner, action="set rules", id="")
                    self._tables.append_audit(record)
                if old.only != new.only:
                    keys = [key for key in sorted(self._tables.subscriptions) if key[0] == owner]
                    self._tables.append_changes(keys, at)
            return list_kept(before, named)

    def get(self, owner: str) -> OwnerRules | None:
        """Return the rules of an owner."""
        with self._tables.changed:
            return self._tables.rules.get(owner)

    def erase(self, owner: str, *, actor: str, at: datetime) -> Mapping[str, int]:
        """Remove all that is an owner's, except rules, which are the service's."""
        tables = self._tables
        with tables.changed:
            keys = [key for key in sorted(tables.subscriptions) if key[0] == owner]
            matches = sum(tables.remove_matches(key) for key in keys)
            answers = [key for key in tables.answers if key[0] == owner]
            records = [key.id for key in tables.keys.values() if key.owner == owner]
            for key in keys:
                del tables.subscriptions[key]
            for key in answers:
                del tables.answers[key]
            for id in records:
                del tables.keys[id]
            tables.append_changes(keys, at)
            tables.append_audit(AuditRecord(at=at, actor=actor, owner=owner, action="erase", id=""))
            counts = {"subscriptions": len(keys), "matches": matches, "answers": len(answers)}
            return {**counts, "keys": len(records)}
