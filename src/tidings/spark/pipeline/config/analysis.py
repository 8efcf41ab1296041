"""What only Spark can tell of a pipeline: whether its columns, its SQL and the names in it hold.

An empty frame with the source's columns goes through the derived columns one after the other, as events will. No
job runs. Each mistake is one line: ours, then Spark's own sentence without its plan.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    MapType,
    NullType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from tidings.concepts import did_you_mean
from tidings.errors import BadFrame, TidingsError
from tidings.spark.detect.pattern_source import detector_of
from tidings.spark.pipeline.config.checks import RESERVED
from tidings.spark.pipeline.config.pattern_checks import written_patterns
from tidings.spark.pipeline.config.settings import Pipeline
from tidings.spark.pipeline.config.variables import Expanded, written
from tidings.spark.pipeline.run.match_batches import TIME, path
from tidings.spark.pipeline.run.subscription_follower import given_by
from tidings.spark.pipeline.run.trouble import said
from tidings.spark.pipeline.sources.derived_columns import HIDDEN, with_derived
from tidings.spark.pipeline.sources.sources import columns_of
from tidings.spark.schema import schema_of
from tidings.spark.session import get_query_logger
from tidings.spark.session import session as ts_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from tidings.spark.pipeline.config.load import Events
    from tidings.spark.query_context import QueryContext

_BRIEF = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""A session of seconds ends before Java's second compiler pays."""

_TIMES = (TimestampType, TimestampNTZType, DateType, NullType)
_COMPOSED = (ArrayType, MapType, StructType, BinaryType, VariantType)


def check_on_spark(session: SparkSession, pipeline: Pipeline | Events) -> list[str]:
    """Return what is wrong with the columns, the SQL and the names of a pipeline; nothing where all holds."""
    check = _Check(pipeline)
    with _unlogged():
        frame = check.read(session)
        if frame is not None:
            derived = check.derive(frame)
            columns = derived.schema
            check.id_and_time(columns)
            check.keep(columns)
            check.hidden(columns)
            check.patterns(derived)
    return check.mistakes


def check_here(events: Events) -> list[str]:
    """Return the same by the session that runs, or by one on this machine that ends with the check.

    Where the pipeline will run need not be up. Of its settings, only those count that say what SQL means.
    """
    running = SparkSession.getActiveSession()
    meant = {name: value for name, value in events.spark.items() if name.startswith(("spark.sql.", "spark.jars"))}
    session = running or ts_session("tidings run --check", master="local[1]", config={**_BRIEF, **meant})
    try:
        return check_on_spark(session, events)
    finally:
        if running is None:
            session.stop()


class _Check:
    """The mistakes of one pipeline.

    Where a variable is part of what Spark reads, nothing that Spark made of it is quoted: neither its sentences, nor
    names of columns.
    """

    def __init__(self, pipeline: Pipeline | Events) -> None:
        self.mistakes: list[str] = []
        self._source, self._matching = pipeline.source, pipeline.matching
        self._sql, self._sinks = pipeline.derived, pipeline.sinks
        self._patterns, self._given = pipeline.patterns, _given(pipeline)
        asked = self._patterns
        kept = (*(self._matching.keep or ()), *((asked.key, *(asked.keep or ())) if asked else ()))
        read = (self._source.columns, self._source.id, self._source.time, *kept)
        self._open = not any(isinstance(text, Expanded) for text in (*read, *self._sql.values()))

    def _wrong(self, what: str, why: str) -> None:
        self.mistakes.append(what + (why if self._open else "; a variable is part of it, so the reason is not shown"))

    def read(self, session: SparkSession) -> DataFrame | None:
        """Return an empty frame as the source gives it, where there is nothing wrong with its columns."""
        try:
            columns = columns_of(self._source)
        except PySparkException as problem:
            self._wrong("[source] `columns` cannot be read", f": {said(problem)}")
            return None
        except BadFrame:  # Spark reads a lone `BIGINT` as a type
            self._wrong("[source] `columns` must be names and types", f", not `{self._source.columns}`")
            return None
        for clash in _clashes(columns):
            self._wrong("[source] `columns` has names that cannot be", f": {clash}")
        return None if self.mistakes else session.createDataFrame([], columns)

    def derive(self, frame: DataFrame) -> DataFrame:
        """Add the derived columns; one that fails is null, of no type, to those after it."""
        for name, sql in self._sql.items():
            if name.lower() in map(str.lower, frame.columns):
                self._wrong(f"[derived] `{name}` is a column already", "; take another name")
                continue
            try:
                frame = _derived(frame, name, sql)
            except PySparkException as problem:
                self._wrong(f"[derived] `{name}` cannot be computed", f": {said(problem)}")
                frame = frame.withColumn(name, F.lit(None))
        return frame

    def id_and_time(self, columns: StructType) -> None:
        """Look for the columns that name and date an event."""
        for key, name in (("id", self._source.id), ("time", self._source.time)):
            kind, missing = (None, "") if name is None else _field(columns, name)
            what = f"[source] `{key}` names `{written(name or '')}`"
            if name is None:
                continue
            if kind is None:
                self._wrong(f"{what}, and there is no such column", missing)
            elif key == "time" and not isinstance(kind, _TIMES):
                way_out = "make one in [derived], by to_timestamp(...)"
                self._wrong(f"{what}, not a timestamp or a date", f" but {kind.simpleString()}; {way_out}")
            elif key == "id" and isinstance(kind, _COMPOSED):
                self._wrong(f"{what}, not a text or a number", f" but {kind.simpleString()}")

    def keep(self, columns: StructType) -> None:
        """Look for the columns that come along; a field must become a column first."""
        self._named("[matching] `keep`", self._matching.keep or (), columns)

    def _named(self, what: str, names: Iterable[str], columns: StructType) -> None:
        for name in names:
            if name in columns.names:
                continue
            kind, why = _field(columns, name)
            if kind is not None:
                why = f'; a field gets its name in [derived]: {name.rpartition(".")[2]} = "{name}"'
            self._wrong(f"{what} names `{written(name)}`, and there is no such column", why)

    def hidden(self, columns: StructType) -> None:
        """Refuse columns that come out under a name that something else has there."""
        kept = self._matching.keep
        if kept is None:
            kept = tuple(columns.names) if self._source.id is None else ()
            if "subscription" in map(str.lower, kept):
                self.mistakes.append("[matching] the events have a column `subscription` themselves; say `keep`")
        in_folders = any(sink.kind in ("json", "parquet") for sink in self._sinks)
        if in_folders and "batch" in map(str.lower, kept):
            what = "[matching] the column `batch` would be hidden by the sinks' folders `batch=N`"
            self.mistakes.append(f"{what}; call it otherwise in [derived], and say `keep`")

    def patterns(self, frame: DataFrame) -> None:
        """Read the patterns beside the events' columns, which say of what kind the attributes are."""
        about, time = self._patterns, self._source.time
        if about is None:
            return
        before = len(self.mistakes)
        self._named("[patterns] `key`", [about.key] if about.key else (), frame.schema)
        self._named("[patterns] `keep`", about.keep or (), frame.schema)
        if time is None or len(self.mistakes) > before or _field(frame.schema, time)[0] is None:
            return  # told already
        closed = self._given.schema is not None and self._given.schema.closed and self._given.unknown == "error"
        around = self._given if closed else self._given.with_columns(schema_of(frame.schema))
        timed = frame.withColumn(TIME, path(frame, time).cast("timestamp"))
        try:
            detector_of(timed, written_patterns(about.file, around), self._given, time=TIME, key=about.key)
        except TidingsError as problem:
            told = str(problem).replace("\n", "\n  ")
            self._wrong("[patterns] `file` does not go with the columns", f":\n  {told}")


def _given(pipeline: Pipeline | Events) -> QueryContext:
    if isinstance(pipeline, Pipeline):
        return given_by(pipeline)
    return pipeline.given


def _derived(frame: DataFrame, name: str, sql: str) -> DataFrame:
    """Add a column, first by itself, which Spark has clear words on, then as the pipeline will."""
    added = frame.withColumn(name, F.expr(sql))
    _ = added.schema  # a Connect session has not looked before
    hidden = frame.withColumns({one: F.lit(None).cast("string") for one in HIDDEN})
    _ = with_derived(hidden, {name: sql}).schema
    return added


def _clashes(columns: StructType) -> Iterator[str]:
    """Yield names that stand twice, to Spark, which does not tell `ID` from `id`; and names of our own."""
    seen: set[str] = set()
    for name in columns.names:
        if name.lower() in seen:
            yield f"`{name}` is there twice" + (", once for what Kafka says of a record" if name == "kafka" else "")
        elif name in RESERVED:
            yield f"`{name}` is a column of Tidings' own"
        seen.add(name.lower())


def _field(columns: StructType, name: str) -> tuple[DataType | None, str]:
    """Return the type of a column, or of a field below one; else what would be there."""
    if name in columns.names:
        return columns[name].dataType, ""
    kind: DataType = columns
    for at, part in enumerate(parts := name.split(".")):
        if isinstance(kind, MapType):
            return kind.valueType, ""
        if not isinstance(kind, StructType) or part not in kind.names:
            known = [".".join([*parts[:at], one]) for one in kind.names] if isinstance(kind, StructType) else []
            return None, did_you_mean(name, known) or _listed(known)
        kind = kind[part].dataType
    return kind, ""


def _listed(names: list[str]) -> str:
    return f"; there are {', '.join(f'`{name}`' for name in names)}" if names else ""


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep PySpark from writing each refusal to standard error, with the plan and the values in it."""
    logger = get_query_logger()
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
