"""More subscriptions than one matcher should hold: `python -m benchmarks.spark.large`.

Subscriptions of `classifieds` are made as text by the executors, from seeds, so that none of them passes through the
driver; `ts.compile` deals them to shards, and a batch of events is matched against all shards. Seconds, the most
memory that driver, JVM and workers held, and bytes on disk. The baseline is making the text, which is no part of it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.spark import ground
from benchmarks.spark.compiling import CHUNK, check_agreement, draw_chunk
from benchmarks.spark.processes import Memory, Spent, run_in_turn
from tidings import spark as ts
from tidings.bench.workloads import workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

KEY = "classifieds"
"""The workload."""


@dataclass(frozen=True, slots=True)
class SparkStage:
    """One step: its time, and the memory meanwhile."""

    name: str
    spent: Spent
    memory: Memory


@dataclass(frozen=True, slots=True)
class Large:
    """All steps, how many pairs were found, and the bytes of the folder."""

    stages: list[SparkStage] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)
    disk: int = 0


def main() -> None:
    """Measure and print."""
    options = ground.build_parser(__doc__)
    options.add_argument("--subscriptions", type=int, default=10_000_000)
    options.add_argument("--shards", type=int, default=8)
    options.add_argument("--events", type=int, default=10_000)
    options.add_argument("--memory", default="4g", help="of the JVM")
    arguments = options.parse_args()
    count, events = (4_000, 200) if arguments.quick else (arguments.subscriptions, arguments.events)
    session = ground.open_session(memory=arguments.memory)
    print(ground.format_heading(f"large: {KEY}, {count:,} subscriptions, {arguments.shards} shards"), flush=True)
    with ground.open_folder(arguments.folder) as folder:
        report(measure_large(session, count, events, shards=arguments.shards, folder=folder), count, events)


def make_subscriptions(session: SparkSession, count: int) -> DataFrame:
    """Return a DataFrame of subscriptions; its tasks make a chunk for each of their seeds."""
    each = min(CHUNK, -(-count // ground.CORES))
    seeds = session.range(0, -(-count // each), 1, numPartitions=-(-count // each))
    return seeds.mapInArrow(partial(_make_batches, count=count, each=each), "id STRING, filter STRING")


def _make_batches(batches: Iterator[pa.RecordBatch], *, count: int, each: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for seed in batch.column(0).to_pylist():
            yield from draw_chunk(KEY, seed, min(each, count - seed * each)).to_batches(max_chunksize=10_000)


def measure_large(session: SparkSession, count: int, events: int, *, shards: int, folder: Path) -> Large:
    """Make, compile, check and match."""
    result, snapshot = Large(), folder / "compiled"
    shutil.rmtree(snapshot, ignore_errors=True)
    frame, schema = make_subscriptions(session, count), dict(workload(KEY).schema or {})
    ground.drain(make_subscriptions(session, 200))  # workers that have imported what they need
    result.stages.append(_stage("make the text", partial(ground.drain, frame)))
    result.stages.append(_stage("compile", lambda: ts.compile(frame, snapshot, shards=shards, schema=schema)))
    check_agreement(session, KEY, snapshot, draw_chunk(KEY, 0, min(CHUNK, -(-count // ground.CORES))))
    read = session.read.parquet(str(ground.write_events(KEY, events, folder)))
    matched = ts.match(read, str(snapshot), event_id="id")
    result.stages.append(_stage("match, shards cold", lambda: result.pairs.append(matched.count())))
    result.stages.append(_stage("match, warm", lambda: result.pairs.append(matched.count())))
    disk = sum(path.stat().st_size for path in snapshot.rglob("*") if path.is_file())
    return Large(result.stages, result.pairs, disk)


def _stage(name: str, work: Callable[[], object]) -> SparkStage:
    with Memory() as memory:
        spent = run_in_turn({name: work}, repeat=1, warm_up=0)[name]
    print(f"  {name:<20} {spent}\n    most memory: {memory}", flush=True)
    return SparkStage(name, spent, memory)


def report(result: Large, count: int, events: int) -> None:
    """Print the summary; the stages were printed as they ended."""
    took = {stage.name: stage.spent for stage in result.stages}
    making, compiled, warm = took["make the text"], took["compile"], took["match, warm"]
    print(f"  {result.disk / count:.0f} bytes on disk a subscription, {result.disk / 2**20:,.0f} MiB in all")
    print(f"  compiled in {compiled.wall_s:.0f} s, making the text alone took {making.wall_s:.0f} s  (baseline)")
    rate, pairs = events / warm.wall_s, result.pairs[-1] / events
    print(f"  {rate:,.0f} events/s at {pairs:,.0f} matches each, {result.pairs[-1] / warm.wall_s:,.0f} matches/s")


if __name__ == "__main__":
    main()
