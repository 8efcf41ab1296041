"""The scoreboard: an entry for each matcher or peer on a workload at a size, kept as JSON lines, shown as Markdown.

Each entry says how it ended; what did not finish, does not fit or cannot be expressed is shown as such, and so is an
answer that differs from the engine's.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from tidings.bench.harness.forked_process import Ended
from tidings.bench.harness.result_tables import number, times
from tidings.bench.harness.results import Role
from tidings.bench.harness.studies import Chart, Line
from tidings.bench.harness.timing import Figure
from tidings.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

ENGINE = "engine"

READ = "engine (read)"
"""The engine once more, on events that have been read, as the papers' matchers get them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one did with `n` subscriptions of a workload.

    `asked` is how many of them it was given (a peer cannot say areas), `wrong` on how many of the `checked` events
    its answer differs from the engine's, `extra` the share of ids that an approximate answer has too many; `read_us` is
    the time to read an event, which is in the engine's figure and not in the others'. `batch` and `build_s` are
    processor time; `wall` is what an event took on the clock.
    """

    workload: str
    n: int
    who: str
    role: Role
    ended: Ended
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
        """What it is of; a later entry of the same key takes its place."""
        return self.workload, self.n, self.who, self.seed

    @property
    def took(self) -> Figure | None:
        """The time of an event, in microseconds, if it was measured."""
        return Figure("us", self.batch) if self.ended is Ended.DONE and self.batch else None

    @property
    def bad(self) -> bool:
        """Whether this is a mistake of ours: a matcher that is wrong, that failed, or that died of its own doing."""
        return self.role is Role.MATCHER and (self.wrong > 0 or self.ended in (Ended.FAILED, Ended.DIED))

    def to_json(self) -> str:
        """Return a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def of(cls, line: str) -> Entry:
        """Read what `to_json` returned."""
        said = json.loads(line)
        said |= {"role": Role(said["role"]), "ended": Ended(said["ended"]), "batch": tuple(said["batch"])}
        return cls(**said)


def read_entries(path: Path) -> list[Entry]:
    """Read a file of entries, of each key the last; a line that was cut off at the end is left out."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except OSError as problem:
        msg = f"cannot read the entries `{path}`: {problem.strerror}"
        raise FileError(msg) from problem
    found: dict[tuple[str, int, str, int], Entry] = {}
    for at, line in enumerate(lines):
        try:
            entry = Entry.of(line)
        except (ValueError, KeyError, TypeError) as problem:
            if at == len(lines) - 1:
                break
            msg = f"line {at + 1} of `{path}` is not an entry of a scoreboard; begin anew without --resume"
            raise FileError(msg) from problem
        found[entry.key] = entry
    return list(found.values())


def in_order(entries: Iterable[Entry], workloads: Sequence[str], whos: Sequence[str]) -> list[Entry]:
    """Return entries by workload, size and who, each in its given order; the unknown last, by name."""

    def place(name: str, among: Sequence[str]) -> tuple[int, str]:
        return (among.index(name) if name in among else len(among), name)

    return sorted(entries, key=lambda one: (place(one.workload, workloads), one.n, place(one.who, whos)))


# Cells -----------------------------------------------------------------------------------------


def short(n: int) -> str:
    """Write a size: 10k, 1M.

    >>> short(10_000), short(1_000_000), short(1_500)
    ('10k', '1M', '1,500')
    """
    for unit, word in ((1_000_000, "M"), (1_000, "k")):
        if n >= unit and n % unit == 0:
            return f"{n // unit:,}{word}"
    return f"{n:,}"


def outcome(entry: Entry) -> str:
    """Write the time of an event, or why there is none."""
    took = entry.took
    if took is None:
        budget = f"over {entry.budget_s:g} s"
        return {Ended.OVER: budget, Ended.DONE: "nothing"}.get(entry.ended, str(entry.ended))
    if entry.wrong:
        return f"WRONG ({entry.wrong} of {entry.checked} events)"
    notes = [f"{entry.extra:.1%} too many"] if entry.approximate else []
    notes += [f"of {entry.asked:,}"] if entry.asked != entry.n else []
    notes += ["unchecked"] if not entry.checked else []
    apart = f" +-{took.spread:.0%}" if len(took.repeats) > 1 else ""
    return f"{number(took.median)}{apart}" + (f" ({', '.join(notes)})" if notes else "")


def ratio(entry: Entry, engine: Entry | None) -> float | None:
    """Return how many times longer than the engine it takes for an event, on as many subscriptions."""
    if engine is None or entry.took is None or engine.took is None or entry.wrong or entry.asked != entry.n:
        return None
    return entry.took.median / engine.took.median


def _cells(entry: Entry | None, engine: Entry | None) -> list[str]:
    if entry is None:
        return ["", "", "", ""]
    slower = ratio(entry, engine)
    built = "" if entry.build_s is None else number(entry.build_s)
    memory = "" if entry.bytes is None else number(max(0.0, entry.bytes / max(1, entry.asked)))
    return [outcome(entry), "" if slower is None else times(slower), built, memory]


def workload_table(entries: Sequence[Entry]) -> list[list[str]]:
    """Return the entries of one workload as a heading and rows of words, four columns for each size."""
    sizes = sorted({one.n for one in entries})
    known = {(one.who, one.n): one for one in entries}
    heading = ["", *(cell for n in sizes for cell in (f"{short(n)}: us an event", "x engine", "build s", "B / sub"))]
    rows = [heading]
    for who in dict.fromkeys(one.who for one in entries):
        role = next(one.role for one in entries if one.who == who)
        cells = [cell for n in sizes for cell in _cells(known.get((who, n)), known.get((ENGINE, n)))]
        rows.append([f"{who} (peer)" if role is Role.PEER else who, *cells])
    return rows


def summary(entries: Sequence[Entry]) -> list[list[str]]:
    """Return a row for each who and a column for each workload: the time of an event at the largest size it did."""
    workloads = list(dict.fromkeys(one.workload for one in entries))
    largest = {key: max(one.n for one in entries if one.workload == key) for key in workloads}
    rows = [["us an event", *(f"{key}, {short(largest[key])}" for key in workloads)]]
    for who in dict.fromkeys(one.who for one in entries):
        cells = []
        for key in workloads:
            mine = [one for one in entries if one.who == who and one.workload == key]
            cells.append(_best(mine, largest[key]))
        rows.append([who, *cells])
    return rows


def _best(mine: list[Entry], largest: int) -> str:
    if not mine:
        return ""
    if any(one.wrong for one in mine):
        return "WRONG"
    done = [one for one in mine if one.took is not None]
    if not done:
        return outcome(mine[0])
    last = max(done, key=lambda one: one.n)
    took = number(last.took.median) if last.took else ""
    return took if last.n == largest else f"{took} at {short(last.n)}"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown; all columns but the first are numbers.

    >>> print(markdown([["who", "us"], ["engine", "3"]]))
    | who | us |
    | --- | ---: |
    | engine | 3 |
    """
    lines = [rows[0], ["---", *["---:"] * (len(rows[0]) - 1)], *rows[1:]]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def chart(entries: Sequence[Entry], *, title: str) -> Chart:
    """Return the entries of one workload as lines over the number of subscriptions."""
    lines = []
    for who in dict.fromkeys(one.who for one in entries):
        mine = [one for one in entries if one.who == who and not one.wrong]
        points = tuple((float(one.n), one.took) for one in mine if one.took is not None)
        lines += [Line(who, points)] if points else []
    key = entries[0].workload.replace(":", "-").replace(",", "-")
    return Chart(key, title, "subscriptions", "microseconds an event, in batches", tuple(lines), log_x=True, log_y=True)
