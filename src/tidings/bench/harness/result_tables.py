"""Results as tables for people: a column for each matcher, baseline and peer, a row for each figure.

The scoreboard, studies and claims write their numbers with the same functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.bench.harness.results import BATCH, FIGURES, Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.bench.harness.results import Result
    from tidings.bench.harness.timing import Figure


def group_by_size(results: Sequence[Result]) -> dict[int, list[Result]]:
    """Return the results of each size; baselines and peers follow the matchers that were measured with them."""
    groups: dict[int, list[Result]] = {}
    n = 0
    for result in results:
        n = result.n if result.role is Role.MATCHER else n
        groups.setdefault(n, []).append(result)
    return groups


def build_table(results: Sequence[Result]) -> list[list[str]]:
    """Return the results of one size as a heading and rows of text; a figure that no result has gets no row."""
    n = results[0].n
    rows = [["", *(_format_heading(result, n) for result in results)]]
    for name, label in FIGURES.items():
        if any(name in result.figures for result in results):
            figures = [result.figures.get(name) for result in results]
            rows.append([label, *(_format_cell(name, figure) if figure else "" for figure in figures)])
    for result in results:
        if result.ratios:
            ratios = [result.ratios.get(other.subject) for other in results]
            rows.append([f"times {result.subject}", *(format_ratio(ratio) if ratio else "" for ratio in ratios)])
    return rows


def list_notes(results: Sequence[Result]) -> list[str]:
    """Return the notes of the results, each with its subject."""
    return [f"{result.subject}: {result.note}" for result in results if result.note]


def _format_heading(result: Result, n: int) -> str:
    name = result.subject if result.role is Role.MATCHER else f"{result.subject} ({result.role})"
    return name if result.n == n else f"{name} at {result.n:,}"


def _format_cell(name: str, figure: Figure) -> str:
    """Write a figure; a build that ran only once is marked, since nothing says how sure it is."""
    once = name.startswith("build") and len(figure.repeats) == 1
    return f"{format_figure(figure)} (1 run)" if once else format_figure(figure)


def format_figure(figure: Figure) -> str:
    """Write a figure with its unit and the spread of its repeats.

    >>> from tidings.bench.harness.timing import Figure
    >>> format_figure(Figure("us", (120.0, 123.4, 130.0)))
    '123 us +-4%'
    """
    spread = f" +-{figure.spread:.0%}" if len(figure.repeats) > 1 else ""
    return f"{format_number(figure.median)}{' ' if figure.unit else ''}{figure.unit}{spread}"


def format_number(value: float) -> str:
    """Write a number with three significant digits, and thousands apart.

    >>> format_number(1234567.0), format_number(12.345), format_number(0.00123)
    ('1,234,567', '12.3', '0.00123')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def format_ratio(ratio: float) -> str:
    """Write a ratio of two times: `2.5x`."""
    return f"{format_number(ratio)}x"


def format_plain(rows: list[list[str]]) -> str:
    """Lay out a table with spaces."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def format_headline(results: Sequence[Result]) -> str:
    """Summarize the results of one size in a line: workload, size, matches, and the first subject's time."""
    first = results[0]
    matches = first.figures["matches"].median if "matches" in first.figures else 0.0
    return (
        f"{first.workload}, {first.n:,} subscriptions, {format_number(matches)} matches an event:"
        f" {first.subject} {format_figure(first.figures[BATCH])} an event"
    )
