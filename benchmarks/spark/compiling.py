"""Time and memory of compiling subscriptions on Spark from a DataFrame of text: `python -m benchmarks.spark.compiling`.

The subscriptions are Parquet files of `id` and `filter`; `ts.compile` reads them on the executors and leaves a folder
that can be matched. The baseline is `add_many` of some of them in this process, as one Arrow table of the same text:
what reading the filters and building the index costs without Spark, scaled to all of them and to two cores.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.spark import ground
from benchmarks.spark.processes import Memory, Spent, run_in_turn
from tidings import spark as ts
from tidings.bench.workloads import workload

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CHUNK = 50_000
"""Subscriptions of one seed; more are made of several seeds, so that no process holds all of the text."""

CHECKED = 64
"""Events that the compiled folder and a matcher in this process must answer alike."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Time of compiling, the memory meanwhile, and processor seconds of plain code for a subscription."""

    spent: Spent
    memory: Memory
    plain_s: float


def main() -> None:
    """Measure and print."""
    options = ground.build_parser(__doc__)
    options.add_argument("--workload", default="classifieds")
    options.add_argument("--subscriptions", type=int, default=1_000_000)
    options.add_argument("--shards", type=int, default=1)
    options.set_defaults(repeat=1)
    arguments = options.parse_args()
    count = 1_000 if arguments.quick else arguments.subscriptions
    session = ground.open_session()
    print(
        ground.format_heading(f"compiling: {arguments.workload}, {count:,} subscriptions, {arguments.shards} shards"),
        flush=True,
    )
    with ground.open_folder(arguments.folder) as folder:
        result = measure_compiling(
            session, arguments.workload, count, folder=folder, shards=arguments.shards, repeat=arguments.repeat
        )
        report(result, count)


def write_texts(key: str, count: int, folder: Path) -> Path:
    """Write so many subscriptions as text, a file for each seed, unless they are there; return their folder."""
    path = folder / f"{key}-texts-{count}"
    if not path.exists():
        path.mkdir(parents=True)
        for seed, first in enumerate(range(0, count, CHUNK)):
            pq.write_table(draw_chunk(key, seed, min(CHUNK, count - first)), path / f"part-{seed}.parquet")
    return path


def draw_chunk(key: str, seed: int, count: int) -> pa.Table:
    """Return the subscriptions of one seed, under ids that no other seed has."""
    table = workload(key).texts(count, seed)
    return table.set_column(0, "id", pa.array([f"{seed}-{number}" for number in range(count)]))


def measure_compiling(
    session: SparkSession, key: str, count: int, *, folder: Path, shards: int = 1, repeat: int = 1
) -> Compiled:
    """Compile as often as asked, check what came out, and measure plain code on some of it."""
    read, snapshot = write_texts(key, count, folder), folder / "compiled"
    schema = dict(workload(key).schema or {})

    def work() -> None:
        shutil.rmtree(snapshot, ignore_errors=True)
        ts.compile(session.read.parquet(str(read)), snapshot, shards=shards, schema=schema)

    # One small compilation first: the session, the workers and the compiled kernels are warm in a job that runs daily.
    small = write_texts(key, min(count, 1_000), folder)
    ts.compile(session.read.parquet(str(small)), folder / "warm", schema=schema)
    shutil.rmtree(folder / "warm")
    with Memory() as memory:
        spent = run_in_turn({"compile": work}, repeat=repeat, warm_up=0)["compile"]
    some = ds.dataset(read).head(max(count // 20, min(count, 20_000)))
    check_agreement(session, key, snapshot, some)
    return Compiled(spent, memory, measure_plain(key, some))


def measure_plain(key: str, some: pa.Table) -> float:
    """Return the processor seconds of one subscription, added to a matcher in this process."""
    begin = time.process_time()
    matcher = workload(key).matcher()
    matcher.add_many(some)
    matcher.compact()
    return (time.process_time() - begin) / some.num_rows


def check_agreement(session: SparkSession, key: str, compiled: Path, some: pa.Table) -> int:
    """Hold the folder's matches among some subscriptions to a matcher's in this process; return how many there are."""
    events = ground.with_ids(workload(key).events(CHECKED, ground.EVENTS_SEED))
    matcher = workload(key).matcher()
    matcher.add_many(some)
    frame = session.createDataFrame(events)
    matches = ts.match(frame, str(compiled), event_id="id").toArrow()
    ids = set(some.column("id").to_pylist())
    pairs = zip(matches["event"].to_pylist(), matches["subscription"].to_pylist(), strict=True)
    mine = sorted(pair for pair in pairs if pair[1] in ids)
    if mine != sorted(matcher.match_many(events.drop_columns("id"))):
        msg = f"`{compiled}` and a matcher of the same {len(ids):,} subscriptions give different pairs"
        raise RuntimeError(msg)
    print(f"  same {len(mine):,} pairs from {CHECKED} events and {len(ids):,} of the subscriptions", flush=True)
    return len(mine)


def report(result: Compiled, count: int) -> None:
    """Print the time on Spark, and that of plain code."""
    print(f"  ts.compile    {result.spent}, {result.spent.cpu_s / count * 1e6:.1f} us of a processor a subscription")
    plain = result.plain_s * count / ground.CORES
    print(f"  add_many      {plain:8.2f} s on {ground.CORES} cores, {result.plain_s * 1e6:.1f} us  (baseline)")
    print(f"  most memory   {result.memory}")


if __name__ == "__main__":
    main()
