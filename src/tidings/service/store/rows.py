"""Subscriptions as they begin and change, for every store alike: pure functions of values.

A store decides whether a write is allowed; what the subscription is afterwards is said here, once. So is which text can
be kept at all: PostgreSQL has no character U+0000, and no database has lone surrogates, so all stores refuse both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.service.store.base import (
    DigestConflict,
    IdTaken,
    OwnerRules,
    QuotaExceeded,
    RevisionConflict,
    StoreError,
    UnknownId,
    UnstorableText,
    Write,
)
from tidings.service.subscription import Subscription, SubscriptionDraft, compute_token

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tidings.service.subscription import SubscriptionStatus

EXPIRY_ACTOR = "service"
"""Who the audit log names where a subscription's time has come."""


def is_storable(text: str) -> bool:
    """Tell whether every store can keep a text."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_storable(write: Write) -> StoreError | None:
    """Return the error of a write whose texts cannot be kept."""
    draft, texts = write.draft, [("id", write.id), ("owner", write.owner), ("actor", write.actor)]
    if write.idempotency is not None:
        texts += [("Idempotency-Key", write.idempotency.key), ("digest", write.idempotency.digest)]
    if draft is not None:
        texts += list_texts(draft)
    for name, text in texts:
        if not is_storable(text):
            return _refuse_text(name)
    return None


def require_storable(**texts: str) -> None:
    """Raise the error of texts, by what they are, that cannot be kept."""
    for name, text in texts.items():
        if not is_storable(text):
            raise _refuse_text(name)


def _refuse_text(name: str) -> UnstorableText:
    msg = f"`{name}` has a character that cannot be stored: U+0000, or half of a pair; leave it out"
    return UnstorableText(msg, name=name)


def list_texts(draft: SubscriptionDraft) -> list[tuple[str, str]]:
    """Return the texts of a draft, by field."""
    fields = (
        ("text", draft.text),
        ("name", draft.name),
        ("notation", draft.notation),
        ("mode", draft.mode),
        ("horizon", draft.horizon),
        *(("labels", label) for label in draft.labels),
    )
    return [(name, text) for name, text in fields if text is not None]


# What a write makes of a subscription ---------------------------------------------------------------


def begin_subscription(draft: SubscriptionDraft, write: Write) -> Subscription:
    """Return a subscription at its first revision."""
    return Subscription(
        id=write.id,
        kind=draft.kind,
        text=draft.text,
        notation=draft.notation,
        name=draft.name,
        mode=draft.mode,
        horizon=draft.horizon,
        threshold=draft.threshold,
        delivery=draft.delivery,
        labels=draft.labels,
        expires_at=draft.expires_at,
        status=draft.status,
        owner=write.owner,
        created_at=write.at,
        changed_at=write.at,
        revision=1,
        token=compute_token(write.owner, write.id),
    )


def replace_subscription(current: Subscription, write: Write) -> Subscription:
    """Return a subscription with another draft in it, one revision later."""
    assert write.draft is not None
    after = begin_subscription(write.draft, write)
    return replace(after, created_at=current.created_at, revision=current.revision + 1)


def change_status(current: Subscription, status: SubscriptionStatus, at: datetime) -> Subscription:
    """Return a subscription in another status, one revision later."""
    return replace(current, status=status, changed_at=at, revision=current.revision + 1)


def name_action(write: Write, current: Subscription | None) -> str:
    """Return what the audit log calls a write: a `put` is what it came to be, a status its new one."""
    match write.action:
        case "put":
            return "replace" if current else "create"
        case "status":
            return str(write.status)
        case action:
            return action


def list_kept(before: Mapping[str, OwnerRules], named: Mapping[str, OwnerRules]) -> list[str]:
    """Return the owners that keep rules because no new ones name them; empty rules are not worth a word."""
    return sorted(owner for owner, rules in before.items() if owner not in named and rules != OwnerRules(owner=owner))


# Why a write is refused -----------------------------------------------------------------------------


def refuse_write(write: Write, current: Subscription | None, count: int) -> StoreError | None:
    """Return why a write of an owner who has `count` subscriptions is refused, or None."""
    if write.action == "create" and current is not None:
        msg = f"`{write.id}` is the id of a subscription already; replace it, or take another id"
        return IdTaken(msg)
    if write.action in ("replace", "status", "remove") and current is None:
        return refuse_unknown(write.id)
    revision = current.revision if current is not None else 0
    if write.expected is not None and write.expected != revision:
        msg = f"`{write.id}` is at revision {revision}, not {write.expected}: read it again, then change it"
        return RevisionConflict(msg, current=revision)
    if current is None and write.most is not None and count >= write.most:
        return refuse_quota(write.owner, write.most)
    return None


def refuse_unknown(id: str) -> UnknownId:
    """Return the error of an id that the owner does not have."""
    msg = f"there is no subscription `{id}`; `GET /v1/subscriptions` lists those that are"
    return UnknownId(msg)


def refuse_quota(owner: str, most: int) -> QuotaExceeded:
    """Return the error of an owner who may have no more."""
    msg = f"`{owner}` may have {most:,} subscriptions and has them: remove some, or ask for more"
    return QuotaExceeded(msg, limit=most)


def refuse_digest(key: str) -> DigestConflict:
    """Return the error of a key that came with another body."""
    msg = f"the Idempotency-Key `{key:.80}` came with another body before; take a new key for a new request"
    return DigestConflict(msg)
