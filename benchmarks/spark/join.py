"""What an index is worth on Spark: `python -m benchmarks.spark.join`.

`ranges` subscriptions from a snapshot: `ts.match` of a batch into the sink that keeps nothing, warm, on `local[2]`.
Beside it, in turn, what Spark does without us: the same ranges as columns of a DataFrame, broadcast, and a join on
all of them, which Spark runs as a nested loop. And DuckDB's join of the same columns on two threads. Both get fewer
events, and their time is scaled; of Spark's join what it takes without an event (reading and broadcasting the
subscriptions) is taken off first, of ours nothing. All three must give the same pairs before anything is timed.
"""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from benchmarks.spark import ground
from benchmarks.spark.processes import run_in_turn
from tidings import spark as ts
from tidings.bench.workloads import workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.spark.processes import Spent

LEAST, MOST = -(2**31), 2**31 - 1
"""The ends of a range that is not asked for. No null, so that the joins have nothing to ask but two comparisons."""

ATTRIBUTES = list(workload("ranges").schema or ())
"""Of the workload `ranges`."""

CONDITION = " AND ".join(f"e.{name} >= s.{name}_from AND e.{name} <= s.{name}_to" for name in ATTRIBUTES)
"""Of both joins."""

NESTED_LOOP = "BroadcastNestedLoopJoin"
"""What Spark's plan calls it."""


@dataclass(frozen=True, slots=True)
class JoinFiles:
    """Files on disk: the snapshot, the same subscriptions as columns, many events, a few, and none."""

    snapshot: Path
    columns: Path
    many: Path
    few: Path
    none: Path


def main() -> None:
    """Measure and print."""
    options = ground.build_parser(__doc__)
    options.add_argument("--subscriptions", type=int, default=100_000)
    options.add_argument("--events", type=int, default=200_000, help="that ts.match gets")
    options.add_argument("--few", type=int, default=1_000, help="that the joins get")
    arguments = options.parse_args()
    sizes = (2_000, 500, 100) if arguments.quick else (arguments.subscriptions, arguments.events, arguments.few)
    session = ground.open_session()
    print(ground.format_heading(f"join: ranges, {sizes[0]:,} subscriptions"), flush=True)
    with ground.open_folder(arguments.folder) as folder:
        files = prepare_files(*sizes, folder=folder)
        check_agreement(session, files)
        report(measure_joins(session, files, repeat=arguments.repeat), many=sizes[1], few=sizes[2])


def prepare_files(subscriptions: int, many: int, few: int, *, folder: Path) -> JoinFiles:
    """Write the files that the measurements read."""
    columns = folder / f"columns-{subscriptions}.parquet"
    if not columns.exists():
        pq.write_table(close_ranges(workload("ranges").columns(subscriptions, ground.SUBSCRIPTIONS_SEED)), columns)
    snapshot = ground.snapshot("ranges", subscriptions, folder)
    return JoinFiles(snapshot, columns, *(ground.write_events("ranges", count, folder) for count in (many, few, 0)))


def close_ranges(columns: pa.Table) -> pa.Table:
    """Give every attribute a range; one that is not asked for reaches from end to end."""
    for place, name in enumerate(columns.column_names):
        if name != "id":
            filled = pc.fill_null(columns.column(name), LEAST if name.endswith("_from") else MOST)
            columns = columns.set_column(place, name, filled)
    return columns


# The three ways --------------------------------------------------------------------------------


def join_by_nested_loop(session: SparkSession, files: JoinFiles, events: Path) -> DataFrame:
    """Return Spark's own join; it is made sure that it is the nested loop over the broadcast subscriptions."""
    subscriptions = F.broadcast(session.read.parquet(str(files.columns)).alias("s"))
    joined = session.read.parquet(str(events)).alias("e").join(subscriptions, F.expr(CONDITION))
    frame = joined.select(F.col("e.id").alias("event"), F.col("s.id").alias("subscription"))
    with contextlib.redirect_stdout(io.StringIO()) as plan:
        frame.explain()
    assert NESTED_LOOP in plan.getvalue(), plan.getvalue()
    return frame


def match_by_engine(session: SparkSession, files: JoinFiles, events: Path) -> DataFrame:
    """Return ours."""
    return ts.match(session.read.parquet(str(events)), str(files.snapshot), event_id="id")


class Duck:
    """DuckDB's join, on the same number of threads, over tables in its memory."""

    def __init__(self, files: JoinFiles, events: Path) -> None:
        """Load both tables."""
        import duckdb

        self._base = duckdb.connect()
        self._base.execute(f"SET threads = {ground.CORES}")
        for name, path in (("s", str(files.columns)), ("e", f"{events}/*.parquet")):
            self._base.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{path}')")  # noqa: S608 - ours
        self._query = f"SELECT e.id AS event, s.id AS subscription FROM e JOIN s ON {CONDITION}"  # noqa: S608 - ours

    def __call__(self) -> pa.Table:
        """Run the join and return the pairs."""
        return self._base.sql(self._query).to_arrow_table()


# Measuring -------------------------------------------------------------------------------------


def check_agreement(session: SparkSession, files: JoinFiles) -> int:
    """Hold all three to the same pairs on the few events; return how many there are."""
    pairs = {
        "ts.match": _list_pairs(match_by_engine(session, files, files.few).toArrow()),
        "nested loop": _list_pairs(join_by_nested_loop(session, files, files.few).toArrow()),
        "DuckDB": _list_pairs(Duck(files, files.few)()),
    }
    first = pairs["ts.match"]
    if wrong := [name for name, answer in pairs.items() if answer != first]:
        msg = f"`ts.match` and {' and '.join(wrong)} give different pairs; figures of a wrong answer mean nothing"
        raise RuntimeError(msg)
    print(f"  same {len(first):,} pairs from all three", flush=True)
    return len(first)


def _list_pairs(table: pa.Table) -> list[tuple[int, str]]:
    return sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


def measure_joins(session: SparkSession, files: JoinFiles, *, repeat: int, warm_up: int = 2) -> dict[str, Spent]:
    """Measure all in turn; Java compiles the nested loop late, so one round does not warm it up."""
    works: dict[str, Callable[[], object]] = {
        "ts.match": partial(ground.drain, match_by_engine(session, files, files.many)),
        "nested loop": partial(ground.drain, join_by_nested_loop(session, files, files.few)),
        "no event": partial(ground.drain, join_by_nested_loop(session, files, files.none)),
        "DuckDB": Duck(files, files.few),
    }
    return run_in_turn(works, repeat=repeat, warm_up=warm_up)


def report(results: dict[str, Spent], *, many: int, few: int) -> None:
    """Print each time, in all and for an event, and how many times longer the joins take."""
    counts = {"ts.match": many, "nested loop": few, "DuckDB": few}
    for name, spent in results.items():
        print(f"  {name:<12} {counts.get(name, 0):8,} events  {spent}")
    for clock in ("wall_s", "cpu_s"):
        took = {name: getattr(spent, clock) for name, spent in results.items()}
        took["nested loop"] = max(took["nested loop"] - took["no event"], 1e-9)
        each = {name: took[name] / count * 1e6 for name, count in counts.items()}
        times = ", ".join(f"{name} {us:,.1f} us" for name, us in each.items())
        ratios = {name: each[name] / each["ts.match"] for name in ("nested loop", "DuckDB")}
        comparison = ", ".join(f"{ratio:,.0f}x {name}" for name, ratio in ratios.items())
        measure = "the wall" if clock == "wall_s" else "processor time"
        print(f"  an event, by {measure}: {times}: {comparison}  (baselines)")


if __name__ == "__main__":
    main()
