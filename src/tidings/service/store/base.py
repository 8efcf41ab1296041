"""What every store does: protocols, and the values that go in and out.

A store is one object with parts, each a protocol below: subscriptions and their change log, keys, owners, matches,
answers kept for `Idempotency-Key`, the audit log, and reports of processes. `memory.MemoryStore` is the law of what
they mean; `sql.SqlStore` keeps the same in a database, and one state machine holds the two to each other.

**A reader of the change log misses nothing.** A writing transaction takes its sequence numbers last, from one row that
stays locked until it commits. So changes become visible in the order of their numbers, without a gap: whoever has read
up to a number has read all that was, and nothing smaller appears later. Each change carries a random mark; a position
whose mark the log does not have (it was compacted, or the store was restored from an older backup) means: load anew.

Times come in as arguments; no store looks at a clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from tidings.errors import TidingsError
from tidings.service.subscription import MatchRow, Subscription, SubscriptionDraft, SubscriptionKind, SubscriptionStatus

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

Scope: TypeAlias = Literal["read", "write", "publish", "admin"]
ChangeKind: TypeAlias = Literal["put", "remove"]


class StoreError(TidingsError):
    """The store cannot be used."""


class StoreBusy(StoreError):
    """The store did not answer in time; try again."""


class UnknownId(StoreError, LookupError):
    """The owner has no subscription of this id."""


class IdTaken(StoreError):
    """The owner has a subscription of this id already."""


class RevisionConflict(StoreError):
    """Somebody else changed the subscription first."""

    current: int


class QuotaExceeded(StoreError):
    """The owner has as many subscriptions as allowed."""

    limit: int


class UnstorableText(StoreError, ValueError):
    """A text has characters that cannot be stored."""

    name: str


# Writing subscriptions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One change that somebody asks for.

    `create` refuses an id that exists (`IdTaken`); `replace` needs one (`UnknownId`); `put` does either; `status`
    changes the status alone; `remove` removes. `expected` is the revision that must be there (`RevisionConflict`).
    `most` is how many subscriptions the owner may have (`QuotaExceeded`). `actor` is who asks, for the audit log.
    With `idempotency`, the write is remembered: another one of the same owner and key gets the answer of the first (the
    subscription as it was then, `repeated`), or `DigestConflict` where its body was another.
    """

    action: Literal["create", "replace", "put", "status", "remove"]
    owner: str
    id: str
    actor: str
    at: datetime
    draft: SubscriptionDraft | None = None  # of create, replace and put
    status: SubscriptionStatus | None = None  # of status
    expected: int | None = None
    most: int | None = None
    idempotency: Idempotency | None = None


@dataclass(frozen=True, slots=True)
class Idempotency:
    """The key that a client gave with a request, and a digest of the request's body."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class Written:
    """The subscription as a write left it, or found it before removing it; `repeated`: an earlier request wrote it."""

    subscription: Subscription
    created: bool = False
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """How many drafts an import put, how many it left out, and the first of these: their places and ids."""

    count: int
    left_out: int = 0
    first_left_out: tuple[tuple[int, str], ...] = ()


SHOWN_LEFT_OUT = 50
"""How many drafts that were left out an import tells."""


class DigestConflict(StoreError):
    """This `Idempotency-Key` came with another body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionQuery:
    """Which subscriptions a list shows: by id, ascending, after `after`. `owner` None is every owner (by owner, id).

    `text` is looked for in id, name and text, without regard to case.
    """

    owner: str | None
    label: str | None = None
    status: SubscriptionStatus | None = None
    text: str | None = None
    after: tuple[str, str] | None = None  # owner and id
    limit: int = 100


class SubscriptionStore(Protocol):
    """Subscriptions by owner and id."""

    def write(self, writes: Sequence[Write]) -> list[Written | StoreError]:
        """Do all writes in their order in one transaction; a write that is refused changes nothing and is an error."""

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
        """Put drafts of one owner in one transaction, in constant memory. For imports.

        Of several with one id, the last counts. None takes a place and is passed over. More new ones than the owner
        may have are `QuotaExceeded`; with `fill`, those that fit are put, in the order of their places.
        """

    def get(self, owner: str, id: str) -> Subscription | None:
        """Return a subscription."""

    def get_many(self, owner: str, ids: Collection[str]) -> Mapping[str, Subscription]:
        """Return those of an owner's subscriptions that exist, by id."""

    def list(self, query: SubscriptionQuery) -> Sequence[Subscription]:
        """Return subscriptions."""

    def count(self, owner: str | None = None) -> Mapping[SubscriptionStatus, int]:
        """Return how many there are of each status."""

    def expire(self, now: datetime) -> int:
        """Change the status of those whose time has come to `expired`; return how many. A change like any other."""


# Following ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where somebody has read the change log: a sequence number, and the mark of the change that has it."""

    sequence: int
    mark: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"sequence": self.sequence, "mark": self.mark}


@dataclass(frozen=True, slots=True)
class RunningSubscription:
    """What a pipeline needs of a subscription that is in force.

    `only` is a filter in text that bounds what its owner may see, where there is one.
    """

    engine_id: str
    kind: SubscriptionKind
    text: str
    notation: str
    mode: str | None = None
    horizon: str | None = None
    threshold: float | None = None
    only: str | None = None


@dataclass(frozen=True, slots=True)
class StoreChanges:
    """What changed since a position: each id once, as it is now.

    With `reload`, the position is not of this store any more: `running` are all subscriptions in force, and whatever
    else the reader has is gone.
    """

    position: Position
    running: Iterable[RunningSubscription]
    removed: Sequence[str] = ()  # engine ids of those not in force any more: removed, paused or expired
    reload: bool = False


class ChangeLog(Protocol):
    """The log of changes of subscriptions."""

    def read_head(self) -> Position:
        """Return the position of the newest change. Cheap: one row by its key."""

    def read(
        self, position: Position | None, *, kinds: Collection[SubscriptionKind] | None = None
    ) -> AbstractContextManager[StoreChanges]:
        """Yield what changed since a position, in one consistent reading; None: everything.

        With `kinds`, only subscriptions of these kinds are running; an id that has become one of another kind is
        among the removed.
        """

    def compact(self, before: datetime) -> int:
        """Remove changes older than that, but never the newest one; return how many."""

    def wait(self, position: Position, timeout: float) -> bool:
        """Wait until there may be changes after a position, at most `timeout` seconds: signalled, or looked at."""


# Keys and owners ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """A key without its secret: `id` names it in lists and logs, `digest` is the SHA-256 of the whole key."""

    id: str
    owner: str
    scopes: frozenset[Scope]
    digest: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    note: str = ""


class KeyStore(Protocol):
    """The keys that requests bring."""

    def add(self, key: KeyRecord, *, actor: str) -> None:
        """Store a key."""

    def find(self, digest: str) -> KeyRecord | None:
        """Return the key of a digest, revoked and expired ones too."""

    def list(self, owner: str | None = None) -> Sequence[KeyRecord]:
        """Return the keys of an owner, or of all, by creation."""

    def revoke(self, id: str, *, actor: str, at: datetime) -> bool:
        """Revoke a key; False: there is none of that id, or it is revoked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRules:
    """What bounds an owner; None is the service's default."""

    owner: str
    only: str | None = None  # a filter, in text, that every event must satisfy to be seen by this owner
    subscriptions: int | None = None
    filter_bytes: int | None = None
    requests_per_second: float | None = None
    events_per_second: float | None = None


class OwnerStore(Protocol):
    """The rules of owners."""

    def set(self, rules: Sequence[OwnerRules], *, actor: str, at: datetime) -> Sequence[str]:
        """Make these the rules of their owners; return the other owners that have rules, which keep them.

        Processes have settings of their own, so one that does not name an owner takes nothing from it: rules go away
        where they are named and empty. Another `only` is a change of all subscriptions of that owner.
        """

    def get(self, owner: str) -> OwnerRules | None:
        """Return the rules of an owner."""

    def erase(self, owner: str, *, actor: str, at: datetime) -> Mapping[str, int]:
        """Remove all that is an owner's (subscriptions, log texts, matches, answers, keys); return counts by table.

        The removals are changes in the log, so that pipelines hear of them; the audit log keeps that it was done.
        """


# Matches, answers, audit ------------------------------------------------------------------------------


class MatchStore(Protocol):
    """The latest matches of each subscription: a bounded table that the pipeline fills."""

    def write(self, query: str, batch: int, rows: Iterable[MatchRow], *, at: datetime, keep: int) -> int:
        """Write a batch of a query once: written again, it changes nothing. Return how many rows were written.

        Rows of subscriptions that do not exist any more are left out. Each subscription keeps its `keep` newest. The
        values of an event are stored once for all rows of the batch that have it.
        """

    def list_latest(self, owner: str, id: str, *, before: int | None = None, limit: int = 100) -> Sequence[MatchRow]:
        """Return the matches of a subscription, newest first, older than the number `before`."""

    def list_since(self, owner: str | None, after: int, *, limit: int = 500) -> Sequence[MatchRow]:
        """Return matches of an owner's subscriptions (None: of all), oldest first, newer than the number `after`."""

    def read_head(self) -> int:
        """Return the newest number, 0 where there is none."""

    def trim(self, before: datetime) -> int:
        """Remove matches written before a time; return how many."""


class IdempotencyStore(Protocol):
    """Which `Idempotency-Key` came when, with which body (`Write.idempotency` records it)."""

    def forget(self, before: datetime) -> int:
        """Remove those older than a time; return how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """Who did what to whose subscription, key or rules."""

    at: datetime
    actor: str
    owner: str
    action: str
    id: str
    revision: int | None = None
    number: int = 0


class AuditLog(Protocol):
    """Who changed what."""

    def append(self, record: AuditRecord) -> None:
        """Append a record; writes of subscriptions, keys and rules append their own, in their transaction."""

    def list(self, *, owner: str | None = None, after: int = 0, limit: int = 100) -> Sequence[AuditRecord]:
        """Return records after a number, oldest first."""

    def trim(self, before: datetime) -> int:
        """Remove the records before the first that is as young as that; return how many. Numbers go on as they were."""


@dataclass(frozen=True, slots=True)
class StatusReport:
    """What a process last said of itself: `pipeline` and the like, and facts as JSON (batch, lag, versions)."""

    name: str
    at: datetime
    facts: Mapping[str, Any]


class StatusBoard(Protocol):
    """How the processes of a service are, one report by name; `GET /v1/status` shows them."""

    def write(self, report: StatusReport) -> None:
        """Write a report in the place of the one before of this name."""

    def list(self) -> Sequence[StatusReport]:
        """Return the reports, by name."""


class Store(Protocol):
    """All of it; each part is usable from several threads and processes."""

    subscriptions: SubscriptionStore
    log: ChangeLog
    keys: KeyStore
    owners: OwnerStore
    matches: MatchStore
    idempotency: IdempotencyStore
    audit: AuditLog
    statuses: StatusBoard
    is_local: bool  # whether reading one row takes microseconds; elsewhere it is a round trip to a server

    def check(self) -> None:
        """Answer that the store can be read and written; `StoreError` with the reason where it cannot."""

    def close(self) -> None:
        """Release connections and wake whoever waits."""
