"""Every matcher and the PyPI peers on every workload, side by side: `make scoreboard`.

For each workload and size the filters are bound once; then each matcher runs in a process of its own, forked from
this one, for so many seconds and so much memory at most. Its answers are compared with the engine's of the same run: a
matcher that differs is shown as wrong, and the exit code is 1. Results are kept as they come (`--resume` goes on from
there), and become `scoreboard.md`, `scoreboard/scoreboard.json` and a plot for each workload.
"""

from __future__ import annotations

import argparse
import gc
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import tidings as td
from benchmarks.scoreboard.entrants import AlgorithmEntrant, EngineEntrant, Entrant, PeerEntrant, bind_workload
from benchmarks.scoreboard.entries import ENGINE, READ, Entry, format_outcome, read_entries, sort_entries
from benchmarks.scoreboard.forked_process import Ending, compute_allowance, read_available_memory, run_forked
from benchmarks.scoreboard.measure_entrant import compare_answers, measure_entrant
from benchmarks.scoreboard.page import write_page
from tidings.bench.harness import Settings, describe_run, peers
from tidings.bench.harness.measure import BATCH_SIZE
from tidings.bench.harness.process_memory import read_status
from tidings.bench.harness.results import Role
from tidings.bench.harness.timing import Clock
from tidings.bench.workloads import WORKLOADS, workload
from tidings.concepts.spelling import did_you_mean
from tidings.errors import FileError, TidingsError
from tidings.matcher.admission import pause_collector

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.scoreboard.entrants import BoundWorkload
    from tidings.bench.workloads import Workload

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (300,)
QUICK_WORKLOADS = ("equalities", "hem", "classifieds", "concepts")

LONGER = 10
"""The engine gets so many times the budget: it parses and binds, and its answers are the expected ones."""


@dataclass(slots=True)
class Board:
    """The entries so far, the file that keeps them, and the progress of the run."""

    path: Path
    settings: Settings
    memory: int | None
    run: dict[str, Any]
    entries: dict[tuple[str, int, str, int], Entry] = field(default_factory=dict)
    done: int = 0
    total: int = 0

    def has(self, key: str, n: int, who: str) -> bool:
        """Tell whether this was measured before, with at least this budget and without a mistake."""
        entry = self.entries.get((key, n, who, self.settings.seed))
        return entry is not None and entry.budget_s >= self.settings.budget_s and not entry.is_bad

    def add(self, entry: Entry) -> None:
        """Add an entry, append it to the file, and print it."""
        self.entries[entry.key] = entry
        with self.path.open("a", encoding="utf-8") as file:
            file.write(entry.to_json() + "\n")
        details = f", build {entry.build_s:.2f} s" if entry.build_s is not None else ""
        last = entry.reason.strip().splitlines()[-1:] if entry.ended is not Ending.OVER else []
        details += "".join(f"; {line:.200}" for line in last)
        say(f"    {format_outcome(entry)}{' us an event' if entry.event_time and not entry.wrong else ''}{details}")

    def announce(self, key: str, n: int, who: str) -> None:
        """Print what is measured next, and how long the rest may take."""
        seconds_left = int((self.total - self.done) * self.settings.budget_s)
        self.done += 1
        most = f"at most {seconds_left // 3600}:{seconds_left // 60 % 60:02} h of a processor left"
        say(f"[{self.done}/{self.total}] {key}, {n:,}: {who} (at most {self.settings.budget_s:g} s; {most})")


def main() -> int:
    """Run what the options say; return the exit code."""
    arguments = _build_options().parse_args()
    # Arrow's own allocator keeps what it freed, so what a child takes would depend on what ran before it.
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        return _run(arguments)
    except TidingsError as problem:
        say(f"error: {problem}")
        return 1
    except KeyboardInterrupt:
        say("stopped; --resume goes on from here")
        return 130


def _run(arguments: argparse.Namespace) -> int:
    keys = _check_names(arguments.workloads, WORKLOADS, "workload") or list(
        QUICK_WORKLOADS if arguments.quick else WORKLOADS
    )
    everyone = [ENGINE, READ, *(kind for kind in td.matchers() if kind != ENGINE), *peers.PEERS]
    subjects = _check_names(arguments.kinds, everyone, "matcher") or everyone
    _check_names(arguments.again, everyone, "matcher")
    sizes = arguments.sizes or list(QUICK_SIZES if arguments.quick else SIZES)
    out = arguments.out or Path("out/scoreboard" if arguments.quick else "docs")
    path = arguments.entries or (out if arguments.out or arguments.quick else Path("out")) / "scoreboard.jsonl"
    board = _make_board(arguments, path)
    if not arguments.report:
        subjects = [who for who in subjects if who not in peers.PEERS or _has_package(who)]
        keys = [key for key in keys if _has_data(key, arguments.seed)]
        plan = {(key, n): _list_missing(board, key, n, subjects) for key in keys for n in sorted(sizes)}
        board.total = sum(len(missing) for missing in plan.values())
        per_filter: dict[str, float] = {}
        for (key, n), missing in plan.items():
            if missing:
                _measure_stage(board, workload(key), n, missing, per_filter=per_filter)
    entries = sort_entries(board.entries.values(), list(WORKLOADS), everyone)
    if not entries:
        msg = f"there is nothing to show: `{path}` has no entries"
        raise TidingsError(msg)
    for written in write_page(entries, out, run=board.run, say=say):
        say(f"wrote {written}")
    bad = [entry for entry in entries if entry.is_bad]
    for entry in bad:
        error = f"error: `{entry.who}` on `{entry.workload}`, {entry.n:,}: {format_outcome(entry)}"
        say("; ".join([error, *(f"{line:.200}" for line in entry.reason.strip().splitlines()[-1:])]))
    return 1 if bad else 0


def _make_board(arguments: argparse.Namespace, path: Path) -> Board:
    if arguments.quick:
        settings = Settings(events=32, repeat=2, budget_s=arguments.budget or 10.0, warm_up=100)
    else:
        settings = Settings(events=arguments.events, repeat=arguments.repeat, budget_s=arguments.budget or 60.0)
    settings = replace(settings, seed=arguments.seed, clock=Clock.PROCESSOR)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not (arguments.resume or arguments.report):
        path.replace(path.with_suffix(".old.jsonl"))  # hours of work may be in it
    entries = {entry.key: entry for entry in read_entries(path) if entry.who not in (arguments.again or ())}
    if entries:  # a truncated line must not be joined with the next
        path.write_text("".join(entry.to_json() + "\n" for entry in entries.values()), encoding="utf-8")
    run = describe_run(shlex.join(["python", "-m", "benchmarks.scoreboard", *sys.argv[1:]]), quick=arguments.quick)
    memory = None if arguments.memory is None else int(arguments.memory * 2**30)
    return Board(path, settings, memory, run, entries=entries)


# One workload at one size ------------------------------------------------------------------------


def _list_missing(board: Board, key: str, n: int, subjects: list[str]) -> list[str]:
    """Return the subjects still to be measured; the engine is one if there are any: others are compared with it."""
    able = [who for who in subjects if who not in peers.PEERS or who in workload(key).peers]
    missing = [who for who in able if not board.has(key, n, who)]
    return [ENGINE, *(who for who in missing if who != ENGINE)] if missing else []


def _measure_stage(
    board: Board, chosen: Workload, n: int, subjects: list[str], *, per_filter: dict[str, float]
) -> None:
    """Measure these subjects on one workload at one size."""
    say(f"{chosen.key}, {n:,}: making subscriptions and events")
    with pause_collector():
        subscriptions = chosen.subscriptions(n, board.settings.seed)
        subscriptions = subscriptions if chosen.make_columns else list(subscriptions)
    events = chosen.events(board.settings.events, board.settings.seed)
    board.announce(chosen.key, n, ENGINE)
    make = partial(EngineEntrant, chosen, subscriptions, events)
    expected = _measure_subject(board, chosen, n, ENGINE, make=make, expected=None)
    columns = peers.select_expressible(subscriptions) if chosen.peers else None
    for who in [who for who in subjects if who in peers.PEERS]:
        board.announce(chosen.key, n, who)
        ids = expected if len(columns) == n else _select_ids(expected, set(columns["id"].to_pylist()))
        peer = partial(PeerEntrant, who, columns, events)
        _measure_subject(board, chosen, n, who, make=peer, expected=ids, asked=len(columns))
    kinds = [who for who in subjects if who != ENGINE and who not in peers.PEERS]
    if kinds and _fits_memory(board, chosen, n, kinds, per_filter=per_filter):
        say(f"{chosen.key}, {n:,}: binding filters")
        before = read_status("RssAnon")
        bound = bind_workload(chosen, subscriptions, events)
        per_filter[chosen.key] = max(0, read_status("RssAnon") - before) / n
        engine = partial(EngineEntrant, chosen, subscriptions, events, bound)
        _measure_algorithms(board, chosen, n, kinds, bound=bound, engine=engine, expected=expected)


def _fits_memory(board: Board, chosen: Workload, n: int, kinds: list[str], *, per_filter: dict[str, float]) -> bool:
    """Tell whether the bound filters fit into memory, by the bytes of a filter at a smaller size; enter it if not."""
    expected = 2 * n * per_filter.get(chosen.key, 0.0)  # a child that touches them all copies them
    if expected <= 0.8 * read_available_memory():
        return True
    for kind in kinds:
        board.announce(chosen.key, n, kind)
        reason = f"the bound filters alone take {expected / 2**31:.1f} GiB, and as much for their copy"
        board.add(_make_entry(board, chosen, n, kind, ended=Ending.MEMORY, reason=reason))
    return False


def _measure_algorithms(
    board: Board,
    chosen: Workload,
    n: int,
    kinds: list[str],
    *,
    bound: BoundWorkload,
    engine: Callable[[], Entrant],
    expected: list[frozenset[Any]] | None,
) -> None:
    """Measure each algorithm on the same bound filters; `engine` makes the engine that gets readings."""
    gc.freeze()  # or a child that collects garbage writes to every page
    for kind in kinds:
        board.announce(chosen.key, n, kind)
        make = engine if kind == READ else partial(AlgorithmEntrant, kind, bound)
        _measure_subject(board, chosen, n, kind, make=make, expected=expected, read_us=bound.read_us)
    gc.unfreeze()


def _measure_subject(
    board: Board,
    chosen: Workload,
    n: int,
    who: str,
    *,
    make: Callable[[], Entrant],
    expected: list[frozenset[Any]] | None,
    asked: int | None = None,
    read_us: float | None = None,
) -> list[frozenset[Any]] | None:
    """Measure an entrant in a process of its own, add its entry, and return the engine's answers as sets of ids."""
    asked, settings = n if asked is None else asked, board.settings
    if who in (ENGINE, READ):
        settings = replace(settings, budget_s=settings.budget_s * LONGER)
    run = run_forked(
        lambda send: measure_entrant(make(), asked, settings, send=send),
        budget_s=settings.budget_s,
        memory=compute_allowance(board.memory),
    )
    figures: dict[str, Any] = {}
    for message in run.messages:
        figures |= message
    answers, reason = figures.pop("answers", []), run.reason
    own = [frozenset(ids) for ids in answers] if who == ENGINE and run.ended is Ending.DONE else None
    expected = own if who == ENGINE else expected
    if expected is not None and run.ended is Ending.DONE:
        difference = compare_answers(answers, expected, approximate=figures["approximate"])
        checked = min(len(answers), len(expected))
        figures |= {"checked": checked, "wrong": difference.wrong, "extra": difference.extra}
        reason = difference.example
    if "batch" in figures:
        figures["batch"] = tuple(figures["batch"])
    entry = _make_entry(board, chosen, n, who, ended=run.ended, reason=reason, seconds=run.seconds, **figures)
    board.add(replace(entry, asked=asked, budget_s=settings.budget_s, read_us=read_us))
    return own


def _make_entry(board: Board, chosen: Workload, n: int, who: str, **figures: Any) -> Entry:
    role = Role.PEER if who in peers.PEERS else Role.MATCHER
    settings = board.settings
    fields = {"budget_s": settings.budget_s, "asked": n, "seed": settings.seed, "run": board.run, **figures}
    return Entry(chosen.key, n, who, role, **fields)


def _select_ids(answers: list[frozenset[Any]] | None, ids: set[Any]) -> list[frozenset[Any]] | None:
    return None if answers is None else [answer & ids for answer in answers]


# Options -----------------------------------------------------------------------------------------


def _build_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.scoreboard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--sizes", type=_parse_sizes, help="subscriptions: 10k,100k,1M")
    options.add_argument("--workloads", type=_split_words, help="of `tidings bench list`; all by default")
    options.add_argument("--kinds", type=_split_words, help="matchers and peers; all by default, the engine always")
    options.add_argument(
        "--budget", type=_parse_positive, help="processor seconds for each matcher, workload and size; 60"
    )
    options.add_argument("--events", type=_parse_whole, default=BATCH_SIZE, help="most events of a batch; 1,024")
    options.add_argument("--repeat", type=_parse_whole, default=5, help="repeats of each figure; 5")
    options.add_argument("--seed", type=int, default=1, help="of everything that is drawn; 1")
    options.add_argument(
        "--memory", type=_parse_positive, help="most GiB for one matcher; most of what is free by default"
    )
    options.add_argument("--out", type=Path, help="folder of scoreboard.md and scoreboard/; docs by default")
    options.add_argument("--entries", type=Path, help="file that keeps entries as they come; out/scoreboard.jsonl")
    options.add_argument("--resume", action="store_true", help="keep the entries that are there, measure the others")
    options.add_argument("--again", type=_split_words, help="with --resume: forget the entries of these matchers")
    options.add_argument("--report", action="store_true", help="measure nothing; write the page from the entries")
    options.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs; goes to out/scoreboard")
    return options


def _split_words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _parse_sizes(text: str) -> list[int]:
    units = {"k": 1_000, "M": 1_000_000}
    return [_parse_whole(word.rstrip("kM")) * units.get(word[-1], 1) for word in _split_words(text)]


def _parse_whole(text: str) -> int:
    if (value := int(text.replace("_", ""))) < 1:
        raise ValueError
    return value


def _parse_positive(text: str) -> float:
    if not (value := float(text)) > 0:
        raise ValueError
    return value


def _check_names(names: list[str] | None, among: Any, noun: str) -> list[str]:
    """Return the names without repetitions; one that is not among these, parameters aside, is refused."""
    for name in names or ():
        if name.partition(":")[0] not in among:
            way_out = did_you_mean(name, among) or f"; there are {', '.join(among)}"
            msg = f"unknown {noun} `{name}`{way_out}"
            raise TidingsError(msg)
    return list(dict.fromkeys(names or ()))


def _has_package(name: str) -> bool:
    if not peers.is_installed(name):
        say(f"note: `{name}` is not installed and is left out; `pip install 'tidings[bench]'` has it")
        return False
    return True


def _has_data(key: str, seed: int) -> bool:
    """Tell whether a workload's data are available; print a note where they are not."""
    try:
        workload(key).events(1, seed)
    except FileError as problem:
        say(f"note: {problem}")
        return False
    return True


def say(text: str) -> None:
    """Print a line of progress on standard error."""
    with suppress(BrokenPipeError):
        print(text, file=sys.stderr, flush=True)
