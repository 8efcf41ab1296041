"""`GET /v1/subscriptions/{id}/why?event=ID`: why a subscription matches an event that was published, or why not.

The event is looked for among the kept matches of the subscription, then among the recent events. One that the owner may
not see is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import BadEvent
from tidings.service.api.match_json import answer_values
from tidings.service.api.operations import ApiCall, DocumentedAnswer, Operation, Parameter
from tidings.service.api.problems import Problem
from tidings.service.api.routes.events import get_event_parts
from tidings.service.api.routes.subscriptions import find_subscription
from tidings.service.api.schemas import make_reference
from tidings.service.api.trial_calls import get_gate, look_back, open_trial
from tidings.service.api.trial_schemas import TRIED_EXAMPLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from typing import Any

    from starlette.responses import Response

    from tidings.service.api.state import ApiState
    from tidings.service.events.recent import RecentEvents
    from tidings.service.events.trials import SubscriptionTrial
    from tidings.service.subscription import MatchRow, Subscription

PAGE = 100
"""Kept matches that are looked through at once."""


async def explain_event(call: ApiCall) -> Response:
    """Answer whether a subscription matches an event that was published, and why or why not."""
    id = call.query.get("event")
    if id is None:
        msg = "say which event: ?event=ID"
        raise Problem(msg, status=400)
    gate = get_gate(call.state)
    async with gate.enter(call.owner):
        subscription = await find_subscription(call)
        trial = await open_trial(call, subscription)
        name = get_event_parts(call.state).intake.fields.id
        event = await look_back(call, lambda recent: _find_event(call.state, subscription, id, recent, name))
        return await gate.work(_explain, trial, subscription, id, event, call.now)


def _explain(
    trial: SubscriptionTrial, subscription: Subscription, id: str, event: Mapping[str, Any] | None, now: datetime
) -> Response:
    if event is None or not trial.may_see(event, now):
        msg = f"no event `{id:.200}` is among the kept matches of this subscription or the recent events"
        raise Problem(msg, status=404)
    try:
        verdict = trial.judge(event, now).to_dict()
    except BadEvent as problem:
        msg = f"the event cannot be read: {problem}"
        raise Problem(msg, status=422) from None
    words = {"subscription": subscription.id, "status": subscription.status, "kind": subscription.kind, "event": id}
    return answer_values({**words, **verdict, "values": event})


def _find_event(
    state: ApiState, subscription: Subscription, id: str, recent: RecentEvents, name: str
) -> Mapping[str, Any] | None:
    for row in _iterate_kept(state, subscription):
        if row.kind == "match" and row.event == id:
            return row.values
    return recent.find(id, name)


def _iterate_kept(state: ApiState, subscription: Subscription) -> Iterator[MatchRow]:
    """Yield the kept matches, newest first; a page at a time, since each has a whole event."""
    before: int | None = None
    for _ in range(0, state.settings.matches.keep, PAGE):
        page = state.store.matches.list_latest(subscription.owner, subscription.id, before=before, limit=PAGE)
        yield from page
        if len(page) < PAGE:
            return
        before = page[-1].number


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/subscriptions/{id}/why",
        handler=explain_event,
        name="explainEvent",
        summary="Explain why a subscription matches an event, or why not",
        description=(
            "Looked for are the kept matches and some of the newest events, not all that ever came. A process explains "
            "few at a time, one of an owner: 503 says when to come again."
        ),
        scopes=("read",),
        query=(Parameter("event", {"type": "string", "minLength": 1, "maxLength": 1000}, "The id of the event."),),
        answers={
            200: DocumentedAnswer(
                description="The explanation.",
                schema=make_reference("Explanation"),
                example={
                    "subscription": "s1",
                    "status": "active",
                    "kind": "filter",
                    **{name: value for name, value in TRIED_EXAMPLE.items() if name != "index"},
                    "values": {"id": "ad-1", "make": "ford", "price": 9500},
                },
            )
        },
        problems=(404, 422),
    ),
)
