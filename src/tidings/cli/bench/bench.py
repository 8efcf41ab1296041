"""`tidings bench`: lists the workloads, measures matchers on them, and compares two runs.

`tidings.bench.harness` measures; this module prints, writes and draws its results.
"""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.bench import harness
from tidings.bench.harness.result_tables import format_number
from tidings.bench.workloads import WORKLOADS, workload
from tidings.cli import render
from tidings.cli.bench.studies import STUDY_PREFIX, list_studies
from tidings.errors import MissingExtra, TidingsError
from tidings.matcher.loading.row_readers import refuse_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tidings.bench.harness import Result, Settings
    from tidings.cli.bench.options import BenchOptions

SIZE, QUICK_SIZE = 1_000_000, 1_000
"""Subscriptions without `-n`, and without `-n` but with `--quick`."""


def list_workloads(*, as_json: bool) -> None:
    """Print the workloads, each with its matches for an event at a million subscriptions, and a checkout's studies."""
    workloads = [(load.key, load.description, load.expected(SIZE)) for load in map(workload, WORKLOADS)]
    papers = [(f"{STUDY_PREFIX}{study.key}", study.title, None) for study in list_studies()]
    if as_json:
        for key, description, expected in [*workloads, *papers]:
            render.write_json({"key": key, "description": description, "expected_at_1m": expected})
        return
    rows = [[key, format_number(expected), description] for key, description, expected in workloads]
    print_rows([["workload", "matches / event at 1M", "what it is"], *rows])
    if papers:
        render.write("")
        print_rows([["study", "what it repeats"], *([key, title] for key, title, _ in papers)])


def run(key: str, options: BenchOptions, *, out: Path | None, as_json: bool) -> None:
    """Measure a workload, print the tables, write the files."""
    sizes = options.sizes or (QUICK_SIZE if options.quick else SIZE,)
    _check_counts(options, sizes)
    workload(key)  # a wrong key is refused before a folder is made
    if out is not None:
        make_folder(out)
    settings = _build_settings(options)
    with show_activity() as say:
        results = harness.bench(key, sizes, kinds=options.kinds or (None,), settings=settings, say=say)
    circumstances = harness.describe_run(
        shlex.join(["tidings", *sys.argv[1:]]), seed=settings.seed, repeat=settings.repeat, quick=options.quick
    )
    if as_json:
        for result in results:
            render.write_json({**result.to_dict(), "run": circumstances})
    else:
        _print_results(results, circumstances)
    if out is not None:
        _write_results(results, out, key=key, run=circumstances)


def compare(before: Path, after: Path, *, as_json: bool) -> None:
    """Print how every figure that both files have has changed."""
    changes = harness.compare_results(harness.read_results(before), harness.read_results(after))
    if not changes:
        msg = f"`{before}` and `{after}` have no figure in common: other workloads, sizes or matchers"
        raise TidingsError(msg)
    if as_json:
        for change in changes:
            render.write_json(change.to_dict())
        return
    rows = [["workload", "subscriptions", "who", "figure", "before", "after", "", "verdict"]]
    for change in changes:
        figure = [change.workload, f"{change.n:,}", change.subject, change.figure]
        amounts = [f"{format_number(value)} {change.unit}".rstrip() for value in (change.before, change.after)]
        rows.append([*figure, *amounts, f"{change.ratio:.2f}x" if change.before else "", str(change.verdict)])
    print_rows(rows)
    verdicts = Counter(str(change.verdict) for change in changes)
    render.note(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))


def _build_settings(options: BenchOptions) -> Settings:
    quick = options.quick
    return harness.Settings(
        events=options.events or (32 if quick else harness.BATCH_SIZE),
        repeat=options.repeat or (2 if quick else 5),
        seed=options.seed,
        budget_s=0.5 if quick else 20.0,
        from_text=options.from_text,
        memory=not quick if options.memory is None else options.memory,
        peers=options.peers is not False,
    )


def _check_counts(options: BenchOptions, sizes: Sequence[int]) -> None:
    counts = [*(("-n", size) for size in sizes), ("--events", options.events), ("--repeat", options.repeat)]
    for option, value in counts:
        if value is not None and value < 1:
            msg = f"{option} must be at least 1, not `{value}`"
            raise TidingsError(msg)


# Output ----------------------------------------------------------------------------------------


def _print_results(results: list[Result], run: dict[str, Any]) -> None:
    for same_size in harness.group_by_size(results).values():
        render.write(harness.format_headline(same_size))
        print_rows(harness.build_table(same_size))
        render.write("\n".join(f"  {note}" for note in harness.list_notes(same_size)))
    if run["quick"]:
        render.write("quick: figures mean little")
    print_circumstances(run)


def print_circumstances(run: dict[str, Any]) -> None:
    """Print the machine, the versions of Python and packages, and the date of a run."""
    packages = ", ".join(f"{name} {version}" for name, version in run["packages"].items())
    render.write(f"{run['machine']}; Python {run['python']}, {packages}; {run['date']}")


def print_rows(rows: list[list[str]]) -> None:
    """Print a table: drawn on a terminal, laid out with spaces elsewhere."""
    if not sys.stdout.isatty():
        render.write(harness.format_plain(rows))
        return
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    grid = Table(*map(escape, rows[0]), box=box.SIMPLE)
    for row in rows[1:]:
        grid.add_row(*(Text(cell) for cell in row))
    Console().print(grid)


@contextmanager
def show_activity() -> Iterator[Callable[[str], None]]:
    """Return a function that takes what is being done; a terminal shows it with the time so far."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    activity = TextColumn("{task.description}", markup=False)
    with render.make_progress(SpinnerColumn(), activity, TimeElapsedColumn()) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda doing: bar.update(task, description=doing)


# Files -----------------------------------------------------------------------------------------


def make_folder(folder: Path) -> None:
    """Make the folder for the results: called before an hour of measuring, not after it."""
    way_out = "; choose another with --out"
    with refuse_failure(f"make the folder `{folder}` for the results", ValueError, way_out=way_out):
        folder.mkdir(parents=True, exist_ok=True)


def _write_results(results: list[Result], folder: Path, *, key: str, run: dict[str, Any]) -> None:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    name = f"{key.replace(':', '-').replace(',', '-')}-{stamp}"
    path = folder / f"{name}.jsonl"
    harness.write_results(results, path, run=run)
    paths = [path]
    try:
        paths += harness.plot_results(results, folder, name)
    except MissingExtra as problem:
        render.warn(str(problem))
    render.note(f"wrote {', '.join(f'`{path}`' for path in paths)}")
