"""`tidings pattern compile`: a file of patterns checked, and what becomes of each."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.pattern.pattern_origin import check_place, save
from tidings.errors import PatternError
from tidings.matcher.plan import Sheet
from tidings.patterns.overview import overview

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.cli.pattern.pattern_origin import Source
    from tidings.patterns.overview import Overview, Summary

HEAD = ("pattern", "mode", "steps", "key", "states", "shared", "automaton")
"""The columns."""


def run(source: Source, output: Path | None, *, automata: bool | None, as_json: bool) -> None:
    """Print what the patterns are, and write the state; with `--json` a refusal is JSON on standard output too."""
    if output is not None:
        check_place(output)
    try:
        detector = source.detector()
    except PatternError as refused:
        if as_json:
            render.out_json({"error": str(refused), "mistakes": [asdict(mistake) for mistake in refused.mistakes]})
        raise
    found = overview(detector, automata=automata)
    if as_json:
        counts = {"together": found.together, "one_by_one": found.apart}
        state = None if output is None else str(output)
        render.out_json({"patterns": [one.to_dict() for one in found.patterns], "states": counts, "state": state})
    else:
        render.sheet(_sheet(found))
    if output is not None:
        save(detector, output)
        if not as_json:
            render.note(
                f"`{output}` is where they begin; detect with: tidings pattern detect --state {output} -e EVENTS"
            )


def _sheet(found: Overview) -> Sheet:
    rows = tuple(_row(one) for one in found.patterns)
    total = f"{found.together:,} states together, {found.apart:,} one by one"
    title = f"{len(rows):,} pattern{'s' * (len(rows) != 1)}: {total}"
    return Sheet(title, HEAD, rows, frozenset({2, 4, 5}))


def _row(one: Summary) -> tuple[str, ...]:
    automaton = f"{one.automaton:,} states" if one.automaton is not None else f"none: {one.reason}"
    if one.automaton is None and one.reason is None:
        automaton = "not counted"
    key = ", ".join(f"${variable}" for variable in one.key) or "-"
    return one.name, str(one.mode), f"{one.steps:,}", key, f"{one.states:,}", f"{one.shared:,}", automaton
