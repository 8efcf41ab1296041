"""The scoreboard: an entry for each matcher or peer on a workload at a size, kept as JSON lines, shown as Markdown.

Each entry says how it ended. One that did not finish, does not fit into memory or cannot express the filters is shown
as such, and so is one whose answers differ from the engine's.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from benchmarks.scoreboard.forked_process import Ending
from benchmarks.studies.charts import build_size_chart
from tidings.bench.harness.result_tables import format_figure, format_number, format_ratio
from tidings.bench.harness.results import Role
from tidings.bench.harness.timing import Figure
from tidings.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from benchmarks.studies.charts import Chart

ENGINE = "engine"

READ = "engine (read)"
"""The engine once more, on readings of the events, as the papers' matchers get them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The measurements of one subject (`who`) with `n` subscriptions of a workload.

    `asked` is how many of them it got (a peer cannot express areas); on `wrong` of the `checked` events its answer
    differs from the engine's; `extra` is the share of ids that an approximate answer has too many; `read_us` is the
    time to read an event, which is part of the engine's figure and not of the others'. `batch`, in microseconds an
    event, and `build_s` are processor time; `wall` is the time of an event on the clock. Fields are keys of the JSON.
    """

    workload: str
    n: int
    who: str
    role: Role
    ended: Ending
    reason: str = ""
    seconds: float = 0.0
    budget_s: float = 0.0
    seed: int = 1
    asked: int = 0
    build_s: float | None = None
    batch: tuple[float, ...] = ()
    events: int = 0
    matches: float = 0.0
    bytes: float | None = None
    peak: float | None = None
    approximate: bool = False
    checked: int = 0
    wrong: int = 0
    extra: float = 0.0
    read_us: float | None = None
    wall: float | None = None
    run: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int, str, int]:
        """The identity of the measurement; a later entry of the same key replaces this one."""
        return self.workload, self.n, self.who, self.seed

    @property
    def event_time(self) -> Figure | None:
        """The time of an event, in microseconds, if it was measured."""
        return Figure("us", self.batch) if self.ended is Ending.DONE and self.batch else None

    @property
    def is_bad(self) -> bool:
        """Whether this shows a mistake of ours: a matcher that is wrong, that failed, or that crashed."""
        return self.role is Role.MATCHER and (self.wrong > 0 or self.ended in (Ending.FAILED, Ending.DIED))

    def to_json(self) -> str:
        """Return a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Entry:
        """Rebuild an entry from `to_json`."""
        record = json.loads(line)
        record |= {"role": Role(record["role"]), "ended": Ending(record["ended"]), "batch": tuple(record["batch"])}
        return cls(**record)


def read_entries(path: Path) -> list[Entry]:
    """Read a file of entries, the last one of each key; a truncated last line is ignored."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except OSError as problem:
        msg = f"cannot read the entries `{path}`: {problem.strerror}"
        raise FileError(msg) from problem
    entries: dict[tuple[str, int, str, int], Entry] = {}
    for at, line in enumerate(lines):
        try:
            entry = Entry.from_json(line)
        except (ValueError, KeyError, TypeError) as problem:
            if at == len(lines) - 1:
                break
            msg = f"line {at + 1} of `{path}` is not an entry of a scoreboard; begin anew without --resume"
            raise FileError(msg) from problem
        entries[entry.key] = entry
    return list(entries.values())


def sort_entries(entries: Iterable[Entry], workloads: Sequence[str], subjects: Sequence[str]) -> list[Entry]:
    """Sort entries by workload, size and subject, in the order of these lists; others come last, by name."""

    def rank(name: str, among: Sequence[str]) -> tuple[int, str]:
        return (among.index(name) if name in among else len(among), name)

    return sorted(entries, key=lambda entry: (rank(entry.workload, workloads), entry.n, rank(entry.who, subjects)))


# Cells -----------------------------------------------------------------------------------------


def format_size(n: int) -> str:
    """Write a size: 10k, 1M.

    >>> format_size(10_000), format_size(1_000_000), format_size(1_500)
    ('10k', '1M', '1,500')
    """
    for unit, word in ((1_000_000, "M"), (1_000, "k")):
        if n >= unit and n % unit == 0:
            return f"{n // unit:,}{word}"
    return f"{n:,}"


def format_outcome(entry: Entry) -> str:
    """Write the time of an event, or why there is none."""
    event_time = entry.event_time
    if event_time is None:
        budget = f"over {entry.budget_s:g} s"
        return {Ending.OVER: budget, Ending.DONE: "nothing"}.get(entry.ended, str(entry.ended))
    if entry.wrong:
        return f"WRONG ({entry.wrong} of {entry.checked} events)"
    notes = [f"{entry.extra:.1%} too many"] if entry.approximate else []
    notes += [f"of {entry.asked:,}"] if entry.asked != entry.n else []
    notes += ["unchecked"] if not entry.checked else []
    return format_figure(replace(event_time, unit="")) + (f" ({', '.join(notes)})" if notes else "")


def _build_cells(entry: Entry | None, engine: Entry | None) -> list[str]:
    """Return the time of an event, how many times the engine's that is, seconds to build, and bytes a subscription."""
    if entry is None:
        return ["", "", "", ""]
    ratio = ""
    # Unless both had all subscriptions, and right answers, the times do not compare.
    if engine is not None and engine.event_time and entry.event_time and not entry.wrong and entry.asked == entry.n:
        ratio = format_ratio(entry.event_time.median / engine.event_time.median)
    build = "" if entry.build_s is None else format_number(entry.build_s)
    memory = "" if entry.bytes is None else format_number(max(0.0, entry.bytes / max(1, entry.asked)))
    return [format_outcome(entry), ratio, build, memory]


def build_workload_table(entries: Sequence[Entry]) -> list[list[str]]:
    """Return the entries of one workload as a heading and rows of text, four columns for each size."""
    sizes = sorted({entry.n for entry in entries})
    by_subject = {(entry.who, entry.n): entry for entry in entries}
    headings = [(f"{format_size(n)}: us an event", "x engine", "build s", "B / sub") for n in sizes]
    rows = [["", *chain.from_iterable(headings)]]
    for who in dict.fromkeys(entry.who for entry in entries):
        role = next(entry.role for entry in entries if entry.who == who)
        cells = [_build_cells(by_subject.get((who, n)), by_subject.get((ENGINE, n))) for n in sizes]
        rows.append([f"{who} (peer)" if role is Role.PEER else who, *chain.from_iterable(cells)])
    return rows


def build_summary(entries: Sequence[Entry]) -> list[list[str]]:
    """Return a row for each subject and a column for each workload: the time of an event at its largest size."""
    workloads = list(dict.fromkeys(entry.workload for entry in entries))
    largest = {key: max(entry.n for entry in entries if entry.workload == key) for key in workloads}
    rows = [["us an event", *(f"{key}, {format_size(largest[key])}" for key in workloads)]]
    for who in dict.fromkeys(entry.who for entry in entries):
        own = {key: [entry for entry in entries if (entry.who, entry.workload) == (who, key)] for key in workloads}
        rows.append([who, *(_format_largest(own[key], largest[key]) for key in workloads)])
    return rows


def _format_largest(entries: list[Entry], largest: int) -> str:
    """Write the time at the largest size that has one, with that size unless it is the workload's largest."""
    if not entries:
        return ""
    if any(entry.wrong for entry in entries):
        return "WRONG"
    times = {entry.n: entry.event_time for entry in entries if entry.event_time is not None}
    if not times:
        return format_outcome(entries[0])
    n = max(times)
    time = format_number(times[n].median)
    return time if n == largest else f"{time} at {format_size(n)}"


def format_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown; all columns but the first are numbers.

    >>> print(format_markdown([["who", "us"], ["engine", "3"]]))
    | who | us |
    | --- | ---: |
    | engine | 3 |
    """
    lines = [rows[0], ["---", *["---:"] * (len(rows[0]) - 1)], *rows[1:]]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def build_chart(entries: Sequence[Entry], *, title: str) -> Chart:
    """Return the entries of one workload as lines over the number of subscriptions."""
    points = [(entry.who, entry.n, entry.event_time) for entry in entries if entry.event_time and not entry.wrong]
    key = entries[0].workload.replace(":", "-").replace(",", "-")
    return build_size_chart(key, title, points, y="microseconds an event, in batches")
