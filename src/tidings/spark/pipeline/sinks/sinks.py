"""The sinks of a pipeline: files, Kafka, the console, or a function of the user's.

Spark delivers a batch at least once: after a crash, the same batch comes again with the same number and rows. Files
are exact all the same (`batch_folders`); a Kafka record comes again under the same key, the console prints again,
and the user's function is called again with the same number. A new kind of sink is a class with `write`, a case in
`open_sink`, and its keys in `config.settings`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidings.configuration.local_paths import to_local_path
from tidings.errors import SinkError
from tidings.lang.diagnostics import to_printable
from tidings.spark.pipeline.run.open_stores import OpenStores
from tidings.spark.pipeline.sinks.batch_folders import EXACT_TIMES, LocalFolder, RemoteFolder
from tidings.spark.pipeline.sinks.store_sink import StoreTable
from tidings.spark.schema import to_column

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from pyspark.sql import Column, Row

    from tidings.spark.pipeline.config.settings import SinkSettings


class Sink(Protocol):
    """An open sink."""

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write the rows of a micro-batch; the same number means the same rows."""


@runtime_checkable
class RowSink(Sink, Protocol):
    """A sink that also takes rows which are on the driver already, and needs no Spark job for them."""

    def write_rows(self, rows: Sequence[Mapping[str, Any]], batch: int) -> None:
        """Write the rows of a micro-batch, as `write` does."""


def open_sink(
    sink: SinkSettings,
    *,
    key: Sequence[str],
    owner: str | None = None,
    console: Console | None = None,
    folder: Path | None = None,
    stores: OpenStores | None = None,
    query: str = "query",
    time: str | None = None,
) -> Sink:
    """Open a sink.

    `key` names the columns that identify a row; they are the key of a Kafka record. `owner` is the id of the checkpoint
    that numbers the batches: a folder with batches of another one is refused. `console` is where a live view is
    drawn, so that tables are printed above it. `folder` is that of `pipeline.toml`, for modules beside it. `stores` has
    those that are open, `query` tells the batches of two queries of one checkpoint apart, and `time` is where an event
    says when it happened.
    """
    match sink.kind:
        case "kafka":
            return Topic(_require(sink, "servers"), _require(sink, "topic"), key=tuple(key), options=sink.options)
        case "console":
            return ConsoleTable(console or Console(highlight=False), sink.rows)
        case "python":
            name = _require(sink, "function")
            return FunctionCall(name, import_function(name, folder), folder)
        case "store":
            url = _require(sink, "store")
            name = query if owner is None else f"{owner}/{query}"
            return StoreTable((stores or OpenStores()).open(url), name, sink.keep, time)
        case "json" | "parquet" as format:
            path = _require(sink, "path")
            if (local := to_local_path(path)) is None:
                return RemoteFolder(path, format, sink.options)
            return LocalFolder.open(local, format, options=sink.options, owner=owner)


def _require(sink: SinkSettings, name: str) -> str:
    value: str | None = getattr(sink, name)
    if not value:
        msg = f"a sink of kind `{sink.kind}` needs `{name}`"
        raise SinkError(msg)
    return value


# --- Kafka ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Topic:
    """A Kafka topic, through Spark's own connector: at least once, and the key makes it exact.

    The value is the row as JSON. The key is the key columns as a JSON array, such as `["s1",17]`: a record that a
    retried batch writes again has the same key, so a compacted topic keeps one, and a reader can tell. Without key
    columns there is no key. Options are handed on to Spark; they may hold secrets, so nothing here prints them.
    """

    servers: str
    topic: str
    key: tuple[str, ...]
    options: Mapping[str, str] = field(repr=False)

    def write(self, frame: DataFrame, batch: int) -> None:  # noqa: ARG002 - a record does not say its batch
        """Send each row as a record."""
        value = F.to_json(F.struct("*"), EXACT_TIMES).alias("value")
        records = frame.select(to_json_array(self.key).alias("key"), value) if self.key else frame.select(value)
        writer = records.write.format("kafka").options(**self.options)
        writer.option("kafka.bootstrap.servers", self.servers).option("topic", self.topic).save()


def to_json_array(names: Sequence[str]) -> Column:
    """Return the text of a JSON array of columns, each in its own type: `["s1",17]`.

    Spark's arrays have one type for all elements, and would make text of the 17; so each is an array of its own,
    and its brackets are cut off.
    """
    arrays = [F.to_json(F.array(to_column(name)), EXACT_TIMES) for name in names]
    parts = [text.substr(F.lit(2), F.length(text) - 2) for text in arrays]
    return F.concat(F.lit("["), F.concat_ws(",", *parts), F.lit("]"))


# --- the console ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConsoleTable:
    """Prints the first rows of each batch as a table; a batch without rows prints nothing."""

    console: Console
    rows: int

    def write(self, frame: DataFrame, batch: int) -> None:
        """Print the first rows; one more is fetched, to tell whether there are more, and never all."""
        rows = frame.limit(self.rows + 1).collect()
        if not rows:
            return
        count = "1 row" if len(rows) == 1 else f"{len(rows):,} rows"
        if len(rows) > self.rows:
            count = f"more than {self.rows:,} rows; the first {self.rows:,}:"
        self.console.print(Text(f"batch {batch}: {count}"))
        self.console.print(_build_table(frame.columns, rows[: self.rows]))


def _build_table(columns: Sequence[str], rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    for name in columns:
        table.add_column(Text(to_printable(name, "\N{REPLACEMENT CHARACTER}")))
    for row in rows:
        cells = ("null" if value is None else str(_to_plain(value)) for value in row)
        table.add_row(*(Text(to_printable(cell, "\N{REPLACEMENT CHARACTER}")) for cell in cells))
    return table


def _to_plain(value: object) -> object:
    """Return a value with its Spark rows turned into dicts, also those in a list."""
    if isinstance(value, list):
        return [_to_plain(item) for item in value]
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


# --- a function of the user's --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A Python function, called on the driver with the batch's DataFrame and number.

    It is called again, with the same number and rows, when the batch is tried again after a crash: a function that
    must count each row once keeps the number with what it writes.
    """

    name: str
    function: Callable[[DataFrame, int], object]
    folder: Path | None = None

    def write(self, frame: DataFrame, batch: int) -> None:
        """Call it; what it raises stops the pipeline, under its name."""
        try:
            with import_from(self.folder):
                self.function(frame, batch)
        except Exception as problem:
            msg = f"the sink `{self.name}` failed in batch {batch}: {type(problem).__name__}: {problem}"
            raise SinkError(msg) from problem


@dataclass(frozen=True, slots=True, eq=False)
class _FolderFinder:
    """Finds top-level modules in one folder; what lies in a package is found through the package."""

    folder: Path

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is to be loaded from, or None."""
        return PathFinder.find_spec(name, [str(self.folder)], target) if path is None else None


@contextmanager
def import_from(folder: Path | None) -> Iterator[None]:
    """Let modules beside `pipeline.toml` be imported inside the block, after everything that is installed.

    The function of a sink is looked up and called within it: it may import more then. Nothing stays behind but the
    imported modules. Each use has a finder of its own, so that two queries in one process do not end each other's.
    """
    if folder is None:
        yield
        return
    finder = _FolderFinder(folder)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def import_function(name: str, folder: Path | None = None) -> Callable[..., object]:
    """Return the function that `package.module:name` names; `name` may have dots, for a member of a class."""
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        msg = f"`{name}` names no function; write `package.module:name`"
        raise SinkError(msg)
    try:
        with import_from(folder):
            member: Any = importlib.import_module(module)
    except Exception as problem:
        msg = f"the module of the sink `{name}` cannot be imported: {type(problem).__name__}: {problem}"
        raise SinkError(msg) from problem
    for part in path.split("."):
        member = getattr(member, part, None)
    if not callable(member):
        msg = f"the sink `{name}` is no function: `{module}` has nothing of that name that can be called"
        raise SinkError(msg)
    return member  # type: ignore[no-any-return]
