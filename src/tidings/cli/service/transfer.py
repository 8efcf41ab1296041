"""`tidings sub import` and `export`: many subscriptions at once, as JSON lines, in streams."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from tidings.cli import render
from tidings.cli.service.client import PATH, RequestRefused, format_mistake, open_client
from tidings.engine.explain.report import pluralize
from tidings.matcher.loading.row_readers import refuse_failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tidings.cli.service.options import ClientOptions

PIECE = 1 << 20
"""Bytes of a file that are sent at once."""


def import_file(path: str, *, partial: bool, options: ClientOptions) -> bool:
    """Send a file of subscriptions; print the report, and return whether all were taken."""
    params = {"partial": "true"} if partial else None
    with open_client(options) as client:
        try:
            report = client.upload(f"{PATH}:import", read_pieces(path), params=params)
        except RequestRefused as refused:
            if options.as_json and "imported" in refused.problem:
                render.write_json(refused.problem)
            raise
    if options.as_json:
        render.write_json(report)
    else:
        for line in report.get("errors") or ():
            render.warn(format_mistake(line, None))
        render.note(f"{pluralize(report['imported'], 'subscription')} imported, {report.get('refused', 0):,} refused")
    return not report.get("refused")


def read_pieces(path: str) -> Iterator[bytes]:
    """Yield a file in pieces; on a terminal, a bar shows how much is sent."""
    with refuse_failure(f"read `{path}`", ValueError), _open_input(path) as (file, size):
        if not sys.stderr.isatty():
            yield from iter(lambda: file.read(PIECE), b"")
            return
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("sending"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
        with render.make_progress(*columns) as bar:
            task = bar.add_task("", total=size)
            while piece := file.read(PIECE):
                yield piece
                bar.advance(task, len(piece))
            bar.update(task, total=None)


@contextmanager
def _open_input(path: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """Open a file, or standard input; with it comes its size, where that can be said."""
    if path == "-":
        yield sys.stdin.buffer, None
    else:
        with open(path, "rb") as file:
            yield file, os.fstat(file.fileno()).st_size


def export(output: Path | None, options: ClientOptions) -> None:
    """Write all subscriptions as JSON lines to standard output, or to a file."""
    with open_client(options) as client:
        lines = client.stream_lines(f"{PATH}:export", timeout=None)
        if output is None:
            for line in lines:
                render.write(line)
            return
        count = 0
        with refuse_failure(f"write `{output}`", ValueError), output.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(f"{line}\n")
                count += 1
    render.note(f"{pluralize(count, 'subscription')} in `{output}`")
