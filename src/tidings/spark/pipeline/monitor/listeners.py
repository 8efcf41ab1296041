"""Puts together who is told how a pipeline does: people (a live view, or text), programs (JSON lines), Prometheus.

Being watched must not stop the work: what one of them raises is told to the others once, and it is asked again with
the next batch, since a full disk may have room by then.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rich.console import Console

from tidings.errors import MissingExtra
from tidings.spark.pipeline.monitor.json_lines import JsonLines
from tidings.spark.pipeline.monitor.live_view import LiveView
from tidings.spark.pipeline.monitor.text_log import PlainText

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidings.spark.pipeline.config.settings import MonitorSettings
    from tidings.spark.pipeline.monitor.report import Monitor, Report

STANDARD_OUTPUT = "-"
"""What `lines` says when JSON lines go to standard output."""


class MonitorGroup:
    """Tells all of them; one that fails is named once, and never stops the pipeline."""

    def __init__(self, watches: Sequence[Monitor], *, console: Console) -> None:
        """Tell these; the console is for when none of them can be told that one failed."""
        self.monitors = tuple(watches)
        self._console = console
        self._failed: set[int] = set()

    def status(self, text: str) -> None:
        """Tell all what is being done."""
        self._call_all(lambda watch: watch.status(text))

    def report(self, report: Report) -> None:
        """Tell all of a batch."""
        self._call_all(lambda watch: watch.report(report))

    def warn(self, text: str) -> None:
        """Warn all."""
        self._call_all(lambda watch: watch.warn(text))

    def close(self) -> None:
        """Close all, whatever one of them says."""
        self._call_all(lambda watch: watch.close())

    def _call_all(self, tell: Callable[[Monitor], None]) -> None:
        for number, watch in enumerate(self.monitors):
            try:
                tell(watch)
            except Exception as problem:  # whatever it is, the pipeline goes on
                self._warn_once(number, f"{type(watch).__name__} failed: {type(problem).__name__}: {problem}")

    def _warn_once(self, number: int, text: str) -> None:
        if number in self._failed:
            return
        self._failed.add(number)
        is_delivered = False
        for other, watch in enumerate(self.monitors):
            if other not in self._failed:
                with suppress(Exception):
                    watch.warn(text)
                    is_delivered = True
        if not is_delivered:
            with suppress(Exception):  # the console may be a pipe that nobody reads any more
                PlainText(self._console, every=None).warn(text)


def open_monitor(shown: MonitorSettings, *, name: str, console: Console) -> MonitorGroup:
    """Return what a pipeline tells its progress to.

    On a terminal that is the live view, elsewhere a line of text every few seconds; `view = "on"` draws the view
    anywhere, and `"off"` leaves only warnings, on standard error. When JSON lines go to standard output, nothing else
    does: the view moves to standard error. What cannot be opened (a file, a port) is a TidingsError, now.
    """
    # Files and ports first: they may be refused, and a view that has begun would have to be wiped away.
    watches: list[Monitor] = []
    if shown.metrics is not None:
        watches.append(_open_metrics(shown.metrics, name))
    try:
        if shown.lines is not None:
            watches.append(JsonLines(shown.lines))
        if shown.lines == STANDARD_OUTPUT and not console.stderr:
            console = Console(stderr=True, highlight=False)
        watches.append(_open_view(shown, name, console))
    except BaseException:
        MonitorGroup(watches, console=console).close()
        raise
    return MonitorGroup(watches, console=console)


def _open_view(shown: MonitorSettings, name: str, console: Console) -> Monitor:
    if shown.view == "off":
        return PlainText(console if console.stderr else Console(stderr=True, highlight=False), every=None)
    if shown.view == "on" and not console.is_terminal:
        console = Console(file=console.file, force_terminal=True, width=console.width, highlight=False)
    return LiveView(console, name=name) if console.is_terminal else PlainText(console)


def _open_metrics(address: str, name: str) -> Monitor:
    try:
        from tidings.spark.pipeline.monitor.metrics import Metrics
    except ModuleNotFoundError as problem:
        msg = "metrics need the package `prometheus-client`: pip install 'tidings[spark]'"
        raise MissingExtra(msg) from problem
    return Metrics(address, name=name)
