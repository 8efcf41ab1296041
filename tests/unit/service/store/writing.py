"""Shorthands for what the tests of stores write."""

from datetime import UTC, datetime, timedelta

from tidings.service.store.base import Write
from tidings.service.subscription import MatchRow, SubscriptionDraft

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def draft(id, text="a = 1", **fields):
    return SubscriptionDraft(id=id, kind=fields.pop("kind", "filter"), text=text, **fields)


def create(id, owner="ann", at=NOW, **fields):
    """The write that creates a subscription."""
    own = {name: fields.pop(name) for name in ("most", "idempotency", "expected") if name in fields}
    return Write(action="create", owner=owner, id=id, actor="t", at=at, draft=draft(id, **fields), **own)


def remove(id, owner="ann"):
    return Write(action="remove", owner=owner, id=id, actor="t", at=NOW)


def match(id, event="e", owner="ann", **values):
    return MatchRow(owner=owner, subscription=id, kind="match", at=NOW, event=event, values=values)


def read_ids(store, position=None, kinds=None):
    """Return the ids that run and those that do not, and where the reading ended."""
    with store.log.read(position, kinds=kinds) as changes:
        running = sorted(row.engine_id for row in changes.running)
        return running, sorted(changes.removed), changes.position
