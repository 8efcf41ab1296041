"""Charts of studies and of the scoreboard as tables, as JSON and as pictures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.bench.harness.charts import draw_chart, save_figure
from tidings.bench.harness.result_tables import format_figure, format_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tidings.bench.harness.charts import Chart


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
