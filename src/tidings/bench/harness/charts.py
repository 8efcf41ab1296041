"""Pictures of results, a PNG each: bars at the largest size, and lines over the sizes where there are several.

matplotlib (`pip install 'tidings[bench]'`) is loaded when something is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.bench.harness.result_tables import format_number
from tidings.bench.harness.results import BATCH, Role
from tidings.matcher.loading.row_readers import refuse_failure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from tidings.bench.harness.results import Result

ROLE_COLOURS = {Role.MATCHER: "#1f6f5c", Role.BASELINE: "#9aa5b1", Role.PEER: "#d08c3f"}
"""Matchers stand out, baselines stay grey."""

TIME_LABEL = "microseconds per event, in batches"


def plot_results(results: Sequence[Result], folder: Path, name: str) -> list[Path]:
    """Draw bars at the largest size, and lines where there are several sizes; return the files."""
    paths = [save_figure(_draw_bars(results), folder / f"{name}-bars.png")]
    if len({result.n for result in results if result.role is Role.MATCHER}) > 1:
        paths.append(save_figure(_draw_lines(results), folder / f"{name}-sizes.png"))
    return paths


def _draw_bars(results: Sequence[Result]) -> Drawing:
    largest = max(result.n for result in results if result.role is Role.MATCHER)
    # Peers may stop at fewer subscriptions than the matchers.
    sizes: dict[str, int] = {}
    for result in results:
        if result.n <= largest:
            sizes[result.subject] = max(result.n, sizes.get(result.subject, 0))
    bars_shown = [result for result in results if BATCH in result.figures and result.n == sizes.get(result.subject)]
    bars_shown.sort(key=lambda result: result.figures[BATCH].median, reverse=True)
    figure, axes = make_axes(7, 4)
    names = [result.subject if result.n == largest else f"{result.subject}\nat {result.n:,}" for result in bars_shown]
    values = [result.figures[BATCH].median for result in bars_shown]
    bars = axes.barh(names, values, color=[ROLE_COLOURS[result.role] for result in bars_shown])
    axes.bar_label(bars, [f"{format_number(value)} us" for value in values], padding=3)
    axes.set_xscale("log")
    axes.margins(x=0.2)
    axes.set_xlabel(TIME_LABEL)
    axes.set_title(f"{bars_shown[0].workload}: {largest:,} subscriptions")
    return figure


def _draw_lines(results: Sequence[Result]) -> Drawing:
    """Draw the time of an event over the number of subscriptions: medians, with bars that span all repeats."""
    figure, axes = make_axes(8, 4.5)
    timed = [result for result in results if BATCH in result.figures]
    for subject in dict.fromkeys(result.subject for result in timed):
        by_size = {result.n: result.figures[BATCH] for result in timed if result.subject == subject}
        sizes = sorted(by_size)
        times = [by_size[n] for n in sizes]
        spans = [[time.median - time.low for time in times], [time.high - time.median for time in times]]
        axes.errorbar(sizes, [time.median for time in times], yerr=spans, marker="o", capsize=2.5, label=subject)
    axes.set(title=results[0].workload, xlabel="subscriptions", ylabel=TIME_LABEL, xscale="log", yscale="log")
    axes.grid(True, color="#d8dde3", linewidth=0.6)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)  # next to the axes, off the lines
    return figure


def make_axes(width: float, height: float) -> tuple[Drawing, Axes]:
    """Return a new figure of matplotlib and its axes; without matplotlib: `MissingExtra`."""
    from tidings.forecast.scoring.reliability import load_figure

    figure: Drawing = load_figure()(figsize=(width, height), layout="constrained")  # no pyplot: no window, no state
    return figure, figure.subplots()


def save_figure(figure: Drawing, path: Path) -> Path:
    """Write a figure of matplotlib as a PNG, and return its path."""
    with refuse_failure(f"write the picture `{path}`"):
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    return path
