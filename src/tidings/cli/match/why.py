"""`tidings why`: why a subscription hears of an event, or why not, test by test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.matcher.loading.row_files import Form, read_event

if TYPE_CHECKING:
    from tidings.cli.match.subscription_origin import Origin
    from tidings.cli.options import FileForm
    from tidings.matcher import Explanation, Matcher
    from tidings.matcher.algorithm import SubId


def run(origin: Origin, event: str, *, id: str, row: int | None, form: FileForm | None, as_json: bool) -> None:
    """Print the verdict and the tests that decided it."""
    values = read_event(event, row=row, form=Form(form) if form else None)
    matcher = origin.matcher()
    explanation = matcher.why(values, named(matcher, id))
    if as_json:
        render.out_json(as_dict(explanation))
    else:
        render.out(str(explanation))


def named(matcher: Matcher, id: str) -> SubId:
    """Return the id as the matcher has it: the command line cannot tell 7 from '7'."""
    return int(id) if id not in matcher and id.lstrip("-").isdecimal() and int(id) in matcher else id


def as_dict(explanation: Explanation) -> dict[str, Any]:
    """Return plain values."""
    reasons = [{"test": why.test, "holds": why.holds, "seen": list(why.seen)} for why in explanation.reasons]
    return {
        "subscription": explanation.subscription,
        "matched": explanation.matched,
        "filter": explanation.filter,
        "reasons": reasons,
    }
