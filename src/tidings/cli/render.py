"""What people see: messages and progress on standard error, results on standard output. The only user of rich.

Rich is loaded for a terminal alone; in a pipe the same words come out plain. Text from users is never taken for
markup and never wrapped, so a caret stays under what it points at.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from tidings.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sized
    from typing import TextIO

    from rich.console import Console

    from tidings.matcher.loading.row_files import RowFile
    from tidings.matcher.loading.row_readers import Row
    from tidings.matcher.loading.subscription_input import Watch
    from tidings.matcher.plan import Sheet

Batch = TypeVar("Batch", bound="Sized")
"""Rows of a file, or a batch of columns."""

COLOURS = {
    "error": "red",
    "warning": "yellow",
    "slow": "yellow",
    "note": "cyan",
    "ok": "green",
    "FAIL": "red",
    "wrong": "red",
}
"""The colour of a word that begins a line, on a terminal."""


def out(text: str) -> None:
    """Write a line, or several, to standard output, and let it go at once."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        hush()
        msg = f"cannot write the output: {problem.strerror}"
        raise FileError(msg) from problem


def out_json(value: Any) -> None:
    """Write a value to standard output as one line of JSON."""
    out(as_json(value))


def as_json(value: Any) -> str:
    """Return a value as one line of JSON; what JSON does not know becomes text."""
    return json.dumps(value, ensure_ascii=False, default=str)


def hush() -> None:
    """Send what is still buffered nowhere: the reader is gone, and Python would complain at its end."""
    with suppress(OSError, ValueError, AttributeError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def error(text: str) -> None:
    """Say on standard error why the command was refused."""
    labelled("error", text, file=sys.stderr)


def warning(text: str) -> None:
    """Say on standard error what the user should know of."""
    labelled("warning", text, file=sys.stderr)


def note(text: str) -> None:
    """Say on standard error what was done."""
    labelled("note", text, file=sys.stderr)


def labelled(label: str, text: str, *, file: TextIO | None = None, between: str = ": ") -> None:
    """Write a line that begins with a word in its colour."""
    file = file or sys.stdout
    if not file.isatty():
        file.write(f"{label}{between}{text}\n")
        file.flush()
        return
    from rich.text import Text

    words = Text.assemble((label, f"bold {COLOURS.get(label.strip(), 'default')}"), f"{between}{text}")
    _console(file).print(words, soft_wrap=True, highlight=False)


def sheet(table: Sheet) -> None:
    """Write a small table: drawn on a terminal, in columns of plain text elsewhere."""
    if not sys.stdout.isatty():
        out(str(table))
        return
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    console = _console(sys.stdout)
    console.print(Text(table.title, "bold"), soft_wrap=True)
    drawn = Table(box=None, show_header=bool(table.head))
    for at in range(max(map(len, (table.head, *table.rows)), default=0)):
        name = escape(table.head[at]) if table.head else ""
        drawn.add_column(name, justify="right" if at in table.numbers else "left", header_style="dim")
    for row in table.rows:
        drawn.add_row(*map(escape, row))
    if table.rows:
        console.print(drawn)
    for line in table.notes:
        console.print(f"  {escape(line)}", soft_wrap=True, highlight=False)


@contextmanager
def progress(file: RowFile, doing: str, *, beside_output: bool = False) -> Iterator[Iterable[list[Row]]]:
    """Hand out the batches of a file; on a terminal, a bar tells how far it is.

    Work that writes its results meanwhile says so: where they go to a terminal too, they are the progress.
    """
    if not sys.stderr.isatty() or (beside_output and sys.stdout.isatty()):
        yield file
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]:,}"), TimeElapsedColumn())
    # Standard output is not redirected: rich would send it to standard error, bar and all.
    bar = Progress(*columns, console=_console(sys.stderr), transient=True, redirect_stdout=False, redirect_stderr=False)
    with bar:
        yield _watched(file, bar, bar.add_task(doing, total=1.0, rows=0))


class Loading:
    """How far a file of subscriptions has come; here, nobody looks."""

    watch: Watch | None = None

    def read(self, batches: Iterable[Batch]) -> Iterable[Batch]:
        """Hand out the batches of the file."""
        return batches


@contextmanager
def loading(file: RowFile, *, quiet: bool = False) -> Iterator[Loading]:
    """Show on a terminal how far the subscriptions of a file are: read, then parsed, then indexed."""
    if quiet or not sys.stderr.isatty():
        yield Loading()
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]}"), TimeElapsedColumn())
    bar = Progress(*columns, console=_console(sys.stderr), transient=True, redirect_stdout=False, redirect_stderr=False)
    with bar:
        yield _Bar(file, bar)


class _Bar(Loading):
    """A bar for each stage; the last one, whose length nobody knows, only moves."""

    def __init__(self, file: RowFile, bar: Any) -> None:
        self._file, self._bar, self._began = file, bar, monotonic()
        self._task = bar.add_task("reading subscriptions", total=1.0, rows="")
        self.watch = self._parsed

    def read(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        rows = 0
        for batch in batches:
            yield batch
            rows += len(batch)
            share = self._file.share
            self._show("reading subscriptions", rows, None if share is None else 1.0, share or 0.0)
        self._stage("indexing", rows)

    def _parsed(self, done: int, total: int) -> None:
        if done == 0:
            self._stage("parsing", done)
        if done < total:
            self._show("parsing", done, total, done)
        else:
            self._stage("indexing", total)

    def _stage(self, doing: str, rows: int) -> None:
        self._began = monotonic()
        self._bar.reset(self._task)
        self._bar.update(self._task, description=doing, total=None, rows=f"{rows:,} rows")

    def _show(self, doing: str, rows: int, total: float | None, completed: float) -> None:
        speed = rows / max(monotonic() - self._began, 1e-3)
        shown = f"{rows:,} rows, {speed:,.0f} a second"
        self._bar.update(self._task, description=doing, total=total, completed=completed, rows=shown)


def _watched(file: RowFile, bar: Any, task: Any) -> Iterator[list[Row]]:
    rows = 0
    for batch in file:
        yield batch
        rows += len(batch)
        share = file.share
        bar.update(task, total=None if share is None else 1.0, completed=share or 0.0, rows=rows)


def _console(file: TextIO) -> Console:
    from rich.console import Console

    return Console(file=file)
