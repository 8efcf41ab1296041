"""How the service is: `/healthz`, `/readyz`, `/v1/status`, `/metrics`, and the OpenAPI document."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from tidings.service.api import schemas
from tidings.service.api.metrics import MEDIA_TYPE
from tidings.service.api.operations import ApiCall, DocumentedAnswer, Operation, answer_json
from tidings.service.api.problems import Problem
from tidings.service.api.routes.events import get_event_parts
from tidings.service.store.base import StoreError
from tidings.version import __version__

if TYPE_CHECKING:
    from tidings.service.store.base import StatusReport

PATIENCE = 5.0
"""Seconds that the store may take to say that it can be used."""

READY_SECONDS = 0.5
"""How long an answer of the store counts: whoever asks needs no key, and must not keep the store busy."""

_READY = "readiness"


async def report_health(_call: ApiCall) -> Response:
    """Answer that the process runs."""
    return answer_json({"status": "ok"})


async def report_readiness(call: ApiCall) -> Response:
    """Answer that the store can be read and written; 503 where it cannot."""
    state = call.state
    until, reason = state.parts.get(_READY, (-1.0, None))
    if state.clock() >= until:
        try:
            async with asyncio.timeout(PATIENCE):
                await state.access.work(state.store.check)
            reason = None
        except (StoreError, TimeoutError) as problem:
            reason = str(problem) or "the store does not answer"
        state.parts[_READY] = state.clock() + READY_SECONDS, reason
    if reason is not None:
        msg = "the store cannot be used now"
        raise Problem(msg, status=503, headers={"Retry-After": "1"})
    return answer_json({"status": "ok"})


async def report_status(call: ApiCall) -> Response:
    """Answer with counts and with what the processes of the service last said; their facts are for administrators."""
    state, now = call.state, call.now
    counts = await state.access.work(state.store.subscriptions.count, call.chosen_owner)
    position = await state.access.work(state.store.log.read_head)
    reports = await state.access.work(state.store.statuses.list)
    return answer_json(
        {
            "version": __version__,
            "now": now,
            "changes": position.sequence,
            "subscriptions": dict.fromkeys(schemas.STATUSES, 0) | dict(counts),
            "processes": [_show_report(call, report) for report in reports],
        }
    )


def _show_report(call: ApiCall, report: StatusReport) -> dict[str, Any]:
    age = round(max(0.0, (call.now - report.at).total_seconds()), 3)
    facts = report.facts if call.is_admin else {}
    return {"name": report.name, "at": report.at, "age_seconds": age, "facts": facts}


async def report_metrics(call: ApiCall) -> Response:
    """Answer with the metrics of this process, and with counts of the store."""
    state = call.state
    counts = await state.access.work(state.store.subscriptions.count, None)
    reports = await state.access.work(state.store.statuses.list)
    waiting = get_event_parts(state).backlog.waiting
    return Response(state.metrics.render(counts, reports, waiting=waiting, now=call.now), media_type=MEDIA_TYPE)


async def show_document(call: ApiCall) -> Response:
    """Answer with the OpenAPI document."""
    return answer_json(call.state.parts["openapi"])


_OK = DocumentedAnswer(
    description="It is well.",
    schema={"type": "object", "properties": {"status": {"const": "ok"}}, "required": ["status"]},
    example={"status": "ok"},
)

SCHEMAS: dict[str, Any] = {
    "Status": {
        "type": "object",
        "properties": {
            "version": {"type": "string"},
            "now": schemas.TIME,
            "changes": {"type": "integer", "description": "The number of the newest change of a subscription."},
            "subscriptions": {"type": "object", "additionalProperties": {"type": "integer"}},
            "processes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "at": schemas.TIME,
                        "age_seconds": {"type": "number", "description": "How long ago it last said something."},
                        "facts": {"type": "object", "description": "Lag, versions and the like; for administrators."},
                    },
                    "required": ["name", "at", "age_seconds", "facts"],
                },
            },
        },
        "required": ["version", "now", "changes", "subscriptions", "processes"],
    }
}

_STATUS_EXAMPLE = {
    "version": "1.0.0",
    "now": "2030-01-31T08:00:00Z",
    "changes": 12,
    "subscriptions": {"active": 3, "learning": 0, "paused": 1, "expired": 0},
    "processes": [{"name": "pipeline", "at": "2030-01-31T07:59:59Z", "age_seconds": 1.0, "facts": {"batch": 7}}],
}

OPERATIONS = (
    Operation(
        method="GET",
        path="/healthz",
        handler=report_health,
        name="reportHealth",
        summary="Tell whether the process runs",
        tag="health",
        scopes=(),
        owners=False,
        answers={200: _OK},
    ),
    Operation(
        method="GET",
        path="/readyz",
        handler=report_readiness,
        name="reportReadiness",
        summary="Tell whether the store answers",
        tag="health",
        scopes=(),
        owners=False,
        answers={200: _OK},
    ),
    Operation(
        method="GET",
        path="/v1/status",
        handler=report_status,
        name="reportStatus",
        summary="Tell how the service is",
        tag="health",
        scopes=("read",),
        every_owner=True,
        answers={
            200: DocumentedAnswer(
                description="Counts of subscriptions, and the processes of the service.",
                schema=schemas.make_reference("Status"),
                example=_STATUS_EXAMPLE,
            )
        },
    ),
    Operation(
        method="GET",
        path="/metrics",
        handler=report_metrics,
        name="reportMetrics",
        summary="Give metrics to Prometheus",
        description="They count all owners together, so they are for administrators.",
        tag="health",
        scopes=("admin",),
        owners=False,
        answers={
            200: DocumentedAnswer(
                description="Metrics as text.", schema={"type": "string"}, type="text/plain", example="# HELP ..."
            )
        },
    ),
    Operation(
        method="GET",
        path="/openapi.json",
        handler=show_document,
        name="showDocument",
        summary="Show this document",
        tag="health",
        scopes=(),
        owners=False,
        answers={
            200: DocumentedAnswer(description="OpenAPI 3.1.", schema={"type": "object"}, example={"openapi": "3.1.0"})
        },
    ),
)
