"""Patterns over time on Spark: `python -m benchmarks.spark.patterns`.

`a ; b ; c within 5 min`, keyed, over a million events of a thousand keys from Parquet, on `local[2]` into the sink that
keeps nothing. Beside it `td.Detector` in one plain process over the same table, which must find as many; in turn,
warm. `--parts` adds the scan of the files alone, and a pattern of which nothing happens.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tidings as td
from benchmarks.spark import ground
from benchmarks.spark.processes import Spent, run_in_turn
from tidings import spark as ts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

PATTERN = """
    a = kind = 'a' and user = $u
    b = kind = 'b' and user = $u
    c = kind = 'c' and user = $u
    a ; b ; c within 5 min
"""
"""What is looked for: three kinds of ten, of one user."""

KINDS = "abcdefghij"
"""What events may be of; three in ten serve the pattern."""


def main() -> None:
    """Measure and print."""
    options = ground.build_parser(__doc__)
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--keys", type=int, default=1_000)
    options.add_argument("--kinds", type=int, default=len(KINDS), help="3: every event serves the pattern")
    options.add_argument("--parts", action="store_true", help="also the scan alone, and nothing found")
    arguments = options.parse_args()
    count = 2_000 if arguments.quick else arguments.events
    print(ground.format_heading(f"patterns: a ; b ; c, {count:,} events, {arguments.keys:,} keys"), flush=True)
    with ground.open_folder(arguments.folder) as folder:
        path = write_events(folder, count, keys=arguments.keys, kinds=arguments.kinds)
        report(measure_patterns(ground.open_session(), path, repeat=arguments.repeat, parts=arguments.parts), count)


def write_events(folder: Path, count: int, *, keys: int, kinds: int = len(KINDS)) -> Path:
    """Write events, a second apart for each key, as a Parquet file for each core, unless they are there."""
    path = folder / f"patterns-{count}-{keys}-{kinds}"
    if not path.exists():
        path.mkdir(parents=True)
        table = _draw_table(count, keys, kinds)
        each = -(-count // ground.CORES)
        for part in range(ground.CORES):
            pq.write_table(table.slice(part * each, each), path / f"part-{part}.parquet", row_group_size=50_000)
    return path


def _draw_table(count: int, keys: int, kinds: int) -> pa.Table:
    rng = np.random.default_rng(ground.EVENTS_SEED)
    times = 1_700_000_000_000_000 + np.arange(count) * (10_000_000 // keys)  # an event of each key in ten seconds
    names = pa.array([f"user-{number}" for number in range(keys)])
    columns: dict[str, Any] = {
        "id": np.arange(count),
        "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
        "kind": pa.array(list(KINDS[:kinds])).take(rng.integers(0, kinds, count)),
        "user": names.take(rng.integers(0, keys, count)),
    }
    return pa.table(columns)


def measure_patterns(session: SparkSession, path: Path, *, repeat: int, parts: bool = False) -> dict[str, Spent]:
    """Measure Spark and the plain process in turn; their numbers of matches must be equal."""
    frame = session.read.parquet(str(path))
    detections = ts.detect(frame, {"abc": PATTERN})
    table = pq.read_table(path)
    counted, wanted = detections.count(), len(_measure_plain(table))
    if counted != wanted:
        msg = f"Spark found {counted:,} matches, the detector {wanted:,}; figures of a wrong answer mean nothing"
        raise RuntimeError(msg)
    print(f"  {counted:,} matches")
    works: dict[str, Callable[[], object]] = {
        "on Spark": partial(ground.drain, detections),
        "one plain process": partial(_measure_plain, table),
    }
    if parts:
        works["scan"] = partial(ground.drain, frame)
        works["nothing found"] = partial(ground.drain, ts.detect(frame, {"none": PATTERN.replace("'c'", "'z'")}))
    return run_in_turn(works, repeat=repeat, warm_up=1)


def _measure_plain(table: pa.Table) -> td.Detections:
    detector = td.Detector(time="ts")
    detector.add("abc", PATTERN)
    return detector.detect_many(table)


def report(results: dict[str, Spent], count: int) -> None:
    """Print the times."""
    for name, spent in results.items():
        base = "  (baseline)" if "plain" in name else ""
        print(f"  {name:<20} {count / spent.wall_s:10,.0f} events/s  {spent}{base}")


if __name__ == "__main__":
    main()
