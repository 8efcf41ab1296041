"""Subscriptions of any number into a folder of versions, compiled by the executors and never seen by the driver.

Rows are dealt to parts by a fixed hash of their ids (`matcher.live.shard_of`, said in SQL here), so all rows of an id
meet in one part. A task compiles a part into a segment file in the folder and returns a few lines: what the segment
is, what its filters ask of attributes, and what it refused. A second round merges the parts of each shard, since one
segment is asked quicker than several. The driver puts the lines together into a version, or lists every refusal
and makes none. The folder must be one that driver and executors see.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import IntegralType, StringType

from tidings.errors import BadFrame, BadSubscriptions, SnapshotError, TidingsError
from tidings.matcher.live import versions
from tidings.matcher.live.live import TOKENS
from tidings.matcher.snapshot.directory import MANIFEST, OURS, alone
from tidings.spark.schema import require_columns, require_frame
from tidings.spark.subscriptions.shared_folder import count_tasks_per_shard
from tidings.spark.query_context import QueryContext, to_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from tidings.concepts import Ontology, Regions
    from tidings.matcher.live.versions import Version
    from tidings.model import Schema
    from tidings.spark.query_context import SchemaLike

LISTED = 100
"""Refusals that a task tells in full; the others it counts."""

RESULT = "part INT, told STRING"
"""What a task returns: the number of its part or shard, and JSON."""

MOST_PARTS = 16
"""So many tasks compile a shard at most: what they make is merged by one."""


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
    in one `BadSubscriptions`. `shards` splits the subscriptions into parts that are matched apart: for more than a
    machine holds. The folder must be new or empty, and visible to all executors.
    """
    given = QueryContext(to_schema(schema), ontology, regions)
    return compile_into(subscriptions, Path(path), shards=shards, context=given)


def compile_into(
    subscriptions: DataFrame, folder: Path, *, shards: int, context: QueryContext, events: Schema | None = None
) -> Version:
    """Compile into a folder, with filters understood by `given`; `events` are the attributes of a frame of events."""
    check_subscriptions(subscriptions)
    if type(shards) is not int or shards < 1:
        msg = f"shards is 1 or more, not {shards!r}"
        raise BadFrame(msg)
    _check_target(folder)
    parts = shards * min(count_tasks_per_shard(subscriptions.sparkSession, shards), MOST_PARTS)
    rows = subscriptions.select(*_columns(subscriptions.schema), build_part_column("id", parts).alias("part"))
    wide = context.with_columns(events)
    task = CompileStep(str(folder.resolve()), wide)
    told = rows.repartitionById(parts, F.col("part")).mapInArrow(task, RESULT).collect()
    results = {row.part: json.loads(row.told) for row in told}
    _refuse(results)
    asked = {name for result in results.values() for name, *_ in result["needs"]["demands"]}
    whole = context.with_columns(events, asked).build_matcher()
    for result in results.values():
        whole.admission.needs.merge(result["needs"])
    found = _merged(subscriptions, folder, _by_shard(results, shards, parts), wide)
    ids = next((result["ids"] for result in results.values()), None)
    with alone(folder):
        version = versions.write_version(folder, 1, found, around=whole, position={}, ids=ids)
        versions.remove_unnamed(folder)
    return version


def check_subscriptions(frame: DataFrame) -> None:
    """Refuse what is not a frame of subscriptions."""
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


def _columns(schema: StructType) -> list[Column]:
    kind = "long" if isinstance(schema["id"].dataType, IntegralType) else "string"
    notation = F.col("notation") if "notation" in schema.names else F.lit(None).cast("string")
    return [F.col("id").cast(kind).alias("id"), F.col("filter"), notation.alias("notation")]


def build_part_column(id: str, parts: int) -> Column:
    """Return the part of an id, as `matcher.live.shard_of` reckons it; ids that are null go to the first."""
    digits = F.substring(F.sha2(F.col(id).cast("string"), 256), 1, 8)
    token = F.conv(digits, 16, 10).cast("long") % TOKENS
    return F.coalesce(F.floor(token * parts / TOKENS), F.lit(0)).cast("int")


def _check_target(folder: Path) -> None:
    """Refuse a folder that holds anything; what a refused or broken compilation left is no matter, and goes."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(path.name == MANIFEST or not OURS.fullmatch(path.name) for path in folder.iterdir()):
        msg = f"`{folder}` is not empty; give a new folder, or open the subscriptions that it holds with td.Live"
        raise SnapshotError(msg)


# On the executors ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CompileStep:
    """The function Spark runs: the rows of a part in, its segments in the folder, a few lines out."""

    folder: str
    given: QueryContext

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Compile all rows; they are of one part, or of none."""
        rows = [batch for batch in batches if batch.num_rows]
        if rows:
            table = pa.Table.from_batches(rows)
            for part in table.column("part").unique().sort().to_pylist():
                yield _result(part, self._told(table.filter(pc.equal(table.column("part"), part))))

    def _told(self, table: pa.Table) -> dict[str, Any]:
        matcher = self.given.build_matcher()
        table, nulls, errors = _sound(table)
        errors += [(id, str(error)) for id, error in matcher.add_many(table, on_error="collect")]
        if errors or nulls:
            return {"refused": len(errors), "listed": errors[:LISTED], "nulls": nulls}
        matcher.compact()
        ids = "integer" if pa.types.is_integer(table.schema.field("id").type) else "text"
        shard = versions.write_shard(Path(self.folder), matcher)
        return {"shard": shard, "needs": matcher.admission.needs.to_dict(), "ids": ids}


def _sound(table: pa.Table) -> tuple[pa.Table, dict[str, int], list[tuple[Any, str]]]:
    """Return the rows, each once, how many lack something, and the ids that say several things.

    Rows of a frame have no order, so of two filters under one id neither is the later one.
    """
    names = ["id", "filter", "notation"]
    nulls = {name: table.column(name).null_count for name in names[:2] if table.column(name).null_count}
    table = table.select(names).filter(pc.and_(pc.is_valid(table.column("id")), pc.is_valid(table.column("filter"))))
    if len(table.column("id").unique()) == table.num_rows:
        return table, nulls, []
    table = table.group_by(names).aggregate([])
    counted = pc.value_counts(table.column("id"))
    several = counted.filter(pc.greater(counted.field("counts"), 1)).field("values").to_pylist()
    return table, nulls, [(id, "it has several filters, and an id has one") for id in several]


@dataclass(frozen=True, slots=True)
class MergeStep:
    """The function Spark runs to make one segment of the parts of a shard."""

    folder: str
    given: QueryContext

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Merge the parts of each shard that comes along."""
        for batch in batches:
            for row in batch.to_pylist():
                shard = versions.merged_shard(Path(self.folder), json.loads(row["told"]), self.given.build_matcher())
                yield _result(row["part"], shard)


def _result(part: int, told: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"part": pa.array([part], pa.int32()), "told": [json.dumps(told)]})


# On the driver -------------------------------------------------------------------------------------


def collect_subscriptions(frame: DataFrame) -> pa.Table:
    """Bring a DataFrame of subscriptions to the driver: for clusters without a folder that executors share with it."""
    check_subscriptions(frame)
    table, nulls, errors = _sound(frame.select(*_columns(frame.schema)).toArrow())
    _refuse({0: {"refused": len(errors), "listed": errors[:LISTED], "nulls": nulls}})
    return table


def _refuse(results: Mapping[int, dict[str, Any]]) -> None:
    """Raise what the tasks refused, if they did."""
    nulls = Counter[str]()
    for told in results.values():
        nulls.update(told.get("nulls", {}))
    if nulls:
        said = [
            f"`{name}` is null in {number:,} rows; leave them out: .where('{name} is not null')"
            for name, number in nulls.items()
        ]
        raise BadFrame("the subscriptions: " + "; ".join(said))
    total = sum(told.get("refused", 0) for told in results.values())
    if not total:
        return
    listed = sorted((one for told in results.values() for one in told.get("listed", ())), key=lambda one: str(one[0]))
    lines = [f"  `{id}`: {said}".replace("\n", "\n    ") for id, said in listed]
    more = [f"  and {total - len(listed):,} others"] if total > len(listed) else []
    msg = "\n".join([f"{total:,} subscriptions were refused, so none was taken:", *lines, *more])
    raise BadSubscriptions(msg, errors=tuple((id, TidingsError(said)) for id, said in listed))


def _by_shard(results: Mapping[int, dict[str, Any]], shards: int, parts: int) -> list[list[dict[str, Any]]]:
    """Return what became of the parts of each shard; parts go to shards in their order, as tokens do."""
    return [
        [results[part]["shard"] for part in sorted(results) if part * shards // parts == shard]
        for shard in range(shards)
    ]


def _merged(
    frame: DataFrame, folder: Path, parts: list[list[dict[str, Any]]], given: QueryContext
) -> list[dict[str, Any]]:
    """Return the shards, each of one segment; those that came in several parts are merged by the executors."""
    done = {shard: mine[0] if mine else dict(versions.EMPTY) for shard, mine in enumerate(parts) if len(mine) < 2}
    open_ones = [(shard, json.dumps(mine)) for shard, mine in enumerate(parts) if shard not in done]
    if open_ones:
        rows = frame.sparkSession.createDataFrame(open_ones, RESULT).repartitionById(len(parts), F.col("part"))
        told = rows.mapInArrow(MergeStep(str(folder.resolve()), given), RESULT).collect()
        done |= {row.part: json.loads(row.told) for row in told}
    return [done[shard] for shard in range(len(parts))]
