"""Subscriptions in memory: one write after the other, each allowed or refused by the rules of `store.rows`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.service.store.base import (
    SHOWN_LEFT_OUT,
    AuditRecord,
    Imported,
    StoreError,
    SubscriptionQuery,
    Write,
    Written,
)
from tidings.service.store.memory.tables import KeptAnswer, MemoryTables
from tidings.service.store.rows import (
    EXPIRY_ACTOR,
    begin_subscription,
    change_status,
    check_storable,
    name_action,
    refuse_digest,
    refuse_quota,
    refuse_write,
    replace_subscription,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from tidings.service.subscription import Subscription, SubscriptionDraft, SubscriptionStatus


class MemorySubscriptions:
    """`SubscriptionStore` over a dictionary by owner and id."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def write(self, writes: Sequence[Write]) -> list[Written | StoreError]:
        """Do the writes in their order."""
        with self._tables.changed:
            return [self._write_once(write) for write in writes]

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
        """Put drafts; of several with one id, the last."""
        writes, places = {}, {}
        for place, draft in enumerate(drafts):
            if draft is None:
                continue
            write = Write(action="put", owner=owner, id=draft.id, actor=actor, at=at, draft=draft)
            if error := check_storable(write):
                raise error
            writes[draft.id], places[draft.id] = write, place
        with self._tables.changed:
            created = sorted((places[id], id) for id in writes if (owner, id) not in self._tables.subscriptions)
            room = len(created) if most is None else max(0, most - self._count_of(owner))
            if most is not None and len(created) > room and not fill:
                raise refuse_quota(owner, most)
            left_out = created[room:]
            for _, id in left_out:
                del writes[id]
            for write in writes.values():
                self._apply(write, self._tables.subscriptions.get((owner, write.id)))
            self._tables.append_changes([(owner, id) for id in writes], at)
            if writes:
                id = f"{len(writes)} subscriptions"
                self._tables.append_audit(AuditRecord(at=at, actor=actor, owner=owner, action="import", id=id))
            return Imported(len(writes), len(left_out), tuple(left_out[:SHOWN_LEFT_OUT]))

    def get(self, owner: str, id: str) -> Subscription | None:
        """Return a subscription."""
        with self._tables.changed:
            return self._tables.subscriptions.get((owner, id))

    def get_many(self, owner: str, ids: Collection[str]) -> Mapping[str, Subscription]:
        """Return those that exist."""
        with self._tables.changed:
            rows = {id: self._tables.subscriptions.get((owner, id)) for id in ids}
            return {id: row for id, row in rows.items() if row is not None}

    def list(self, query: SubscriptionQuery) -> Sequence[Subscription]:
        """Return the first subscriptions after the cursor that the query asks for."""
        with self._tables.changed:
            keys = sorted(self._tables.subscriptions)
            rows = (self._tables.subscriptions[key] for key in keys if query.after is None or key > query.after)
            return [row for row in rows if _is_listed(row, query)][: query.limit]

    def count(self, owner: str | None = None) -> Mapping[SubscriptionStatus, int]:
        """Count by status."""
        with self._tables.changed:
            rows = self._tables.subscriptions.values()
            return Counter(row.status for row in rows if owner in (None, row.owner))

    def expire(self, now: datetime) -> int:
        """Change the status of those whose time has come."""
        with self._tables.changed:
            rows = self._tables.subscriptions
            due = [key for key, row in sorted(rows.items()) if _is_due(row, now)]
            for key in due:
                rows[key] = after = change_status(rows[key], "expired", now)
                self._append_audit(
                    Write(action="status", owner=key[0], id=key[1], actor=EXPIRY_ACTOR, at=now),
                    "expire",
                    after.revision,
                )
            self._tables.append_changes(due, now)
            return len(due)

    def _write_once(self, write: Write) -> Written | StoreError:
        if error := check_storable(write):
            return error
        if (answer := self._find_answer(write)) is not None:
            return answer
        current = self._tables.subscriptions.get((write.owner, write.id))
        if error := refuse_write(write, current, self._count_of(write.owner)):
            return error
        written = self._apply(write, current)
        self._tables.append_changes([(write.owner, write.id)], write.at)
        self._append_audit(write, name_action(write, current), written.subscription.revision)
        if write.idempotency is not None:
            kept = KeptAnswer(write.idempotency.digest, write.at, written)
            self._tables.answers[write.owner, write.idempotency.key] = kept
        return written

    def _append_audit(self, write: Write, action: str, revision: int) -> None:
        record = AuditRecord(
            at=write.at, actor=write.actor, owner=write.owner, action=action, id=write.id, revision=revision
        )
        self._tables.append_audit(record)

    def _apply(self, write: Write, current: Subscription | None) -> Written:
        key = (write.owner, write.id)
        match write.action:
            case "remove":
                assert current is not None
                del self._tables.subscriptions[key]
                self._tables.remove_matches(key)
                return Written(current)
            case "status":
                assert current is not None and write.status is not None
                after = change_status(current, write.status, write.at)
            case _:
                assert write.draft is not None
                after = replace_subscription(current, write) if current else begin_subscription(write.draft, write)
        self._tables.subscriptions[key] = after
        return Written(after, created=current is None)

    def _find_answer(self, write: Write) -> Written | StoreError | None:
        if write.idempotency is None:
            return None
        kept = self._tables.answers.get((write.owner, write.idempotency.key))
        if kept is None:
            return None
        if kept.digest != write.idempotency.digest:
            return refuse_digest(write.idempotency.key)
        return replace(kept.written, repeated=True)

    def _count_of(self, owner: str) -> int:
        return sum(key[0] == owner for key in self._tables.subscriptions)


def _is_listed(row: Subscription, query: SubscriptionQuery) -> bool:
    """Tell whether a list shows a subscription."""
    if query.owner not in (None, row.owner) or query.status not in (None, row.status):
        return False
    if query.label is not None and query.label not in row.labels:
        return False
    wanted = (query.text or "").casefold()
    return any(wanted in text.casefold() for text in (row.id, row.name or "", row.text))


def _is_due(row: Subscription, now: datetime) -> bool:
    return row.expires_at is not None and row.expires_at <= now and row.status != "expired"
