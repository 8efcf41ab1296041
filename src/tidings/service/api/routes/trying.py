"""`POST /v1/subscriptions:try`: which of these sample events a subscription matches, and why or why not.

Nothing is stored. A body that names an `id` and no filter or pattern means the subscription that has it. An event that
`POST /v1/events` would refuse is refused here in the same words; one beyond the owner's bound does not match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.errors import BadEvent
from tidings.matcher.loading.documents import BadDocument, find_value, to_id
from tidings.service.api.match_json import answer_values
from tidings.service.api.operations import ApiCall, DocumentedAnswer, Operation, RequestBody
from tidings.service.api.problems import Problem
from tidings.service.api.routes.events import EVENT, get_event_parts
from tidings.service.api.schemas import make_reference
from tidings.service.api.trial_calls import choose_draft, get_gate, open_trial, read_trial
from tidings.service.api.trial_schemas import TRIAL_SCHEMAS, TRIED_EXAMPLE, WANTED, WANTED_EXAMPLE
from tidings.service.events.bodies import PostedEvents, refuse_shape
from tidings.service.events.event_checks import EventMistake
from tidings.service.events.trials import SubscriptionTrial, describe_detection

if TYPE_CHECKING:
    from datetime import datetime

    from starlette.responses import Response

    from tidings.service.api.state import ApiState
    from tidings.service.subscription import SubscriptionDraft

MAX_SAMPLES = 1_000
"""Events that are tried at once at most."""

SHOWN_DETECTIONS = 100
"""What a pattern detects in them, in an answer at most."""


async def try_subscription(call: ApiCall) -> Response:
    """Answer which of the events in the body match, and why or why not."""
    data = await call.request.body()
    gate = get_gate(call.state)
    async with gate.enter(call.owner):
        body, is_plain = await gate.work(read_trial, data)
        events = body.pop("events", None)
        if not isinstance(events, list) or not 1 <= len(events) <= MAX_SAMPLES:
            msg = f"`events` is a list of 1 to {MAX_SAMPLES:,} events"
            raise Problem(msg, status=422)
        draft = await choose_draft(call, body)
        trial = await open_trial(call, draft)
        documents = [dict(event) if type(event) is dict else refuse_shape(event) for event in events]
        posted = PostedEvents(documents, is_plain, nested=call.state.settings.limits.depth)
        return await gate.work(_try_events, trial, draft, posted, call.state, call.now)


def _try_events(
    trial: SubscriptionTrial, draft: SubscriptionDraft, posted: PostedEvents, state: ApiState, now: datetime
) -> Response:
    intake = get_event_parts(state).intake
    errors = {mistake.index: mistake for mistake in intake.prepare(posted, now).mistakes}
    good = {
        index: event
        for index, event in enumerate(posted.documents)
        if index not in errors and not isinstance(event, BadDocument)
    }
    results: dict[int, dict[str, Any]] = {}
    for (index, event), verdict in zip(good.items(), trial.judge_many(list(good.values()), now), strict=True):
        if isinstance(verdict, BadEvent):
            errors[index] = EventMistake(str(verdict), index=index)
        else:
            results[index] = {"event": to_id(find_value(event, intake.fields.id)), **verdict.to_dict()}
    results |= {index: {"error": mistake.to_dict()} for index, mistake in errors.items()}
    matches = sum(bool(result.get("matches")) for result in results.values())
    answer: dict[str, Any] = {"kind": draft.kind, "matches": matches}
    if trial.is_pattern:
        detections = trial.detect(good.values(), draft.mode or "", intake.fields)
        shown = [describe_detection(row) for row in detections[:SHOWN_DETECTIONS]]
        answer |= {"matches": len(detections), "detections": shown}
    return answer_values(answer | {"results": [{"index": index, **results[index]} for index in sorted(results)]})


# The document ---------------------------------------------------------------------------------------------

SCHEMAS = TRIAL_SCHEMAS
"""Schemas of the OpenAPI document."""

_TRY_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["events"],
    "properties": {
        **WANTED,
        "events": {"type": "array", "items": EVENT, "minItems": 1, "maxItems": MAX_SAMPLES},
    },
}
OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/subscriptions:try",
        handler=try_subscription,
        name="trySubscription",
        summary="Try a subscription on sample events",
        description=(
            "Which events match, and why or why not; of a pattern, what it detects in them. Nothing is stored. An "
            "answer has the first reasons, values and letters, and how many more there are; a filter of many tests is "
            "tried on fewer events at once. A process tries a few at a time, one of an owner: 503 says when to come "
            "again."
        ),
        scopes=("read", "write"),
        body=RequestBody(
            schema=_TRY_BODY,
            examples={"a filter": {**WANTED_EXAMPLE, "events": [{"id": "ad-1", "make": "ford", "price": 9500}]}},
        ),
        answers={
            200: DocumentedAnswer(
                description="What the subscription makes of each event.",
                schema=make_reference("Trial"),
                example={"kind": "filter", "matches": 0, "results": [TRIED_EXAMPLE]},
            )
        },
        problems=(404,),
    ),
)
