"""The change log in a database: what changed since a position, read as one state, streamed.

A writing transaction takes its numbers from the row `log_head` when all else is done, and that row stays locked until
it commits. So changes become visible in the order of their numbers, and nobody who read up to one ever misses another.
The reading itself is one snapshot: head, changes and subscriptions are of the same moment.

An import, and new rules of an owner, are one change each: those meant are found by the import's number, or the owner.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from sqlalchemy import and_, bindparam, not_, or_, select

from tidings.model.values import to_microseconds
from tidings.service.store.base import ChangeLog, Position, RunningSubscription, StoreChanges, StoreError
from tidings.service.store.sql.database import Database, Transaction
from tidings.service.store.sql.statements import bind
from tidings.service.store.sql.tables import CHANGES, LOG_HEAD, RULES, SUBSCRIPTIONS
from tidings.service.subscription import IN_FORCE, SubscriptionKind, SubscriptionStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from datetime import datetime


_S, _C = SUBSCRIPTIONS.c, CHANGES.c
KINDS = get_args(SubscriptionKind)
RUNNING = (_S.owner, _S.id, _S.kind, _S.text, _S.notation, _S.mode, _S.horizon, _S.threshold)
"""What a pipeline needs."""

# Said by what is not in force: an index on the status would lead to rows from all over the table, in the order of ids.
_AT_REST = sorted(set(get_args(SubscriptionStatus)) - set(IN_FORCE))
_IN_FORCE = and_(
    *(_S.status != status for status in _AT_REST),
    or_(*(_S.kind == bindparam(f"kind_{place}", type_=_S.kind.type) for place in range(len(KINDS)))),
)
_OF_IMPORT = _S.import_number == bind(_S.import_number)
_OF_OWNER = _S.owner == bind(_S.owner)

HEAD = select(LOG_HEAD.c.sequence, LOG_HEAD.c.mark)
HAS_MARK = select(_C.sequence).where(_C.sequence == bind(_C.sequence), _C.mark == bind(_C.mark))
ALL_RUNNING = select(*RUNNING).where(_IN_FORCE)
_SINCE = _C.sequence > bind(_C.sequence)
_CHANGED = select(_C.owner, _C.id).where(_SINCE, _C.id.is_not(None)).distinct().subquery("changed")
CHANGED = select(_CHANGED.c.owner, _CHANGED.c.id, _S.status, *RUNNING[2:]).select_from(
    _CHANGED.outerjoin(SUBSCRIPTIONS, and_(_S.owner == _CHANGED.c.owner, _S.id == _CHANGED.c.id))
)
CHANGED_AS_ONE = select(_C.owner, _C.import_number).where(_SINCE, _C.id.is_(None)).distinct()
RUNNING_OF_IMPORT = select(*RUNNING).where(_OF_IMPORT, _IN_FORCE)
RUNNING_OF_OWNER = select(*RUNNING).where(_OF_OWNER, _IN_FORCE)
RESTING_OF_IMPORT = select(_S.owner, _S.id).where(_OF_IMPORT, not_(_IN_FORCE))
RESTING_OF_OWNER = select(_S.owner, _S.id).where(_OF_OWNER, not_(_IN_FORCE))
ONLY = select(RULES.c.owner, RULES.c.only_filter).where(RULES.c.only_filter.is_not(None))
FIRST_KEPT = select(_C.sequence).where(_C.at >= bind(_C.at, "before")).order_by(_C.sequence).limit(1)
COMPACT = CHANGES.delete().where(
    _C.sequence < bind(_C.sequence, "first"), _C.sequence < select(LOG_HEAD.c.sequence).scalar_subquery()
)

LOOK_S = 1.0
"""How often those who wait look for themselves."""


class SqlChangeLog(ChangeLog):
    """`ChangeLog` over tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_head(self) -> Position:
        """Return the position of the newest change."""
        return _to_position(self._database.fetch_one(HEAD))

    @contextmanager
    def read(
        self, position: Position | None, *, kinds: Collection[SubscriptionKind] | None = None
    ) -> Iterator[StoreChanges]:
        """Yield what changed since a position; `running` is read while the block runs."""
        with self._database.read() as transaction:
            yield LogReading(self._database, transaction, _bind_kinds(kinds)).read(position)

    def compact(self, before: datetime) -> int:
        """Remove the changes before the first that is as young as that; the newest stays."""
        with self._database.write() as transaction:
            first = transaction.fetch_one(FIRST_KEPT, before=to_microseconds(before))
            return transaction.run(COMPACT, first=first[0] if first else 2**62)

    def wait(self, position: Position, timeout: float) -> bool:
        """Wait until the newest change is another."""
        try:
            return self._wait(position, time.monotonic() + timeout)
        except StoreError:
            if self._database.is_closed:  # in the middle of it
                return False
            raise

    def _wait(self, position: Position, until: float) -> bool:
        with self._database.listen() as waiter:
            while not self._database.is_closed:
                if self.read_head() != position:
                    return True
                left = until - time.monotonic()
                if left <= 0:
                    return False
                waiter.wait(min(left, LOOK_S))
        return False


@dataclass(frozen=True, slots=True)
class LogReading:
    """One reading of the log."""

    database: Database
    transaction: Transaction
    kinds: dict[str, str]

    def read(self, position: Position | None) -> StoreChanges:
        """Return what changed since a position."""
        head = _to_position(self.transaction.fetch_one(HEAD))
        if position is None or not self._has(position):
            return StoreChanges(head, self._stream(ALL_RUNNING), reload=position is not None)
        since = position.sequence
        running, removed, seen = self._read_single(since)
        groups = self._list_groups(since)
        for owner, number in groups:
            removed += [engine_id for engine_id in self._read_resting(owner, number) if engine_id not in seen]
        return StoreChanges(head, self._join(running, groups, seen), removed)

    def _has(self, position: Position) -> bool:
        if not position.mark.isalnum():
            return False
        return self.transaction.fetch_one(HAS_MARK, sequence=position.sequence, mark=position.mark) is not None

    def _read_single(self, since: int) -> tuple[list[RunningSubscription], list[str], set[str]]:
        """Return those that changed by themselves: which run, which do not, and all of them."""
        only, wanted = self._read_only(), set(self.kinds.values())
        running, removed, seen = [], [], set()
        for owner, id, status, *fields in self.transaction.fetch_all(CHANGED, sequence=since):
            engine_id = f"{owner}/{id}"
            seen.add(engine_id)
            if status in IN_FORCE and fields[0] in wanted:
                running.append(_decode_running(engine_id, fields, only.get(owner)))
            else:
                removed.append(engine_id)
        return running, removed, seen

    def _read_resting(self, owner: str, number: int | None) -> Iterator[str]:
        if number is None:
            rows = self.transaction.fetch_all(RESTING_OF_OWNER, owner=owner, **self.kinds)
        else:
            rows = self.transaction.fetch_all(RESTING_OF_IMPORT, import_number=number, **self.kinds)
        return (f"{owner}/{id}" for owner, id in rows)

    def _list_groups(self, since: int) -> list[tuple[str, int | None]]:
        """Return those that changed as one: an owner's, or an import's. None is there twice."""
        groups = self.transaction.fetch_all(CHANGED_AS_ONE, sequence=since)
        whole = {owner for owner, number in groups if number is None}
        return [(owner, number) for owner, number in groups if number is None or owner not in whole]

    def _join(
        self, running: list[RunningSubscription], groups: list[tuple[str, int | None]], seen: set[str]
    ) -> Iterable[RunningSubscription]:
        yield from running
        for owner, number in groups:
            if number is None:
                rows = self._stream(RUNNING_OF_OWNER, owner=owner)
            else:
                rows = self._stream(RUNNING_OF_IMPORT, import_number=number)
            yield from (row for row in rows if row.engine_id not in seen) if seen else rows

    def _stream(self, statement: Any, **values: Any) -> Iterator[RunningSubscription]:
        only = self._read_only()
        for owner, id, *fields in self.database.backend.stream(self.transaction, statement, **values, **self.kinds):
            yield _decode_running(f"{owner}/{id}", fields, only.get(owner))

    def _read_only(self) -> dict[str, str]:
        return dict(self.transaction.fetch_all(ONLY))


def _to_position(row: tuple[Any, ...] | None) -> Position:
    assert row is not None
    return Position(*row)


def _decode_running(engine_id: str, fields: Sequence[Any], only: str | None) -> RunningSubscription:
    kind, text, notation, mode, horizon, threshold = fields
    return RunningSubscription(engine_id, kind, text, notation, mode, horizon, threshold, only)


def _bind_kinds(kinds: Collection[SubscriptionKind] | None) -> dict[str, str]:
    """Return the values of the statements' parameters: as many as there are kinds, some twice; `` is none."""
    names = sorted(KINDS if kinds is None else kinds) or [""]
    return {f"kind_{place}": names[place % len(names)] for place in range(len(KINDS))}
