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
from benchmarks.scoreboard_page import write_page
from tidings.bench.harness import circumstances, peers
from tidings.bench.harness.bound_workload import bound
from tidings.bench.harness.entrants import (
    Entrant,
    OfAlgorithm,
    OfEngine,
    OfPeer,
    OfReadEngine,
    Terms,
    compared_answers,
    measure,
)
from tidings.bench.harness.forked_process import Ended, allowance, apart, available, status
from tidings.bench.harness.measure import BATCH_SIZE
from tidings.bench.harness.results import Role
from tidings.bench.harness.scoreboard import ENGINE, READ, Entry, in_order, outcome, read_entries
from tidings.bench.harness.subscription_forms import unwatched
from tidings.bench.workloads import WORKLOADS, workload
from tidings.concepts.spelling import did_you_mean
from tidings.errors import FileError, TidingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.bench.workloads import Workload

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (300,)
QUICK_WORKLOADS = ("equalities", "hem", "classifieds", "concepts")

LONGER = 10
"""The engine gets so many times the budget: it parses and binds, and the others are held to its answers."""


@dataclass(slots=True)
class Board:
    """The entries so far, where they are kept, and how far the run is."""

    path: Path
    terms: Terms
    seed: int
    memory: int | None
    run: dict[str, Any]
    entries: dict[tuple[str, int, str, int], Entry] = field(default_factory=dict)
    done: int = 0
    total: int = 0

    def has(self, key: str, n: int, who: str) -> bool:
        """Tell whether this was measured already: with as much time, and rightly."""
        known = self.entries.get((key, n, who, self.seed))
        return known is not None and known.budget_s >= self.terms.budget_s and not known.bad

    def take(self, entry: Entry) -> None:
        """Keep an entry, on disk at once."""
        self.entries[entry.key] = entry
        with self.path.open("a", encoding="utf-8") as file:
            file.write(entry.to_json() + "\n")
        more = f", build {entry.build_s:.2f} s" if entry.build_s is not None else ""
        last = entry.reason.strip().splitlines()[-1:] if entry.ended is not Ended.OVER else []
        more += "".join(f"; {line:.200}" for line in last)
        say(f"    {outcome(entry)}{' us an event' if entry.took and not entry.wrong else ''}{more}")

    def announce(self, key: str, n: int, who: str) -> None:
        """Say what runs now, and how long the rest may take."""
        left = int((self.total - self.done) * self.terms.budget_s)
        self.done += 1
        most = f"at most {left // 3600}:{left // 60 % 60:02} h of a processor left"
        say(f"[{self.done}/{self.total}] {key}, {n:,}: {who} (at most {self.terms.budget_s:g} s; {most})")


def main() -> int:
    """Run what the options say; return the exit code."""
    given = _options().parse_args()
    # Arrow's own allocator keeps what it freed, so what a child takes would depend on what ran before it.
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        return _run(given)
    except TidingsError as problem:
        say(f"error: {problem}")
        return 1
    except KeyboardInterrupt:
        say("stopped; --resume goes on from here")
        return 130


def _run(given: argparse.Namespace) -> int:
    keys = _known(given.workloads, WORKLOADS, "workload") or list(QUICK_WORKLOADS if given.quick else WORKLOADS)
    everyone = [ENGINE, READ, *(kind for kind in td.matchers() if kind != ENGINE), *peers.PEERS]
    whos = _known(given.kinds, everyone, "matcher") or everyone
    _known(given.again, everyone, "matcher")
    sizes = given.sizes or list(QUICK_SIZES if given.quick else SIZES)
    out = given.out or Path("out/scoreboard" if given.quick else "docs")
    path = given.entries or (out if given.out or given.quick else Path("out")) / "scoreboard.jsonl"
    board = _board(given, path)
    if not given.report:
        whos = [who for who in whos if who not in peers.PEERS or _installed(who)]
        plan = [(key, n) for key in keys if _there(key, given.seed) for n in sorted(sizes)]
        todo = {(key, n): _todo(board, key, n, whos) for key, n in plan}
        board.total = sum(len(some) for some in todo.values())
        per_filter: dict[str, float] = {}
        for (key, n), some in todo.items():
            if some:
                _stage(board, workload(key), n, some, per_filter=per_filter)
    entries = in_order(board.entries.values(), list(WORKLOADS), everyone)
    if not entries:
        msg = f"there is nothing to show: `{path}` has no entries"
        raise TidingsError(msg)
    for made in write_page(entries, out, run=board.run, say=say):
        say(f"wrote {made}")
    bad = [one for one in entries if one.bad]
    for one in bad:
        why = one.reason.strip().splitlines()[-1:]
        say(
            "; ".join(
                [f"error: `{one.who}` on `{one.workload}`, {one.n:,}: {outcome(one)}", *(f"{w:.200}" for w in why)]
            )
        )
    return 1 if bad else 0


def _board(given: argparse.Namespace, path: Path) -> Board:
    if given.quick:
        terms = Terms(events=32, repeat=2, budget_s=given.budget or 10.0)
    else:
        terms = Terms(events=given.events, repeat=given.repeat, budget_s=given.budget or 60.0)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not (given.resume or given.report):
        path.replace(path.with_suffix(".old.jsonl"))  # hours of work may lie there
    known = {entry.key: entry for entry in read_entries(path) if entry.who not in (given.again or ())}
    if known:  # a line that was cut off must not be glued to the next
        path.write_text("".join(entry.to_json() + "\n" for entry in known.values()), encoding="utf-8")
    run = circumstances(shlex.join(["python", "-m", "benchmarks.scoreboard", *sys.argv[1:]]), quick=given.quick)
    memory = None if given.memory is None else int(given.memory * 2**30)
    return Board(path, terms, given.seed, memory, run, entries=known)


# One workload at one size ------------------------------------------------------------------------


def _todo(board: Board, key: str, n: int, whos: list[str]) -> list[str]:
    """Return who is still to be measured; whoever is, the engine is too, since answers are held to its."""
    able = [who for who in whos if who not in peers.PEERS or who in workload(key).peers]
    left = [who for who in able if not board.has(key, n, who)]
    return [ENGINE, *(who for who in left if who != ENGINE)] if left else []


def _stage(board: Board, chosen: Workload, n: int, whos: list[str], *, per_filter: dict[str, float]) -> None:
    """Measure these on one workload at one size."""
    say(f"{chosen.key}, {n:,}: making subscriptions and events")
    with unwatched():
        made = chosen.subscriptions(n, board.seed)
        made = made if chosen.make_columns else list(made)
    events = chosen.events(board.terms.events, board.seed)
    board.announce(chosen.key, n, ENGINE)
    right = _measured(board, chosen, n, ENGINE, make=partial(OfEngine, chosen, made, events), right=None)
    said = peers.sayable(made) if chosen.peers else None
    for who in [who for who in whos if who in peers.PEERS]:
        board.announce(chosen.key, n, who)
        held = right if len(said) == n else _among(right, set(said["id"].to_pylist()))
        _measured(board, chosen, n, who, make=partial(OfPeer, who, said, events), right=held, asked=len(said))
    kinds = [who for who in whos if who != ENGINE and who not in peers.PEERS]
    if kinds:
        _algorithms(board, chosen, n, kinds, made=made, events=events, right=right, per_filter=per_filter)


def _algorithms(
    board: Board,
    chosen: Workload,
    n: int,
    kinds: list[str],
    *,
    made: Any,
    events: Any,
    right: list[frozenset[Any]] | None,
    per_filter: dict[str, float],
) -> None:
    """Bind the filters once, and measure each algorithm on them."""
    expected = 2 * n * per_filter.get(chosen.key, 0.0)  # a child that touches them all copies them
    if expected > 0.8 * available():
        for kind in kinds:
            board.announce(chosen.key, n, kind)
            reason = f"the bound filters alone take {expected / 2**31:.1f} GiB, and as much for their copy"
            board.take(_entry(board, chosen, n, kind, ended=Ended.MEMORY, reason=reason))
        return
    say(f"{chosen.key}, {n:,}: binding filters")
    before = status("RssAnon")
    ready = bound(chosen, made, events)
    per_filter[chosen.key] = max(0, status("RssAnon") - before) / n
    gc.freeze()  # or a child that collects garbage writes to every page
    for kind in kinds:
        board.announce(chosen.key, n, kind)
        engine: Callable[[], Entrant] = partial(OfReadEngine, chosen, made, events, ready)
        make = engine if kind == READ else partial(OfAlgorithm, kind, ready)
        _measured(board, chosen, n, kind, make=make, right=right, read_us=ready.read_us)
    gc.unfreeze()


def _measured(
    board: Board,
    chosen: Workload,
    n: int,
    who: str,
    *,
    make: Callable[[], Entrant],
    right: list[frozenset[Any]] | None,
    asked: int | None = None,
    read_us: float | None = None,
) -> list[frozenset[Any]] | None:
    """Measure one in a process of its own, keep its entry, and return its answers as sets of ids."""
    asked, terms = n if asked is None else asked, board.terms
    if who in (ENGINE, READ):
        terms = Terms(terms.events, terms.repeat, terms.budget_s * LONGER, terms.checked)
    came = apart(
        lambda send: measure(make(), asked, terms, send=send), budget_s=terms.budget_s, memory=allowance(board.memory)
    )
    said: dict[str, Any] = {}
    for message in came.sent:
        said |= message
    answers, reason = said.pop("answers", []), came.reason
    own = [frozenset(ids) for ids in answers] if who == ENGINE and came.ended is Ended.DONE else None
    judge = own if who == ENGINE else right
    if judge is not None and came.ended is Ended.DONE:
        found = compared_answers(answers, judge, approximate=said["approximate"])
        said |= {"checked": min(len(answers), len(judge)), "wrong": found.wrong, "extra": found.extra}
        reason = found.example
    if "batch" in said:
        said["batch"] = tuple(said["batch"])
    entry = _entry(board, chosen, n, who, ended=came.ended, reason=reason, seconds=came.seconds, **said)
    board.take(replace(entry, asked=asked, budget_s=terms.budget_s, read_us=read_us))
    return own


def _entry(board: Board, chosen: Workload, n: int, who: str, **said: Any) -> Entry:
    role = Role.PEER if who in peers.PEERS else Role.MATCHER
    said = {"budget_s": board.terms.budget_s, "asked": n, "seed": board.seed, "run": board.run, **said}
    return Entry(chosen.key, n, who, role, **said)


def _among(right: list[frozenset[Any]] | None, ids: set[Any]) -> list[frozenset[Any]] | None:
    return None if right is None else [one & ids for one in right]


# Options -----------------------------------------------------------------------------------------


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", type=_sizes, help="subscriptions: 10k,100k,1M")
    options.add_argument("--workloads", type=_words, help="of `tidings bench list`; all by default")
    options.add_argument("--kinds", type=_words, help="matchers and peers; all by default, the engine always")
    options.add_argument("--budget", type=_positive, help="processor seconds for each matcher, workload and size; 60")
    options.add_argument("--events", type=_whole, default=BATCH_SIZE, help="most events of a batch; 1,024")
    options.add_argument("--repeat", type=_whole, default=5, help="repeats of each figure; 5")
    options.add_argument("--seed", type=int, default=1, help="of everything that is drawn; 1")
    options.add_argument("--memory", type=_positive, help="most GiB for one matcher; most of what is free by default")
    options.add_argument("--out", type=Path, help="folder of scoreboard.md and scoreboard/; docs by default")
    options.add_argument("--entries", type=Path, help="file that keeps entries as they come; out/scoreboard.jsonl")
    options.add_argument("--resume", action="store_true", help="keep the entries that are there, measure the others")
    options.add_argument("--again", type=_words, help="with --resume: forget the entries of these matchers")
    options.add_argument("--report", action="store_true", help="measure nothing; write the page from the entries")
    options.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs; goes to out/scoreboard")
    return options


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _sizes(text: str) -> list[int]:
    units = {"k": 1_000, "M": 1_000_000}
    return [_whole(word.rstrip("kM")) * units.get(word[-1], 1) for word in _words(text)]


def _whole(text: str) -> int:
    if (value := int(text.replace("_", ""))) < 1:
        raise ValueError
    return value


def _positive(text: str) -> float:
    if not (value := float(text)) > 0:
        raise ValueError
    return value


def _known(given: list[str] | None, among: Any, what: str) -> list[str]:
    for name in given or ():
        if name.partition(":")[0] not in among:
            way_out = did_you_mean(name, among) or f"; there are {', '.join(among)}"
            msg = f"unknown {what} `{name}`{way_out}"
            raise TidingsError(msg)
    return list(dict.fromkeys(given or ()))


def _installed(name: str) -> bool:
    if not peers.installed(name):
        say(f"note: `{name}` is not installed and is left out; `pip install 'tidings[bench]'` has it")
        return False
    return True


def _there(key: str, seed: int) -> bool:
    """Tell whether a workload's data are there; say so where they are not."""
    try:
        workload(key).events(1, seed)
    except FileError as problem:
        say(f"note: {problem}")
        return False
    return True


def say(text: str) -> None:
    """Tell on standard error what is being done."""
    with suppress(BrokenPipeError):
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
