"""Pictures of results: bars of the time per event, and lines over the number of subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.bench.harness.result_tables import number
from tidings.bench.harness.results import BATCH, Role
from tidings.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tidings.bench.harness.results import Result

COLOURS = {Role.MATCHER: "#1f6f5c", Role.BASELINE: "#9aa5b1", Role.PEER: "#d08c3f"}
"""Matchers stand out, baselines stay grey."""


def plot(results: Sequence[Result], folder: Path, name: str) -> list[Path]:
    """Draw bars at the largest size, and lines where there are several sizes; return the files."""
    made = [_saved(_bars(results), folder / f"{name}-bars.png")]
    if len({result.n for result in results if result.role is Role.MATCHER}) > 1:
        made.append(_saved(_lines(results), folder / f"{name}-sizes.png"))
    return made


def _figure() -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as problem:
        msg = "plots need matplotlib; install it with `pip install 'tidings[bench]'`"
        raise MissingExtra(msg) from problem
    figure = Figure(figsize=(7, 4), layout="constrained")  # no pyplot: no window, no state
    return figure, figure.subplots()


def _saved(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def _bars(results: Sequence[Result]) -> Any:
    largest = max(result.n for result in results if result.role is Role.MATCHER)
    chosen = [one for one in results if BATCH in one.figures and _belongs(one, results, largest)]
    chosen.sort(key=lambda one: one.figures[BATCH].median, reverse=True)
    figure, axes = _figure()
    names = [one.subject if one.n == largest else f"{one.subject}\nat {one.n:,}" for one in chosen]
    values = [one.figures[BATCH].median for one in chosen]
    bars = axes.barh(names, values, color=[COLOURS[one.role] for one in chosen])
    axes.bar_label(bars, [f"{number(value)} us" for value in values], padding=3)
    axes.set_xscale("log")
    axes.margins(x=0.2)
    axes.set_xlabel("microseconds per event, in batches")
    axes.set_title(f"{chosen[0].workload}: {largest:,} subscriptions")
    return figure


def _belongs(one: Result, results: Sequence[Result], largest: int) -> bool:
    """Keep what was measured at the largest size, and of peers that stop earlier their largest."""
    return one.n == max(other.n for other in results if other.subject == one.subject and other.n <= largest)


def _lines(results: Sequence[Result]) -> Any:
    figure, axes = _figure()
    for subject in dict.fromkeys(result.subject for result in results):
        # A peer that stops early was measured at its own largest size more than once.
        points = {
            one.n: one.figures[BATCH].median for one in results if one.subject == subject and BATCH in one.figures
        }
        axes.plot(sorted(points), [points[n] for n in sorted(points)], marker="o", label=subject)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("subscriptions")
    axes.set_ylabel("microseconds per event, in batches")
    axes.set_title(results[0].workload)
    axes.legend()
    return figure
