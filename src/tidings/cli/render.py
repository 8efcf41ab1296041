"""Output of the commands: messages and progress on standard error, results on standard output.

Rich is loaded for a terminal alone; in a pipe the same text comes without colours. Text from users is never read as
markup and never wrapped, so that a caret stays under what it points at.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

from tidings.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sized
    from typing import TextIO

    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

    from tidings.matcher.loading.row_files import RowFile
    from tidings.matcher.loading.row_readers import Row
    from tidings.matcher.loading.subscription_input import Watch
    from tidings.matcher.plan import Sheet

Batch = TypeVar("Batch", bound="Sized")
"""A batch of a file: rows, or columns."""

Record = TypeVar("Record")
"""What a row of output shows: a pair of event and subscription, a detection, a forecast."""

COLOURS = {
    **dict.fromkeys(("error", "FAIL", "wrong"), "red"),
    **dict.fromkeys(("warning", "slow"), "yellow"),
    "note": "cyan",
    "ok": "green",
}
"""The colours of labels at the beginning of a line, on a terminal."""


def write(text: str) -> None:
    """Write a line, or several, to standard output, and flush it."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        silence_output()
        msg = f"cannot write the output: {problem.strerror}"
        raise FileError(msg) from problem


def write_json(value: object) -> None:
    """Write a value to standard output as one line of JSON."""
    write(to_json(value))


def write_parts(subject: str, parts: dict[str, str], *, as_json: bool) -> None:
    """Write what a settings file that was checked means, part by part: in columns, or as one line of JSON."""
    if as_json:
        write_json({"ok": True, subject: parts})
        return
    width = max(map(len, parts))
    for part, words in parts.items():
        write(f"{part:<{width}}  {words}")


def to_json(value: object) -> str:
    """Return a value as one line of JSON; a value that JSON cannot write becomes text."""
    return json.dumps(value, ensure_ascii=False, default=str)


@dataclass(slots=True)
class RowWriter(Generic[Record]):
    """Writes records to standard output, one line each; `count` is how many it has written."""

    format_row: Callable[[Record], str] = str
    heading: str | None = None  # above the first row of a table
    count: int = 0

    def write(self, records: Iterable[Record]) -> None:
        """Write the records of one batch."""
        self.write_rows([self.format_row(record) for record in records])

    def write_rows(self, rows: list[str]) -> None:
        """Write the rows of one batch at once, so that a reader of the pipe sees them before the next batch."""
        if rows:
            write("\n".join(rows if self.count or self.heading is None else [self.heading, *rows]))
        self.count += len(rows)


def silence_output() -> None:
    """Discard what is still buffered: the reader is gone, and Python would report that at its exit."""
    with suppress(OSError, ValueError, AttributeError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def warn(text: str) -> None:
    """Print a warning on standard error."""
    print_labelled("warning", text, file=sys.stderr)


def note(text: str) -> None:
    """Print on standard error what was done."""
    print_labelled("note", text, file=sys.stderr)


def print_labelled(label: str, text: str, *, file: TextIO | None = None, between: str = ": ") -> None:
    """Write a line that begins with a label, coloured on a terminal."""
    file = file or sys.stdout
    if not file.isatty():
        file.write(f"{label}{between}{text}\n")
        file.flush()
        return
    from rich.text import Text

    words = Text.assemble((label, f"bold {COLOURS.get(label.strip(), 'default')}"), f"{between}{text}")
    _open_console(file).print(words, soft_wrap=True, highlight=False)


def print_sheet(table: Sheet) -> None:
    """Write a small table: drawn on a terminal, as columns of plain text elsewhere."""
    if not sys.stdout.isatty():
        write(str(table))
        return
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    console = _open_console(sys.stdout)
    console.print(Text(table.title, "bold"), soft_wrap=True)
    grid = Table(box=None, show_header=bool(table.head))
    for column in range(max(map(len, (table.head, *table.rows)), default=0)):
        name = escape(table.head[column]) if table.head else ""
        grid.add_column(name, justify="right" if column in table.numbers else "left", header_style="dim")
    for row in table.rows:
        grid.add_row(*map(escape, row))
    if table.rows:
        console.print(grid)
    for line in table.notes:
        console.print(f"  {escape(line)}", soft_wrap=True, highlight=False)


@contextmanager
def show_progress(file: RowFile, doing: str, *, beside_output: bool = False) -> Iterator[Iterable[list[Row]]]:
    """Return the batches of a file; on a terminal, a bar shows the progress.

    With `beside_output` the command writes results meanwhile: no bar where those go to the terminal too.
    """
    if not sys.stderr.isatty() or (beside_output and sys.stdout.isatty()):
        yield file
        return
    with _make_bar() as bar:
        task = bar.add_task(doing, total=1.0, rows="0")

        def show(rows: int, total: float | None, completed: float) -> None:
            bar.update(task, total=total, completed=completed, rows=f"{rows:,}")

        yield _follow(file, file, show)


def _make_bar() -> Progress:
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    rows = TextColumn("{task.fields[rows]}")
    return make_progress(TextColumn("{task.description}"), BarColumn(), rows, TimeElapsedColumn())


def make_progress(*columns: ProgressColumn) -> Progress:
    """Return a progress display of these columns on standard error, which disappears at the end."""
    from rich.progress import Progress

    console = _open_console(sys.stderr)
    # Standard output is not redirected: rich would send it to standard error, with the bar.
    return Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)


def _follow(
    file: RowFile, batches: Iterable[Batch], show: Callable[[int, float | None, float], None]
) -> Iterator[Batch]:
    """Yield the batches of a file, and show after each how many rows are read and which share of the file."""
    rows = 0
    for batch in batches:
        yield batch
        rows += len(batch)
        share = file.share
        show(rows, None if share is None else 1.0, share or 0.0)


class LoadProgress:
    """The progress of loading subscriptions; this one shows nothing."""

    watch: Watch | None = None

    def read(self, batches: Iterable[Batch]) -> Iterable[Batch]:
        """Return the batches of the file."""
        return batches


@contextmanager
def show_loading(file: RowFile, *, quiet: bool = False) -> Iterator[LoadProgress]:
    """Show on a terminal the stages of loading a file of subscriptions: read, parsed, indexed."""
    if quiet or not sys.stderr.isatty():
        yield LoadProgress()
        return
    with _make_bar() as bar:
        yield LoadBar(file, bar)


class LoadBar(LoadProgress):
    """A progress bar for each stage; that of the last one, whose length is unknown, only moves."""

    def __init__(self, file: RowFile, bar: Progress) -> None:
        self._file, self.bar, self._started = file, bar, monotonic()
        self._task = bar.add_task("reading subscriptions", total=1.0, rows="")
        self._rows = 0
        self.watch = self._show_parsed

    def read(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Return the batches of the file, and show how much of it is read."""
        yield from _follow(self._file, batches, partial(self._show, "reading subscriptions"))
        self._start_stage("indexing", self._rows)

    def _show_parsed(self, done: int, total: int) -> None:
        if done == 0:
            self._start_stage("parsing", done)
        if done < total:
            self._show("parsing", done, total, done)
        else:
            self._start_stage("indexing", total)

    def _start_stage(self, doing: str, rows: int) -> None:
        self._started = monotonic()
        self.bar.reset(self._task)
        self.bar.update(self._task, description=doing, total=None, rows=f"{rows:,} rows")

    def _show(self, doing: str, rows: int, total: float | None, completed: float) -> None:
        self._rows = rows
        speed = rows / max(monotonic() - self._started, 1e-3)
        counts = f"{rows:,} rows, {speed:,.0f} a second"
        self.bar.update(self._task, description=doing, total=total, completed=completed, rows=counts)


def _open_console(file: TextIO) -> Console:
    from rich.console import Console

    return Console(file=file)
