"""Subscriptions of any number into a folder of versions, compiled by the executors and never seen by the driver.

Rows go to parts by a fixed hash of their ids (`live.sharded_store.compute_shard`, here in SQL), so all rows of an id
meet in one part. A task compiles a part into a segment file in the folder and returns a short report: the entry of the
segment, the attributes that its filters read, and what it refused. A second round merges the parts of each shard, since
one segment is queried faster than several. The driver combines the reports into a version, or raises every refusal
together and makes none. The folder must be visible to driver and executors.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import IntegralType, StringType

from tidings.errors import BadFrame, BadSubscriptions, SnapshotError, TidingsError
from tidings.matcher.live import versions
from tidings.matcher.live.sharded_store import TOKENS
from tidings.matcher.snapshot.snapshot_folder import MANIFEST, OURS, lock_folder
from tidings.spark.query_context import QueryContext
from tidings.spark.schema import check_shards, require_columns, require_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from tidings.concepts import Ontology, Regions
    from tidings.matcher.live.versions import Version
    from tidings.model import Schema
    from tidings.spark.query_context import SchemaLike

LISTED = 100
"""The number of refusals that a task reports in full; it counts the others."""

REPORT = "part INT, report STRING"
"""What a task returns: the number of its part or shard, and a report as JSON."""

MOST_PARTS = 16
"""The largest number of tasks that compile one shard: a single task merges their parts."""


def compile(  # the name of the command that does the same
    subscriptions: DataFrame,
    path: str | Path,
    *,
    shards: int = 1,
    schema: SchemaLike | None = None,
    ontology: Ontology | None = None,
    regions: Regions | None = None,
) -> Version:
    """Compile a DataFrame of subscriptions on the executors into a folder that `match` and `td.Live` open.

    `subscriptions` has the columns `id` and `filter` (and `notation`). All or nothing: bad filters are listed by id
    in one `BadSubscriptions`. `shards` splits the subscriptions into parts that are matched separately: for more than
    a machine holds. The folder must be new or empty, and visible to all executors.
    """
    context = QueryContext.of(schema, ontology, regions)
    return compile_into(subscriptions, Path(path), shards=shards, context=context)


def compile_into(
    subscriptions: DataFrame, folder: Path, *, shards: int, context: QueryContext, events: Schema | None = None
) -> Version:
    """Compile into a folder with the vocabulary of `context`; `events` are the columns of a frame of events."""
    check_subscriptions(subscriptions)
    check_shards(shards)
    _check_target(folder)
    parts = shards * min(count_tasks_per_shard(subscriptions.sparkSession, shards), MOST_PARTS)
    wide = context.with_columns(events)
    part = build_part_column("id", parts).alias("part")
    rows = subscriptions.select(*_select_columns(subscriptions.schema), part).repartitionById(parts, F.col("part"))
    results = rows.mapInArrow(partial(compile_batches, folder=folder.resolve(), context=wide), REPORT).collect()
    reports = {row.part: json.loads(row.report) for row in results}
    _refuse_mistakes(reports)
    attributes = {name for report in reports.values() for name, *_ in report["needs"]["demands"]}
    matcher = context.with_columns(events, attributes).build_matcher()
    for report in reports.values():
        matcher.admission.needs.merge(report["needs"])
    entries = _merge_parts(subscriptions, folder, _group_by_shard(reports, shards, parts), wide)
    ids = next((report["ids"] for report in reports.values()), None)
    with lock_folder(folder):
        version = versions.write_version(folder, 1, entries, matcher=matcher, position={}, ids=ids)
        versions.remove_unnamed(folder)
    return version


def count_tasks_per_shard(session: SparkSession, shards: int) -> int:
    """Return how many tasks a shard gets so that all cores are busy."""
    cores = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    return max(1, -(-cores // shards))


def check_subscriptions(frame: DataFrame) -> None:
    """Refuse a frame whose columns are not those of subscriptions, or that is a stream."""
    require_frame(frame, "the subscriptions")
    if frame.isStreaming:
        msg = "the subscriptions are a streaming DataFrame; read them with session.read, or follow them with td.Live"
        raise BadFrame(msg)
    names = ["id", "filter", *(["notation"] if "notation" in frame.columns else [])]
    require_columns(names, frame.schema, why="the subscriptions")
    for name in names:
        kind = frame.schema[name].dataType
        if not isinstance(kind, (StringType, IntegralType) if name == "id" else StringType):
            wanted = "text or integers" if name == "id" else "text"
            msg = f"the subscriptions: `{name}` is {kind.simpleString()}; it must be {wanted}"
            raise BadFrame(msg)


def _select_columns(schema: StructType) -> list[Column]:
    kind = "long" if isinstance(schema["id"].dataType, IntegralType) else "string"
    notation = F.col("notation") if "notation" in schema.names else F.lit(None).cast("string")
    return [F.col("id").cast(kind).alias("id"), F.col("filter"), notation.alias("notation")]


def build_part_column(id: str, parts: int) -> Column:
    """Return the part of an id, as `compute_shard` computes it; ids that are null go to the first part."""
    digits = F.substring(F.sha2(F.col(id).cast("string"), 256), 1, 8)
    token = F.conv(digits, 16, 10).cast("long") % TOKENS
    return F.coalesce(F.floor(token * parts / TOKENS), F.lit(0)).cast("int")


def _check_target(folder: Path) -> None:
    """Refuse a folder that holds anything but the remains of a refused or broken compilation."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(path.name == MANIFEST or not OURS.fullmatch(path.name) for path in folder.iterdir()):
        msg = f"`{folder}` is not empty; give a new folder, or open the subscriptions that it holds with td.Live"
        raise SnapshotError(msg)


# On the executors ----------------------------------------------------------------------------------


def compile_batches(
    batches: Iterator[pa.RecordBatch], *, folder: Path, context: QueryContext
) -> Iterator[pa.RecordBatch]:
    """Compile all rows of a task into segments in the folder, and yield a report; they are of one part, or none."""
    rows = [batch for batch in batches if batch.num_rows]
    if rows:
        table = pa.Table.from_batches(rows)
        for part in table.column("part").unique().sort().to_pylist():
            yield _to_row(part, _compile_part(table.filter(pc.equal(table.column("part"), part)), folder, context))


def _compile_part(table: pa.Table, folder: Path, context: QueryContext) -> dict[str, Any]:
    """Write the segments of a part, unless something is wrong with it, and return the report."""
    matcher = context.build_matcher()
    table, nulls, errors = _clean_rows(table)
    errors += [(id, str(error)) for id, error in matcher.add_many(table, on_error="collect")]
    if errors or nulls:
        return {"refused": len(errors), "listed": errors[:LISTED], "nulls": nulls}
    matcher.compact()
    ids = "integer" if pa.types.is_integer(table.schema.field("id").type) else "text"
    return {"shard": versions.write_shard(folder, matcher), "needs": matcher.admission.needs.to_dict(), "ids": ids}


def _clean_rows(table: pa.Table) -> tuple[pa.Table, dict[str, int], list[tuple[Any, str]]]:
    """Return the distinct rows without nulls, the number of nulls by column, and errors for ids with several filters.

    Rows of a frame have no order, so of two filters under one id neither is the later one.
    """
    names = ["id", "filter", "notation"]
    nulls = {name: table.column(name).null_count for name in names[:2] if table.column(name).null_count}
    table = table.select(names).filter(pc.and_(pc.is_valid(table.column("id")), pc.is_valid(table.column("filter"))))
    if len(table.column("id").unique()) == table.num_rows:
        return table, nulls, []
    table = table.group_by(names).aggregate([])
    counts = pc.value_counts(table.column("id"))
    several = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").to_pylist()
    return table, nulls, [(id, "it has several filters, and an id has one") for id in several]


def merge_batches(
    batches: Iterator[pa.RecordBatch], *, folder: Path, context: QueryContext
) -> Iterator[pa.RecordBatch]:
    """Merge the parts of each shard into one segment, and yield its entry."""
    for batch in batches:
        for row in batch.to_pylist():
            shard = versions.merge_shard(folder, json.loads(row["report"]), context.build_matcher())
            yield _to_row(row["part"], shard)


def _to_row(part: int, report: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"part": pa.array([part], pa.int32()), "report": [json.dumps(report)]})


# On the driver -------------------------------------------------------------------------------------


def collect_subscriptions(frame: DataFrame) -> pa.Table:
    """Bring a DataFrame of subscriptions to the driver: for clusters without a folder that executors share with it."""
    check_subscriptions(frame)
    table, nulls, errors = _clean_rows(frame.select(*_select_columns(frame.schema)).toArrow())
    _refuse_mistakes({0: {"refused": len(errors), "listed": errors[:LISTED], "nulls": nulls}})
    return table


def _refuse_mistakes(reports: Mapping[int, dict[str, Any]]) -> None:
    """Raise the nulls or the bad filters that the tasks reported, if there are any."""
    nulls = sum((Counter(report.get("nulls", {})) for report in reports.values()), Counter[str]())
    if nulls:
        lines = [
            f"`{name}` is null in {number:,} rows; leave them out: .where('{name} is not null')"
            for name, number in nulls.items()
        ]
        raise BadFrame("the subscriptions: " + "; ".join(lines))
    total = sum(report.get("refused", 0) for report in reports.values())
    if not total:
        return
    refusals = [refusal for report in reports.values() for refusal in report.get("listed", ())]
    refusals.sort(key=lambda refusal: str(refusal[0]))
    lines = [f"  `{id}`: {reason}".replace("\n", "\n    ") for id, reason in refusals]
    more = [f"  and {total - len(refusals):,} others"] if total > len(refusals) else []
    msg = "\n".join([f"{total:,} subscriptions were refused, so none was taken:", *lines, *more])
    raise BadSubscriptions(msg, errors=tuple((id, TidingsError(reason)) for id, reason in refusals))


def _group_by_shard(reports: Mapping[int, dict[str, Any]], shards: int, parts: int) -> list[list[dict[str, Any]]]:
    """Return the entries of the parts of each shard; parts go to shards in ascending order, as hash tokens do."""
    return [
        [reports[part]["shard"] for part in sorted(reports) if part * shards // parts == shard]
        for shard in range(shards)
    ]


def _merge_parts(
    frame: DataFrame, folder: Path, parts: list[list[dict[str, Any]]], context: QueryContext
) -> list[dict[str, Any]]:
    """Return the entries of the shards, each of one segment; executors merge the shards that have several parts."""
    entries = {shard: own[0] if own else dict(versions.EMPTY) for shard, own in enumerate(parts) if len(own) < 2}
    split = [(shard, json.dumps(own)) for shard, own in enumerate(parts) if shard not in entries]
    if split:
        rows = frame.sparkSession.createDataFrame(split, REPORT).repartitionById(len(parts), F.col("part"))
        step = partial(merge_batches, folder=folder.resolve(), context=context)
        results = rows.mapInArrow(step, REPORT).collect()
        entries |= {row.part: json.loads(row.report) for row in results}
    return [entries[shard] for shard in range(len(parts))]
