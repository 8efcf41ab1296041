"""Owners in a database: the rules that bound them, and the end of all that is theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from tidings.model.values import to_microseconds
from tidings.service.store.base import OwnerRules, OwnerStore
from tidings.service.store.rows import is_storable, list_kept
from tidings.service.store.sql.matches import clear_matches
from tidings.service.store.sql.statements import bind, make_insert
from tidings.service.store.sql.tables import ANSWERS, COUNTS, KEYS, LABELS, RULES, SUBSCRIPTIONS
from tidings.service.store.sql.writing import COUNT, LogRecords

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tidings.service.store.sql.database import Database, Transaction

LIST = select(RULES)
GET = LIST.where(RULES.c.owner == bind(RULES.c.owner))
CLEAR = RULES.delete().where(RULES.c.owner == bind(RULES.c.owner))
INSERT = make_insert(RULES)
IDS = select(SUBSCRIPTIONS.c.id).where(SUBSCRIPTIONS.c.owner == bind(SUBSCRIPTIONS.c.owner))
CLEAR_OWNED = {
    name: table.delete().where(table.c.owner == bind(table.c.owner))
    for name, table in (("labels", LABELS), ("counts", COUNTS), ("answers", ANSWERS), ("keys", KEYS))
}
CLEAR_SUBSCRIPTIONS = SUBSCRIPTIONS.delete().where(SUBSCRIPTIONS.c.owner == bind(SUBSCRIPTIONS.c.owner))


class SqlOwners(OwnerStore):
    """`OwnerStore` over tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set(self, rules: Sequence[OwnerRules], *, actor: str, at: datetime) -> Sequence[str]:
        """Replace the rules of these owners; another `only` changes all subscriptions of that owner."""
        named = {rule.owner: rule for rule in rules}
        before = {row[0]: _decode_rules(row) for row in self._database.fetch_all(LIST)}
        if before.items() >= named.items():  # as each process says them when it starts
            return list_kept(before, named)
        with self._database.write(sorted(named)) as transaction:
            before = self._replace(transaction, named, actor=actor, at=to_microseconds(at))
            self._database.backend.notify_in(transaction)
        self._database.backend.notify()
        return list_kept(before, named)

    def get(self, owner: str) -> OwnerRules | None:
        """Return the rules of an owner."""
        row = self._database.fetch_one(GET, owner=owner) if is_storable(owner) else None
        return None if row is None else _decode_rules(row)

    def erase(self, owner: str, *, actor: str, at: datetime) -> Mapping[str, int]:
        """Remove all that is an owner's, except rules, which are the service's."""
        now, backend = to_microseconds(at), self._database.backend
        with self._database.write([owner]) as transaction:
            backend.lock_matches(transaction)
            matches = clear_matches(self._database, transaction, owner)
            ids = [id for (id,) in transaction.fetch_all(IDS, owner=owner)]
            transaction.run(CLEAR_SUBSCRIPTIONS, owner=owner)
            counts = {name: transaction.run(statement, owner=owner) for name, statement in CLEAR_OWNED.items()}
            audit = [(now, actor, owner, "erase", "", None)]
            LogRecords(now, [(owner, id, None) for id in ids], audit).append_to(transaction)
            backend.notify_in(transaction)
        backend.notify()
        return {
            "subscriptions": len(ids),
            "matches": matches,
            "answers": counts["answers"],
            "keys": counts["keys"],
        }

    def _replace(
        self, transaction: Transaction, named: Mapping[str, OwnerRules], *, actor: str, at: int
    ) -> dict[str, OwnerRules]:
        """Replace the rules of these owners; return what all rules were."""
        before = {row[0]: _decode_rules(row) for row in transaction.fetch_all(LIST)}
        for owner in sorted(before.keys() & named.keys()):
            transaction.run(CLEAR, owner=owner)
        transaction.insert_rows(INSERT, [_encode_rules(rule) for rule in named.values()])
        changes, audit = [], []
        for owner, new in sorted(named.items()):
            old = before.get(owner, OwnerRules(owner=owner))
            if old != new:
                audit.append((at, actor, owner, "set rules", "", None))
            if old.only != new.only and any(count for (count,) in transaction.fetch_all(COUNT, owner=owner)):
                changes.append((owner, None, None))
        if audit:
            LogRecords(at, changes, audit).append_to(transaction)
        return before


def _encode_rules(rules: OwnerRules) -> tuple[str | float | None, ...]:
    return (
        rules.owner,
        rules.only,
        rules.subscriptions,
        rules.filter_bytes,
        rules.requests_per_second,
        rules.events_per_second,
    )


def _decode_rules(row: tuple[Any, ...]) -> OwnerRules:
    owner, only, subscriptions, filter_bytes, requests, events = row
    return OwnerRules(
        owner=owner,
        only=only,
        subscriptions=subscriptions,
        filter_bytes=filter_bytes,
        requests_per_second=requests,
        events_per_second=events,
    )
