"""Values as rows and back: times as microseconds, labels and settings of deliveries as JSON.

A row of a subscription is a tuple in the order of `ROW`, which statements select and insert: neither needs names.
JSON is written in ASCII: then any text can be kept, also one that no database would take as it is.
"""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from tidings.model.values import to_datetime, to_microseconds
from tidings.service.store.sql.tables import SUBSCRIPTIONS
from tidings.service.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Sequence

ROW = tuple(column for column in SUBSCRIPTIONS.c if column.name not in ("number", "import_number"))
"""The columns of a subscription's row, in the order of `encode_subscription`."""

_dump = json.JSONEncoder(separators=(",", ":"), default=str).encode


def encode_json(value: Any) -> str:
    """Return a value as JSON in ASCII; what JSON cannot say (a time, a set) as its text."""
    return _dump(value)


def decode_json(text: str) -> Any:
    """Return the value of JSON."""
    return json.loads(text)


def encode_subscription(row: Subscription) -> tuple[Any, ...]:
    """Return a subscription as a row."""
    return (
        row.owner,
        row.id,
        row.kind,
        row.text,
        row.notation,
        row.name,
        row.mode,
        row.horizon,
        row.threshold,
        None if row.delivery is None else _dump(row.delivery),
        _dump(row.labels) if row.labels else None,
        None if row.expires_at is None else to_microseconds(row.expires_at),
        row.status,
        to_microseconds(row.created_at),
        to_microseconds(row.changed_at),
        row.revision,
        row.token,
    )


def decode_subscription(row: Sequence[Any]) -> Subscription:
    """Return the subscription of a row."""
    return Subscription(
        owner=row[0],
        id=row[1],
        kind=row[2],
        text=row[3],
        notation=row[4],
        name=row[5],
        mode=row[6],
        horizon=row[7],
        threshold=row[8],
        delivery=None if row[9] is None else json.loads(row[9]),
        labels=() if row[10] is None else tuple(json.loads(row[10])),
        expires_at=None if row[11] is None else to_datetime(row[11]),
        status=row[12],
        created_at=to_datetime(row[13]),
        changed_at=to_datetime(row[14]),
        revision=row[15],
        token=row[16],
    )


@lru_cache(maxsize=65_536)
def compute_owner_key(owner: str) -> int:
    """Return a number for an owner, for indexes and locks: two owners may share one, by a chance in 2**64."""
    return int.from_bytes(blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)
