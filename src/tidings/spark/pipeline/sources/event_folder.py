"""The folder that a service's API writes events to, as a stream of documents: a source of our own for Spark.

Each batch is an entry of a log (`file_log`): the oldest files that no entry had before, up to a bound. So a file may be
removed once it was read, a batch that is tried again reads the same files, and what a trigger costs does not grow with
what was read before. The files are read and decoded in Spark's workers. Lines end with a line feed, and with nothing
else. A file that cannot be read is a refused row that names it.

A query that finds nothing when it starts takes an entry without files: the first batch of a process takes Spark many
times as long as the others, and it had better not be that of somebody's first event.
"""

from __future__ import annotations

import dataclasses
import json
import os
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pydantic.dataclasses
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from tidings.configuration.keys import CONFIG
from tidings.matcher.loading.row_readers import SHOWN_BYTES
from tidings.service.events.event_files import get_number
from tidings.spark.documents import DecodeStep, DocumentFields
from tidings.spark.pipeline.config.settings import SourceSettings
from tidings.spark.pipeline.sources.document_stream import build_decoder, name_columns
from tidings.spark.pipeline.sources.file_log import FileLog
from tidings.spark.pipeline.sources.size_limits import describe_too_large

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT_NAME = "tidings-events"
"""What Spark calls the source."""

SUFFIX = ".jsonl"
"""How the names of event files end; those that begin with a dot are not finished, or old."""

PIECE_BYTES = 4 << 20
"""Bytes of lines that are decoded at once."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=CONFIG)
class EventFolderSettings(SourceSettings):
    """A folder of events, in files whose names ascend with time; each batch takes some of them."""

    files: int = 2_000
    """The most files of a batch."""
    bytes: int = 64_000_000
    """The most bytes of a batch, unless its first file has more."""

    def widen_batches(self) -> EventFolderSettings:
        """Return the settings of a query that takes a batch seldom, as that of patterns does while there are none."""
        return dataclasses.replace(self, files=10 * self.files, bytes=4 * self.bytes)


def stream_folder(session: SparkSession, source: EventFolderSettings, log: Path | None) -> DataFrame:
    """Return the documents of a folder; `log` is the file in the checkpoint that says which files were read."""
    session.dataSource.register(EventFolder)
    options = {
        "folder": source.path or "",
        "log": "" if log is None else str(log),
        "id": source.id or "",
        "time": source.time or "",
        "largest": str(source.largest),
        "files": str(source.files),
        "bytes": str(source.bytes),
        "tasks": str(session.sparkContext.defaultParallelism),
    }
    rows = session.readStream.format(FORMAT_NAME).schema(build_decoder(source).columns).options(**options).load()
    return name_columns(rows, source)


class EventFolder(DataSource):
    """What Spark makes a reader of; its options are those of `stream_folder`."""

    @classmethod
    def name(cls) -> str:
        """Return what Spark calls the source."""
        return FORMAT_NAME

    def streamReader(self, schema: StructType) -> EventFolderReader:  # noqa: N802 - Spark's name
        """Return the reader of a query."""
        return EventFolderReader(dict(self.options), schema.names)


class FilePart(InputPartition):
    """The files that one task reads."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        super().__init__(paths)
        self.paths = paths


class EventFolderReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Chooses the files of each batch, in a process beside Spark's; and reads them, in its workers."""

    def __init__(self, options: dict[str, str], columns: Sequence[str]) -> None:
        self._folder, self._path = Path(options["folder"]), Path(options["log"])
        self._files, self._bytes, self._tasks = (int(options[name]) for name in ("files", "bytes", "tasks"))
        self._largest, self._columns = int(options["largest"]), list(columns)
        self._fields = DocumentFields(options["id"] or None, options["time"] or None)
        self._log: FileLog | None = None
        self._seen: set[str] = set()  # names in the folder that the log has
        self._takes_more, self._has_begun = True, False

    # Which files -------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where a new query begins."""
        return {"n": 0, "newest": ""}

    def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: ARG002, N802 - Spark's
        """Return the next entry of the log: one that is there already, or one of files that are new."""
        log = self._open_log()
        if log.newest <= start["n"] and self._takes_more and not self._append_new() and not self._has_begun:
            log.append(())
        self._has_begun = True
        if log.newest <= start["n"]:
            return start
        number = int(start["n"]) + 1
        numbered = (name for name in log.get(number) if get_number(name) is not None)  # others may lie there too
        return {"n": number, "newest": max([start["newest"], *numbered])}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Put all files that are there now into entries; later ones are for another run."""
        while self._append_new():
            pass
        self._takes_more = False

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[FilePart]:
        """Return the files of a batch, in their order, for as many tasks as their size is worth."""
        log = self._open_log()
        names = [name for number in range(start["n"] + 1, end["n"] + 1) for name in log.get(number)]
        sizes = [self._measure(name) for name in names]
        total = sum(sizes)
        tasks = max(1, min(self._tasks, len(names), total // PIECE_BYTES + 1))
        owners = [
            min(tasks - 1, (done - size) * tasks // max(total, 1))
            for done, size in zip(accumulate(sizes), sizes, strict=True)
        ]
        parts = [[name for name, owner in zip(names, owners, strict=True) if owner == task] for task in range(tasks)]
        filled = [part for part in parts if part] or [[]]  # a batch without files has a task all the same
        return [FilePart(tuple(str(self._folder / name) for name in part)) for part in filled]

    def commit(self, end: dict[str, Any]) -> None:
        """Let the log forget files that were read and removed."""
        self._open_log().forget(int(end["n"]), self._seen)

    def stop(self) -> None:
        """Do nothing: no file stays open."""

    def _open_log(self) -> FileLog:
        if self._log is None:
            self._log = FileLog(self._path)
            self._seen = self._log.collect_names()
        return self._log

    def _append_new(self) -> bool:
        """Write an entry of the oldest new files; False: there are none."""
        log, names = self._open_log(), set(list_event_files(self._folder))
        self._seen &= names
        chosen: list[str] = []
        size = 0
        for name in sorted(names - self._seen)[: self._files]:
            size += self._measure(name)
            if chosen and size > self._bytes:
                break
            chosen.append(name)
        if not chosen:
            return False
        log.append(chosen)
        self._seen.update(chosen)
        return True

    def _measure(self, name: str) -> int:
        try:
            return (self._folder / name).stat().st_size
        except OSError:  # whoever reads it says so
            return 0

    # What is in them ---------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the documents of a task's files."""
        assert isinstance(partition, FilePart)
        decode = DecodeStep(self._fields)
        for lines in gather_lines(partition.paths, self._largest):
            yield decode.decode(lines).rename_columns(self._columns)


def list_event_files(folder: Path) -> Iterator[str]:
    """Yield the names of the finished files of events."""
    with os.scandir(folder) as entries:
        yield from (entry.name for entry in entries if entry.name.endswith(SUFFIX) and not entry.name.startswith("."))


def gather_lines(paths: Sequence[str], largest: int, piece_bytes: int = PIECE_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield the lines of files as `_text`, and what cannot be read of them as `_broken` and `_file`, in pieces."""
    rows: list[tuple[bytes | None, str | None, str | None]] = []
    size = 0
    for row in (row for path in paths for row in _read_file(path, largest)):
        rows.append(row)
        size += len(row[0] or b"")
        if size >= piece_bytes:
            yield _build_lines(rows)
            rows, size = [], 0
    yield _build_lines(rows)


def _read_file(path: str, largest: int) -> Iterator[tuple[bytes | None, str | None, str | None]]:
    """Yield the lines of a file, none of which is in memory beyond the largest size that an event may have."""
    try:
        with Path(path).open("rb") as file:
            while line := file.readline(largest + 1):
                if len(line) <= largest or line.endswith(b"\n"):
                    yield line.removesuffix(b"\n"), None, None
                    continue
                start, size = line[:SHOWN_BYTES].decode(errors="replace"), len(line)
                while (rest := file.readline(largest + 1)) and not rest.endswith(b"\n"):
                    size += len(rest)
                yield None, describe_too_large(size + len(rest.removesuffix(b"\n")), largest), start
    except OSError as problem:
        yield None, f"the file cannot be read: {problem.strerror or problem}", json.dumps({"file": path})


def _build_lines(rows: Sequence[tuple[bytes | None, str | None, str | None]]) -> pa.RecordBatch:
    texts, broken, files = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [pa.array(texts, pa.binary()), pa.array(broken, pa.string()), pa.array(files, pa.string())]
    return pa.RecordBatch.from_arrays(columns, ["_text", "_broken", "_file"])
