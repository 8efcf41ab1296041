"""A subscription as JSON: what the API answers, what can be sent back, and its entity tag.

Nothing here has a delivery's secret. `to_sendable` is the part that `checking` takes, so an exported line can be
imported, and a subscription that was read can be changed and put back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from tidings.service.api.problems import Problem
from tidings.service.delivery import hide_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidings.service.subscription import Subscription, SubscriptionDraft


def to_sendable(draft: SubscriptionDraft) -> dict[str, Any]:
    """Return what may be written of a subscription, without the secret of its delivery; what it has not is left out."""
    value: dict[str, Any] = {"id": draft.id}
    name = "filter" if draft.kind == "filter" else "pattern"
    value[name] = orjson.loads(draft.text) if draft.notation == "json" else draft.text
    value["notation"] = draft.notation
    for key in ("mode", "horizon", "threshold", "name"):
        content = getattr(draft, key)
        if content is not None:
            value[key] = content
    if draft.labels:
        value["labels"] = draft.labels
    if draft.delivery is not None:
        value["delivery"] = hide_secrets(draft.delivery)
    if draft.expires_at is not None:
        value["expires_at"] = draft.expires_at
    if draft.status == "paused":
        value["status"] = "paused"
    return value


def to_answer(subscription: Subscription) -> dict[str, Any]:
    """Return a subscription as the API shows it: every member, also those that are null."""
    is_filter = subscription.kind == "filter"
    text: Any = subscription.text
    if subscription.notation == "json":
        text = orjson.loads(text)
    return {
        "id": subscription.id,
        "owner": subscription.owner,
        "kind": subscription.kind,
        "filter" if is_filter else "pattern": text,
        "notation": subscription.notation,
        "name": subscription.name,
        "mode": subscription.mode,
        "horizon": subscription.horizon,
        "threshold": subscription.threshold,
        "labels": subscription.labels,
        "delivery": hide_secrets(subscription.delivery),
        "status": subscription.status,
        "expires_at": subscription.expires_at,
        "created_at": subscription.created_at,
        "changed_at": subscription.changed_at,
        "revision": subscription.revision,
    }


def make_etag(subscription: Subscription) -> str:
    """Return the entity tag: the revision, and when it was created, for ids are used again."""
    created = subscription.created_at.timestamp()
    return f'"{subscription.revision}-{round(created * 1e6):x}"'


def list_tags(header: str) -> list[str]:
    """Return the tags of an `If-Match` or `If-None-Match` header, weak ones without their mark."""
    return [tag.strip().removeprefix("W/") for tag in header.split(",")]


def has_tag(header: str, etag: str | None) -> bool:
    """Tell whether a header names a tag; `*` is any that exists."""
    return etag is not None and (header.strip() == "*" or etag in list_tags(header))


def require_match(headers: Mapping[str, str | None], subscription: Subscription | None) -> None:
    """Refuse with 412 what `If-Match` or `If-None-Match` says must not be done to what is there."""
    etag = None if subscription is None else make_etag(subscription)
    match, no_match = headers.get("if-match"), headers.get("if-none-match")
    if match is not None and not has_tag(match, etag):
        msg = "somebody else changed this subscription first; read it again, and repeat the change with its ETag"
        raise Problem(msg, status=412)
    if no_match is not None and has_tag(no_match, etag):
        msg = "there is a subscription of this id already"
        raise Problem(msg, status=412)
