"""`tidings bench`: what workloads there are, what matchers take on them, and whether two runs differ.

Measuring is `tidings.bench.harness`'s; here its results are shown, written and drawn.
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.bench import harness
from tidings.bench.harness.result_tables import number
from tidings.bench.harness.study_files import PREFIX, studies
from tidings.bench.workloads import WORKLOADS, workload
from tidings.cli import render
from tidings.errors import FileError, MissingExtra, TidingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tidings.bench.harness import Result, Settings

SIZE, QUICK_SIZE = 1_000_000, 1_000
"""Subscriptions where `-n` says nothing, and where `--quick` is all that is said."""


@dataclass(frozen=True, slots=True)
class Order:
    """What `bench run` was asked for; what is None is for `--quick` to decide."""

    sizes: tuple[int, ...]
    kinds: tuple[str, ...]
    events: int | None
    repeat: int | None
    seed: int
    quick: bool
    peers: bool | None
    memory: bool | None
    from_text: bool

    def settings(self) -> Settings:
        """Return how to measure."""
        return harness.Settings(
            events=self.events or (32 if self.quick else harness.BATCH_SIZE),
            repeat=self.repeat or (2 if self.quick else 5),
            seed=self.seed,
            budget_s=0.5 if self.quick else 20.0,
            from_text=self.from_text,
            memory=not self.quick if self.memory is None else self.memory,
            peers=self.peers is not False,
        )


def listing(*, as_json: bool) -> None:
    """Print the workloads, each with the matches it expects at a million subscriptions, and a checkout's studies."""
    made = [workload(key) for key in WORKLOADS]
    there = studies(Path.cwd())
    if as_json:
        for one in made:
            expected = one.expected(SIZE)
            render.out_json({"key": one.key, "description": one.description, "expected_at_1m": expected})
        for place in there:
            render.out_json({"key": f"{PREFIX}{place.key}", "description": place.title, "expected_at_1m": None})
        return
    rows = [["workload", "matches / event at 1M", "what it is"]]
    rows += [[one.key, number(one.expected(SIZE)), one.description] for one in made]
    show(rows)
    if there:
        render.out("")
        show([["study", "what it repeats"], *([f"{PREFIX}{place.key}", place.title] for place in there)])


def run(key: str, order: Order, *, out: Path | None, as_json: bool) -> None:
    """Measure, print the tables, write the files."""
    sizes = order.sizes or (QUICK_SIZE if order.quick else SIZE,)
    _check(order, sizes)
    workload(key)  # a key that is wrong is refused before a folder is made
    if out is not None:
        make_folder(out)
    settings = order.settings()
    with telling() as say:
        results = harness.bench(key, sizes, kinds=order.kinds or (None,), settings=settings, say=say)
    circumstances = harness.circumstances(
        shlex.join(["tidings", *sys.argv[1:]]), seed=settings.seed, repeat=settings.repeat, quick=order.quick
    )
    if as_json:
        for result in results:
            render.out_json({**result.to_dict(), "run": circumstances})
    else:
        _print(results, circumstances)
    if out is not None:
        _write(results, out, key=key, run=circumstances)


def compare(before: Path, after: Path, *, as_json: bool) -> None:
    """Print what became of every figure that both files have."""
    changes = harness.compared(harness.read(before), harness.read(after))
    if not changes:
        msg = f"`{before}` and `{after}` have no figure in common: other workloads, sizes or matchers"
        raise TidingsError(msg)
    if as_json:
        for change in changes:
            render.out_json(change.to_dict())
        return
    rows = [["workload", "subscriptions", "who", "figure", "before", "after", "", "verdict"]]
    for one in changes:
        named = [one.workload, f"{one.n:,}", one.subject, one.figure]
        amounts = [f"{number(value)} {one.unit}".rstrip() for value in (one.before, one.after)]
        rows.append([*named, *amounts, f"{one.ratio:.2f}x" if one.before else "", str(one.verdict)])
    show(rows)
    counted = Counter(str(one.verdict) for one in changes)
    render.note(", ".join(f"{count} {verdict}" for verdict, count in counted.most_common()))


def _check(order: Order, sizes: Sequence[int]) -> None:
    given = {"-n": sizes, "--events": [order.events], "--repeat": [order.repeat]}
    for option, values in given.items():
        for value in values:
            if value is not None and value < 1:
                msg = f"{option} must be at least 1, not `{value}`"
                raise TidingsError(msg)


# Showing ---------------------------------------------------------------------------------------


def _print(results: list[Result], run: dict[str, Any]) -> None:
    for some in harness.sizes(results).values():
        render.out(harness.headline(some))
        show(harness.table(some))
        render.out("\n".join(f"  {note}" for note in harness.notes(some)))
    if run["quick"]:
        render.out("quick: figures mean little")
    packages = ", ".join(f"{name} {version}" for name, version in run["packages"].items())
    render.out(f"{run['machine']}; Python {run['python']}, {packages}; {run['date']}")


def show(rows: list[list[str]]) -> None:
    """Print a table: drawn on a terminal, laid out with spaces elsewhere."""
    if not sys.stdout.isatty():
        render.out(harness.plain(rows))
        return
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    drawn = Table(*map(escape, rows[0]), box=box.SIMPLE)
    for row in rows[1:]:
        drawn.add_row(*(Text(cell) for cell in row))
    Console().print(drawn)


@contextmanager
def telling() -> Iterator[Callable[[str], None]]:
    """Hand out a way to say what is being done; on a terminal it is shown, with the time it has taken."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda doing: bar.update(task, description=doing)


# Files -----------------------------------------------------------------------------------------


def make_folder(folder: Path) -> None:
    """Make the folder for the results, before an hour of measuring and not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        msg = f"cannot make the folder `{folder}` for the results: {problem.strerror}; choose another with --out"
        raise FileError(msg) from problem


def _write(results: list[Result], folder: Path, *, key: str, run: dict[str, Any]) -> None:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    name = f"{key.replace(':', '-').replace(',', '-')}-{stamp}"
    path = folder / f"{name}.jsonl"
    harness.write(results, path, run=run)
    made = [path]
    try:
        made += harness.plot(results, folder, name)
    except MissingExtra as problem:
        render.warning(str(problem))
    render.note(f"wrote {', '.join(f'`{one}`' for one in made)}")
