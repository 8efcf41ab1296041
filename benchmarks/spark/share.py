"""How much of the engine's speed is left on Spark: `python -m benchmarks.spark.share`.

`ranges` from a snapshot, events from Parquet. `ts.match` on `local[2]` into the sink that keeps nothing, against two
plain processes that open the same snapshot, read the same files and call `match_many`; in turn, warm. `--parts` adds
what is not the engine's: the scan of the Parquet files in the JVM, and the crossing into Python and back with as many
rows as there are matches, but no matching.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.spark import ground
from benchmarks.spark.plain import BATCH, PlainProcesses
from benchmarks.spark.processes import Spent, run_in_turn
from tidings import spark as ts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Shared:
    """What Spark and the plain processes took for the same events, and how many pairs both found."""

    spark: Spent
    plain: Spent
    pairs: int

    @property
    def wall(self) -> float:
        """The share that is left, by the clock on the wall."""
        return self.plain.wall_s / self.spark.wall_s

    @property
    def cpu(self) -> float:
        """The share that is left, by processor time, which equals the wall clock on an idle machine."""
        return self.plain.cpu_s / self.spark.cpu_s


def main() -> None:
    """Measure and print."""
    options = ground.build_parser(__doc__)
    options.add_argument("--subscriptions", type=int, default=1_000_000)
    options.add_argument("--events", type=int, default=200_000)
    options.add_argument("--batch", type=int, default=BATCH, help="events in a batch of the plain processes")
    options.add_argument("--arrow", type=int, default=None, help="spark.sql.execution.arrow.maxRecordsPerBatch")
    options.add_argument("--parts", action="store_true", help="also what Spark takes without the engine")
    arguments = options.parse_args()
    subscriptions, events = (2_000, 1_000) if arguments.quick else (arguments.subscriptions, arguments.events)
    session = ground.open_session()
    if arguments.arrow:
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(arguments.arrow))
    print(ground.format_heading(f"share: ranges, {subscriptions:,} subscriptions, {events:,} events"), flush=True)
    with ground.open_folder(arguments.folder) as folder:
        snapshot, read = ground.snapshot("ranges", subscriptions, folder), ground.write_events("ranges", events, folder)
        report(measure_shares(session, snapshot, read, repeat=arguments.repeat, batch=arguments.batch), events)
        if arguments.parts:
            report_parts(session, read, repeat=arguments.repeat)


def measure_shares(session: SparkSession, snapshot: Path, events: Path, *, repeat: int, batch: int = BATCH) -> Shared:
    """Measure both in turn; their numbers of pairs must be equal."""
    frame = ts.match(session.read.parquet(str(events)), str(snapshot), event_id="id")
    with PlainProcesses(snapshot, events, batch=batch) as plain:
        pairs, counted = plain(), frame.count()
        if pairs != counted:
            msg = f"Spark found {counted:,} pairs, the engine {pairs:,}; figures of a wrong answer mean nothing"
            raise RuntimeError(msg)
        works: dict[str, Callable[[], object]] = {"spark": partial(ground.drain, frame), "plain": plain}
        spent = run_in_turn(works, repeat=repeat, warm_up=2)
    return Shared(spent["spark"], spent["plain"], pairs)


def report(result: Shared, events: int) -> None:
    """Print both and the share."""
    print(f"  {result.pairs / events:.1f} matches an event")
    for name, spent in (("on Spark", result.spark), ("two plain processes", result.plain)):
        print(f"  {name:<20} {events / spent.wall_s:10,.0f} events/s  {spent}")
    print(
        f"  share kept: {result.wall:.0%} by the wall, {result.cpu:.0%} by processor time  (baseline: the plain ones)"
    )


def report_parts(session: SparkSession, events: Path, *, repeat: int) -> None:
    """Print the time of Spark for the same events without the engine."""
    frame = session.read.parquet(str(events))
    parts: dict[str, DataFrame] = {
        "scan": frame,
        "scan, cross, return": frame.mapInArrow(_pass_through, "id BIGINT, s STRING"),
    }
    works: dict[str, Callable[[], object]] = {name: partial(ground.drain, part) for name, part in parts.items()}
    for name, spent in run_in_turn(works, repeat=repeat).items():
        print(f"  {name:<20} {spent}")


def _pass_through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Send back a row for each event, an id and a short text, and look at nothing."""
    for batch in batches:
        ids = pa.repeat("s123456", batch.num_rows)
        yield pa.RecordBatch.from_arrays([batch.column(0), ids], ["id", "s"])


if __name__ == "__main__":
    main()
