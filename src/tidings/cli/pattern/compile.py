"""`tidings pattern compile`: checks a file of patterns and prints what each compiles to."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.pattern.saved_files import check_target, save_state
from tidings.errors import PatternError
from tidings.matcher.plan import Sheet
from tidings.patterns.overview import build_overview

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.cli.pattern.pattern_origin import PatternOrigin
    from tidings.patterns.overview import Overview, Summary

COLUMNS = ("pattern", "mode", "steps", "key", "states", "shared", "automaton")


def run(origin: PatternOrigin, output: Path | None, *, automata: bool | None) -> None:
    """Print a row for each pattern and write the state; with `--json` a refusal is JSON on standard output too."""
    as_json = origin.options.as_json
    if output is not None:
        check_target(output, "detector's state")
    try:
        detector = origin.open_detector()
    except PatternError as problem:
        if as_json:
            render.write_json({"error": str(problem), "mistakes": [asdict(mistake) for mistake in problem.mistakes]})
        raise
    summary = build_overview(detector.compile(), automata=automata)
    if as_json:
        counts = {"together": summary.together, "one_by_one": summary.apart}
        state = None if output is None else str(output)
        patterns = [pattern.to_dict() for pattern in summary.patterns]
        render.write_json({"patterns": patterns, "states": counts, "state": state})
    else:
        render.print_sheet(_build_sheet(summary))
    if output is not None:
        save_state(detector, output)
        if not as_json:
            render.note(
                f"`{output}` is where they begin; detect with: tidings pattern detect --state {output} -e EVENTS"
            )


def _build_sheet(summary: Overview) -> Sheet:
    rows = tuple(_build_row(pattern) for pattern in summary.patterns)
    total = f"{summary.together:,} states together, {summary.apart:,} one by one"
    title = f"{len(rows):,} pattern{'s' * (len(rows) != 1)}: {total}"
    return Sheet(title, COLUMNS, rows, frozenset({2, 4, 5}))


def _build_row(pattern: Summary) -> tuple[str, ...]:
    if pattern.automaton is not None:
        automaton = f"{pattern.automaton:,} states"
    else:
        automaton = "not counted" if pattern.reason is None else f"none: {pattern.reason}"
    key = ", ".join(f"${variable}" for variable in pattern.key) or "-"
    counts = f"{pattern.states:,}", f"{pattern.shared:,}"
    return pattern.name, str(pattern.mode), f"{pattern.steps:,}", key, *counts, automaton
