"""`POST /v1/events`: events come in, are checked one by one, and are durable before they are accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.service.api.operations import ApiCall, DocumentedAnswer, Operation, Parameter, RequestBody, answer_json
from tidings.service.api.problems import Problem
from tidings.service.events.bodies import BATCHED, LINES, STRUCTURED, UnsupportedBody
from tidings.service.events.event_writer import EventsDelayed
from tidings.service.events.json_bodies import BadBody
from tidings.service.events.opening import EventParts, open_event_parts
from tidings.service.refusals import MAX_MISTAKES, RequestMistake

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from tidings.service.api.state import ApiState
    from tidings.service.api.store_access import P, T
    from tidings.service.events.intake import ReadyEvents

QUICK_BYTES, QUICK_CHECKED_BYTES = 262_144, 32_768
"""The bytes that are read at once, in a few milliseconds, without and with declarations; others go to a thread."""

PART = "events"
"""Their name among the parts of the API's state."""


def get_event_parts(state: ApiState) -> EventParts:
    """Return what takes events in this process; it is opened when it is first asked for."""
    parts: EventParts | None = state.parts.get(PART)
    if parts is None:
        parts = state.parts[PART] = open_event_parts(state.settings)
    return parts


async def post_events(call: ApiCall) -> Response:
    """Take events: all of them, or with `partial=true` those that are good."""
    parts, body, headers = get_event_parts(call.state), await call.request.body(), dict(call.request.headers)
    is_quick = len(body) <= (QUICK_BYTES if parts.intake.declarations is None else QUICK_CHECKED_BYTES)
    work = _run_now if is_quick else call.state.access.work
    try:
        posted = await work(parts.intake.read, body, headers.get("content-type", ""), headers)
    except BadBody as problem:
        raise refuse_body(problem) from None
    rules = await call.get_rules()
    rate = call.state.settings.limits.events_per_second if rules.events_per_second is None else rules.events_per_second
    call.state.events.take(call.owner, rate, len(posted.documents))
    ready = await work(parts.intake.prepare, posted, call.now)
    if ready.mistakes and not call.query.get("partial"):
        raise refuse_events(ready, len(posted.documents))
    try:
        await parts.writer.write(ready)
    except EventsDelayed as delay:
        raise Problem(str(delay), status=503, headers={"Retry-After": str(delay.retry_after)}) from None
    call.state.metrics.count_events(len(ready.lines))
    return answer_json(describe_outcome(ready), 202)


async def _run_now(function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    return function(*arguments, **keywords)


def refuse_body(problem: BadBody) -> Problem:
    """Return the problem of a body that cannot be read."""
    mistake = RequestMistake(str(problem), problem.hint, problem.at)
    return Problem(str(problem), status=415 if isinstance(problem, UnsupportedBody) else 400, errors=(mistake,))


def refuse_events(ready: ReadyEvents, total: int) -> Problem:
    """Return the problem of a batch with bad events, of which none is taken."""
    bad = len(ready.mistakes)
    msg = f"{bad:,} of {total:,} events cannot be taken, so none was; `partial=true` takes the others"
    if total == 1:
        msg = ready.mistakes[0].message
    return Problem(msg, status=422, title="Events cannot be taken", errors=tuple(ready.mistakes))


def describe_outcome(ready: ReadyEvents) -> dict[str, Any]:
    """Return how many events were taken, and what was wrong with the others."""
    outcome: dict[str, Any] = {"accepted": len(ready.lines)}
    if ready.mistakes:
        outcome["refused"] = len(ready.mistakes)
        outcome["errors"] = [mistake.to_dict() for mistake in ready.mistakes[:MAX_MISTAKES]]
    return outcome


# The document ---------------------------------------------------------------------------------------------

EVENT = {"type": "object", "additionalProperties": True}
"""An event is any JSON object."""

_BODY = RequestBody(
    schema={"oneOf": [EVENT, {"type": "array", "items": EVENT}]},
    examples={
        "one event": {"id": "ad-1", "make": "ford", "price": 8500},
        "a batch": [{"make": "ford", "price": 8500}, {"make": "fiat", "price": 3100}],
    },
    types=("application/json", *LINES, STRUCTURED, BATCHED, "*/*"),
)

_OUTCOME = {
    "type": "object",
    "required": ["accepted"],
    "properties": {
        "accepted": {"type": "integer", "minimum": 0},
        "refused": {"type": "integer", "minimum": 1},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}

OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/events",
        handler=post_events,
        name="postEvents",
        summary="Publish events",
        description=(
            "One event, a batch in an array, JSON lines, or CloudEvents 1.0 (structured, batched, or binary with `ce-` "
            "headers). Events are durable when the answer comes. An event is named by its field `id`, a CloudEvent by "
            "its own; one without an id or a time is given one. Of a batch all events are taken or none, "
            "unless `partial=true`. A request that got no answer is sent again with the same ids: an event whose id "
            "came before, within the time that the service keeps ids, counts once."
        ),
        again="give each event an `id` of your own: one that comes again counts once",
        tag="events",
        owners=False,
        scopes=("publish",),
        query=(Parameter("partial", {"type": "boolean"}, "Take the good events of a batch that has bad ones."),),
        body=_BODY,
        answers={202: DocumentedAnswer(description="The events are kept.", schema=_OUTCOME, example={"accepted": 2})},
        problems=(413, 415, 422, 503),
    ),
)
