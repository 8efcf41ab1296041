"""Where a micro-batch's rows go: files, Kafka, the console, or a function of the user's.

Spark hands a batch over at least once: after a crash, the same batch comes again under the same number, with the same
rows. What becomes of that is each sink's own: files are exact (`folders`), a Kafka record comes again under the same
key, the console prints again, and the user's function is called again with the same number.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidings.errors import SinkError
from tidings.spark.pipeline.sinks.batch_folders import EXACT, Format, LocalFolder, RemoteFolder, local_path
from tidings.spark.schema import to_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, Row

    from tidings.spark.pipeline.config import settings


class Output(Protocol):
    """An open sink."""

    def write(self, frame: DataFrame, batch: int) -> None:
        """Take the rows of a micro-batch; the same number means the same rows."""

    def close(self) -> None:
        """Let go of what is held; nothing is written after that."""


def output_of(
    sink: settings.Sink, *, key: Sequence[str], owner: str | None = None, console: Console | None = None
) -> Output:
    """Open a sink.

    `key` names the columns that make a row the one it is; they are the key of a Kafka record. `owner` stands for the
    checkpoint whose numbers the batches have: a folder with batches of another one is refused. `console` is the one
    that a live view is drawn on, so that tables are printed above it.
    """
    match sink.kind:
        case "json" | "parquet" as format:
            return _folder_of(_given(sink, "path"), format, options=sink.options, owner=owner)
        case "kafka":
            return Topic(_given(sink, "servers"), _given(sink, "topic"), key=tuple(key), options=sink.options)
        case "console":
            return Printed(console or Console(highlight=False), sink.rows)
        case "python":
            name = _given(sink, "function")
            return Call(name, imported(name))


def _given(sink: settings.Sink, name: str) -> str:
    value: str | None = getattr(sink, name)
    if not value:
        msg = f"a sink of kind `{sink.kind}` needs `{name}`"
        raise SinkError(msg)
    return value


def _folder_of(path: str, format: Format, *, options: Mapping[str, str], owner: str | None) -> Output:
    local = local_path(path)
    if local is None:
        return RemoteFolder(path, format, options)
    return LocalFolder.opened(local, format, options=options, owner=owner)


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
        records = frame.select(*_record(self.key))
        writer = records.write.format("kafka").options(**self.options)
        writer.option("kafka.bootstrap.servers", self.servers).option("topic", self.topic).save()

    def close(self) -> None:
        """Nothing is open: Spark's producers are the executors'."""


def _record(key: Sequence[str]) -> list[Column]:
    value = F.to_json(F.struct("*"), EXACT).alias("value")
    return [json_array(key).alias("key"), value] if key else [value]


def json_array(names: Sequence[str]) -> Column:
    """Return the text of a JSON array of columns, each in its own type: `["s1",17]`.

    Spark's arrays have one type for all elements, and would make text of the 17; so each is an array of its own,
    and its brackets are cut off.
    """
    alone = [F.to_json(F.array(to_column(name)), EXACT) for name in names]
    parts = [text.substr(F.lit(2), F.length(text) - 2) for text in alone]
    return F.concat(F.lit("["), F.concat_ws(",", *parts), F.lit("]"))


# --- the console ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Printed:
    """The first rows of each batch as a table, for trying out; a batch without rows prints nothing."""

    console: Console
    rows: int

    def write(self, frame: DataFrame, batch: int) -> None:
        """Print the first rows. One more than those is fetched, to tell whether there are more, and never all."""
        found = frame.limit(self.rows + 1).collect()
        if found:
            self.console.print(Text(f"batch {batch}: {self._counted(len(found))}"))
            self.console.print(_table(frame.columns, found[: self.rows]))

    def close(self) -> None:
        """The console stays the caller's."""

    def _counted(self, found: int) -> str:
        if found > self.rows:
            return f"more than {self.rows:,} rows; the first {self.rows:,}:"
        return "1 row" if found == 1 else f"{found:,} rows"


def _table(columns: Sequence[str], rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    for name in columns:
        table.add_column(Text(_printable(name)))
    for row in rows:
        table.add_row(*(Text(_printable(_cell(value))) for value in row))
    return table


def _cell(value: Any) -> str:
    return "null" if value is None else str(_without_rows(value))


def _without_rows(value: Any) -> Any:
    """Return a value whose records are plain dicts, those in a list too."""
    if isinstance(value, list):
        return [_without_rows(one) for one in value]
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


def _printable(text: str) -> str:
    """Return text that cannot steer the terminal; events are written by strangers."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


# --- a function of the user's --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A Python function, called on the driver with the batch's DataFrame and number.

    It is called again, with the same number and rows, when the batch is tried again after a crash: a function that
    must count each row once keeps the number with what it writes.
    """

    name: str
    function: Callable[[DataFrame, int], object]

    def write(self, frame: DataFrame, batch: int) -> None:
        """Call it; what it raises stops the pipeline, under its name."""
        try:
            self.function(frame, batch)
        except Exception as problem:
            msg = f"the sink `{self.name}` failed in batch {batch}: {type(problem).__name__}: {problem}"
            raise SinkError(msg) from problem

    def close(self) -> None:
        """The function keeps what it keeps."""


def imported(name: str) -> Callable[..., object]:
    """Return the function that `package.module:name` names; `name` may have dots, for what a class holds."""
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        msg = f"`{name}` names no function; write `package.module:name`"
        raise SinkError(msg)
    try:
        found: Any = importlib.import_module(module)
    except Exception as problem:
        msg = f"the module of the sink `{name}` cannot be imported: {type(problem).__name__}: {problem}"
        raise SinkError(msg) from problem
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        msg = f"the sink `{name}` is no function: `{module}` has nothing of that name that can be called"
        raise SinkError(msg)
    return found  # type: ignore[no-any-return]
