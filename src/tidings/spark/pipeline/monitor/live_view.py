"""The live view of a running pipeline, drawn over itself in a terminal a few times a second.

Rates are those of the last minute of the clock, so they fall when nothing comes; everything else is as of the last
batch, and totals are since the start. The view depends on the reports and the time only, so `render` may be called
from any thread; Rich calls it from one of its own.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tidings.spark.pipeline.monitor.batch_report import COUNT_FIELDS, get_utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console, RenderableType

    from tidings.spark.pipeline.monitor.batch_report import BatchReport

MINUTE = timedelta(minutes=1)
"""The window of rates."""

NAMED_PARTITIONS = 3
"""Partitions that are named, those with the largest lag first."""

SHOWN_MISMATCHES = 3
"""Attributes whose mismatching values are shown."""

SHOWN_WARNINGS = 3
"""Warnings that stay visible."""


class LiveView:
    """Draws the progress of a pipeline; other output on the same console appears above it."""

    def __init__(self, console: Console, *, name: str, now: Callable[[], datetime] = get_utc_now) -> None:
        self._name, self._now, self._begun = name, now, now()
        self._lock = threading.Lock()
        self._status = "starting"
        self._last: BatchReport | None = None
        self._latest: dict[str, BatchReport] = {}  # the last one of each query
        self._first: datetime | None = None  # when the first batch began
        self._totals: Counter[str] = Counter()
        self._recent: deque[BatchReport] = deque()
        self._warnings: deque[tuple[datetime, str]] = deque(maxlen=SHOWN_WARNINGS)
        self._live = Live(get_renderable=self.render, console=console, refresh_per_second=4)
        self._live.start()

    def show_status(self, text: str) -> None:
        """Show the status in the frame."""
        with self._lock:
            self._status = text

    def report(self, report: BatchReport) -> None:
        """Add a batch."""
        with self._lock:
            self._last, self._status = report, "running"
            self._first = self._first or report.started
            self._latest[report.query] = report
            self._totals.update({name: report.count_for_total(name) for name in COUNT_FIELDS})
            self._recent.append(report)

    def warn(self, text: str) -> None:
        """Show the warning with the last few."""
        with self._lock:
            self._warnings.append((self._now(), text))

    def close(self) -> None:
        """Draw the view a last time and leave it on the screen."""
        self._live.stop()

    def render(self) -> RenderableType:
        """Return the view as it is now."""
        with self._lock:
            now, matching = self._now(), self._latest.get("matching")
            parts: list[RenderableType] = [self._build_numbers(now), *_list_lag(self._latest)] if self._latest else []
            mismatches = matching.mismatches[:SHOWN_MISMATCHES] if matching is not None else ()
            parts += [Text(f"{mismatch['said']}", style="yellow") for mismatch in mismatches]
            parts += [Text(f"{at:%H:%M:%S} {text}", style="yellow") for at, text in self._warnings]
            took = f", batch {self._last.batch} took {self._last.seconds:.1f} s" if self._last else ""
            footer = Text(f"{self._status} for {_format_clock(now - self._begun)}{took}")
            return Panel(Group(*parts), title=Text(self._name), title_align="left", subtitle=footer)

    def _build_numbers(self, now: datetime) -> Table:
        """Return names and numbers, two pairs in a line."""
        totals = self._totals
        events, matches = self._compute_rates(now)
        table = Table.grid(padding=(0, 3, 0, 0))
        for _ in range(2):
            table.add_column(no_wrap=True)
            table.add_column(no_wrap=True, justify="right")
        table.add_row("events/s", f"{events:,.0f}", "events", f"{totals['events']:,}")
        if (last := self._latest.get("matching")) is not None:
            table.add_row("matches/s", f"{matches:,.0f}", "matches", f"{totals['matches']:,}")
            table.add_row("subscriptions", f"{last.subscriptions:,}", "version", str(last.version))
            table.add_row("changes", f"{totals['changes']:,}", "refused", f"{totals['refused_subscriptions']:,}")
        if (detection := self._latest.get("patterns")) is not None:
            table.add_row("patterns", f"{detection.patterns:,}", "detections", f"{totals['detections']:,}")
        table.add_row("dead letters", f"{totals['dead_letters']:,}", "late", f"{totals['late']:,}")
        if last is not None:
            table.add_row("duplicates", f"{totals['duplicates']:,}", "over the limit", f"{totals['over_limit']:,}")
        return table

    def _compute_rates(self, now: datetime) -> tuple[float, float]:
        """Return events and matches a second over the last minute, or since the first batch began."""
        while self._recent and self._recent[0].finished_at < now - MINUTE:
            self._recent.popleft()
        since = max(now - MINUTE, self._first or now)
        seconds = max((now - since).total_seconds(), 0.001)
        events, matches = (
            sum(report.count_for_total(name) for report in self._recent) for name in ("events", "matches")
        )
        return events / seconds, matches / seconds


def _list_lag(latest: Mapping[str, BatchReport]) -> list[Text]:
    """Return a line about the lag, where it is known; of two queries, that of matching."""
    last = latest.get("matching") or latest["patterns"]
    lines = [Text(f"behind {describe_lag(last.lag)}")] if last.lag else []
    return [*lines, Text(f"behind {last.files_behind:,} files")] if last.files_behind is not None else lines


def describe_lag(lag: Mapping[str, int]) -> str:
    """Return the lag in words, with the partitions that have most of it.

    >>> describe_lag({"ads-0": 40, "ads-1": 1200, "ads-2": 0})
    '1,240 records: ads-1 1,200, ads-0 40'
    """
    ordered = sorted(((behind, name) for name, behind in lag.items() if behind), reverse=True)
    named = [f"{name} {behind:,}" for behind, name in ordered[:NAMED_PARTITIONS]]
    if others := ordered[NAMED_PARTITIONS:]:
        named.append(f"{sum(behind for behind, _ in others):,} in {len(others)} more")
    return f"{sum(lag.values()):,} records" + (f": {', '.join(named)}" if named else "")


def _format_clock(elapsed: timedelta) -> str:
    seconds = int(elapsed.total_seconds())
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
