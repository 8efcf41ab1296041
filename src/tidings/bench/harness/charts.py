"""Charts of a study as tables and as pictures: a PNG each, with the spread of the repeats as bars.

matplotlib (`pip install 'tidings[bench]'`) is loaded when something is drawn; tables need nothing.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import log
from textwrap import fill
from typing import TYPE_CHECKING, Any

from tidings.bench.harness.result_tables import number, shown
from tidings.errors import FileError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tidings.bench.harness.studies import Chart, Line

COLOURS = ("#1f6f5c", "#d08c3f", "#4a6fa5", "#a8433f", "#7a5c99", "#5f7a2e", "#b0568a", "#6b7280")
"""Told apart by most eyes; beyond these, the marks and dashes differ."""

MARKS = "osD^vPX"  # as many marks as colours would always pair the same two
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))

WIDTH, NAMED = 6.2, 0.085
"""The inches of the axes with their labels, and those that a letter of the legend takes beside them."""

WRAP = 26
"""A longer name in the legend takes several rows."""

FEW, APART = 8, 0.1
"""Up to so many values of x are named, if each stands so far from the next, as a share of the axis."""

TENFOLD = 10
"""Values that lie closer together than this are drawn from nought: logarithms would have one number to read by."""


def chart_rows(chart: Chart) -> list[list[str]]:
    """Return a chart as a heading and rows of words: a row for each x, a column for each line.

    A unit that all figures share is left to the chart's `y`.
    """
    rows = [[chart.x, *(line.name for line in chart.lines)]]
    known = [dict(line.points) for line in chart.lines]
    if len({figure.unit for points in known for figure in points.values()}) == 1:
        known = [{x: replace(figure, unit="") for x, figure in points.items()} for points in known]
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
    drawn = [line for line in chart.lines if line.points]
    longest = max((len(line.name) for line in drawn), default=0)
    size = (WIDTH + 0.8 + NAMED * min(longest, WRAP), 4.5)
    figure = Figure(figsize=size, layout="constrained")  # no pyplot: no window, no state
    axes = figure.subplots()
    handles = [_draw(axes, line, at, len(chart.lines)) for at, line in enumerate(chart.lines) if line.points]
    axes.set_title(fill(chart.title, 70), fontsize="medium")
    axes.set_xlabel(chart.x)
    axes.set_ylabel(fill(chart.y, 50))
    _scale(axes, chart)
    axes.grid(True, which="major", color="#d8dde3", linewidth=0.6)
    if drawn:  # beside the axes: within them it covers a line sooner or later
        names = [fill(line.name, WRAP) for line in drawn]
        beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "frameon": False}
        axes.legend(handles, names, fontsize="small", handlelength=3.5, labelspacing=0.8, **beside)
    if chart.note:
        figure.supxlabel(fill(chart.note, 110), fontsize="x-small", color="#555555")
    return figure


def _draw(axes: Any, line: Line, at: int, count: int) -> Any:
    """Draw a line, and return what stands for it in the legend: without bars, which only some lines have.

    Where lines lie on each other, all are seen: the later ones are thinner, with smaller marks, and mostly broken.
    """
    points = sorted(line.points, key=lambda point: point[0])
    below = [figure.median - figure.low for _, figure in points]
    above = [figure.high - figure.median for _, figure in points]
    thin = at / max(1, count - 1)
    return axes.errorbar(
        [x for x, _ in points],
        [figure.median for _, figure in points],
        yerr=[below, above] if any(below) or any(above) else None,
        color=COLOURS[at % len(COLOURS)],
        marker=MARKS[at % len(MARKS)],
        linestyle=DASHES[at % len(DASHES)],
        markersize=7.0 - 3.0 * thin,
        linewidth=2.2 - 0.8 * thin,
        capsize=2.5,
        elinewidth=0.8,
    )[0]


def _scale(axes: Any, chart: Chart) -> None:
    """Use logarithms where they are asked for and possible, and numbers that can be read on the axes."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    xs = [x for line in chart.lines for x, _ in line.points]
    lows = [figure.low for line in chart.lines for _, figure in line.points]
    if chart.log_x and xs and min(xs) > 0:
        axes.set_xscale("log")
    elif xs and all(float(x).is_integer() for x in xs):
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))  # there is no half of a subscription
    few = sorted(set(xs))
    places = [log(x) for x in few] if axes.get_xscale() == "log" else few
    if len(few) <= FEW and all(map(_short, few)) and _apart(places):
        axes.set_xticks(few)  # few sizes: name those, not round numbers
        axes.minorticks_off()
    highs = [figure.high for line in chart.lines for _, figure in line.points]
    if chart.log_y and lows and min(lows) > 0 and max(highs) >= TENFOLD * min(lows):
        axes.set_yscale("log")
        if max(highs) < TENFOLD**2 * min(lows):  # one or two powers of ten: too few numbers to read by
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif lows and min(lows) >= 0:
        axes.set_ylim(bottom=0)
    plain = FuncFormatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}")
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)


def _short(x: float) -> bool:
    """Tell whether a value of x was chosen, as 2,000 or 0.05 are; measured ones, 5.0792, take too much room."""
    return float(x).is_integer() or float(f"{x:.2g}") == x


def _apart(places: Sequence[float]) -> bool:
    """Tell whether words at these places do not touch, however wide the axis."""
    return all(after - before >= APART * (places[-1] - places[0]) for before, after in pairwise(places))


def _saved(figure: Any, path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except OSError as problem:
        msg = f"cannot write the picture `{path}`: {problem.strerror}"
        raise FileError(msg) from problem
    return path
