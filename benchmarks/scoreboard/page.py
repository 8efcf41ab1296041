"""The scoreboard's files: a page of tables, everything as JSON, and a plot for each workload."""

from __future__ import annotations

import json
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.scoreboard.entries import (
    ENGINE,
    READ,
    Entry,
    build_chart,
    build_summary,
    build_workload_table,
    format_markdown,
    format_size,
)
from benchmarks.scoreboard.forked_process import Ending
from benchmarks.studies.charts import draw_charts
from tidings.bench.harness.result_tables import format_number
from tidings.bench.workloads import workload
from tidings.errors import FileError, MissingExtra, TidingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

LONG = 200
"""Longest reason on the page, in characters: a polygon has many corners. The JSON has all of it."""

HOW = """\
Every matcher of `td.matchers()` and peers from PyPI, on the workloads of `tidings bench list`: `make scoreboard`.

- Each runs in a process of its own, within its time ({budget}) and what memory the machine has; the engine, whose
  answers the others are held to and which also parses and binds, gets ten times as long. What ends early says how.
- Time is processor time, of all threads, since others use the machine too; the JSON also has the clock's. {busy}
- *us an event*: the median of repeats, in a batch of up to {events} events, and half the distance from the least to the
  greatest. A slow one gets fewer events, as many as fit its time.
- The papers' matchers get bound filters and events that have been read, so their own work alone is timed. The engine
  is timed as a user has it: `match_many` of an Arrow table, reading it included; *engine (read)* is the same engine
  on events that have been read, as the papers' matchers get them. Peers get events in their own form.
- *build s*: compiling and taking in all filters, and what the first event builds; of the engine, from columns (or from
  text and trees where a workload has no columns), parsing and binding included.
- *B / sub*: resident memory that building and one batch add, for each subscription. Bound filters and ids that a
  matcher keeps are shared with all others and not counted; the engine needs none of them.
- Answers to the first 64 events, or as many as it did, are compared with the engine's as sets of ids (peers count, and
  counts are compared): a difference is *WRONG*. *% too many*: an approximate matcher may only have more ids, and has.
- Blank: was not run; see the commands for what was. mokaccino 0.9.1 misses matches where some queries have `<` and
  others `>=` on one field, as in `classifieds`.
- *cannot*: the matcher cannot express these filters. *of 61,234*: a peer gets the filters it can say, and has no ratio.
"""


def write_page(
    entries: Sequence[Entry], out: Path, *, run: dict[str, Any], say: Callable[[str], None]
) -> Iterator[Path]:
    """Write `scoreboard.md`, the JSON and the plots; yield the files."""
    folder = out / "scoreboard"
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.workload, []).append(entry)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        plots = _draw_plots(groups, folder, say)
        page, whole = out / "scoreboard.md", folder / "scoreboard.json"
        page.write_text(_build_page(entries, groups, plots), encoding="utf-8")
        record = {"written": run, "entries": [asdict(entry) for entry in entries]}
        whole.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as problem:
        msg = f"cannot write the scoreboard to `{out}`: {problem}"
        raise FileError(msg) from problem
    yield from (page, whole, *plots.values())


def _draw_plots(groups: dict[str, list[Entry]], folder: Path, say: Callable[[str], None]) -> dict[str, Path]:
    charts = {key: build_chart(some, title=f"{key}: {_describe_workload(key)}") for key, some in groups.items()}
    try:
        return {key: draw_charts([chart], folder)[0] for key, chart in charts.items() if chart.lines}
    except MissingExtra as problem:
        say(f"note: no plots; {problem}")
        return {}


def _build_page(entries: Sequence[Entry], groups: dict[str, list[Entry]], plots: dict[str, Path]) -> str:
    budgets = sorted({entry.budget_s for entry in entries if entry.who not in (ENGINE, READ)})
    how = HOW.format(
        budget=" or ".join(f"{budget:g} s" for budget in budgets) or "as long as it takes",
        busy=_describe_load(entries),
        events=f"{max((entry.events for entry in entries), default=0):,}",
    )
    parts = ["# Scoreboard", how.rstrip(), *_describe_runs(entries)]
    parts += ["## At the largest size", format_markdown(build_summary(entries))]
    for key, some in groups.items():
        parts += [f"## {key}", _format_headline(key, some), format_markdown(build_workload_table(some))]
        reasons = _list_reasons(some)
        parts += ["\n".join(f"- {line}" for line in reasons)] if reasons else []
        if key in plots:  # none without matplotlib
            parts.append(f"![{key}: time of an event over the number of subscriptions](scoreboard/{plots[key].name})")
    return "\n\n".join(parts) + "\n"


def _describe_load(entries: Sequence[Entry]) -> str:
    """Say how much of a core the measured work got: figures of a busy machine are rough."""
    shares = [entry.event_time.median / entry.wall for entry in entries if entry.event_time and entry.wall]
    return f"While it was measured, work had {min(1.0, median(shares)):.0%} of a core (median)." if shares else ""


def _describe_runs(entries: Sequence[Entry]) -> list[str]:
    """Return dates, machines, versions and commands of the runs that the entries come from."""
    runs = [entry.run for entry in entries if entry.run]
    days = sorted({run["date"][:10] for run in runs})
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""
    versions = dict.fromkeys(
        ", ".join(
            [f"tidings {run['version']}", f"Python {run['python']}", *(f"{k} {v}" for k, v in run["packages"].items())]
        )
        for run in runs
    )
    machines = dict.fromkeys(run["machine"] for run in runs)
    commands = dict.fromkeys(run["command"] for run in runs)
    lines = [f"{when}; {'; '.join(machines)}.", *(f"{version}." for version in versions)]
    lines += ["Made tiny, to see that it runs: figures mean little."] if any(run.get("quick") for run in runs) else []
    return ["\n".join(lines), "```sh\n" + "\n".join(commands) + "\n```"]


def _format_headline(key: str, some: list[Entry]) -> str:
    engine = [entry for entry in some if entry.who == ENGINE and entry.event_time]
    matches = ", ".join(f"{format_number(entry.matches)} at {format_size(entry.n)}" for entry in engine)
    read = [entry.read_us for entry in some if entry.read_us is not None]
    words = [_describe_workload(key), f"Matches an event: {matches}"] if matches else [_describe_workload(key)]
    words += [f"Reading an event, which papers' matchers are spared: {format_number(median(read))} us"] if read else []
    return ". ".join(words) + "."


def _describe_workload(key: str) -> str:
    try:
        return workload(key).description
    except TidingsError:  # its data are not here
        return key


def _list_reasons(some: list[Entry]) -> list[str]:
    """Return a line for each subject and ending without a figure: the sizes, and the reason at the first of them."""
    groups: dict[tuple[str, Ending], list[Entry]] = {}
    for entry in some:
        if entry.wrong or entry.ended in (Ending.CANNOT, Ending.FAILED, Ending.DIED, Ending.MEMORY):
            groups.setdefault((entry.who, entry.ended), []).append(entry)
    lines = []
    for (who, ended), entries in groups.items():
        sizes = ", ".join(format_size(entry.n) for entry in entries)
        lines.append(f"`{who}` at {sizes}, {'wrong' if entries[0].wrong else ended}: {_shorten_reason(entries[0])}")
    return lines


def _shorten_reason(entry: Entry) -> str:
    """Return the line that says what happened: the last of a failure, the first of a refusal."""
    lines = entry.reason.strip().splitlines() or [""]
    line = lines[-1] if entry.ended is Ending.FAILED else lines[0]
    return line if len(line) <= LONG else f"{line[:LONG]} ..."
