"""Checks of a pipeline that need Spark: columns, SQL, and names that must be columns.

An empty frame with the source's columns is given the derived columns one after the other, as events will be. No job
runs. A mistake is our sentence, then Spark's own without its plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, types
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import DataType, MapType, StructType

from tidings.concepts import did_you_mean
from tidings.configuration.environment import ExpandedText, mask
from tidings.configuration.reading import FileMistake, TomlPath
from tidings.errors import BadFrame, TidingsError
from tidings.spark.detect.pattern_source import build_detector
from tidings.spark.pipeline.config.checks import RESERVED
from tidings.spark.pipeline.config.settings import FOLDERS
from tidings.spark.pipeline.run.failures import extract_message
from tidings.spark.pipeline.run.match_batches import TIME, resolve_column
from tidings.spark.pipeline.sources.sources import HIDDEN, add_derived_columns, build_columns
from tidings.spark.schema import schema_of
from tidings.spark.session import get_query_logger
from tidings.spark.session import session as ts_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from tidings.spark.pipeline.config.settings import PipelineFile

_SHORT_SESSION = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""A session of seconds ends before Java's second compiler pays."""

_TIMES = (types.TimestampType, types.TimestampNTZType, types.DateType, types.NullType)
_COMPOSED = (types.ArrayType, MapType, StructType, types.BinaryType, types.VariantType)


def check_on_spark(session: SparkSession, file: PipelineFile) -> list[FileMistake]:
    """Return what is wrong with the columns, the SQL and the names of a pipeline."""
    check, logger = _SparkCheck(file), get_query_logger()
    was_disabled, logger.disabled = logger.disabled, True  # it logs each refusal with the plan and the values in it
    try:
        check.check(session)
    finally:
        logger.disabled = was_disabled
    return check.mistakes


def check_locally(file: PipelineFile) -> list[FileMistake]:
    """Run `check_on_spark` in the active session, or in a local one that ends with the check.

    The cluster of the pipeline need not be up. Of its settings, only those count that change the meaning of SQL.
    """
    active = SparkSession.getActiveSession()
    config = {name: value for name, value in file.spark.items() if name.startswith(("spark.sql.", "spark.jars"))}
    session = active or ts_session("tidings run --check", master="local[1]", config={**_SHORT_SESSION, **config})
    try:
        return check_on_spark(session, file)
    finally:
        if active is None:
            session.stop()


class _SparkCheck:
    """The mistakes of one pipeline.

    Where a variable is part of what Spark reads, nothing that Spark made of it is quoted: neither its sentences, nor
    names of columns.
    """

    def __init__(self, file: PipelineFile) -> None:
        self.mistakes: list[FileMistake] = []
        self._file, self._source = file, file.source
        kept = [*(file.matching.keep or ())]
        if file.patterns is not None:
            kept += [file.patterns.key or "", *(file.patterns.keep or ())]
        texts = (self._source.columns, self._source.id, self._source.time, *kept, *file.derived.values())
        self._has_variables = any(isinstance(text, ExpandedText) for text in texts)

    def _add(self, path: TomlPath, text: str, reason: str) -> None:
        """Add a mistake about a key; the reason may quote Spark."""
        if self._has_variables:
            reason = "; a variable is part of it, so the reason is not shown"
        self.mistakes.append(FileMistake(path, f"[{path[0]}] `{path[1]}` {text}{reason}"))

    def check(self, session: SparkSession) -> None:
        """Make all checks that the columns of the source allow."""
        frame = self.read_source(session)
        if frame is not None:
            derived = self.derive(frame)
            self.check_id_and_time(derived.schema)
            self.check_kept(("matching", "keep"), self._file.matching.keep or (), derived.schema)
            self.check_hidden(derived.schema)
            self.check_patterns(derived)

    def read_source(self, session: SparkSession) -> DataFrame | None:
        """Return an empty frame with the columns of the source, if they are valid."""
        path = ("source", "columns")
        try:
            columns = build_columns(self._source)
        except PySparkException as problem:
            self._add(path, "cannot be read", f": {extract_message(problem)}")
            return None
        except BadFrame:  # Spark reads a lone `BIGINT` as a type
            self._add(path, "must be names and types", f", not `{self._source.columns}`")
            return None
        for clash in _find_clashes(columns):
            self._add(path, "has names that cannot be", f": {clash}")
        return None if self.mistakes else session.createDataFrame([], columns)

    def derive(self, frame: DataFrame) -> DataFrame:
        """Add the derived columns; one that fails becomes a null without a type, for those after it."""
        for name, sql in self._file.derived.items():
            if name.lower() in map(str.lower, frame.columns):
                self._add(("derived", name), "is a column already", "; take another name")
                continue
            try:
                frame = _add_derived(frame, name, sql)
            except PySparkException as problem:
                self._add(("derived", name), "cannot be computed", f": {extract_message(problem)}")
                frame = frame.withColumn(name, F.lit(None))
        return frame

    def check_id_and_time(self, columns: StructType) -> None:
        """Look for the columns of an event's id and time, and check their types."""
        for key, name in (("id", self._source.id), ("time", self._source.time)):
            if name is None:
                continue
            kind, hint = _find_type(columns, name)
            path, text = ("source", key), f"names `{mask(name)}`"
            if kind is None:
                self._add(path, f"{text}, and there is no such column", hint)
            elif key == "time" and not isinstance(kind, _TIMES):
                way_out = "make one in [derived], by to_timestamp(...)"
                self._add(path, f"{text}, not a timestamp or a date", f" but {kind.simpleString()}; {way_out}")
            elif key == "id" and isinstance(kind, _COMPOSED):
                self._add(path, f"{text}, not a text or a number", f" but {kind.simpleString()}")

    def check_kept(self, path: TomlPath, names: Iterable[str], columns: StructType) -> None:
        """Look for columns that a key names; a field of a column must become a column first."""
        for name in names:
            if name in columns.names:
                continue
            kind, hint = _find_type(columns, name)
            if kind is not None:
                hint = f'; a field gets its name in [derived]: {name.rpartition(".")[2]} = "{name}"'
            self._add(path, f"names `{mask(name)}`, and there is no such column", hint)

    def check_hidden(self, columns: StructType) -> None:
        """Refuse columns that come out under a name that something else has there."""
        kept = self._file.matching.keep
        if kept is None:
            kept = tuple(columns.names) if self._source.id is None else ()
            if "subscription" in map(str.lower, kept):
                text = "[matching] the events have a column `subscription` themselves; say `keep`"
                self.mistakes.append(FileMistake(("matching",), text))
        in_folders = any(sink.kind in FOLDERS for sink in self._file.sinks)
        if in_folders and "batch" in map(str.lower, kept):
            text = "[matching] the column `batch` would be hidden by the sinks' folders `batch=N`"
            text += "; call it otherwise in [derived], and say `keep`"
            self.mistakes.append(FileMistake(("matching",), text))

    def check_patterns(self, frame: DataFrame) -> None:
        """Parse the patterns beside the events' columns, which give the kinds of the attributes."""
        patterns, time = self._file.patterns, self._source.time
        if patterns is None:
            return
        before = len(self.mistakes)
        self.check_kept(("patterns", "key"), [patterns.key] if patterns.key else (), frame.schema)
        self.check_kept(("patterns", "keep"), patterns.keep or (), frame.schema)
        if time is None or len(self.mistakes) > before or _find_type(frame.schema, time)[0] is None:
            return  # reported already
        if patterns.store is not None:
            return  # patterns of a store are checked one by one, whenever they come
        context = self._file.query_context
        schema = context.vocabulary.schema
        closed = schema is not None and schema.closed and context.unknown == "error"
        names = context if closed else context.with_columns(schema_of(frame.schema))
        timed = frame.withColumn(TIME, resolve_column(frame, time).cast("timestamp"))
        try:
            build_detector(timed, patterns.parse(names), context, time=TIME, key=patterns.key)
        except TidingsError as problem:
            lines = str(problem).replace("\n", "\n  ")
            self._add(("patterns", "file"), "does not go with the columns", f":\n  {lines}")


def _add_derived(frame: DataFrame, name: str, sql: str) -> DataFrame:
    """Add a column, first by itself, which Spark has clear words on, then as the pipeline will."""
    added = frame.withColumn(name, F.expr(sql))
    _ = added.schema  # a Connect session has not looked before
    hidden = frame.withColumns(dict.fromkeys(HIDDEN, F.lit(None).cast("string")))
    _ = add_derived_columns(hidden, {name: sql}).schema
    return added


def _find_clashes(columns: StructType) -> Iterator[str]:
    """Yield names that stand twice, to Spark, which does not tell `ID` from `id`; and names of our own."""
    seen: set[str] = set()
    for name in columns.names:
        if name.lower() in seen:
            yield f"`{name}` is there twice" + (", once for what Kafka says of a record" if name == "kafka" else "")
        elif name in RESERVED:
            yield f"`{name}` is a column of Tidings' own"
        seen.add(name.lower())


def _find_type(columns: StructType, name: str) -> tuple[DataType | None, str]:
    """Return the type of a column, or of a field below one; else what would be there."""
    if name in columns.names:
        return columns[name].dataType, ""
    kind: DataType = columns
    for depth, part in enumerate(parts := name.split(".")):
        if isinstance(kind, MapType):
            return kind.valueType, ""
        if not isinstance(kind, StructType) or part not in kind.names:
            fields = kind.names if isinstance(kind, StructType) else []
            candidates = [".".join([*parts[:depth], field]) for field in fields]
            listing = f"; there are {', '.join(f'`{candidate}`' for candidate in candidates)}" if candidates else ""
            return None, did_you_mean(name, candidates) or listing
        kind = kind[part].dataType
    return kind, ""
