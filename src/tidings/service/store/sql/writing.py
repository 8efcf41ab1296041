"""Writes of subscriptions, many in one transaction: load what they are about, decide in order, apply what came of it.

The owners' locks come first, so nothing that was loaded changes before the commit; numbers of the log are taken last.
What is applied is the difference between before and after, by table, whatever the order of the writes: so a group of
two hundred costs few statements more than one write, and the commit is paid once.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from tidings.model.values import to_microseconds
from tidings.service.store.base import StoreError, Write, Written
from tidings.service.store.rows import (
    begin_subscription,
    change_status,
    check_storable,
    name_action,
    refuse_digest,
    refuse_write,
    replace_subscription,
)
from tidings.service.store.sql.codec import (
    ROW,
    decode_json,
    decode_subscription,
    encode_json,
    encode_subscription,
)
from tidings.service.store.sql.pairs import make_pair_query
from tidings.service.store.sql.statements import bind, bind_columns, make_insert
from tidings.service.store.sql.tables import ANSWERS, AUDIT, CHANGES, COUNTS, LABELS, LOG_HEAD, REMOVED, SUBSCRIPTIONS
from tidings.service.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidings.service.store.sql.database import Database, Transaction

_S, _A = SUBSCRIPTIONS.c, ANSWERS.c
_IS_IT = (_S.owner == bindparam("its_owner", type_=_S.owner.type), _S.id == bindparam("its_id", type_=_S.id.type))

FIND = make_pair_query(select(*ROW), _S.owner, _S.id)
FIND_ANSWERS = make_pair_query(select(_A.owner, _A.key, _A.digest, _A.answer), _A.owner, _A.key)
COUNT = select(COUNTS.c.count).where(COUNTS.c.owner == bind(COUNTS.c.owner))
INSERT = make_insert(SUBSCRIPTIONS, without=("number", "import_number"))
UPDATE = (
    SUBSCRIPTIONS.update()
    .values(bind_columns(column for column in ROW if column.name not in ("owner", "id", "created_at", "token")))
    .where(*_IS_IT)
)
NOTE_REMOVAL = REMOVED.insert().from_select(["number"], select(_S.number).where(*_IS_IT))
DELETE = SUBSCRIPTIONS.delete().where(*_IS_IT)
INSERT_LABEL = make_insert(LABELS)
DELETE_LABEL = LABELS.delete().where(*(column == bind(column) for column in LABELS.c))
_COUNT = insert(COUNTS).values(bind_columns(COUNTS.c))
CHANGE_COUNT = _COUNT.on_conflict_do_update(
    index_elements=["owner", "status"], set_={"count": COUNTS.c.count + _COUNT.excluded["count"]}
)
INSERT_ANSWER = make_insert(ANSWERS)
INSERT_CHANGE = make_insert(CHANGES)
INSERT_AUDIT = make_insert(AUDIT)
_TAKE_AUDIT = LOG_HEAD.update().returning(LOG_HEAD.c.sequence, LOG_HEAD.c.audit_number)
TAKE_NUMBERS = _TAKE_AUDIT.values(
    sequence=LOG_HEAD.c.sequence + bindparam("changes", type_=LOG_HEAD.c.sequence.type),
    mark=bind(LOG_HEAD.c.mark, "new_mark"),
    audit_number=LOG_HEAD.c.audit_number + bindparam("records", type_=LOG_HEAD.c.sequence.type),
)
TAKE_AUDIT_NUMBERS = _TAKE_AUDIT.values(
    audit_number=LOG_HEAD.c.audit_number + bindparam("records", type_=LOG_HEAD.c.sequence.type)
)


@dataclass(frozen=True, slots=True)
class LogRecords:
    """What a transaction leaves in the logs: changes (owner, id, import number), and rows of the audit log."""

    at: int
    changes: Sequence[tuple[str, str | None, int | None]] = ()
    audit: Sequence[tuple[Any, ...]] = ()  # at, actor, owner, action, id, revision

    def append_to(self, transaction: Transaction) -> None:
        """Take numbers, and write the rows that have them: the last thing that a transaction does."""
        mark = secrets.token_hex(8)
        counts = {"records": len(self.audit)}
        if self.changes:
            numbers = transaction.fetch_one(TAKE_NUMBERS, changes=len(self.changes), new_mark=mark, **counts)
        else:
            numbers = transaction.fetch_one(TAKE_AUDIT_NUMBERS, **counts)
        assert numbers is not None
        sequence, number = numbers[0] - len(self.changes) + 1, numbers[1] - len(self.audit) + 1
        changes = [(sequence + place, mark, self.at, *change) for place, change in enumerate(self.changes)]
        transaction.insert_rows(INSERT_CHANGE, changes)
        transaction.insert_rows(INSERT_AUDIT, [(number + place, *row) for place, row in enumerate(self.audit)])


@dataclass(slots=True)
class WriteGroup:
    """Writes that become one transaction."""

    writes: Sequence[Write]
    before: dict[tuple[str, str], Subscription] = field(default_factory=dict)
    now: dict[tuple[str, str], Subscription | None] = field(default_factory=dict)
    answers: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    removed: set[tuple[str, str]] = field(default_factory=set)
    changes: list[tuple[str, str | None, int | None]] = field(default_factory=list)
    audit: list[tuple[Any, ...]] = field(default_factory=list)
    new_answers: list[tuple[Any, ...]] = field(default_factory=list)

    def run(self, database: Database) -> list[Written | StoreError]:
        """Do the writes; one that is refused leaves nothing."""
        errors = [check_storable(write) for write in self.writes]
        possible = [write for write, error in zip(self.writes, errors, strict=True) if error is None]
        if not possible:
            return [error for error in errors if error is not None]
        with database.write(sorted({write.owner for write in possible})) as transaction:
            self._load(database, transaction, possible)
            results = [error or self._decide(write) for write, error in zip(self.writes, errors, strict=True)]
            if self.changes:
                self._apply(transaction)
                LogRecords(to_microseconds(possible[-1].at), self.changes, self.audit).append_to(transaction)
                database.backend.notify_in(transaction)
        if self.changes:
            database.backend.notify()
        return results

    def _load(self, database: Database, transaction: Transaction, writes: Sequence[Write]) -> None:
        keys = list({(write.owner, write.id): None for write in writes})
        for row in database.backend.fetch_pairs(transaction, FIND, keys):
            self.before[row[0], row[1]] = decode_subscription(row)
        self.now.update(self.before)
        if answers := [(write.owner, write.idempotency.key) for write in writes if write.idempotency]:
            for owner, key, digest, answer in database.backend.fetch_pairs(transaction, FIND_ANSWERS, answers):
                self.answers[owner, key] = (digest, answer)
        for owner in {write.owner for write in writes if write.most is not None}:
            self.counts[owner] = sum(count for (count,) in transaction.fetch_all(COUNT, owner=owner))

    def _decide(self, write: Write) -> Written | StoreError:
        if write.idempotency is not None and (answer := self.answers.get((write.owner, write.idempotency.key))):
            if answer[0] != write.idempotency.digest:
                return refuse_digest(write.idempotency.key)
            return replace(decode_written(answer[1]), repeated=True)
        key = (write.owner, write.id)
        current = self.now.get(key)
        if error := refuse_write(write, current, self.counts[write.owner]):
            return error
        after = _derive(write, current)
        self.now[key] = after
        self.counts[write.owner] += (after is not None) - (current is not None)
        if after is None:
            self.removed.add(key)
        subscription = after if after is not None else current
        assert subscription is not None
        written = Written(subscription, created=current is None)
        self._note(write, current, written)
        return written

    def _note(self, write: Write, current: Subscription | None, written: Written) -> None:
        at, action, revision = to_microseconds(write.at), name_action(write, current), written.subscription.revision
        self.changes.append((write.owner, write.id, None))
        self.audit.append((at, write.actor, write.owner, action, write.id, revision))
        if write.idempotency is not None:
            answer = encode_written(written)
            self.answers[write.owner, write.idempotency.key] = (write.idempotency.digest, answer)
            self.new_answers.append((write.owner, write.idempotency.key, write.idempotency.digest, at, answer))

    def _apply(self, transaction: Transaction) -> None:
        before, now = self.before, self.now
        gone = [_name_key(key) for key in self.removed if key in before]
        transaction.run_many(NOTE_REMOVAL, gone)
        transaction.run_many(DELETE, gone)
        rows = {key: row for key, row in now.items() if row is not None and row is not before.get(key)}
        is_new = {key: key not in before or key in self.removed for key in rows}
        inserts = [encode_subscription(row) for key, row in rows.items() if is_new[key]]
        transaction.insert_rows(INSERT, inserts)
        transaction.run_many(UPDATE, [_name_values(key, row) for key, row in rows.items() if not is_new[key]])
        self._apply_labels(transaction)
        transaction.merge_rows(CHANGE_COUNT, self._count_changes())
        transaction.insert_rows(INSERT_ANSWER, self.new_answers)

    def _apply_labels(self, transaction: Transaction) -> None:
        old = {label for key, row in self.before.items() for label in _list_labels(key, row)}
        new = {label for key, row in self.now.items() for label in _list_labels(key, row)}
        names = ("label", "owner", "id")
        transaction.run_many(DELETE_LABEL, [dict(zip(names, label, strict=True)) for label in old - new])
        transaction.insert_rows(INSERT_LABEL, list(new - old))

    def _count_changes(self) -> list[tuple[str, str, int]]:
        difference: Counter[tuple[str, str]] = Counter()
        for (owner, _), row in self.now.items():
            if row is not None:
                difference[owner, row.status] += 1
        for (owner, _), row in self.before.items():
            difference[owner, row.status] -= 1
        return [(*key, count) for key, count in difference.items() if count]


def _derive(write: Write, current: Subscription | None) -> Subscription | None:
    """Return what a write that is allowed leaves."""
    match write.action:
        case "remove":
            return None
        case "status":
            assert current is not None and write.status is not None
            return change_status(current, write.status, write.at)
        case _:
            assert write.draft is not None
            return begin_subscription(write.draft, write) if current is None else replace_subscription(current, write)


def _name_key(key: tuple[str, str]) -> dict[str, str]:
    return {"its_owner": key[0], "its_id": key[1]}


def _name_values(key: tuple[str, str], row: Subscription) -> dict[str, Any]:
    values = zip((column.name for column in ROW), encode_subscription(row), strict=True)
    return {**dict(values), **_name_key(key)}


def _list_labels(key: tuple[str, str], row: Subscription | None) -> Iterable[tuple[str, str, str]]:
    return [(label, *key) for label in row.labels] if row is not None else ()


def encode_written(written: Written) -> str:
    """Return an answer as text."""
    return encode_json([written.created, *encode_subscription(written.subscription)])


def decode_written(text: str) -> Written:
    """Return the answer of a text."""
    created, *row = decode_json(text)
    return Written(decode_subscription(row), created=created)
