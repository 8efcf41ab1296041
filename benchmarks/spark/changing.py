"""A thousand changes on top of a million: `python -m benchmarks.spark.changing`.

A folder of versions with `ranges` subscriptions; each round adds 700 as text, removes 300, and publishes a version that
the next micro-batch would use. The baseline is what loading all of them again would take, in columns, the quickest way.
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
from tidings.matcher.live import versions

ADDED, REMOVED = 700, 300


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--subscriptions", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=10)
    arguments = options.parse_args()
    print(
        ground.format_heading(f"changing: {ADDED + REMOVED:,} changes on top of {arguments.subscriptions:,} `ranges`")
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "live"
        again = fill_live(folder, arguments.subscriptions)
        times = [change_live(td.Live(folder), number) for number in range(arguments.rounds)]
    print(
        f"  a version     {statistics.median(times):.2f} s ({min(times):.2f}-{max(times):.2f}, with opening the folder)"
    )
    print(f"  all anew      {again:.2f} s  (baseline)")


def fill_live(folder: Path, count: int) -> float:
    """Make the folder; return the seconds that loading took."""
    folder.mkdir()
    matcher, columns = td.Matcher(), workload("ranges").columns(count, seed=1)
    begun = time.perf_counter()
    matcher.add_many(columns)
    matcher.compact()
    shard = versions.write_shard(folder, matcher)
    versions.write_version(folder, 1, [shard], matcher=matcher, position={}, ids="text")
    return time.perf_counter() - begun


def change_live(live: td.Live, number: int) -> float:
    """Add and remove subscriptions; return the seconds until the version is published."""
    texts = workload("ranges").texts(ADDED, seed=100 + number).column("filter").to_pylist()
    added = [(f"n{number}-{at}", text) for at, text in enumerate(texts)]
    removed = [f"s{number * REMOVED + at}" for at in range(REMOVED)]
    begun = time.perf_counter()
    change = live.change(added, removed)
    assert (change.added, change.removed) == (ADDED, REMOVED)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
