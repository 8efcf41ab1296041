"""`tidings explain`: the matcher's plan for subscriptions, and its figures on a sample of events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.matcher.loading.row_files import Form, RowFile

if TYPE_CHECKING:
    from tidings.cli.match.subscription_origin import SubscriptionOrigin
    from tidings.cli.options import FileForm
    from tidings.matcher import Matcher


def run(origin: SubscriptionOrigin, sample: str | None, *, as_json: bool) -> None:
    """Print the plan, and below it the figures of the sample."""
    matcher = origin.open_matcher()
    figures = None if sample is None else _measure(matcher, sample, origin.form)
    plan = matcher.explain()  # after the sample: the plan shows what the events had
    if as_json:
        render.write_json(plan.to_dict() if figures is None else {**plan.to_dict(), "sample": figures})
        return
    render.write(plan.headline)
    for problem in plan.slow:
        render.print_labelled("slow", problem)
    for sheet in plan.sheets():
        render.print_sheet(sheet)
    if figures is not None:
        render.write("\n".join(["sample", *(f"  {name}: {value:,}" for name, value in figures.items())]))


def _measure(matcher: Matcher, sample: str, form: FileForm | None) -> dict[str, int | float]:
    events = pairs = dead = 0
    seconds = 0.0
    with RowFile(sample, form=Form(form) if form else None) as file, render.show_progress(file, "sample") as batches:
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
