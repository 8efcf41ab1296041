"""What a subscriber asks for: `Subscription` as the service keeps it, `SubscriptionDraft` before it is stored.

A subscription is a filter, a pattern, or a forecast of a pattern. Its text stays as it was written. Ids are unique for
each owner; `engine_id` is the one name that pipelines, sinks and folders of versions use, `OWNER/ID`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args

from tidings.errors import TidingsError
from tidings.matcher.live.sharded_store import TOKENS, compute_shard

SubscriptionKind: TypeAlias = Literal["filter", "pattern", "forecast"]
SubscriptionStatus: TypeAlias = Literal["active", "learning", "paused", "expired"]

ALL_STATUSES: tuple[SubscriptionStatus, ...] = get_args(SubscriptionStatus)
"""All that there are."""

IN_FORCE: tuple[SubscriptionStatus, ...] = ("active", "learning")
"""The statuses of subscriptions that pipelines run; a forecast is `learning` until a model knows its pattern."""

MAX_ID = 200
"""Characters of an id at most."""

OWNER_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}"
"""What an owner's name looks like: it stands before the slash of an engine id, and in URLs and files."""

_OWNER = re.compile(OWNER_PATTERN)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionDraft:
    """A subscription as its owner gives it: checked, not yet stored."""

    id: str
    kind: SubscriptionKind
    text: str
    notation: str = "text"
    name: str | None = None
    mode: str | None = None  # of a pattern: restart, overlap, next, any
    horizon: str | None = None  # of a forecast: "10 own events"
    threshold: float | None = None
    delivery: Mapping[str, Any] | None = None
    labels: tuple[str, ...] = ()
    expires_at: datetime | None = None
    status: SubscriptionStatus = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription(SubscriptionDraft):
    """A stored subscription; `revision` begins at 1 and grows by one with each change."""

    owner: str
    created_at: datetime
    changed_at: datetime
    revision: int
    token: int

    @property
    def engine_id(self) -> str:
        """The id that pipelines, sinks and folders of versions use."""
        return make_engine_id(self.owner, self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRow:
    """One match, detection or forecast of a subscription, as `GET /v1/subscriptions/{id}/matches` shows it.

    `number` orders all matches of a store; it is 0 until the store gives one.
    """

    owner: str
    subscription: str
    kind: Literal["match", "detection", "forecast"]
    at: datetime
    event: str | None = None
    events: tuple[str, ...] | None = None
    probability: float | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0


def make_engine_id(owner: str, id: str) -> str:
    """Return the id of a subscription in pipelines, sinks and folders of versions.

    >>> make_engine_id("shop", "s1")
    'shop/s1'
    """
    return f"{owner}/{id}"


def split_engine_id(engine_id: str) -> tuple[str, str]:
    """Return the owner and the id; an owner's name has no slash, an id may have some."""
    owner, _, id = engine_id.partition("/")
    return owner, id


def compute_token(owner: str, id: str) -> int:
    """Return the token of a subscription, 0 to 4095: contiguous ranges of tokens belong to shards and fleets."""
    return compute_shard(make_engine_id(owner, id), TOKENS)


def check_owner(owner: str) -> str:
    """Return the name of an owner; one that cannot stand in ids and URLs raises `TidingsError`."""
    if not _OWNER.fullmatch(owner):
        msg = f"`{owner:.80}` cannot be an owner's name: 1 to 64 letters, digits, `_`, `.`, `@` and `-`, no sign first"
        raise TidingsError(msg)
    return owner


def check_id(id: str) -> str:
    """Return the id of a subscription; one that is empty, too long or has control characters raises `TidingsError`."""
    if not (1 <= len(id) <= MAX_ID) or not id.isprintable() or id != id.strip():
        msg = f"an id has 1 to {MAX_ID} printable characters and no space at its ends"
        raise TidingsError(msg)
    if id in (".", ".."):
        msg = f"`{id}` cannot be an id: in a path it means a folder, however it is written"
        raise TidingsError(msg)
    return id
