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

from tidings.model.values import to_microseconds
from tidings.service.store.base import SHOWN_LEFT_OUT, Imported, Write
from tidings.service.store.rows import begin_subscription, check_storable, refuse_quota
from tidings.service.store.sql.codec import ROW, encode_subscription
from tidings.service.store.sql.statements import bind
from tidings.service.store.sql.tables import COUNTS, SUBSCRIPTIONS
from tidings.service.store.sql.writing import CHANGE_COUNT, COUNT, LogRecords
from tidings.service.subscription import ALL_STATUSES

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
_IS_NEW = "NOT EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.owner = :owner AND s.id = staged.id)"
COUNT_NEW = text(f"SELECT count(*) FROM staged WHERE {_IS_NEW}")  # noqa: S608 - our own constant
FIND_LEFT_OUT = text(
    f"SELECT place, id FROM staged WHERE {_IS_NEW} "  # noqa: S608 - our own constant
    f"ORDER BY place LIMIT {SHOWN_LEFT_OUT} OFFSET CAST(:room AS BIGINT)"
)
LEAVE_OUT = text(f"DELETE FROM staged WHERE place >= CAST(:place AS BIGINT) AND {_IS_NEW}")  # noqa: S608
COUNT_STATUS = select(func.count()).where(_S.status == bind(_S.status), _S.owner == bind(_S.owner))
CLEAR_COUNTS = COUNTS.delete().where(COUNTS.c.owner == bind(COUNTS.c.owner))


class Importer:
    """One import of an owner."""

    def __init__(
        self, database: Database, owner: str, *, actor: str, at: datetime, most: int | None, fill: bool
    ) -> None:
        self._database, self._owner, self._actor, self._at = database, owner, actor, at
        self._most, self._fill = most, fill

    def run(self, drafts: Iterable[SubscriptionDraft | None]) -> Imported:
        """Put the drafts; return how many, and which were left out."""
        backend = self._database.backend
        with self._database.connect() as connection:
            backend.stage(connection, [*(name for _, name in STAGED), "place"], self._encode(drafts))
            with self._database.write_on(connection, [self._owner]) as transaction:
                imported = self._merge(transaction)
                backend.notify_in(transaction)
        backend.notify()
        return imported

    def _encode(self, drafts: Iterable[SubscriptionDraft | None]) -> Iterator[tuple[Any, ...]]:
        for place, draft in enumerate(drafts):
            if draft is None:
                continue
            write = Write(action="put", owner=self._owner, id=draft.id, actor=self._actor, at=self._at, draft=draft)
            if error := check_storable(write):
                raise error
            yield *take_staged(encode_subscription(begin_subscription(draft, write))), place

    def _merge(self, transaction: Transaction) -> Imported:
        before = sum(number for (number,) in transaction.fetch_all(COUNT, owner=self._owner))
        left_out, first = self._leave_out(transaction, before) if self._fill else (0, ())
        (count,) = transaction.fetch_one(COUNT_STAGED) or (0,)
        if not count:
            return Imported(0, left_out, first)
        number = secrets.randbits(62)
        backend = self._database.backend
        at = to_microseconds(self._at)
        transaction.run(backend.delete_old_labels, owner=self._owner)
        transaction.run(MERGE, import_number=number, owner=self._owner, at=at)
        transaction.run(backend.insert_new_labels, owner=self._owner)
        after = self._count_again(transaction)
        if self._most is not None and after > max(before, self._most):
            raise refuse_quota(self._owner, self._most)
        audit = (at, self._actor, self._owner, "import", f"{count} subscriptions", None)
        LogRecords(at, [(self._owner, None, number)], [audit]).append_to(transaction)
        return Imported(int(count), left_out, first)

    def _leave_out(self, transaction: Transaction, before: int) -> tuple[int, tuple[tuple[int, str], ...]]:
        """Remove the new rows that the owner has no room for; return how many, and the first of them."""
        if self._most is None:
            return 0, ()
        room = max(0, self._most - before)
        (new,) = transaction.fetch_one(COUNT_NEW, owner=self._owner) or (0,)
        if new <= room:
            return 0, ()
        first = tuple(
            (int(place), id) for place, id in transaction.fetch_all(FIND_LEFT_OUT, owner=self._owner, room=room)
        )
        transaction.run(LEAVE_OUT, owner=self._owner, place=first[0][0])
        return int(new) - room, first

    def _count_again(self, transaction: Transaction) -> int:
        """Count the owner's subscriptions by status, and return how many there are."""
        counts = {status: _count(transaction, status, self._owner) for status in ALL_STATUSES}
        transaction.run(CLEAR_COUNTS, owner=self._owner)
        rows = [(self._owner, status, count) for status, count in counts.items() if count]
        transaction.merge_rows(CHANGE_COUNT, rows)
        return sum(counts.values())


def _count(transaction: Transaction, status: str, owner: str) -> int:
    (count,) = transaction.fetch_one(COUNT_STATUS, status=status, owner=owner) or (0,)
    return int(count)
