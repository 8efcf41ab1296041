"""Many subscriptions at once: `:import` takes JSON lines, `:export` gives them."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from starlette.responses import Response, StreamingResponse

from tidings.service.api import schemas
from tidings.service.api.block_checks import ImportRules
from tidings.service.api.importing import BlockExecutor, ImportRun, ImportStopped, cut_blocks
from tidings.service.api.operations import (
    ApiCall,
    DocumentedAnswer,
    Operation,
    Parameter,
    RequestBody,
    answer_json,
)
from tidings.service.api.problems import Problem, log_failure
from tidings.service.api.routes.subscriptions import get_most_subscriptions
from tidings.service.api.subscription_bodies import to_sendable
from tidings.service.events.bodies import LINES
from tidings.service.store.base import StoreError, SubscriptionQuery
from tidings.service.store.rows import refuse_quota

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator, Mapping

    from tidings.service.subscription import Subscription

MAX_IMPORTS, MAX_IMPORTS_OF_OWNER = 4, 2
"""Imports of one process, and of one owner there, at the same time: each has a thread, and memory for a few blocks."""

FIRST_PAGE, PAGE = 100, 1_000
"""Subscriptions that an export reads at once: at first, and at most."""

PAGE_BYTES = 250_000
"""What a page may have, going by the one before: a client that does not read holds two or three."""

_RUNNING = "imports"


async def import_subscriptions(call: ApiCall) -> Response:
    """Store what the lines say, all or nothing; with `partial=true`, the good lines."""
    with _take_slot(call):
        run = ImportRun(partial=call.query.get("partial", False))
        try:
            await _run_import(call, run)
        except ImportStopped as stop:
            members = {"imported": 0, "refused": run.report.refused}
            raise ImportStopped(str(stop), status=422, errors=tuple(run.report.mistakes), members=members) from None
    return answer_json(run.report.to_dict())


@contextmanager
def _take_slot(call: ApiCall) -> Iterator[None]:
    running: Counter[str] = call.state.parts.setdefault(_RUNNING, Counter())
    if running.total() >= MAX_IMPORTS or running[call.owner] >= MAX_IMPORTS_OF_OWNER:
        msg = "as many imports as may be are under way; try again when they are done"
        raise Problem(msg, status=503, headers={"Retry-After": "10"})
    running[call.owner] += 1
    try:
        yield
    finally:
        running[call.owner] -= 1
        if not running[call.owner]:
            del running[call.owner]


async def _run_import(call: ApiCall, run: ImportRun) -> None:
    rules, limits = await call.get_rules(), call.state.settings.limits
    line_rules = ImportRules(call.owner, call.now, limits.depth, rules.filter_bytes, only=rules.only)
    executor = BlockExecutor(call.state.checker, partial(_find_deliveries, call))
    submit = partial(executor.check, rules=line_rules, expected=int(call.get_header("content-length") or 0))
    most = await get_most_subscriptions(call)
    write = partial(
        call.state.store.subscriptions.write_many,
        call.owner,
        run.iterate_drafts(),
        actor=call.actor,
        at=call.now,
        most=most,
        fill=run.partial,
    )
    storing = asyncio.create_task(asyncio.to_thread(write))
    storing.add_done_callback(lambda _: run.release())
    try:
        await run.put(cut_blocks(call.stream(), limits.body), submit)
        run.end()
    except BaseException as problem:  # whatever it is, the store's thread must hear of it
        run.end(problem)
        await asyncio.wait([storing])
        storing.exception()
        raise
    finally:
        executor.close()
    run.report.finish(await storing, refuse_quota(call.owner, most))


def _find_deliveries(call: ApiCall, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
    stored = call.state.store.subscriptions.get_many(call.owner, ids)
    return {id: subscription.delivery for id, subscription in stored.items() if subscription.delivery is not None}


async def export_subscriptions(call: ApiCall) -> Response:
    """Answer with a line for each subscription, by id, page by page."""
    first = await _read_page(call, None, FIRST_PAGE)  # before the answer begins: a store that does not answer is a 503
    return StreamingResponse(_iterate_lines(call, first), media_type=LINES[0])


async def _iterate_lines(call: ApiCall, page: list[Subscription]) -> AsyncIterator[bytes]:
    size = FIRST_PAGE
    while page:
        lines = await call.state.access.work(_render_lines, page, with_owner=call.chosen_owner is None)
        yield lines
        if len(page) < size:
            return
        size = max(1, min(PAGE, 2 * size, size * PAGE_BYTES // len(lines)))
        try:
            page = await _read_page(call, (page[-1].owner, page[-1].id), size)
        except StoreError as problem:
            log_failure(problem)
            raise ConnectionAbortedError from None  # cut short, so that nobody takes it for the whole


async def _read_page(call: ApiCall, after: tuple[str, str] | None, size: int) -> list[Subscription]:
    query = SubscriptionQuery(owner=call.chosen_owner, after=after, limit=size)
    return list(await call.state.access.work(call.state.store.subscriptions.list, query))


def _render_lines(page: list[Subscription], *, with_owner: bool) -> bytes:
    lines = (to_sendable(row) | ({"owner": row.owner} if with_owner else {}) for row in page)
    return b"".join(orjson.dumps(line, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE) for line in lines)


# Document -----------------------------------------------------------------------------------------------

_LINES = '{"id": "s1", "filter": "make = \'ford\'"}\n{"id": "s2", "filter": "price < 900", "labels": ["cheap"]}\n'

SCHEMAS: dict[str, Any] = {
    "ImportReport": {
        "type": "object",
        "properties": {
            "imported": {"type": "integer", "minimum": 0},
            "refused": {"type": "integer", "minimum": 0},
            "errors": {"type": "array", "items": schemas.make_reference("Mistake")},
        },
        "required": ["imported", "refused", "errors"],
        "additionalProperties": False,
    },
    "Lines": {"type": "string", "description": "JSON lines: each is what creates a subscription, with its id."},
}

OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/subscriptions:import",
        handler=import_subscriptions,
        name="importSubscriptions",
        summary="Import subscriptions",
        description="Lines are read as a stream, and stored together when the last one has come. An id that is there "
        "already is replaced; of two lines with one id the last counts. One bad line refuses all, with a report of the "
        "first of them; with `partial=true` the others are imported: of more new ones than the owner may have, those "
        "that fit, in the order of the lines. A time of expiry may be past.",
        scopes=("write",),
        query=(Parameter("partial", {"type": "boolean", "default": False}, "Import the good lines."),),
        body=RequestBody(
            schema=schemas.make_reference("Lines"),
            examples={"two": _LINES},
            types=LINES,
            size="import_body",
            streams=True,
        ),
        answers={
            200: DocumentedAnswer(
                description="What was imported, and why lines were refused.",
                schema=schemas.make_reference("ImportReport"),
                example={"imported": 2, "refused": 0, "errors": []},
            )
        },
        problems=(422,),
    ),
    Operation(
        method="GET",
        path="/v1/subscriptions:export",
        handler=export_subscriptions,
        name="exportSubscriptions",
        summary="Export subscriptions",
        description="Every line is what `:import` takes. Secrets of deliveries are written and never read: they are "
        "not in it, and a delivery that cannot be without one must be given it again.",
        scopes=("read",),
        every_owner=True,
        answers={
            200: DocumentedAnswer(
                description="JSON lines.", schema=schemas.make_reference("Lines"), example=_LINES, type=LINES[0]
            )
        },
    ),
)
