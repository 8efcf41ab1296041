"""The scoreboard's files: a page of tables, everything as JSON, and a plot for each workload."""

from __future__ import annotations

import json
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any

from tidings.bench.harness.charts import draw
from tidings.bench.harness.forked_process import Ended
from tidings.bench.harness.result_tables import number
from tidings.bench.harness.scoreboard import ENGINE, READ, Entry, chart, markdown, short, summary, workload_table
from tidings.bench.workloads import workload
from tidings.errors import FileError, MissingExtra, TidingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

LONG = 200
"""A reason is cut here: a polygon has many corners. The JSON has it whole."""

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
    """Write `scoreboard.md` and what it shows; yield the files."""
    folder = out / "scoreboard"
    groups = {
        key: [one for one in entries if one.workload == key] for key in dict.fromkeys(e.workload for e in entries)
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pictures = _pictures(groups, folder, say)
        page, whole = out / "scoreboard.md", folder / "scoreboard.json"
        page.write_text(_page(entries, groups, pictures), encoding="utf-8")
        said = {"written": run, "entries": [asdict(one) for one in entries]}
        whole.write_text(json.dumps(said, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as problem:
        msg = f"cannot write the scoreboard to `{out}`: {problem}"
        raise FileError(msg) from problem
    yield from (page, whole, *pictures.values())


def _pictures(groups: dict[str, list[Entry]], folder: Path, say: Callable[[str], None]) -> dict[str, Path]:
    charts = {key: chart(some, title=f"{key}: {_description(key)}") for key, some in groups.items()}
    try:
        return {key: draw([one], folder)[0] for key, one in charts.items() if one.lines}
    except MissingExtra as problem:
        say(f"note: no plots; {problem}")
        return {}


def _page(entries: Sequence[Entry], groups: dict[str, list[Entry]], pictures: dict[str, Path]) -> str:
    budgets = sorted({one.budget_s for one in entries if one.who not in (ENGINE, READ)})
    how = HOW.format(
        budget=" or ".join(f"{budget:g} s" for budget in budgets) or "as long as it takes",
        busy=_busy(entries),
        events=f"{max((one.events for one in entries), default=0):,}",
    )
    parts = ["# Scoreboard", how.rstrip(), *_circumstances(entries)]
    parts += ["## At the largest size", markdown(summary(entries))]
    for key, some in groups.items():
        parts += [f"## {key}", _headline(key, some), markdown(workload_table(some))]
        parts += ["\n".join(f"- {line}" for line in _reasons(some))] if _reasons(some) else []
        if key in pictures:  # none without matplotlib
            parts.append(
                f"![{key}: time of an event over the number of subscriptions](scoreboard/{pictures[key].name})"
            )
    return "\n\n".join(parts) + "\n"


def _busy(entries: Sequence[Entry]) -> str:
    """Say how much of a core the measured work got: of a busy machine, figures are rough."""
    shares = [one.took.median / one.wall for one in entries if one.took and one.wall]
    return f"While it was measured, work had {min(1.0, median(shares)):.0%} of a core (median)." if shares else ""


def _circumstances(entries: Sequence[Entry]) -> list[str]:
    """Say where, when, with what and by which command; entries of several runs have several."""
    runs = [one.run for one in entries if one.run]
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
    lines = [f"{when}; {'; '.join(machines)}.", *(f"{one}." for one in versions)]
    lines += ["Made tiny, to see that it runs: figures mean little."] if any(run.get("quick") for run in runs) else []
    return ["\n".join(lines), "```sh\n" + "\n".join(commands) + "\n```"]


def _headline(key: str, some: list[Entry]) -> str:
    engine = [one for one in some if one.who == ENGINE and one.took]
    matches = ", ".join(f"{number(one.matches)} at {short(one.n)}" for one in engine)
    read = [one.read_us for one in some if one.read_us is not None]
    words = [_description(key), f"Matches an event: {matches}"] if matches else [_description(key)]
    words += [f"Reading an event, which papers' matchers are spared: {number(median(read))} us"] if read else []
    return ". ".join(words) + "."


def _description(key: str) -> str:
    try:
        return workload(key).description
    except TidingsError:  # its data are not here
        return key


def _reasons(some: list[Entry]) -> list[str]:
    """Say why there is no figure, of each who once for each way to end; filters differ by size, so do the words."""
    told: dict[tuple[str, Ended], list[Entry]] = {}
    for one in some:
        if one.wrong or one.ended in (Ended.CANNOT, Ended.FAILED, Ended.DIED, Ended.MEMORY):
            told.setdefault((one.who, one.ended), []).append(one)
    return [_told(who, "wrong" if ones[0].wrong else str(ended), ones) for (who, ended), ones in told.items()]


def _told(who: str, how: str, ones: list[Entry]) -> str:
    return f"`{who}` at {', '.join(short(one.n) for one in ones)}, {how}: {_reason(ones[0])}"


def _reason(entry: Entry) -> str:
    """Of a failure the last line says what happened; of a refusal the first."""
    lines = entry.reason.strip().splitlines() or [""]
    line = lines[-1] if entry.ended is Ended.FAILED else lines[0]
    return line if len(line) <= LONG else f"{line[:LONG]} ..."
