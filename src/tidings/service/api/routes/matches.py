"""`GET /v1/subscriptions/{id}/matches`: the latest matches of a subscription, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.service.api.cursors import read_cursor, write_cursor
from tidings.service.api.match_json import MATCH, MATCH_EXAMPLE, answer_values, describe_match
from tidings.service.api.operations import ApiCall, DocumentedAnswer, Operation, Parameter
from tidings.service.api.owner_views import get_view
from tidings.service.api.routes.subscriptions import find_subscription

if TYPE_CHECKING:
    from starlette.responses import Response

DEFAULT_ROWS, MAX_ROWS = 100, 500
"""How many matches a page has, unless asked otherwise, and at most."""


async def list_matches(call: ApiCall) -> Response:
    """Answer with a page of matches."""
    subscription = await find_subscription(call)
    subject = f"matches of {subscription.engine_id}"
    cursor, limit = call.query.get("cursor"), call.query.get("limit", DEFAULT_ROWS)
    before = None if cursor is None else read_cursor(subject, cursor, (int,))[0]
    matches = call.state.store.matches
    rows = await call.state.access.ask(
        matches.list_latest, subscription.owner, subscription.id, before=before, limit=limit + 1
    )
    page = rows[:limit]
    following = write_cursor(subject, [page[-1].number]) if len(rows) > limit else None
    view, now = await get_view(call.state, subscription.owner), call.now
    shown = [row for row in page if view is None or view.may_see_match(row, now)]
    return answer_values({"matches": [describe_match(row) for row in shown], "next": following})


_PAGE = {
    "type": "object",
    "required": ["matches", "next"],
    "properties": {"matches": {"type": "array", "items": MATCH}, "next": {"type": ["string", "null"]}},
}

OPERATIONS = (
    Operation(
        method="GET",
        path="/v1/subscriptions/{id}/matches",
        handler=list_matches,
        name="listMatches",
        summary="List the latest matches of a subscription",
        description="Newest first. The service keeps a bounded number of matches of each subscription.",
        tag="matches",
        scopes=("read",),
        query=(
            Parameter("limit", {"type": "integer", "minimum": 1, "maximum": MAX_ROWS}, "Matches of one page."),
            Parameter("cursor", {"type": "string", "maxLength": 2000}, "`next` of the page before."),
        ),
        answers={
            200: DocumentedAnswer(
                description="A page of matches.", schema=_PAGE, example={"matches": [MATCH_EXAMPLE], "next": None}
            )
        },
        problems=(404,),
    ),
)
