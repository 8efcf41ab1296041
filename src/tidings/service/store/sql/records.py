"""The small tables: answers to requests that may come again, the audit log, reports of processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from tidings.model.values import to_datetime, to_microseconds
from tidings.service.store.base import AuditLog, AuditRecord, IdempotencyStore, StatusBoard, StatusReport
from tidings.service.store.rows import is_storable, require_storable
from tidings.service.store.sql.codec import decode_json, encode_json
from tidings.service.store.sql.statements import bind, bind_columns
from tidings.service.store.sql.tables import ANSWERS, AUDIT, REPORTS
from tidings.service.store.sql.writing import LogRecords

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidings.service.store.sql.database import Database

_A = AUDIT.c
FORGET = ANSWERS.delete().where(ANSWERS.c.at < bind(ANSWERS.c.at, "before"))
LIST = (
    select(_A.at, _A.actor, _A.owner, _A.action, _A.id, _A.revision, _A.number)
    .where(_A.number > bindparam("after", type_=_A.at.type))
    .order_by(_A.number)
    .limit(bindparam("limit", type_=_A.at.type))
)
LIST_OWNER = LIST.where(_A.owner == bind(_A.owner))
FIRST_KEPT = select(_A.number).where(_A.at >= bind(_A.at, "before")).order_by(_A.number).limit(1)
TRIM = AUDIT.delete().where(_A.number < bind(_A.number, "first"))
_REPORT = insert(REPORTS).values(bind_columns(REPORTS.c))
WRITE_REPORT = _REPORT.on_conflict_do_update(
    index_elements=["name"], set_={"at": _REPORT.excluded["at"], "facts": _REPORT.excluded["facts"]}
)
LIST_REPORTS = select(REPORTS).order_by(REPORTS.c.name)


class SqlIdempotency(IdempotencyStore):
    """`IdempotencyStore` over a table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def forget(self, before: datetime) -> int:
        """Remove answers older than a time."""
        with self._database.write() as transaction:
            return transaction.run(FORGET, before=to_microseconds(before))


class SqlAudit(AuditLog):
    """`AuditLog` over a table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, record: AuditRecord) -> None:
        """Append a record."""
        require_storable(actor=record.actor, owner=record.owner, action=record.action, id=record.id)
        at = to_microseconds(record.at)
        row = (at, record.actor, record.owner, record.action, record.id, record.revision)
        with self._database.write() as transaction:
            LogRecords(at, audit=[row]).append_to(transaction)

    def list(self, *, owner: str | None = None, after: int = 0, limit: int = 100) -> Sequence[AuditRecord]:
        """Return records after a number."""
        after = max(-1, min(after, 2**62))
        if owner is None:
            rows = self._database.fetch_all(LIST, after=after, limit=limit)
        else:
            rows = (
                self._database.fetch_all(LIST_OWNER, owner=owner, after=after, limit=limit)
                if is_storable(owner)
                else []
            )
        return [
            AuditRecord(
                at=to_datetime(at), actor=actor, owner=owner, action=action, id=id, revision=revision, number=number
            )
            for at, actor, owner, action, id, revision, number in rows
        ]

    def trim(self, before: datetime) -> int:
        """Remove the records before the first that is as young as that."""
        with self._database.write() as transaction:
            first = transaction.fetch_one(FIRST_KEPT, before=to_microseconds(before))
            return transaction.run(TRIM, first=first[0] if first else 2**62)


class SqlStatuses(StatusBoard):
    """`StatusBoard` over a table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, report: StatusReport) -> None:
        """Write a report in the place of the one before."""
        with self._database.write() as transaction:
            values = {"name": report.name, "at": to_microseconds(report.at), "facts": encode_json(dict(report.facts))}
            transaction.run(WRITE_REPORT, **values)

    def list(self) -> Sequence[StatusReport]:
        """Return the reports by name."""
        rows = self._database.fetch_all(LIST_REPORTS)
        return [StatusReport(name, to_datetime(at), decode_json(facts)) for name, at, facts in rows]
