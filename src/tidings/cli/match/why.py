"""`tidings why`: why a subscription matches an event, or why not, test by test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.matcher.loading.row_files import Form, read_event

if TYPE_CHECKING:
    from tidings.cli.match.subscription_origin import SubscriptionOrigin
    from tidings.matcher import Explanation, Matcher
    from tidings.matcher.algorithm import SubId


def run(origin: SubscriptionOrigin, event: str, *, id: str, row: int | None, as_json: bool) -> None:
    """Print the verdict and the tests that decided it."""
    values = read_event(event, row=row, form=Form(origin.form) if origin.form else None)
    matcher = origin.open_matcher()
    explanation = matcher.why(values, resolve_id(matcher, id))
    if as_json:
        render.write_json(explanation_to_dict(explanation))
    else:
        render.write(str(explanation))


def resolve_id(matcher: Matcher, id: str) -> SubId:
    """Return the id with the matcher's type of ids: the command line cannot tell 7 from '7'."""
    return int(id) if id not in matcher and id.lstrip("-").isdecimal() and int(id) in matcher else id


def explanation_to_dict(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation for JSON."""
    reasons = [{"test": why.test, "holds": why.holds, "seen": list(why.seen)} for why in explanation.reasons]
    return {
        "subscription": explanation.subscription,
        "matched": explanation.matched,
        "filter": explanation.filter,
        "reasons": reasons,
    }
