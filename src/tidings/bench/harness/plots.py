"""Plots of results: bars of the time per event, and lines over the number of subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.bench.harness.charts import draw_chart, make_axes, save_figure
from tidings.bench.harness.result_tables import format_number
from tidings.bench.harness.results import BATCH, Role
from tidings.bench.harness.studies import Chart, Line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tidings.bench.harness.results import Result

COLOURS = {Role.MATCHER: "#1f6f5c", Role.BASELINE: "#9aa5b1", Role.PEER: "#d08c3f"}
"""Matchers stand out, baselines stay grey."""

TIME_LABEL = "microseconds per event, in batches"


def plot_results(results: Sequence[Result], folder: Path, name: str) -> list[Path]:
    """Draw bars at the largest size, and lines where there are several sizes; return the files."""
    paths = [save_figure(_draw_bars(results), folder / f"{name}-bars.png")]
    if len({result.n for result in results if result.role is Role.MATCHER}) > 1:
        paths.append(save_figure(draw_chart(_build_chart(results)), folder / f"{name}-sizes.png"))
    return paths


def _draw_bars(results: Sequence[Result]) -> Any:
    largest = max(result.n for result in results if result.role is Role.MATCHER)
    shown = [result for result in results if BATCH in result.figures and _is_largest(result, results, largest)]
    shown.sort(key=lambda result: result.figures[BATCH].median, reverse=True)
    figure, axes = make_axes(7, 4)
    names = [result.subject if result.n == largest else f"{result.subject}\nat {result.n:,}" for result in shown]
    values = [result.figures[BATCH].median for result in shown]
    bars = axes.barh(names, values, color=[COLOURS[result.role] for result in shown])
    axes.bar_label(bars, [f"{format_number(value)} us" for value in values], padding=3)
    axes.set_xscale("log")
    axes.margins(x=0.2)
    axes.set_xlabel(TIME_LABEL)
    axes.set_title(f"{shown[0].workload}: {largest:,} subscriptions")
    return figure


def _is_largest(result: Result, results: Sequence[Result], largest: int) -> bool:
    """Tell whether this is its subject's result of the largest size up to `largest`; peers may stop earlier."""
    return result.n == max(other.n for other in results if other.subject == result.subject and other.n <= largest)


def _build_chart(results: Sequence[Result]) -> Chart:
    lines = []
    for subject in dict.fromkeys(result.subject for result in results):
        # A peer that stops early was measured at its own largest size more than once: the last one counts.
        points = {
            result.n: result.figures[BATCH]
            for result in results
            if result.subject == subject and BATCH in result.figures
        }
        lines.append(Line(subject, tuple((float(n), points[n]) for n in sorted(points))))
    return Chart("sizes", results[0].workload, "subscriptions", TIME_LABEL, tuple(lines), log_x=True, log_y=True)
