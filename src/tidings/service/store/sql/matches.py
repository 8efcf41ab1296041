"""Matches in a database: a bounded table, read by two indexes, filled by batches that count once.

Who writes holds a lock until the commit, so numbers become visible in their order: whoever reads on from a number
misses nothing. `place` counts the matches of a subscription, so those beyond `keep` are a range of an index.

What an event looked like is kept once for all its rows, with the number of the first of them, and with the number of
rows that use it; the last row to go takes it along.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, exists, func, not_, select

from tidings.model.values import to_datetime, to_microseconds
from tidings.service.store.base import MatchStore
from tidings.service.store.rows import is_storable
from tidings.service.store.sql.codec import compute_owner_key, decode_json
from tidings.service.store.sql.contents import release_contents
from tidings.service.store.sql.match_rows import MatchBatch
from tidings.service.store.sql.statements import bind
from tidings.service.store.sql.tables import BATCHES, CONTENTS, MATCH_HEAD, MATCHES, REMOVED, SUBSCRIPTIONS
from tidings.service.subscription import MatchRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Select, Subquery
    from sqlalchemy.sql import Executable

    from tidings.service.store.sql.database import Database, Transaction

_S, _M, _C, _B = SUBSCRIPTIONS.c, MATCHES.c, CONTENTS.c, BATCHES.c
_NUMBER = _M.place.type
_LIMIT = bindparam("limit", type_=_NUMBER)


def _show(chosen: Subquery, order: ColumnElement[Any]) -> Select[Any]:
    """Return what a list shows of matches that an index has chosen: so many, and no more, are looked up."""
    columns = (_S.owner, _S.id, *(chosen.c[name] for name in ("kind", "at", "events", "probability", "number")))
    joined = chosen.join(CONTENTS, _C.number == chosen.c.content, isouter=True)
    joined = joined.join(SUBSCRIPTIONS, _S.number == chosen.c.subscription, isouter=True)
    return select(*columns, _C.content).select_from(joined).order_by(order)


_IT = select(_S.number).where(_S.owner == bind(_S.owner), _S.id == bind(_S.id)).scalar_subquery()
_OF_IT = select(MATCHES).where(_M.subscription == _IT, _M.number < bindparam("before", type_=_NUMBER))
_LATEST = _OF_IT.order_by(_M.place.desc()).limit(_LIMIT).subquery("chosen")
_NEWER = select(MATCHES).where(_M.number > bindparam("after", type_=_NUMBER)).order_by(_M.number).limit(_LIMIT)
_SINCE, _SINCE_OF_OWNER = (
    chosen.subquery("chosen") for chosen in (_NEWER, _NEWER.where(_M.owner_key == bind(_M.owner_key)))
)
LATEST = _show(_LATEST, _LATEST.c.place.desc())
SINCE = _show(_SINCE, _SINCE.c.number)
SINCE_OF_OWNER = _show(_SINCE_OF_OWNER, _SINCE_OF_OWNER.c.number)
HEAD = select(MATCH_HEAD.c.number)

OLD_BATCH = select(func.max(_B.last)).where(_B.at < bind(_B.at, "before"))
DELETE_OLD = MATCHES.delete().where(_M.number <= bind(_M.number, "last"))
DELETE_OLD_CONTENTS = CONTENTS.delete().where(_C.number <= bind(_C.number, "last"))
DELETE_OLD_BATCHES = BATCHES.delete().where(_B.at < bind(_B.at, "before"))
OLDEST, OLDEST_CONTENT = select(func.min(_M.number)), select(func.min(_C.number))

NOTED = select(REMOVED.c.number).limit(100)
FORGET_NOTED = REMOVED.delete().where(REMOVED.c.number == bind(REMOVED.c.number))
DELETE_OF_SUBSCRIPTION = MATCHES.delete().where(_M.subscription == bind(_M.subscription)).returning(_M.content)
_OF_OWNER = _M.owner_key == bind(_M.owner_key)
_HAS_HOME = exists().where(_S.number == _M.subscription)
DELETE_ORPHANS = MATCHES.delete().where(_OF_OWNER, not_(_HAS_HOME)).returning(_M.content)
DELETE_OF_OWNER = (
    MATCHES.delete()
    .where(_OF_OWNER, exists().where(_S.number == _M.subscription, _S.owner == bind(_S.owner)))
    .returning(_M.content)
)

TRIMMED_AT_ONCE = 20_000
"""Matches that one transaction removes at most, so that writers are not kept waiting."""


class SqlMatches(MatchStore):
    """`MatchStore` over tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, query: str, batch: int, rows: Iterable[MatchRow], *, at: datetime, keep: int) -> int:
        """Write a batch once."""
        return MatchBatch(query, batch, at, keep=keep).write(self._database, rows)

    def list_latest(self, owner: str, id: str, *, before: int | None = None, limit: int = 100) -> Sequence[MatchRow]:
        """Return matches of a subscription, newest first."""
        if not (is_storable(owner) and is_storable(id)):
            return []
        rows = self._database.fetch_all(LATEST, owner=owner, id=id, before=_limit_number(before), limit=limit)
        return [_decode_match(row) for row in rows]

    def list_since(self, owner: str | None, after: int, *, limit: int = 500) -> Sequence[MatchRow]:
        """Return matches of an owner, oldest first; those of subscriptions that are gone are passed over."""
        rows: list[MatchRow] = []
        if owner is not None and not is_storable(owner):
            return rows
        while len(rows) < limit:
            page = self._read_since(owner, after, limit)
            rows += [_decode_match(row) for row in page if row[0] is not None and owner in (None, row[0])]
            if len(page) < limit:
                break
            after = page[-1][6]
        return rows[:limit]

    def _read_since(self, owner: str | None, after: int, limit: int) -> list[tuple[Any, ...]]:
        values = {"after": _limit_number(after), "limit": limit}
        if owner is None:
            return self._database.fetch_all(SINCE, **values)
        return self._database.fetch_all(SINCE_OF_OWNER, owner_key=compute_owner_key(owner), **values)

    def read_head(self) -> int:
        """Return the newest number."""
        row = self._database.fetch_one(HEAD)
        return int(row[0]) if row else 0

    def trim(self, before: datetime) -> int:
        """Remove matches of batches written before a time, and those of subscriptions that are gone."""
        self._clear_removed()
        at = to_microseconds(before)
        row = self._database.fetch_one(OLD_BATCH, before=at)
        total = self._delete_up_to(row[0]) if row and row[0] is not None else 0
        with self._write() as transaction:
            transaction.run(DELETE_OLD_BATCHES, before=at)
        return total

    def _delete_up_to(self, last: int) -> int:
        """Remove the matches up to a number, which ends a batch, and then the contents that were theirs alone."""
        count = self._delete_steps(OLDEST, DELETE_OLD, last)
        self._delete_steps(OLDEST_CONTENT, DELETE_OLD_CONTENTS, last)
        return count

    def _delete_steps(self, oldest: Executable, statement: Executable, last: int) -> int:
        total = 0
        while (row := self._database.fetch_one(oldest)) and row[0] is not None and row[0] <= last:
            with self._write() as transaction:
                total += transaction.run(statement, last=min(last, row[0] + TRIMMED_AT_ONCE))
        return total

    @contextmanager
    def _write(self) -> Iterator[Transaction]:
        with self._database.write() as transaction:
            self._database.backend.lock_matches(transaction)
            yield transaction

    def _clear_removed(self) -> None:
        while numbers := self._database.fetch_all(NOTED):
            with self._write() as transaction:
                for (number,) in numbers:
                    release_contents(
                        self._database, transaction, transaction.fetch_all(DELETE_OF_SUBSCRIPTION, subscription=number)
                    )
                transaction.run_many(FORGET_NOTED, [{"number": number} for (number,) in numbers])


def clear_matches(database: Database, transaction: Transaction, owner: str) -> int:
    """Remove the matches of an owner; return how many were of subscriptions that are still there."""
    key = compute_owner_key(owner)
    rows = transaction.fetch_all(DELETE_OF_OWNER, owner_key=key, owner=owner)
    orphans = transaction.fetch_all(DELETE_ORPHANS, owner_key=key)
    release_contents(database, transaction, [*rows, *orphans])
    return len(rows)


def _limit_number(number: int | None) -> int:
    """Return a number as the database can compare it: cursors come from outside."""
    return 2**62 if number is None else max(-(2**62), min(2**62, number))


def _decode_match(row: tuple[Any, ...]) -> MatchRow:
    owner, id, kind, at, events, probability, number, content = row
    event, values = decode_json(content)
    return MatchRow(
        owner=owner,
        subscription=id,
        kind=kind,
        at=to_datetime(at),
        event=event,
        events=None if events is None else tuple(decode_json(events)),
        probability=probability,
        values=values,
        number=number,
    )
