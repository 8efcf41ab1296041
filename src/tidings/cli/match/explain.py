"""`tidings explain`: how the matcher goes about these subscriptions, and how a sample of events fares with them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.matcher.loading.row_files import Form, RowFile

if TYPE_CHECKING:
    from tidings.cli.match.subscription_origin import Origin
    from tidings.cli.options import FileForm
    from tidings.matcher import Matcher


def run(origin: Origin, sample: str | None, *, form: FileForm | None, as_json: bool) -> None:
    """Print the plan, and the sample's figures beneath it."""
    matcher = origin.matcher()
    figures = None if sample is None else _measured(matcher, sample, form)
    plan = matcher.explain()  # after the sample, which tells what events hold
    if as_json:
        render.out_json(plan.to_dict() if figures is None else {**plan.to_dict(), "sample": figures})
        return
    render.out(plan.headline)
    for problem in plan.slow:
        render.labelled("slow", problem)
    for sheet in plan.sheets():
        render.sheet(sheet)
    if figures is not None:
        render.out("\n".join(["sample", *(f"  {name}: {value:,}" for name, value in figures.items())]))


def _measured(matcher: Matcher, sample: str, form: FileForm | None) -> dict[str, int | float]:
    events = pairs = dead = 0
    seconds = 0.0
    with RowFile(sample, form=Form(form) if form else None) as file, render.progress(file, "sample") as batches:
        for batch in batches:
            good = [row.values for row in batch if row.values is not None]
            started = time.perf_counter()
            found = matcher.match_many(good, on_error="collect")
            seconds += time.perf_counter() - started
            events += len(batch)
            pairs += len(found)
            dead += len(batch) - len(good) + len(found.dead_letters)
    rate = round(events / seconds) if seconds else 0
    return {"events": events, "matches": pairs, "dead letters": dead, "events a second": rate}
