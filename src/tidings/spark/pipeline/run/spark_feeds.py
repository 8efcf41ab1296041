"""Feeds of subscriptions that Spark reads: a Kafka topic and a table.

A feed (`matcher.live.feeds`) is asked at the start of a micro-batch for the changes since a position. A topic is read
from the last offsets to its end. A table is compared by Spark with the ids and hashes of the last time, and only
rows that differ come to the driver.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from tidings.configuration.environment import ExpandedText, mask
from tidings.errors import FileError
from tidings.matcher.live.change_rounds import ChangeStep
from tidings.matcher.live.feeds import Changes
from tidings.spark.pipeline.run.failures import SPARK_ERRORS, summarize_error
from tidings.spark.pipeline.sources.sources import to_text_column
from tidings.spark.subscriptions.compile_frame import check_subscriptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, Row

EARLIEST = -2
"""Spark's offset for the beginning of a partition."""

KEPT_STATES = 3
"""States of a table that are kept; older ones are removed, also those that a crash left half written."""


@dataclass(slots=True)
class TopicFeed:
    """A Kafka topic, best compacted: the key is the id, the value the filter; a null value removes.

    A value is a filter in the feed's notation, or JSON: `{"filter": ..., "notation": ...}`, or the tree of a filter.
    """

    session: SparkSession
    topic: str
    servers: str
    notation: str = "text"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def changes(self, position: Mapping[str, Any], current: Iterable[Any]) -> Changes:  # noqa: ARG002 - a feed's shape
        """Read the records from the position to the end."""
        offsets: dict[str, int] = dict(position.get("offsets", {}))
        try:
            rows = self.read_records(offsets)
        except SPARK_ERRORS as problem:
            if not offsets:
                raise
            texts = (self.topic, self.servers, *self.options.values())
            return _report_unreadable(f"the topic `{mask(self.topic)}`", problem, position, texts)
        rows = sorted(rows, key=lambda row: (row.partition, row.offset))
        offsets |= {str(row.partition): row.offset + 1 for row in rows}
        return Changes([self._to_step(row) for row in rows], {"offsets": offsets} if offsets else position)

    def _to_step(self, row: Row) -> ChangeStep:
        if row.key is None:
            where = f"topic `{self.topic}`, partition {row.partition}, offset {row.offset}"
            return ChangeStep(None, problem=FileError(f"{where}: there is no key; the key is the subscription's id"))
        if row.value is None:
            return ChangeStep(row.key, removes=True)
        return ChangeStep(row.key, *_parse_record(row.value, self.notation))

    def read_records(self, offsets: dict[str, int]) -> list[Row]:
        """Read from the offsets; where Kafka no longer has them, read the whole topic and drop what was seen.

        Spark needs an offset for every partition. Those without one, since they are new or have been empty so far, are
        named in its error message; they are read from their beginning.
        """
        if not offsets:
            return self._read_from("earliest").collect()
        try:
            return self._read_from(json.dumps({self.topic: offsets})).collect()
        except SPARK_ERRORS as problem:
            missing = {part for part in _parse_partitions(self.topic, str(problem)) if part not in offsets}
            offsets.update(dict.fromkeys(missing, EARLIEST))
        if missing:
            return self._read_from(json.dumps({self.topic: offsets})).collect()
        seen = F.lit(False)
        for part, offset in offsets.items():
            seen = seen | ((F.col("partition") == int(part)) & (F.col("offset") < offset))
        return self._read_from("earliest").where(~seen).collect()

    def _read_from(self, start: str) -> DataFrame:
        reader = self.session.read.format("kafka").options(**self.options)
        reader = reader.option("kafka.bootstrap.servers", self.servers).option("subscribe", self.topic)
        rows = reader.option("startingOffsets", start).option("endingOffsets", "latest").load()
        return rows.select(to_text_column("key"), to_text_column("value"), "partition", "offset")


def _parse_partitions(topic: str, message: str) -> list[str]:
    """Return the partitions of a topic from Spark's error message about missing offsets.

    >>> _parse_partitions("a.b", "... Specified: Set(a.b-0) Assigned: Set(a.b-0, a.b-1)")
    ['0', '1']
    """
    return re.findall(rf"(?<![\w.-]){re.escape(topic)}-(\d+)\b", message.partition("Assigned:")[2])


def _report_unreadable(
    subject: str, problem: BaseException, position: Mapping[str, Any], texts: Iterable[str]
) -> Changes:
    """Return a batch with one error and no change; the subscriptions in force stay.

    The reason is not shown where a variable is part of one of the `texts`, of which it may quote any.
    """
    why = summarize_error(problem)
    if any(isinstance(text, ExpandedText) for text in texts):
        why = "a variable is part of it, so the reason is not shown"
    error = FileError(f"{subject} cannot be read, so what was read of it before stays in force: {why}")
    return Changes([ChangeStep(None, problem=error)], position)


def _parse_record(value: str, notation: str) -> tuple[Any, str]:
    """Return the filter in a record's value, and its notation."""
    if value.lstrip().startswith("{"):
        try:
            content = json.loads(value)
        except ValueError:
            return value, notation
        if isinstance(content, dict) and "filter" in content:
            return content["filter"], content.get("notation") or notation
        return content, "json"
    return value, notation


@dataclass(slots=True)
class TableFeed:
    """A table, or anything else that can follow FROM, with the columns `id` and `filter` (and `notation`).

    It is checked with each batch, or every `refresh` seconds; a table of files is read only when its files changed.
    """

    session: SparkSession
    table: str
    folder: Path
    refresh: float
    notation: str = "text"
    _checked_at: float | None = None

    def read_table(self) -> DataFrame:
        """Return the current rows, each with a hash of its filter and notation."""
        rows = self.session.sql(f"SELECT * FROM {self.table}")  # noqa: S608 - the user's own words, in the user's own file
        check_subscriptions(rows)
        notation = F.lit(self.notation)
        if "notation" in rows.columns:
            notation = F.coalesce(F.col("notation"), notation)
        kept = rows.select("id", "filter", notation.alias("notation"))
        return kept.withColumn("hash", F.xxhash64("filter", "notation"))

    def fingerprint(self) -> list[str] | None:
        """Return the files of the table, which change with its rows; None for a table without files."""
        if not any(sign in self.table.strip() for sign in "`( "):  # a plain name
            self.session.catalog.refreshTable(self.table)
        files = self.session.sql(f"SELECT * FROM {self.table}").inputFiles()  # noqa: S608
        return sorted(files) or None

    def changes(self, position: Mapping[str, Any], current: Iterable[Any]) -> Changes:  # noqa: ARG002 - a feed's shape
        """Return the rows that changed since the position."""
        previous = position.get("table", {})
        if self._checked_at is not None and time.monotonic() - self._checked_at < self.refresh:
            return Changes([], position)
        try:
            files = self.fingerprint()
            if previous and files is not None and previous.get("files") == files:
                return Changes([], position)
            return self._compare(previous, files)
        except SPARK_ERRORS as problem:
            if not previous:
                raise
            return _report_unreadable(f"the table `{mask(self.table)}`", problem, position, (self.table,))
        finally:
            self._checked_at = time.monotonic()

    def _compare(self, position: Mapping[str, Any], files: list[str] | None) -> Changes:
        new = self.read_table().persist()  # read once: the saved state must be what was compared
        try:
            old = self.session.read.parquet(position["state"]) if position else new.limit(0)
            added = new.join(old.select("id", "hash"), ["id", "hash"], "left_anti").collect()
            gone = old.join(new.select("id"), "id", "left_anti").select("id").distinct().collect()
            state = position["state"] if position and not added and not gone else self.save_state(new)
        finally:
            new.unpersist()
        steps = [*(ChangeStep(row.id, removes=True) for row in gone if row.id is not None), *map(self._to_step, added)]
        return Changes(steps, {"table": {"files": files, "state": state}})

    def _to_step(self, row: Row) -> ChangeStep:
        if row.id is None or row.filter is None:
            problem = FileError(f"the table `{mask(self.table)}` has a row without `id` or `filter`")
            return ChangeStep(row.id, problem=problem)
        return ChangeStep(row.id, row.filter, row.notation)

    def save_state(self, rows: DataFrame) -> str:
        """Write the ids and hashes for the next comparison, and return the path."""
        self.folder.mkdir(parents=True, exist_ok=True)
        state = str(self.folder / f"{time.time_ns()}.parquet")
        rows.select("id", "hash").write.parquet(state)
        for path in sorted(self.folder.iterdir())[:-KEPT_STATES]:
            shutil.rmtree(path, ignore_errors=True)
        return state
