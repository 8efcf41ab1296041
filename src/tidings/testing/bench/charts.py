"""Charts of a study as tables and as pictures: a PNG each, with the spread of the repeats as bars.

matplotlib (`pip install 'tidings[bench]'`) is loaded when something is drawn; tables need nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.errors import FileError, MissingExtra
from tidings.testing.bench.report import number, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tidings.testing.bench.studies import Chart, Line

COLOURS = ("#1f6f5c", "#d08c3f", "#4a6fa5", "#a8433f", "#7a5c99", "#5f7a2e", "#b0568a", "#6b7280")
"""Told apart by most eyes; beyond these, the marks and dashes differ."""

MARKS, DASHES = "osD^vPX", ("-", "--", ":")  # as many marks as colours would always pair the same two

INSIDE = 6
"""A legend of more lines than this stands beside the axes, or it covers them."""


def chart_rows(chart: Chart) -> list[list[str]]:
    """Return a chart as a heading and rows of words: a row for each x, a column for each line."""
    rows = [[chart.x, *(line.name for line in chart.lines)]]
    known = [dict(line.points) for line in chart.lines]
    xs = sorted({x for points in known for x in points})
    return [*rows, *([number(x), *(shown(points[x]) if x in points else "" for points in known)] for x in xs)]


def chart_dict(chart: Chart) -> dict[str, Any]:
    """Return plain values, for JSON."""
    lines = [
        {"name": line.name, "points": [{"x": x, **figure.to_dict()} for x, figure in line.points]}
        for line in chart.lines
    ]
    said = {name: getattr(chart, name) for name in ("key", "title", "x", "y", "log_x", "log_y", "note")}
    return {**said, "lines": lines}


def draw(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Draw each chart into a PNG named by its key; return the files. Without matplotlib: `MissingExtra`."""
    return [_saved(picture(chart), folder / f"{chart.key}.png") for chart in charts]


def picture(chart: Chart) -> Any:
    """Return a chart as a figure of matplotlib's: each point the median, its bar from the least to the greatest."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as problem:
        msg = "plots need matplotlib; install it with `pip install 'tidings[bench]'`"
        raise MissingExtra(msg) from problem
    beside = len(chart.lines) > INSIDE
    figure = Figure(figsize=(9 if beside else 7, 4.5), layout="constrained")  # no pyplot: no window, no state
    axes = figure.subplots()
    for at, line in enumerate(chart.lines):
        if line.points:
            _draw(axes, line, at)
    axes.set_title(chart.title, fontsize="medium", wrap=True)
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    _scale(axes, chart)
    axes.grid(True, which="major", color="#d8dde3", linewidth=0.6)
    if any(line.points for line in chart.lines):
        outside = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
        axes.legend(fontsize="small", handlelength=3, **(outside if beside else {"loc": "best"}))
    if chart.note:
        figure.supxlabel(chart.note, fontsize="x-small", color="#555555", wrap=True)
    return figure


def _draw(axes: Any, line: Line, at: int) -> None:
    points = sorted(line.points, key=lambda point: point[0])
    middles = [figure.median for _, figure in points]
    below = [figure.median - figure.low for _, figure in points]
    above = [figure.high - figure.median for _, figure in points]
    axes.errorbar(
        [x for x, _ in points],
        middles,
        yerr=[below, above],
        label=line.name,
        color=COLOURS[at % len(COLOURS)],
        marker=MARKS[at % len(MARKS)],
        linestyle=DASHES[at // len(COLOURS) % len(DASHES)],
        markersize=4.5,
        linewidth=1.6,
        capsize=2.5,
        elinewidth=0.9,
    )


def _scale(axes: Any, chart: Chart) -> None:
    """Use logarithms where they are asked for and possible, and numbers that can be read on the axes."""
    from matplotlib.ticker import FuncFormatter

    xs = [x for line in chart.lines for x, _ in line.points]
    ys = [figure.low for line in chart.lines for _, figure in line.points]
    if chart.log_x and xs and min(xs) > 0:
        axes.set_xscale("log")
        few = sorted(set(xs))
        if len(few) <= 6:  # few sizes: name those, not powers of ten
            axes.set_xticks(few)
            axes.minorticks_off()
    if chart.log_y and ys and min(ys) > 0:
        axes.set_yscale("log")
    elif ys and min(ys) >= 0:
        axes.set_ylim(bottom=0)
    plain = FuncFormatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}")
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)


def _saved(figure: Any, path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except OSError as problem:
        msg = f"cannot write the picture `{path}`: {problem.strerror}"
        raise FileError(msg) from problem
    return path
