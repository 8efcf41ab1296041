"""Keys: administrators make, list and revoke them. A key's text is in the answer that made it, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from tidings.service.api import schemas
from tidings.service.api.operations import (
    ApiCall,
    DocumentedAnswer,
    Operation,
    RequestBody,
    answer_json,
    check_keys,
)
from tidings.service.api.problems import Problem
from tidings.service.checking import parse_moment
from tidings.service.keys import SCOPES, make_key
from tidings.service.subscription import check_owner

if TYPE_CHECKING:
    from datetime import datetime

    from tidings.service.store.base import KeyRecord

MAX_NOTE = 200
"""Characters of the note of a key at most."""


async def list_keys(call: ApiCall) -> Response:
    """Answer with the keys of an owner, those revoked and expired too."""
    records = await call.state.access.work(call.state.store.keys.list, call.chosen_owner)
    return answer_json({"keys": [show_key(record) for record in records]})


async def create_key(call: ApiCall) -> Response:
    """Answer with a new key, this once with its text."""
    body = check_keys(await call.read_json(), ("owner", "scopes", "expires_at", "note"))
    scopes, note, owner = body.get("scopes"), body.get("note", ""), body.get("owner", call.owner)
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        msg = f"`scopes` is a list of {', '.join(f'`{scope}`' for scope in SCOPES)}"
        raise Problem(msg, status=422)
    if not isinstance(note, str) or len(note) > MAX_NOTE or not note.isprintable():
        msg = f"`note` is a text of {MAX_NOTE} printable characters at most"
        raise Problem(msg, status=422)
    if not isinstance(owner, str):
        msg = "`owner` is a text"
        raise Problem(msg, status=422)
    expires_at = _read_expiry(body.get("expires_at"), call.now)
    text, record = make_key(check_owner(owner), scopes, at=call.now, expires_at=expires_at, note=note)
    await call.state.access.work(call.state.store.keys.add, record, actor=call.actor)
    return answer_json({**show_key(record), "key": text}, 201, {"Cache-Control": "no-store"})


def _read_expiry(value: Any, now: datetime) -> datetime | None:
    if value is None:
        return None
    moment = parse_moment(value) if isinstance(value, str) else None
    if moment is None or moment <= now:
        msg = "`expires_at` is a time to come such as `2030-01-31T08:00:00Z`"
        raise Problem(msg, status=422)
    return moment


async def revoke_key(call: ApiCall) -> Response:
    """Revoke a key: refused here from now on, by other processes within a second."""
    id = call.path["key"]
    if not await call.state.access.work(call.state.store.keys.revoke, id, actor=call.actor, at=call.now):
        msg = f"no key has the id `{id:.80}`, or it is revoked already"
        raise Problem(msg, status=404)
    call.state.keys.forget()
    return Response(status_code=204)


def show_key(record: KeyRecord) -> dict[str, Any]:
    """Return a key as the API shows it: without its text, and without what is stored of that."""
    return {
        "id": record.id,
        "owner": record.owner,
        "scopes": sorted(record.scopes),
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "revoked_at": record.revoked_at,
        "note": record.note,
    }


_SCOPES = {"type": "array", "items": {"type": "string", "enum": list(SCOPES)}, "minItems": 1}
_KEY_PROPERTIES: dict[str, Any] = {
    "id": {"type": "string"},
    "owner": schemas.OWNER,
    "scopes": _SCOPES,
    "created_at": schemas.TIME,
    "expires_at": schemas.make_nullable(schemas.TIME),
    "revoked_at": schemas.make_nullable(schemas.TIME),
    "note": {"type": "string"},
}

SCHEMAS: dict[str, Any] = {
    "Key": {"type": "object", "properties": _KEY_PROPERTIES, "required": list(_KEY_PROPERTIES)},
    "KeyWithText": {
        "type": "object",
        "properties": {**_KEY_PROPERTIES, "key": {"type": "string", "description": "Shown this once."}},
        "required": [*_KEY_PROPERTIES, "key"],
    },
    "NewKey": {
        "type": "object",
        "properties": {
            "owner": {**schemas.OWNER, "description": "Whose key it is; the asking key's own owner by default."},
            "scopes": _SCOPES,
            "expires_at": {**schemas.make_nullable(schemas.TIME), "description": "In the future."},
            "note": {"type": "string", "maxLength": MAX_NOTE},
        },
        "required": ["scopes"],
        "additionalProperties": False,
    },
}

_EXAMPLE: dict[str, Any] = {
    "id": "key-0123456789ab",
    "owner": "shop",
    "scopes": ["read", "write"],
    "created_at": "2030-01-31T08:00:00Z",
    "expires_at": None,
    "revoked_at": None,
    "note": "the web site",
}

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/keys",
        handler=list_keys,
        name="listKeys",
        summary="List keys",
        tag="keys",
        scopes=("admin",),
        every_owner=True,
        answers={
            200: DocumentedAnswer(
                description="Keys, without their texts.",
                schema={
                    "type": "object",
                    "properties": {"keys": {"type": "array", "items": schemas.make_reference("Key")}},
                    "required": ["keys"],
                },
                example={"keys": [_EXAMPLE]},
            )
        },
    ),
    Operation(
        method="POST",
        path="/v1/keys",
        handler=create_key,
        name="createKey",
        summary="Make a key",
        description=(
            "Each request makes another key, whose text is in the answer alone. Where no answer came, look for the key "
            "in the list and revoke it."
        ),
        again="where no answer comes, revoke the key that `GET /v1/keys` lists, and make another",
        tag="keys",
        scopes=("admin",),
        body=RequestBody(
            schema=schemas.make_reference("NewKey"),
            examples={"reader": {"owner": "shop", "scopes": ["read", "write"], "note": "the web site"}},
        ),
        answers={
            201: DocumentedAnswer(
                description="The key; its text is shown this once.",
                schema=schemas.make_reference("KeyWithText"),
                example={**_EXAMPLE, "key": "tdk_..."},
                links={"revoke": {"operationId": "revokeKey", "parameters": {"key": "$response.body#/id"}}},
            )
        },
    ),
    Operation(
        method="DELETE",
        path="/v1/keys/{key}",
        handler=revoke_key,
        name="revokeKey",
        summary="Revoke a key",
        tag="keys",
        scopes=("admin",),
        owners=False,
        answers={204: DocumentedAnswer(description="Revoked.")},
        problems=(404,),
    ),
)
