"""`GET /v1/audit`: who changed what. Owners see the records of what is theirs, administrators those of anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.service.api import schemas
from tidings.service.api.cursors import read_cursor, write_cursor
from tidings.service.api.operations import ApiCall, DocumentedAnswer, Operation, Parameter, answer_json

if TYPE_CHECKING:
    from starlette.responses import Response

    from tidings.service.store.base import AuditRecord


async def list_audit(call: ApiCall) -> Response:
    """Answer with a page of records, oldest first."""
    owner, limit, cursor = call.chosen_owner, call.query.get("limit", 100), call.query.get("cursor")
    subject = f"audit of {owner or '*'}"
    after = 0 if cursor is None else read_cursor(subject, cursor, (int,))[0]
    access = call.state.access
    records = await access.work(call.state.store.audit.list, owner=owner, after=after, limit=limit + 1)
    following = write_cursor(subject, [records[limit - 1].number]) if len(records) > limit else None
    return answer_json({"records": [show_record(record) for record in records[:limit]], "next": following})


def show_record(record: AuditRecord) -> dict[str, Any]:
    """Return a record as the API shows it."""
    return {
        "number": record.number,
        "at": record.at,
        "actor": record.actor,
        "owner": record.owner,
        "action": record.action,
        "id": record.id,
        "revision": record.revision,
    }


SCHEMAS: dict[str, Any] = {
    "AuditRecord": {
        "type": "object",
        "properties": {
            "number": {"type": "integer"},
            "at": schemas.TIME,
            "actor": {"type": "string", "description": "The owner and the id of the key."},
            "owner": {"type": "string", "description": "Whose thing was changed."},
            "action": {"type": "string"},
            "id": {"type": "string"},
            "revision": {"type": ["integer", "null"]},
        },
        "required": ["number", "at", "actor", "owner", "action", "id", "revision"],
    },
    "AuditPage": {
        "type": "object",
        "properties": {
            "records": {"type": "array", "items": schemas.make_reference("AuditRecord")},
            "next": {"type": ["string", "null"], "description": "The cursor of the next page."},
        },
        "required": ["records", "next"],
    },
}

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/audit",
        handler=list_audit,
        name="listAudit",
        summary="List who changed what",
        tag="audit",
        scopes=("read",),
        every_owner=True,
        query=(
            Parameter("cursor", {"type": "string", "minLength": 1, "maxLength": 2000}, "`next` of the page before."),
            Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}, "How many."),
        ),
        answers={
            200: DocumentedAnswer(
                description="A page of records, oldest first.",
                schema=schemas.make_reference("AuditPage"),
                example={
                    "records": [
                        {
                            "number": 1,
                            "at": "2030-01-31T08:00:00Z",
                            "actor": "shop/key-0123456789ab",
                            "owner": "shop",
                            "action": "create",
                            "id": "s1",
                            "revision": 1,
                        }
                    ],
                    "next": None,
                },
            )
        },
    ),
)
