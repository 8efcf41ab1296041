"""Subscriptions in a database: reading by id and by pages, counting, and expiry.

A page is a range of an index (by id, by status, or by label), so its cost does not grow with the table. A search in
texts reads the owner's rows in that order until the page is full: the database leaves out those that cannot match, as
far as it knows upper from lower case (ASCII), and what is left is compared as Python folds case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import and_, bindparam, func, literal_column, or_, select, tuple_

from tidings.model.values import to_microseconds
from tidings.service.store.base import Imported, StoreError, SubscriptionQuery, SubscriptionStore, Write, Written
from tidings.service.store.rows import EXPIRY_ACTOR, is_storable
from tidings.service.store.sql.codec import ROW, decode_subscription
from tidings.service.store.sql.importing import Importer
from tidings.service.store.sql.statements import bind
from tidings.service.store.sql.tables import COUNTS, LABELS, SUBSCRIPTIONS
from tidings.service.store.sql.writing import CHANGE_COUNT, FIND, LogRecords, WriteGroup

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.sql import Executable

    from tidings.service.store.sql.backend import DatabaseBackend
    from tidings.service.store.sql.database import Database, Transaction
    from tidings.service.subscription import Subscription, SubscriptionDraft, SubscriptionStatus

_S, _L = SUBSCRIPTIONS.c, LABELS.c
_NUMBER = _S.revision.type

GET = select(*ROW).where(_S.owner == bind(_S.owner), _S.id == bind(_S.id))
COUNT_ALL = select(COUNTS.c.status, func.sum(COUNTS.c.count)).group_by(COUNTS.c.status)
COUNT_OWNER = COUNT_ALL.where(COUNTS.c.owner == bind(COUNTS.c.owner))
_DUE = and_(
    _S.expires_at.is_not(None), _S.status != "expired", _S.expires_at <= bindparam("now", type_=_S.expires_at.type)
)
DUE_OWNERS = select(_S.owner).where(_DUE).distinct().order_by(_S.owner).limit(bindparam("limit", type_=_NUMBER))
DUE = (
    select(_S.number, _S.id, _S.status, _S.revision)
    .where(_DUE, _S.owner == bind(_S.owner))
    .order_by(_S.id)
    .limit(bindparam("limit", type_=_NUMBER))
)
EXPIRE = (
    SUBSCRIPTIONS.update()
    .where(_S.number == bind(_S.number, "its_number"))
    .values(status="expired", changed_at=bind(_S.changed_at), revision=_S.revision + 1)
)

EXPIRED_AT_ONCE = 5_000
"""Subscriptions that one transaction expires at most, so that other writers are not kept waiting."""


class SqlSubscriptions(SubscriptionStore):
    """`SubscriptionStore` over tables."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pages: dict[PageShape, Executable] = {}

    def write(self, writes: Sequence[Write]) -> list[Written | StoreError]:
        """Do the writes in one transaction."""
        return WriteGroup(writes).run(self._database) if writes else []

    def write_many(
        self,
        owner: str,
        drafts: Iterable[SubscriptionDraft | None],
        *,
        actor: str,
        at: datetime,
        most: int | None = None,
        fill: bool = False,
    ) -> Imported:
        """Put drafts in one transaction; of several with one id, the last."""
        return Importer(self._database, owner, actor=actor, at=at, most=most, fill=fill).run(drafts)

    def get(self, owner: str, id: str) -> Subscription | None:
        """Return a subscription."""
        if not (is_storable(owner) and is_storable(id)):
            return None
        row = self._database.fetch_one(GET, owner=owner, id=id)
        return None if row is None else decode_subscription(row)

    def get_many(self, owner: str, ids: Collection[str]) -> Mapping[str, Subscription]:
        """Return those that exist, by one statement where a statement is a round trip."""
        pairs = [(owner, id) for id in dict.fromkeys(ids) if is_storable(id)] if is_storable(owner) else []
        with self._database.read() as transaction:
            rows = self._database.backend.fetch_pairs(transaction, FIND, pairs)
            subscriptions = [decode_subscription(row) for row in rows]
        return {subscription.id: subscription for subscription in subscriptions}

    def list(self, query: SubscriptionQuery) -> Sequence[Subscription]:
        """Return a page."""
        if query.owner is not None and query.after is not None and query.after[0] != query.owner:
            if query.after[0] > query.owner:
                return []
            query = replace(query, after=None)
        values = _list_values(query)
        if not all(is_storable(value) for value in values.values() if isinstance(value, str)):
            return []
        statement = self._get_page(query)
        if not query.text:
            return [decode_subscription(row) for row in self._database.fetch_all(statement, **values)]
        with self._database.read() as transaction:
            rows = self._database.backend.stream(transaction, statement, **values)
            page = (decode_subscription(row) for row in rows if _holds_text(row, values["wanted"]))
            return list(islice(page, query.limit))

    def count(self, owner: str | None = None) -> Mapping[SubscriptionStatus, int]:
        """Count by status."""
        if owner is not None and not is_storable(owner):
            return {}
        values = {} if owner is None else {"owner": owner}
        rows = self._database.fetch_all(COUNT_ALL if owner is None else COUNT_OWNER, **values)
        return {status: int(count) for status, count in rows if count}

    def expire(self, now: datetime) -> int:
        """Change the status of those whose time has come, some thousands in a transaction."""
        total = 0
        while owners := self._database.fetch_all(DUE_OWNERS, now=to_microseconds(now), limit=100):
            total += sum(self._expire_some(owner, now) for (owner,) in owners)
        return total

    def _expire_some(self, owner: str, now: datetime) -> int:
        at, backend = to_microseconds(now), self._database.backend
        with self._database.write([owner]) as transaction:
            rows = transaction.fetch_all(DUE, now=at, owner=owner, limit=EXPIRED_AT_ONCE)
            if rows:
                _expire_rows(transaction, owner, at, rows)
                backend.notify_in(transaction)
        if rows:
            backend.notify()
        return len(rows)

    def _get_page(self, query: SubscriptionQuery) -> Executable:
        shape = PageShape(
            has_owner=query.owner is not None,
            has_label=query.label is not None,
            has_status=query.status is not None,
            has_after=query.after is not None,
            text=None if not query.text else "ascii" if query.text.casefold().isascii() else "any",
        )
        if shape not in self._pages:
            self._pages[shape] = shape.build(self._database.backend)
        return self._pages[shape]


def _expire_rows(transaction: Transaction, owner: str, at: int, rows: Sequence[tuple[Any, ...]]) -> None:
    transaction.run_many(EXPIRE, [{"its_number": row[0], "changed_at": at} for row in rows])
    statuses = [status for _, _, status, _ in rows]
    lost = [(owner, status, -statuses.count(status)) for status in sorted(set(statuses))]
    transaction.merge_rows(CHANGE_COUNT, [*lost, (owner, "expired", len(rows))])
    audit = [(at, EXPIRY_ACTOR, owner, "expire", id, revision + 1) for _, id, _, revision in rows]
    LogRecords(at, [(owner, id, None) for _, id, _, _ in rows], audit).append_to(transaction)


# Pages ----------------------------------------------------------------------------------------------


def _list_values(query: SubscriptionQuery) -> dict[str, Any]:
    """Return the values of a page's statement."""
    values: dict[str, Any] = {} if query.text else {"limit": query.limit}
    if query.after is not None:
        values["after_owner"], values["after_id"] = query.after
    names = {"owner": query.owner, "label": query.label, "status": query.status}
    values |= {name: value for name, value in names.items() if value is not None}
    return values | ({"wanted": query.text.casefold()} if query.text else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class PageShape:
    """What a page is asked for: each shape has its statement, a range of one index in its order."""

    has_owner: bool
    has_label: bool
    has_status: bool
    has_after: bool
    text: Literal["ascii", "any"] | None

    def build(self, backend: DatabaseBackend) -> Executable:
        """Return the statement."""
        keys = _L if self.has_label else _S
        page = select(*ROW)
        if self.has_label:
            page = page.join(LABELS, and_(_L.owner == _S.owner, _L.id == _S.id)).where(_L.label == bind(_L.label))
        if self.has_owner:
            page = page.where(keys.owner == bind(keys.owner))
        if self.has_status:  # with a label, its index leads; the status is looked at in the rows
            status = _S.status + literal_column("''") if self.has_label else _S.status
            page = page.where(status == bind(_S.status))
        if self.has_after and self.has_owner:
            page = page.where(keys.id > bind(keys.id, "after_id"))
        elif self.has_after:
            after = tuple_(bind(keys.owner, "after_owner"), bind(keys.id, "after_id"))
            page = page.where(tuple_(keys.owner, keys.id) > after)
        page = page.order_by(keys.owner, keys.id)
        if self.text is None:
            return page.limit(bindparam("limit", type_=_NUMBER))
        return page.where(_may_hold(backend, is_ascii=self.text == "ascii"))


def _may_hold(backend: DatabaseBackend, *, is_ascii: bool) -> Any:
    """Return a condition that leaves out ASCII texts without the wanted one; others are compared by Python."""
    whole = _S.id + func.coalesce(_S.name, "") + _S.text
    has_other_letters = backend.count_bytes(whole) != func.length(whole)
    if not is_ascii:
        return has_other_letters
    wanted = bindparam("wanted", type_=_S.text.type)
    return or_(has_other_letters, *(backend.holds_text(column, wanted) for column in (_S.id, _S.name, _S.text)))


def _holds_text(row: tuple[Any, ...], wanted: str) -> bool:
    """Tell whether the id, the text or the name holds what is wanted."""
    return any(wanted in text.casefold() for text in (row[1], row[3], row[5]) if text is not None)
