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
from tidings.service.api.trial_calls import look_back, open_trial
from tidings.service.api.trial_schemas import TRIED_EXAMPLE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from starlette.responses import Response

    from tidings.service.api.state import ApiState
    from tidings.service.events.recent import RecentEvents
    from tidings.service.subscription import Subscription


async def explain_event(call: ApiCall) -> Response:
    """Answer whether a subscription matches an event that was published, and why or why not."""
    id = call.query.get("event")
    if id is None:
        msg = "say which event: ?event=ID"
        raise Problem(msg, status=400)
    subscription = await find_subscription(call)
    trial = await open_trial(call, subscription)
    name = get_event_parts(call.state).intake.fields.id
    event = await look_back(call, lambda recent: _find_event(call.state, subscription, id, recent, name))
    if event is None or not trial.may_see(event, call.now):
        msg = f"no event `{id:.200}` is among the kept matches of this subscription or the recent events"
        raise Problem(msg, status=404)
    try:
        verdict = trial.judge(event, call.now).to_dict()
    except BadEvent as problem:
        msg = f"the event cannot be read: {problem}"
        raise Problem(msg, status=422) from None
    words = {"subscription": subscription.id, "status": subscription.status, "kind": subscription.kind, "event": id}
    return answer_values({**words, **verdict, "values": event})


def _find_event(
    state: ApiState, subscription: Subscription, id: str, recent: RecentEvents, name: str
) -> Mapping[str, Any] | None:
    kept = state.settings.matches.keep
    for row in state.store.matches.list_latest(subscription.owner, subscription.id, limit=kept):
        if row.kind == "match" and row.event == id:
            return row.values
    return recent.find(id, name)


OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/subscriptions/{id}/why",
        handler=explain_event,
        name="explainEvent",
        summary="Explain why a subscription matches an event, or why not",
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
