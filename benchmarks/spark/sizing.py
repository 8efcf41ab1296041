"""Bytes of a subscription and time of an event, for the sizing table: `python -m benchmarks.spark.sizing`.

Subscriptions are loaded in columns, saved, opened again from the snapshot, and asked in batches of 10,000 events, as a
worker on Spark asks them. Times are of one core's processor, the median of several batches; what Spark adds to them
is measured by `share --parts`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import tidings as td
from benchmarks.spark import ground
from tidings.bench.workloads import workload

EVENTS = 10_000
"""Events of a batch: what Spark hands to a worker at once."""


def main() -> None:
    """Measure and print a row for each workload."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--workloads", nargs="+", default=["equalities", "ranges", "classifieds"])
    options.add_argument("--subscriptions", type=int, default=1_000_000)
    options.add_argument("--repeat", type=int, default=5)
    arguments = options.parse_args()
    print(
        ground.format_heading(
            f"sizing: {arguments.subscriptions:,} subscriptions, batches of {EVENTS:,} events, one core"
        )
    )
    for key in arguments.workloads:
        print(measure_row(key, arguments.subscriptions, repeat=arguments.repeat), flush=True)


def measure_row(key: str, count: int, *, repeat: int) -> str:
    """Return the bytes of a subscription and the time of an event of a workload."""
    work = workload(key)
    with tempfile.TemporaryDirectory() as folder:
        load, size = save_snapshot(key, count, Path(folder) / "snapshot")
        matcher = td.Matcher.open(Path(folder) / "snapshot")
        batches = [work.events(EVENTS, seed=seed) for seed in range(repeat + 1)]
        times, pairs = [], 0
        for number, batch in enumerate(batches):
            begun = time.process_time()
            matches = matcher.match_many(batch)
            if number:  # the first one maps pages and loads kernels
                times.append(time.process_time() - begun)
                pairs += len(matches)
        micro = [1e6 * seconds / EVENTS for seconds in times]
        spread = f"{min(micro):.1f}-{max(micro):.1f}"
        return (
            f"  {key:<12} {size / count:6.0f} bytes, {statistics.median(micro):6.1f} us an event ({spread}),"
            f" {pairs / repeat / EVENTS:,.1f} matches, loaded in {load:.1f} s"
        )


def save_snapshot(key: str, count: int, folder: Path) -> tuple[float, int]:
    """Load and save; return the seconds of loading and the bytes on disk."""
    work = workload(key)
    matcher = td.Matcher()
    columns = work.columns(count, seed=1)
    begun = time.process_time()
    matcher.add_many(columns)
    matcher.compact()
    load = time.process_time() - begun
    matcher.save(folder)
    return load, sum(path.stat().st_size for path in folder.iterdir())


if __name__ == "__main__":
    main()
