"""Subscriptions: create, read, list, replace, change, remove, pause and resume.

Reading asks the store directly and builds one dictionary; a change is checked here and written by the process's one
writer, together with those of other requests. `If-Match` is compared with what is there, and its revision is what the
store must still have when it writes.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from starlette.responses import Response

from tidings.errors import TidingsError
from tidings.service.api import schemas
from tidings.service.api.cursors import read_cursor, write_cursor
from tidings.service.api.operations import (
    IDEMPOTENCY_KEY,
    JSON_TYPES,
    ApiCall,
    DocumentedAnswer,
    Operation,
    Parameter,
    RequestBody,
    answer_json,
)
from tidings.service.api.problems import Problem
from tidings.service.api.subscription_bodies import has_tag, make_etag, require_match, to_answer, to_sendable
from tidings.service.delivery import keep_secret, names_secret
from tidings.service.refusals import RequestMistake, SubscriptionRefused
from tidings.service.store.base import Idempotency, RevisionConflict, SubscriptionQuery, UnknownId, Write
from tidings.service.subscription import SubscriptionStatus, check_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidings.service.store.base import Written
    from tidings.service.subscription import Subscription, SubscriptionDraft

MAX_PAGE = 1_000
"""Subscriptions of one page at most."""

MAX_KEY = 200
"""Characters of an `Idempotency-Key` at most."""

RETRIES = 5
"""How often a change without `If-Match` is repeated when somebody else was first."""


def make_id() -> str:
    """Return an id for a subscription that came without: ids that are made later come later in lists."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(6)}"


async def find_subscription(call: ApiCall) -> Subscription:
    """Return the subscription that the path names; 404 where the owner has none."""
    subscription = await call.state.access.ask(call.state.store.subscriptions.get, call.owner, call.path["id"])
    if subscription is None:
        raise make_unknown(call.path["id"])
    return subscription


def make_unknown(id: str) -> Problem:
    """Return the 404 of a subscription that the owner does not have."""
    return Problem(f"no subscription has the id `{id:.200}`", status=404)


async def check_draft(call: ApiCall, body: Any, id: str | None, *, takes_expired: bool = False) -> SubscriptionDraft:
    """Return the draft of a body; what may take long is checked in a thread."""
    rules = await call.get_rules()
    check = partial(
        call.state.checker.check,
        body,
        now=call.now,
        id=id,
        owner=call.owner,
        only=rules.only,
        filter_bytes=rules.filter_bytes,
        takes_expired=takes_expired,
    )
    return check() if call.state.checker.is_quick(body) else await call.state.access.work(check)


async def _write(
    call: ApiCall, action: Literal["create", "replace", "put", "status", "remove"], **more: Any
) -> Written:
    id = more.pop("id", None) or call.path["id"]
    write = Write(action=action, owner=call.owner, id=id, actor=call.actor, at=call.now, **more)
    try:
        return await call.state.writer.write(write)
    except UnknownId:
        raise make_unknown(id) from None


async def get_most_subscriptions(call: ApiCall) -> int:
    """Return how many subscriptions the owner may have."""
    rules = await call.get_rules()
    return call.state.settings.limits.subscriptions if rules.subscriptions is None else rules.subscriptions


def _answer(subscription: Subscription, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return answer_json(to_answer(subscription), status, {"ETag": make_etag(subscription), **(headers or {})})


# Handlers -----------------------------------------------------------------------------------------------


async def create_subscription(call: ApiCall) -> Response:
    """Answer 201 once it is stored; a key of the client's makes a repetition the same request."""
    body = await call.read_json()
    idempotency = await _read_idempotency(call)
    try:
        draft = await check_draft(call, body, make_id() if type(body) is dict and body.get("id") is None else None)
    except SubscriptionRefused:
        written = None if idempotency is None else await _recall(call, idempotency)
        if written is None:
            raise
    else:
        most = await get_most_subscriptions(call)
        written = await _write(call, "create", id=draft.id, draft=draft, most=most, idempotency=idempotency)
    return _answer(
        written.subscription, 201, {"Location": f"/v1/subscriptions/{quote(written.subscription.id, safe='')}"}
    )


async def _recall(call: ApiCall, idempotency: Idempotency) -> Written | None:
    """Return what was answered to this request before, though it would be refused now: its time of expiry has come."""
    try:
        # The store looks for the answer first. Where there is none, there is nothing of this id either.
        return await call.state.writer.write(
            Write(
                action="remove", owner=call.owner, id=make_id(), actor=call.actor, at=call.now, idempotency=idempotency
            )
        )
    except UnknownId:
        return None


async def _read_idempotency(call: ApiCall) -> Idempotency | None:
    key = call.get_header("idempotency-key")
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_KEY or not key.isascii() or not key.isprintable():
        msg = f"`Idempotency-Key` has 1 to {MAX_KEY} printable ASCII characters"
        raise Problem(msg, status=400)
    return Idempotency(key, hashlib.sha256(await call.request.body()).hexdigest())


async def read_subscription(call: ApiCall) -> Response:
    """Answer with the subscription, or that it is still the one with an ETag."""
    subscription = await find_subscription(call)
    tag = make_etag(subscription)
    condition = call.get_header("if-none-match")
    if condition is not None and has_tag(condition, tag):
        return Response(status_code=304, headers={"ETag": tag})
    return answer_json(to_answer(subscription), 200, {"ETag": tag})


async def list_subscriptions(call: ApiCall) -> Response:
    """Answer with a page, and where the next one begins."""
    query, owner = call.query, call.chosen_owner
    limit, cursor = query.get("limit", 100), query.get("cursor")
    subject = f"subscriptions of {owner or '*'}"
    after: Any = None if cursor is None else tuple(read_cursor(subject, cursor, (str, str)))
    wanted = SubscriptionQuery(
        owner=owner,
        label=query.get("label"),
        status=query.get("status"),
        text=query.get("q"),
        after=after,
        limit=limit + 1,
    )
    rows = await call.state.access.work(call.state.store.subscriptions.list, wanted)
    last = rows[limit - 1] if len(rows) > limit else None
    following = None if last is None else write_cursor(subject, [last.owner, last.id])
    return answer_json({"subscriptions": [to_answer(row) for row in rows[:limit]], "next": following})


async def put_subscription(call: ApiCall) -> Response:
    """Replace or create; conditions are held against what is there, then against its revision."""
    id = _check_path_id(call)
    body = await call.read_json()
    headers = {name: call.get_header(name) or None for name in ("if-match", "if-none-match")}
    before = await _find_where_it_matters(call, body, headers)
    if type(body) is dict and before is not None:
        body = {**body, "delivery": keep_secret(body.get("delivery"), before.delivery)}
    draft = await check_draft(call, body, id)
    require_match(headers, before)
    if (headers["if-none-match"] or "").strip() == "*":  # it must not be there, and was not
        written = await _write(call, "create", draft=draft, most=await get_most_subscriptions(call))
    elif headers["if-match"] is not None and before is not None:
        written = await _write(call, "replace", draft=draft, expected=before.revision)
    else:
        written = await _write(call, "put", draft=draft, most=await get_most_subscriptions(call))
    return _answer(written.subscription, 201 if written.created else 200)


def _check_path_id(call: ApiCall) -> str:
    try:
        return check_id(call.path["id"])
    except TidingsError as problem:
        raise Problem(str(problem), status=422, errors=(RequestMistake(str(problem), field="id"),)) from None


async def _find_where_it_matters(call: ApiCall, body: Any, headers: Mapping[str, str | None]) -> Subscription | None:
    """Return what is there, for a condition of the request, or for a secret that stays."""
    if not any(headers.values()) and not (type(body) is dict and body.get("delivery") is not None):
        return None
    return await call.state.access.ask(call.state.store.subscriptions.get, call.owner, call.path["id"])


async def patch_subscription(call: ApiCall) -> Response:
    """Merge a change in; without a condition, again if somebody else was first."""
    change = await call.read_json()
    if type(change) is not dict:
        msg = "a change is a JSON object (RFC 7396): members replace those of the subscription, null removes one"
        raise Problem(msg, status=422)
    stays_expired = change.keys().isdisjoint(("expires_at", "status"))
    for attempt in range(RETRIES):
        before = await find_subscription(call)
        draft = await check_draft(call, _merge(before, change), before.id, takes_expired=stays_expired)
        require_match({"if-match": call.get_header("if-match")}, before)
        try:
            written = await _write(call, "replace", draft=draft, expected=before.revision)
        except RevisionConflict:
            if call.get_header("if-match") is not None or attempt == RETRIES - 1:
                raise
            continue
        return _answer(written.subscription)
    raise AssertionError


def _merge(before: Subscription, change: dict[str, Any]) -> dict[str, Any]:
    """Return the subscription's own members with a change merged in; nulls remove."""
    own = to_sendable(before)
    own["labels"] = list(before.labels)
    if before.expires_at is not None:
        own["expires_at"] = before.expires_at.isoformat()
    if change.get("filter") is not None or change.get("pattern") is not None:
        for name in ("filter", "pattern", "notation"):  # another text is read anew, whatever the one before was
            own.pop(name, None)
    if _is_other_transport(before, change):
        own["delivery"] = {name: own["delivery"][name] for name in ("schedule", "group")}  # what all transports have
    merged = merge_objects(own, change)
    if "delivery" in merged and not names_secret(change.get("delivery"), before.delivery):
        merged["delivery"] = keep_secret(merged["delivery"], before.delivery)
    return merged


def _is_other_transport(before: Subscription, change: dict[str, Any]) -> bool:
    delivery = change.get("delivery")
    if before.delivery is None or not isinstance(delivery, dict):
        return False
    return bool(delivery.get("transport", before.delivery["transport"]) != before.delivery["transport"])


def merge_objects(target: Any, change: dict[str, Any]) -> dict[str, Any]:
    """Return an object with a change merged in (RFC 7396), but the tree of a filter or a pattern is one value.

    >>> merge_objects({"name": "a", "labels": ["x"]}, {"name": None, "labels": ["y"]})
    {'labels': ['y']}
    """
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in change.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict) and name not in ("filter", "pattern"):
            merged[name] = merge_objects(merged.get(name), value)
        else:
            merged[name] = value
    return merged


async def remove_subscription(call: ApiCall) -> Response:
    """Remove it."""
    expected = None
    if (condition := call.get_header("if-match")) is not None:
        before = await find_subscription(call)
        require_match({"if-match": condition}, before)
        expected = before.revision
    await _write(call, "remove", expected=expected)
    return Response(status_code=204)


async def pause_subscription(call: ApiCall) -> Response:
    """Take it out of force."""
    return await _change_status(call, "paused")


async def resume_subscription(call: ApiCall) -> Response:
    """Put it in force again."""
    return await _change_status(call, "active")


async def _change_status(call: ApiCall, status: SubscriptionStatus) -> Response:
    """Pause or resume; what is so already stays as it is, and one that has expired stays expired."""
    for _ in range(RETRIES):
        before = await find_subscription(call)
        require_match({"if-match": call.get_header("if-match")}, before)
        if before.status == "expired":
            msg = "this subscription has expired; change `expires_at` first"
            raise Problem(msg, status=409)
        if (before.status == "paused") == (status == "paused"):
            return _answer(before)
        new_status = await _find_resumed_status(call, before) if status == "active" else status
        try:
            written = await _write(call, "status", status=new_status, expected=before.revision)
        except RevisionConflict:
            continue
        return _answer(written.subscription)
    msg = "this subscription changes too often just now; try again"
    raise Problem(msg, status=409)


async def _find_resumed_status(call: ApiCall, before: Subscription) -> SubscriptionStatus:
    """Return the status of a subscription that is in force again: a forecast may still be learning."""
    if before.kind != "forecast":
        return "active"
    body = {**to_sendable(replace(before, expires_at=None)), "status": "active", "delivery": None}
    return (await check_draft(call, {**body, "labels": list(before.labels)}, before.id)).status


# Document -----------------------------------------------------------------------------------------------

_PAGE = schemas.make_reference("SubscriptionPage")
_ONE = schemas.make_reference("Subscription")
_ETAG = {"ETag": "The revision, for `If-Match` and `If-None-Match`."}
_IF_MATCH = Parameter(
    "If-Match", {"type": "string"}, "Do it only if this is still the subscription's ETag; 412 otherwise."
)
_IF_NONE_MATCH = Parameter("If-None-Match", {"type": "string"}, "304 if this is still the subscription's ETag.")
_KEY = Parameter(
    IDEMPOTENCY_KEY,
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": r"^[!-~]([ -~]*[!-~])?$"},
    "The same key gets the same answer for 24 hours; with another body it is refused (422).",
)
_ID = {"id": schemas.ID}


def _link(name: str, description: str) -> dict[str, Any]:
    return {"operationId": name, "parameters": {"id": "$response.body#/id"}, "description": description}


_LINKS = {
    "read": _link("readSubscription", "Read it."),
    "replace": _link("putSubscription", "Replace it."),
    "change": _link("patchSubscription", "Change a part of it."),
    "pause": _link("pauseSubscription", "Pause it."),
    "resume": _link("resumeSubscription", "Resume it."),
    "remove": _link("removeSubscription", "Remove it."),
}


def _document_one(description: str, **more: Any) -> DocumentedAnswer:
    headers = {**_ETAG, **more.pop("headers", {})}
    return DocumentedAnswer(
        description=description, schema=_ONE, example=schemas.EXAMPLE_SUBSCRIPTION, headers=headers, **more
    )


_NEW_BODY = RequestBody(
    schema=schemas.make_reference("NewSubscription"),
    examples={
        "filter": schemas.EXAMPLE_FILTER,
        "forecast": schemas.EXAMPLE_FORECAST,
        "webhook": schemas.EXAMPLE_WEBHOOK,
    },
)

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/subscriptions/{id}",
        handler=read_subscription,
        name="readSubscription",
        summary="Read a subscription",
        scopes=("read",),
        parameters=_ID,
        headers=(_IF_NONE_MATCH,),
        answers={
            200: _document_one("The subscription."),
            304: DocumentedAnswer(description="It is still the one with this ETag.", headers=_ETAG),
        },
        problems=(404,),
    ),
    Operation(
        method="POST",
        path="/v1/subscriptions",
        handler=create_subscription,
        name="createSubscription",
        summary="Create a subscription",
        description="A filter, a pattern, or with a `horizon` a forecast of a pattern.",
        scopes=("write",),
        headers=(_KEY,),
        body=_NEW_BODY,
        answers={
            201: _document_one("Created.", headers={"Location": "Its path."}, links=_LINKS),
        },
        problems=(409, 422),
    ),
    Operation(
        method="GET",
        path="/v1/subscriptions",
        handler=list_subscriptions,
        name="listSubscriptions",
        summary="List subscriptions",
        description="By id. An administrator's `owner=*` lists those of all owners.",
        scopes=("read",),
        every_owner=True,
        query=(
            Parameter("label", schemas.LABEL, "Only those with this label.", "cars"),
            Parameter("status", {"type": "string", "enum": schemas.STATUSES}, "Only those with this status."),
            Parameter("q", {"type": "string", "minLength": 1, "maxLength": 200}, "Looked for in id, name and text."),
            Parameter("cursor", {"type": "string", "minLength": 1, "maxLength": 2000}, "`next` of the page before."),
            Parameter("limit", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 100}, "How many."),
        ),
        answers={
            200: DocumentedAnswer(
                description="A page of subscriptions.",
                schema=_PAGE,
                example={"subscriptions": [schemas.EXAMPLE_SUBSCRIPTION], "next": None},
            )
        },
    ),
    Operation(
        method="PUT",
        path="/v1/subscriptions/{id}",
        handler=put_subscription,
        name="putSubscription",
        summary="Replace a subscription, or create it",
        description="What is not sent is as in a new subscription, except a delivery's secret, which stays with its "
        "address unless another one or null is sent. `If-None-Match: *` only creates.",
        scopes=("write",),
        parameters=_ID,
        headers=(_IF_MATCH, replace(_IF_NONE_MATCH, description="`*`: only if there is none of this id.")),
        body=_NEW_BODY,
        answers={200: _document_one("Replaced."), 201: _document_one("Created.", links=_LINKS)},
        problems=(409, 412, 422),
    ),
    Operation(
        method="PATCH",
        path="/v1/subscriptions/{id}",
        handler=patch_subscription,
        name="patchSubscription",
        summary="Change a part of a subscription",
        description="Where the `transport` of a delivery changes, the options of the one before go. One that has "
        "expired stays so until `expires_at` is changed.",
        scopes=("write",),
        parameters=_ID,
        headers=(_IF_MATCH,),
        body=RequestBody(
            schema=schemas.make_reference("SubscriptionChange"),
            examples={"name": {"name": "cheap cars", "labels": ["cars", "cheap"]}, "forget": {"expires_at": None}},
            types=JSON_TYPES,
        ),
        answers={200: _document_one("Changed.")},
        problems=(404, 412, 422),
    ),
    Operation(
        method="DELETE",
        path="/v1/subscriptions/{id}",
        handler=remove_subscription,
        name="removeSubscription",
        summary="Remove a subscription",
        scopes=("write",),
        parameters=_ID,
        headers=(_IF_MATCH,),
        answers={204: DocumentedAnswer(description="Removed.")},
        problems=(404, 412),
    ),
    Operation(
        method="POST",
        path="/v1/subscriptions/{id}:pause",
        handler=pause_subscription,
        name="pauseSubscription",
        summary="Pause a subscription",
        scopes=("write",),
        parameters=_ID,
        headers=(_IF_MATCH,),
        answers={200: _document_one("Paused.")},
        problems=(404, 409, 412),
    ),
    Operation(
        method="POST",
        path="/v1/subscriptions/{id}:resume",
        handler=resume_subscription,
        name="resumeSubscription",
        summary="Resume a subscription that was paused",
        scopes=("write",),
        parameters=_ID,
        headers=(_IF_MATCH,),
        answers={200: _document_one("In force again.")},
        problems=(404, 409, 412),
    ),
)
