"""What the benchmarks on Spark share: a session of two cores, a snapshot and events on disk, a sink for nothing."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidings import spark as ts
from tidings.bench.harness.results import describe_machine
from tidings.bench.workloads import workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

CORES = 2
"""Of the session, and as many processes stand beside it."""

SUBSCRIPTIONS_SEED, EVENTS_SEED = 1, 2
"""What is drawn, and with what."""


def build_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks here share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--folder", type=Path, default=None, help="for what is made on the way; else one that is removed"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, for a smoke test; the figures mean nothing")
    return parser


@contextmanager
def open_folder(folder: Path | None) -> Iterator[Path]:
    """Return the folder of the options, or a temporary one."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder_made:
        yield Path(folder_made)


def open_session(*, memory: str = "3g") -> SparkSession:
    """Return a session on two cores, or the running one."""
    config = {"spark.driver.memory": memory, "spark.sql.shuffle.partitions": str(CORES)}
    return ts.session("tidings benchmark", master=f"local[{CORES}]", config=config)


def snapshot(key: str, count: int, folder: Path) -> Path:
    """Write a snapshot of so many subscriptions of a workload, unless it is there; return its path."""
    path = folder / f"{key}-{count}"
    if not path.exists():
        chosen = workload(key)
        matcher = chosen.matcher()
        matcher.add_many(chosen.subscriptions(count, SUBSCRIPTIONS_SEED))
        matcher.compact()
        matcher.save(path)
    return path


def write_events(key: str, count: int, folder: Path) -> Path:
    """Write events with an `id`, as a Parquet file for each core, unless they are there; return their folder."""
    path = folder / f"{key}-events-{count}"
    if not path.exists():
        path.mkdir(parents=True)
        table = with_ids(workload(key).events(count, EVENTS_SEED))
        each = -(-count // CORES)
        for part in range(CORES):
            pq.write_table(table.slice(part * each, each), path / f"part-{part}.parquet", row_group_size=50_000)
    return path


def with_ids(table: pa.Table) -> pa.Table:
    """Number the rows in a first column `id`."""
    return table.add_column(0, "id", pa.array(np.arange(table.num_rows)))


def drain(frame: DataFrame) -> None:
    """Run the query into the sink that keeps nothing."""
    frame.write.format("noop").mode("overwrite").save()


def format_heading(title: str) -> str:
    """Return a line with title, machine, date, commit and command."""
    called = Path(sys.argv[0])
    command = " ".join([f"python -m benchmarks.spark.{called.stem}", *sys.argv[1:]])
    return f"{title}; {describe_machine()}, {CORES} cores, {datetime.now(UTC):%Y-%m-%d}, {_commit()}\n  {command}"


def _commit() -> str:
    git = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(git, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)  # noqa: S603 - ours
    return done.stdout.strip() or "no git"
