"""Owners: an administrator erases all that is one's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError
from tidings.service.api import schemas
from tidings.service.api.operations import ApiCall, DocumentedAnswer, Operation, answer_json
from tidings.service.api.problems import Problem
from tidings.service.subscription import check_owner

if TYPE_CHECKING:
    from starlette.responses import Response


async def erase_owner(call: ApiCall) -> Response:
    """Remove subscriptions, changes, matches, answers and keys of an owner; the audit log keeps that it was done."""
    try:
        owner = check_owner(call.path["owner"])
    except TidingsError as problem:
        raise Problem(str(problem), status=404) from None
    assert call.key is not None
    if owner == call.key.owner:
        msg = f"this would remove the key that you use; erase `{owner}` with the key of another owner"
        raise Problem(msg, status=409)
    erased = await call.state.access.work(call.state.store.owners.erase, owner, actor=call.actor, at=call.now)
    call.state.keys.forget()
    return answer_json({"owner": owner, "erased": dict(erased)})


SCHEMAS: dict[str, Any] = {
    "Erasure": {
        "type": "object",
        "properties": {
            "owner": schemas.OWNER,
            "erased": {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "description": "How many rows were removed, by table.",
            },
        },
        "required": ["owner", "erased"],
    }
}

OPERATIONS = (
    Operation(
        method="DELETE",
        path="/v1/owners/{owner}",
        handler=erase_owner,
        name="eraseOwner",
        summary="Erase an owner",
        description="Removes all that is the owner's, for good. An owner without anything is erased, too.",
        tag="owners",
        scopes=("admin",),
        owners=False,
        parameters={"owner": schemas.OWNER},
        answers={
            200: DocumentedAnswer(
                description="Erased.",
                schema=schemas.make_reference("Erasure"),
                example={"owner": "shop", "erased": {"subscriptions": 3, "keys": 1}},
            )
        },
        problems=(404, 409),
    ),
)
