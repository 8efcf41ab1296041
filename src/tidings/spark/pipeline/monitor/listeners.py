"""The monitors of a pipeline as one: a live view or text, JSON lines, Prometheus metrics.

A monitor must not stop the pipeline: an exception of one is reported to the others once, and it is called again with
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
    from tidings.spark.pipeline.monitor.batch_report import BatchReport, Monitor


class MonitorGroup:
    """Calls all monitors; the failure of one is reported once, and never stops the pipeline."""

    def __init__(self, monitors: Sequence[Monitor], *, console: Console) -> None:
        """Take the monitors; the console shows a failure when no other monitor can."""
        self.monitors = tuple(monitors)
        self._console = console
        self._failed: set[int] = set()

    def show_status(self, text: str) -> None:
        """Pass a status to all."""
        self._call_all(lambda monitor: monitor.show_status(text))

    def report(self, report: BatchReport) -> None:
        """Pass a report to all."""
        self._call_all(lambda monitor: monitor.report(report))

    def warn(self, text: str) -> None:
        """Pass a warning to all."""
        self._call_all(lambda monitor: monitor.warn(text))

    def close(self) -> None:
        """Close all, also after a failure of one."""
        self._call_all(lambda monitor: monitor.close())

    def _call_all(self, call: Callable[[Monitor], None]) -> None:
        for number, monitor in enumerate(self.monitors):
            try:
                call(monitor)
            except Exception as problem:  # noqa: BLE001 - a monitor may fail in any way, and the pipeline continues
                self._warn_once(number, f"{type(monitor).__name__} failed: {type(problem).__name__}: {problem}")

    def _warn_once(self, number: int, text: str) -> None:
        if number in self._failed:
            return
        self._failed.add(number)
        is_delivered = False
        for other, monitor in enumerate(self.monitors):
            if other not in self._failed:
                with suppress(Exception):
                    monitor.warn(text)
                    is_delivered = True
        if not is_delivered:
            with suppress(Exception):  # the console may be a closed pipe
                PlainText(self._console, every=None).warn(text)


def open_monitor(
    settings: MonitorSettings, *, name: str, console: Console, further: Sequence[Monitor] = ()
) -> MonitorGroup:
    """Open the monitors of a pipeline, beside `further` ones that are open.

    On a terminal that is the live view, elsewhere a line of text every few seconds; `view = "on"` draws the view
    anywhere, and `"off"` leaves only warnings, on standard error. When JSON lines go to standard output, nothing else
    does: the view moves to standard error. A file or port that cannot be opened is a TidingsError.
    """
    # Files and ports first: they may fail, and a view that was drawn could not be taken back.
    monitors: list[Monitor] = list(further)
    if settings.metrics is not None:
        monitors.append(_open_metrics(settings.metrics, name))
    try:
        if settings.lines is not None:
            monitors.append(JsonLines(settings.lines))
        if settings.lines == "-" and not console.stderr:
            console = Console(stderr=True, highlight=False)
        monitors.append(_open_view(settings, name, console))
    except BaseException:
        MonitorGroup(monitors, console=console).close()
        raise
    return MonitorGroup(monitors, console=console)


def _open_view(settings: MonitorSettings, name: str, console: Console) -> Monitor:
    if settings.view == "off":
        return PlainText(console if console.stderr else Console(stderr=True, highlight=False), every=None)
    if settings.view == "on" and not console.is_terminal:
        console = Console(file=console.file, force_terminal=True, width=console.width, highlight=False)
    return LiveView(console, name=name) if console.is_terminal else PlainText(console)


def _open_metrics(address: str, name: str) -> Monitor:
    try:
        from tidings.spark.pipeline.monitor.metrics import Metrics
    except ModuleNotFoundError as problem:
        msg = "metrics need the package `prometheus-client`: pip install 'tidings[spark]'"
        raise MissingExtra(msg) from problem
    return Metrics(address, name=name)
