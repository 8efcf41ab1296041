"""What `:try`, `:estimate` and `why` share: which subscription is meant, and a trial of it within the owner's bound.

Each of them holds the gate (`trial_gate`) from when its body has come until its answer is made, and works in the gate's
threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.service.api.problems import Problem
from tidings.service.api.routes.events import refuse_body
from tidings.service.api.routes.subscriptions import check_draft, make_unknown
from tidings.service.api.trial_gate import TrialGate
from tidings.service.events.event_writer import EventsDelayed
from tidings.service.events.json_bodies import BadBody, parse_json
from tidings.service.events.opening import open_recent
from tidings.service.events.trials import SubscriptionTrial
from tidings.service.owner_bounds import parse_bound

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.service.api.operations import ApiCall
    from tidings.service.api.state import ApiState
    from tidings.service.api.store_access import T
    from tidings.service.events.recent import RecentEvents
    from tidings.service.subscription import SubscriptionDraft

RECENT, GATE = "recent", "trial gate"
"""Names among the parts of the API's state."""


def get_gate(state: ApiState) -> TrialGate:
    """Return the gate of this process's trials."""
    if GATE not in state.parts:
        state.parts[GATE] = TrialGate()
    gate: TrialGate = state.parts[GATE]
    return gate


async def look_back(call: ApiCall, look: Callable[[RecentEvents], T]) -> T:
    """Return what is seen in the events that came lately."""
    state = call.state
    if RECENT not in state.parts:
        state.parts[RECENT] = open_recent(state.settings)
    try:
        return await get_gate(state).work(look, state.parts[RECENT])
    except EventsDelayed as delay:
        raise Problem(str(delay), status=503, headers={"Retry-After": str(delay.retry_after)}) from None


def read_trial(data: bytes) -> tuple[dict[str, Any], bool]:
    """Return the object of a body, and whether orjson can write it again."""
    try:
        parsed = parse_json(data)
    except BadBody as problem:
        raise refuse_body(problem) from None
    if type(parsed.value) is not dict:
        msg = "the body is a JSON object with a `filter` or a `pattern`, or the `id` of a subscription"
        raise Problem(msg, status=422)
    return parsed.value, parsed.is_plain


async def choose_draft(call: ApiCall, body: dict[str, Any]) -> SubscriptionDraft:
    """Return the subscription that a body describes, or the stored one that it names."""
    id = body.get("id")
    if isinstance(id, str) and body.get("filter") is None and body.get("pattern") is None:
        subscription = await call.state.access.ask(call.state.store.subscriptions.get, call.owner, id)
        if subscription is None:
            raise make_unknown(id)
        return subscription
    return await check_draft(call, body, "sample" if id is None else None)


async def open_trial(call: ApiCall, draft: SubscriptionDraft) -> SubscriptionTrial:
    """Return a subscription that was checked, ready to be tried within the bound of its owner."""
    rules = await call.get_rules()
    return await get_gate(call.state).work(_build_trial, call.state, draft, rules.only)


def _build_trial(state: ApiState, draft: SubscriptionDraft, only: str | None) -> SubscriptionTrial:
    kind = "filter" if draft.kind == "filter" else "pattern"
    most = max(state.settings.limits.filter_bytes, len(draft.text.encode()))
    checked = state.checker.check_text(kind, draft.text, draft.notation, draft.mode, filter_bytes=most)
    vocabulary = state.settings.vocabulary
    return SubscriptionTrial(checked.tree, parse_bound(only, vocabulary), vocabulary)
