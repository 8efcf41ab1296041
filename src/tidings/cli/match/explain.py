"""`tidings explain` and `tidings why`: the matcher's plan and its figures on a sample; what decided one match."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.matcher.loading.row_files import RowFile, read_event

if TYPE_CHECKING:
    from tidings.cli.match.subscription_origin import SubscriptionOrigin
    from tidings.matcher import Explanation, Matcher


def explain_plan(origin: SubscriptionOrigin, sample: str | None, *, as_json: bool) -> None:
    """Print the plan, and below it the figures of the sample."""
    matcher = origin.open_matcher()
    figures = None
    if sample is not None:
        with RowFile(sample, form=origin.form) as file:
            figures = _measure(matcher, file)
    plan = matcher.explain()  # after the sample: the plan shows what the events had
    if as_json:
        render.write_json(plan.to_dict() if figures is None else {**plan.to_dict(), "sample": figures})
        return
    render.write(plan.headline)
    for problem in plan.slow:
        render.print_labelled("slow", problem)
    for sheet in plan.build_sheets():
        render.print_sheet(sheet)
    if figures is not None:
        render.write("\n".join(["sample", *(f"  {name}: {value:,}" for name, value in figures.items())]))


def _measure(matcher: Matcher, file: RowFile) -> dict[str, int | float]:
    events = pairs = dead = 0
    seconds = 0.0
    with render.show_progress(file, "sample") as batches:
        for batch in batches:
            good = [row.values for row in batch if row.values is not None]
            started = time.perf_counter()
            matches = matcher.match_many(good, on_error="collect")
            seconds += time.perf_counter() - started
            events += len(batch)
            pairs += len(matches)
            dead += len(batch) - len(good) + len(matches.dead_letters)
    rate = round(events / seconds) if seconds else 0
    return {"events": events, "matches": pairs, "dead letters": dead, "events a second": rate}


def explain_match(origin: SubscriptionOrigin, event: str, *, id: str, row: int | None, as_json: bool) -> None:
    """Print whether a subscription matches the event, and the tests that decided it."""
    values = read_event(event, row=row, form=origin.form)
    matcher = origin.open_matcher()
    # The command line cannot tell 7 from '7': the id has the matcher's type of ids.
    is_number = id not in matcher and id.lstrip("-").isdecimal() and int(id) in matcher
    explanation = matcher.why(values, int(id) if is_number else id)
    if as_json:
        render.write_json(format_explanation(explanation))
    else:
        render.write(str(explanation))


def format_explanation(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation for JSON."""
    reasons = [{"test": why.test, "holds": why.holds, "seen": list(why.seen)} for why in explanation.reasons]
    return {
        "subscription": explanation.subscription,
        "matched": explanation.matched,
        "filter": explanation.filter,
        "reasons": reasons,
    }
