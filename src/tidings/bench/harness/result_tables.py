"""Results as tables that a person reads: a column for each matcher, baseline and peer, a row for each figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.bench.harness.results import BATCH, FIGURES, Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.bench.harness.results import Result
    from tidings.bench.harness.timing import Figure


def sizes(results: Sequence[Result]) -> dict[int, list[Result]]:
    """Return the results of each size; baselines and peers follow the matchers that were measured with them."""
    found: dict[int, list[Result]] = {}
    n = 0
    for result in results:
        n = result.n if result.role is Role.MATCHER else n
        found.setdefault(n, []).append(result)
    return found


def table(results: Sequence[Result]) -> list[list[str]]:
    """Return the results of one size as a heading and rows of words; what nobody measured is left out."""
    n = results[0].n
    rows = [["", *(_heading(result, n) for result in results)]]
    for name, label in FIGURES.items():
        if any(name in result.figures for result in results):
            figures = [result.figures.get(name) for result in results]
            rows.append([label, *(_cell(name, figure) if figure else "" for figure in figures)])
    for mine in results:
        if mine.ratios:
            ratios = [mine.ratios.get(other.subject) for other in results]
            rows.append([f"times {mine.subject}", *(times(ratio) if ratio else "" for ratio in ratios)])
    return rows


def notes(results: Sequence[Result]) -> list[str]:
    """Return what must be known beside the figures."""
    return [f"{result.subject}: {result.note}" for result in results if result.note]


def _heading(result: Result, n: int) -> str:
    name = result.subject if result.role is Role.MATCHER else f"{result.subject} ({result.role})"
    return name if result.n == n else f"{name} at {result.n:,}"


def _cell(name: str, figure: Figure) -> str:
    """Write a figure; of a build that was made only once, say so, for nothing tells how sure it is."""
    once = name.startswith("build") and len(figure.repeats) == 1
    return f"{shown(figure)} (1 run)" if once else shown(figure)


def shown(figure: Figure) -> str:
    """Write a figure with its unit, and how far repeats lie apart.

    >>> from tidings.bench.harness.timing import Figure
    >>> shown(Figure("us", (120.0, 123.4, 130.0)))
    '123 us +-4%'
    """
    apart = f" +-{figure.spread:.0%}" if len(figure.repeats) > 1 else ""
    return f"{number(figure.median)}{' ' if figure.unit else ''}{figure.unit}{apart}"


def number(value: float) -> str:
    """Write a number with three digits that matter, and thousands apart.

    >>> number(1234567.0), number(12.345), number(0.00123)
    ('1,234,567', '12.3', '0.00123')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def times(ratio: float) -> str:
    """Write how many times longer."""
    return f"{number(ratio)}x"


def plain(rows: list[list[str]]) -> str:
    """Lay a table out with spaces."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


def headline(results: Sequence[Result]) -> str:
    """Say in one line what a table is of."""
    first = results[0]
    per_event = first.figures["matches"].median if "matches" in first.figures else 0.0
    took = first.figures[BATCH]
    return (
        f"{first.workload}, {first.n:,} subscriptions, {number(per_event)} matches an event:"
        f" {first.subject} {shown(took)} an event"
    )
