"""`POST /v1/subscriptions:estimate`: how many matches a day a subscription would have, by the events that came lately.

So a person sees that a search is too wide before it floods them. The answer has an interval, and says where it is worth
little: few events, a short time, less than a whole day.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tidings.matcher.loading.documents import find_value, to_id
from tidings.service.api.match_json import answer_values
from tidings.service.api.operations import ApiCall, DocumentedAnswer, Operation, RequestBody
from tidings.service.api.routes.events import get_event_parts
from tidings.service.api.schemas import make_reference
from tidings.service.api.trial_calls import choose_draft, get_gate, look_back, open_trial, read_trial
from tidings.service.api.trial_schemas import ESTIMATE_EXAMPLE, SHOWN_MATCHES, WANTED, WANTED_EXAMPLE
from tidings.service.events.rates import estimate_rate
from tidings.service.events.trials import SubscriptionTrial, describe_detection

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from starlette.responses import Response

    from tidings.service.api.state import ApiState
    from tidings.service.events.recent import RecentSample
    from tidings.service.subscription import SubscriptionDraft

LEAST_SPAN = timedelta(minutes=1)
"""Events of a shorter time give no estimate at all."""

FEW_EVENTS, SHORT_MINUTES = 100, 10
"""Below so many events, or so many minutes, an estimate says little."""


async def estimate_matches(call: ApiCall) -> Response:
    """Answer how many matches a day there would be, by the events that came lately."""
    data, now = await call.request.body(), call.now
    gate = get_gate(call.state)
    async with gate.enter(call.owner):
        body, _ = await gate.work(read_trial, data)
        draft = await choose_draft(call, body)
        trial = await open_trial(call, draft)
        sample = await look_back(call, lambda recent: recent.sample(now))
        return await gate.work(_estimate, trial, draft, sample, call.state, now)


def _estimate(
    trial: SubscriptionTrial, draft: SubscriptionDraft, sample: RecentSample, state: ApiState, now: datetime
) -> Response:
    fields = get_event_parts(state).intake.fields
    sample = replace(sample, events=trial.list_seen(sample.events, now))  # what others see is nobody's business here
    shown: list[Any]
    if trial.is_pattern:
        detections = trial.detect(sample.events, draft.mode or "", fields)
        count, shown = len(detections), [describe_detection(row) for row in detections[::-1][:SHOWN_MATCHES]]
    else:
        indexes = trial.select(sample.events, now)
        count = len(indexes)
        shown = [
            {"event": _find_id(sample.events[index], fields.id), "values": sample.events[index]}
            for index in sorted(indexes)[:SHOWN_MATCHES]
        ]
    rate = estimate_rate(count, sample.span) if sample.events and sample.span >= LEAST_SPAN else None
    interval = None if rate is None else [round(rate.low, 3), round(rate.high, 3)]
    estimate = {
        "kind": draft.kind,
        "matches": count,
        "events": len(sample.events),
        "since": sample.begin,
        "seconds": round(sample.span.total_seconds(), 3),
        "per_day": None if rate is None else round(rate.per_day, 3),
        "interval": interval,
        "note": describe_doubt(sample),
        "latest": shown,
    }
    return answer_values(estimate)


def describe_doubt(sample: RecentSample) -> str | None:
    """Return why an estimate says little; None where it is as good as its interval."""
    count, minutes = len(sample.events), sample.span.total_seconds() / 60
    if not count:
        return "no events came lately, so there is nothing to estimate from"
    if count < FEW_EVENTS or minutes < SHORT_MINUTES:
        return f"only {count:,} events came in {minutes:,.1f} minutes, which says little"
    if minutes < 24 * 60:
        return f"estimated from the last {minutes / 60:,.1f} hours; other hours may differ"
    return None


def _find_id(event: Mapping[str, Any], name: str) -> str | None:
    try:
        return to_id(find_value(event, name))
    except ValueError:
        return None


OPERATIONS = (
    Operation(
        method="POST",
        path="/v1/subscriptions:estimate",
        handler=estimate_matches,
        name="estimateSubscription",
        summary="Estimate how many matches a day a subscription has",
        description=(
            "Counted among the newest events that the owner may see, with an interval of 95 %, and a note where that "
            "says little. A process estimates few at a time, one of an owner: 503 says when to come again."
        ),
        scopes=("read", "write"),
        body=RequestBody(schema={"type": "object", "properties": WANTED}, examples={"a filter": WANTED_EXAMPLE}),
        answers={
            200: DocumentedAnswer(
                description="The estimate.", schema=make_reference("Estimate"), example=ESTIMATE_EXAMPLE
            )
        },
        problems=(404,),
    ),
)
