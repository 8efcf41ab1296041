"""Charts of studies and of the scoreboard: as tables, as JSON, and as pictures with the spread of the repeats as bars.

matplotlib (`pip install 'tidings[bench]'`) is loaded when something is drawn; tables need nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from textwrap import fill
from typing import TYPE_CHECKING

from tidings.bench.harness.charts import make_axes, save_figure
from tidings.bench.harness.result_tables import format_figure, format_number
from tidings.bench.harness.timing import Figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

COLOURS = ("#1f6f5c", "#d08c3f", "#4a6fa5", "#a8433f", "#7a5c99", "#5f7a2e", "#b0568a", "#6b7280")
"""Colours that most readers can distinguish; beyond these, the marks and dashes differ."""

MARKS = "osD^vPX"  # as many marks as colours would always pair the same two
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))

WIDTH, LETTER_WIDTH = 6.2, 0.085
"""Inches of the axes with their labels, and of a letter of the legend next to them."""

WRAP = 26
"""A longer name in the legend takes several rows."""

FEW_TICKS, TICK_GAP = 8, 0.1
"""Up to so many values of x get ticks of their own, if neighbours are so far apart, as a share of the axis."""

TENFOLD = 10
"""Values within this factor get a linear axis from zero: a logarithmic one would show a single power of ten."""


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: its name, and a figure for each x."""

    name: str
    points: tuple[tuple[float, Figure], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure of a paper: `key` names its file (`figure-5`), `x` and `y` its axes with their units."""

    key: str
    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False
    note: str = ""


def build_size_chart(key: str, title: str, points: Iterable[tuple[str, int, Figure]], *, y: str) -> Chart:
    """Return a chart over the number of subscriptions: a line for each subject, the last figure of each size."""
    lines: dict[str, dict[float, Figure]] = {}
    for subject, n, figure in points:
        lines.setdefault(subject, {})[float(n)] = figure
    chart_lines = tuple(Line(subject, tuple(sorted(line.items()))) for subject, line in lines.items())
    return Chart(key, title, "subscriptions", y, chart_lines, log_x=True, log_y=True)


def build_chart_rows(chart: Chart) -> list[list[str]]:
    """Return a chart as a heading and rows of text: a row for each x, a column for each line.

    A unit that all figures share is left out: the chart's `y` has it.
    """
    rows = [[chart.x, *(line.name for line in chart.lines)]]
    columns = [dict(line.points) for line in chart.lines]
    if len({figure.unit for points in columns for figure in points.values()}) == 1:
        columns = [{x: replace(figure, unit="") for x, figure in points.items()} for points in columns]
    xs = sorted({x for points in columns for x in points})
    cells = ([format_figure(points[x]) if x in points else "" for points in columns] for x in xs)
    return [*rows, *([format_number(x), *row] for x, row in zip(xs, cells, strict=True))]


def dump_chart(chart: Chart) -> dict[str, object]:
    """Return plain values, for JSON."""
    lines = [
        {"name": line.name, "points": [{"x": x, **figure.to_dict()} for x, figure in line.points]}
        for line in chart.lines
    ]
    labels = {name: getattr(chart, name) for name in ("key", "title", "x", "y", "log_x", "log_y", "note")}
    return {**labels, "lines": lines}


def draw_charts(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Draw each chart into a PNG named by its key, and return the files; without matplotlib: `MissingExtra`."""
    return [save_figure(draw_chart(chart), folder / f"{chart.key}.png") for chart in charts]


def draw_chart(chart: Chart) -> Drawing:
    """Return a chart as a figure of matplotlib: each point is a median, its bar spans all repeats."""
    chart_lines = [line for line in chart.lines if line.points]
    longest = max((len(line.name) for line in chart_lines), default=0)
    figure, axes = make_axes(WIDTH + 0.8 + LETTER_WIDTH * min(longest, WRAP), 4.5)
    handles = [
        _draw_line(axes, line, position, len(chart.lines)) for position, line in enumerate(chart.lines) if line.points
    ]
    axes.set_title(fill(chart.title, 70), fontsize="medium")
    axes.set_xlabel(chart.x)
    axes.set_ylabel(fill(chart.y, 50))
    _set_scales(axes, chart)
    axes.grid(True, which="major", color="#d8dde3", linewidth=0.6)
    if chart_lines:  # next to the axes: inside, the legend would cover a line sooner or later
        names = [fill(line.name, WRAP) for line in chart_lines]
        style = {"fontsize": "small", "handlelength": 3.5, "labelspacing": 0.8, "frameon": False}
        axes.legend(handles, names, loc="center left", bbox_to_anchor=(1.01, 0.5), **style)
    if chart.note:
        figure.supxlabel(fill(chart.note, 110), fontsize="x-small", color="#555555")
    return figure


def _draw_line(axes: Axes, line: Line, position: int, count: int) -> Artist:
    """Draw a line, and return its handle for the legend, without error bars, which only some lines have.

    Lines that coincide all stay visible: later ones are thinner, with smaller marks, and mostly dashed.
    """
    points = sorted(line.points, key=lambda point: point[0])
    below = [figure.median - figure.low for _, figure in points]
    above = [figure.high - figure.median for _, figure in points]
    thin = position / max(1, count - 1)
    handle: Artist = axes.errorbar(
        [x for x, _ in points],
        [figure.median for _, figure in points],
        yerr=[below, above] if any(below) or any(above) else None,
        color=COLOURS[position % len(COLOURS)],
        marker=MARKS[position % len(MARKS)],
        linestyle=DASHES[position % len(DASHES)],
        markersize=7.0 - 3.0 * thin,
        linewidth=2.2 - 0.8 * thin,
        capsize=2.5,
        elinewidth=0.8,
    )[0]
    return handle


def _set_scales(axes: Axes, chart: Chart) -> None:
    """Use logarithmic axes where the chart wants them and its values allow it, and plain numbers for ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    xs = [x for line in chart.lines for x, _ in line.points]
    lows = [figure.low for line in chart.lines for _, figure in line.points]
    if chart.log_x and xs and min(xs) > 0:
        axes.set_xscale("log")
    elif xs and all(float(x).is_integer() for x in xs):
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))  # no ticks at half a subscription
    few = sorted(set(xs))
    places = [log(x) for x in few] if axes.get_xscale() == "log" else few
    # Labels of values that are not round, such as 5.0792, are too wide; those of near ones would touch.
    are_round = all(float(x).is_integer() or float(f"{x:.2g}") == x for x in few)
    gaps = [after - before for before, after in pairwise(places)]
    if len(few) <= FEW_TICKS and are_round and all(gap >= TICK_GAP * sum(gaps) for gap in gaps):
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
