"""A pipeline's reports as lines of text, for a log or a terminal without a live view."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from tidings.spark.pipeline.monitor.batch_report import BatchReport

INTERVAL_SECONDS = 5.0
"""Seconds between two lines about batches; those that end in between share a line."""

PROBLEMS = {
    "dead_letters": "dead letters",
    "late": "late",
    "duplicates": "duplicates",
    "over_limit": "over the limit",
    "refused_subscriptions": "subscriptions refused",
}
"""Counts of a report that are in a line where they are not zero, in words."""


class PlainText:
    """Prints a line about the batches since the last line, warnings at once."""

    def __init__(
        self, console: Console, *, every: float | None = INTERVAL_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Print on this console; with `every=None`, only warnings."""
        self._console, self._every, self._clock = console, every, clock
        self._printed_at = -float("inf")
        self._waiting: list[BatchReport] = []

    def show_status(self, text: str) -> None:
        """Print the status."""
        if self._every is not None:
            self._print(text)

    def report(self, report: BatchReport) -> None:
        """Print the batch, or keep it for the next line if one was printed less than `every` seconds ago."""
        if self._every is None:
            return
        self._waiting.append(report)
        if self._clock() - self._printed_at >= self._every:
            self._print_reports()

    def warn(self, text: str) -> None:
        """Print the warning at once."""
        self._print(f"warning: {text}")

    def close(self) -> None:
        """Print the batches that are still waiting."""
        if self._waiting:
            self._print_reports()

    def _print_reports(self) -> None:
        for query in dict.fromkeys(report.query for report in self._waiting):
            self._print(summarize([report for report in self._waiting if report.query == query]))
        self._waiting = []
        self._printed_at = self._clock()

    def _print(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


def summarize(reports: list[BatchReport]) -> str:
    """Return one line about consecutive batches of one query."""
    last = reports[-1]
    seconds = sum(report.seconds for report in reports)
    events = sum(report.events for report in reports)
    name = f"batch {last.batch}" if len(reports) == 1 else f"batches {reports[0].batch}-{last.batch}"
    rate = f" ({events / seconds:,.0f}/s)" if seconds > 0 else ""
    results, standing = _describe_results(reports)
    parts = [f"{events:,} events in {seconds:.1f} s{rate}", results, *_list_problems(reports), standing]
    if last.lag:
        parts.append(f"{sum(last.lag.values()):,} records behind")
    if last.files_behind is not None:
        parts.append(f"{last.files_behind:,} files behind")
    return f"{'patterns, ' if last.query == 'patterns' else ''}{name}: {', '.join(parts)}"


def _describe_results(reports: list[BatchReport]) -> tuple[str, str]:
    """Return the number of results in words, and that of subscriptions or patterns."""
    last = reports[-1]
    if last.query == "patterns":
        return f"{sum(report.detections for report in reports):,} detections", f"{last.patterns:,} patterns"
    standing = f"{last.subscriptions:,} subscriptions (version {last.version})"
    return f"{sum(report.matches for report in reports):,} matches", standing


def _list_problems(reports: list[BatchReport]) -> list[str]:
    """Return the counts of dropped and refused events and subscriptions that are not zero."""
    counts = ((sum(getattr(report, name) for report in reports), words) for name, words in PROBLEMS.items())
    return [f"{count:,} {words}" for count, words in counts if count]
