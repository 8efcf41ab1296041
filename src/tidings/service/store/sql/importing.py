"""Imports: any number of subscriptions in one transaction, in constant memory.

Rows first go into a temporary table, where nobody waits for them however long they take to come; then one statement
merges them while the owner is locked. In the log an import is one change: it names the import, and the subscriptions
bear its number.
"""

from __future__ import annotations

import secrets
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, text

from tidings.service.store.base import Write
from tidings.service.store.rows import begin_subscription, check_storable, refuse_quota
from tidings.service.store.sql.codec import ROW, encode_subscription, encode_time
from tidings.service.store.sql.statements import bind
from tidings.service.store.sql.tables import COUNTS, SUBSCRIPTIONS
from tidings.service.store.sql.writing import CHANGE_COUNT, COUNT, LogRecords

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from tidings.service.store.sql.database import Database, Transaction
    from tidings.service.subscription import SubscriptionDraft

_S = SUBSCRIPTIONS.c
STAGED = tuple(
    (place, column.name)
    for place, column in enumerate(ROW)
    if column.name not in ("owner", "created_at", "changed_at", "revision")
)
"""What differs between rows of one import, by its place in a row."""

take_staged = itemgetter(*(place for place, _ in STAGED))

_NAMES = ", ".join(name for _, name in STAGED)
_SETS = ", ".join(f"{name} = excluded.{name}" for _, name in STAGED if name not in ("id", "token"))
MERGE = text(
    "INSERT INTO subscriptions "  # noqa: S608 - names of columns
    f"({_NAMES}, owner, created_at, changed_at, revision, import_number) "
    f"SELECT {_NAMES}, :owner, CAST(:at AS BIGINT), CAST(:at AS BIGINT), 1, CAST(:import_number AS BIGINT) "
    "FROM staged WHERE 1 = 1 ORDER BY id "
    f"ON CONFLICT (owner, id) DO UPDATE SET {_SETS}, changed_at = excluded.changed_at, "
    "revision = subscriptions.revision + 1, import_number = excluded.import_number"
)
COUNT_STAGED = text("SELECT count(*) FROM staged")
COUNT_STATUS = select(func.count()).where(_S.status == bind(_S.status), _S.owner == bind(_S.owner))
CLEAR_COUNTS = COUNTS.delete().where(COUNTS.c.owner == bind(COUNTS.c.owner))
STATUSES = ("active", "learning", "paused", "expired")


class Importer:
    """One import of an owner."""

    def __init__(self, database: Database, owner: str, *, actor: str, at: datetime, most: int | None) -> None:
        self._database, self._owner, self._actor, self._at, self._most = database, owner, actor, at, most

    def run(self, drafts: Iterable[SubscriptionDraft]) -> int:
        """Put the drafts; return how many."""
        backend = self._database.backend
        with self._database.connect() as connection:
            backend.stage(connection, [name for _, name in STAGED], self._encode(drafts))
            with self._database.write_on(connection, [self._owner]) as transaction:
                count = self._merge(transaction)
                backend.notify_in(transaction)
        backend.notify()
        return count

    def _encode(self, drafts: Iterable[SubscriptionDraft]) -> Iterator[tuple[Any, ...]]:
        for draft in drafts:
            write = Write(action="put", owner=self._owner, id=draft.id, actor=self._actor, at=self._at, draft=draft)
            if error := check_storable(write):
                raise error
            yield take_staged(encode_subscription(begin_subscription(draft, write)))

    def _merge(self, transaction: Transaction) -> int:
        (count,) = transaction.fetch_one(COUNT_STAGED) or (0,)
        if not count:
            return 0
        before = sum(number for (number,) in transaction.fetch_all(COUNT, owner=self._owner))
        number = secrets.randbits(62)
        backend = self._database.backend
        at = encode_time(self._at)
        transaction.run(backend.delete_old_labels, owner=self._owner)
        transaction.run(MERGE, import_number=number, owner=self._owner, at=at)
        transaction.run(backend.insert_new_labels, owner=self._owner)
        after = self._count_again(transaction)
        if self._most is not None and after > max(before, self._most):
            raise refuse_quota(self._owner, self._most)
        audit = (at, self._actor, self._owner, "import", f"{count} subscriptions", None)
        LogRecords(at, [(self._owner, None, number)], [audit]).append_to(transaction)
        return int(count)

    def _count_again(self, transaction: Transaction) -> int:
        """Count the owner's subscriptions by status, and return how many there are."""
        counts = {status: _count(transaction, status, self._owner) for status in STATUSES}
        transaction.run(CLEAR_COUNTS, owner=self._owner)
        rows = [(self._owner, status, count) for status, count in counts.items() if count]
        transaction.merge_rows(CHANGE_COUNT, rows)
        return sum(counts.values())


def _count(transaction: Transaction, status: str, owner: str) -> int:
    (count,) = transaction.fetch_one(COUNT_STATUS, status=status, owner=owner) or (0,)
    return int(count)
