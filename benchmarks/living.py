"""A matcher that lives: calls while a merge runs, threads, a snapshot opened anew: `python -m benchmarks.living`.

First, `--subscriptions` of the workload `equalities`, then a third as many again, which starts a merge of all in the
background. Calls of add, remove (old ids, at random) and match are timed one by one while it runs; when it ends, the
third is added once more, until there are enough calls. The baseline is as many calls when nothing is being merged.
Then one thread and two match batches, and new processes open a snapshot and match one event each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidings.bench.harness.results import describe_machine
from tidings.bench.workloads import workload

if TYPE_CHECKING:
    from tidings.matcher import Matcher

ROUNDS = 12
"""Merges that are started at most."""

OPENING = """
import json, sys, time
begin = time.perf_counter()
from tidings import Matcher
imported = time.perf_counter()
matcher = Matcher.open(sys.argv[1])
opened = time.perf_counter()
found = matcher.match(json.loads(sys.argv[2]))
done = time.perf_counter()
print(json.dumps([imported - begin, opened - imported, done - opened, len(found)]))
"""


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--subscriptions", type=int, default=1_000_000)
    options.add_argument("--calls", type=int, default=10_000)
    options.add_argument("--quick", action="store_true", help="a hundredth of the work, for a smoke test")
    arguments = options.parse_args()
    share = 100 if arguments.quick else 1
    work = workload("equalities")
    count = arguments.subscriptions // share
    matcher = work.matcher("engine")
    matcher.add_many(work.columns(count, 1))
    events = work.event_rows(64, 2)
    for event in events:
        matcher.match(event)
    print(f"living: {count:,} subscriptions; {describe_machine()}")
    names = work.columns(count, 1).column("id").to_pylist()
    random.Random(1).shuffle(names)
    _report("nothing merged", time_calls(matcher, events, names, calls=arguments.calls // share // 10), "(baseline)")
    third, calls = _rename_ids(work.columns(count // 3, 3)), arguments.calls // share
    merging: list[float] = []
    for _ in range(ROUNDS):
        if len(merging) >= calls:
            break
        matcher.add_many(third)
        merging += time_calls(matcher, events, names, calls=calls - len(merging), merging=True)
    _report("while merging", merging or [0.0], "" if len(merging) >= calls else "(the merges were over too soon)")
    matcher.settle()
    matcher.compact()
    report_threads(matcher, work.events(1024, 2), batches=2 if arguments.quick else 40)
    report_opening(matcher, events[0], repeat=1 if arguments.quick else 5)


def time_calls(
    matcher: Matcher, events: list[dict[str, object]], names: list[str], *, calls: int, merging: bool = False
) -> list[float]:
    """Add, remove and match in turn; return the seconds of each call, with `merging` of those made during a merge."""
    seconds: list[float] = []
    for call in itertools.cycle(range(3 * calls)):
        if len(seconds) >= calls or (merging and not matcher.merging):
            return seconds
        begin = time.perf_counter()
        if call % 3 == 0:
            matcher.add(f"new {len(names)}", f"a1 = {call % 50} and a2 = 7 and a3 = 9")
        elif call % 3 == 1:
            matcher.remove(names.pop())
        else:
            matcher.match(events[call % len(events)])
        seconds.append(time.perf_counter() - begin)
    return seconds


def report_threads(matcher: Matcher, table: pa.Table, *, batches: int) -> None:
    """Match the same batches with one thread and with two."""
    for threads in (1, 2):
        with ThreadPoolExecutor(threads) as pool:
            begin = time.perf_counter()
            list(pool.map(lambda _: len(matcher.match_many(table)), range(batches)))
            rate = batches * table.num_rows / (time.perf_counter() - begin)
        print(f"  {threads} thread{'s' if threads > 1 else ' '}        {rate:10,.0f} events/s")


def _rename_ids(table: pa.Table) -> pa.Table:
    """The same rows under other ids."""
    ids = pa.array([f"other {number}" for number in range(table.num_rows)])
    return table.set_column(table.column_names.index("id"), "id", ids)


def _report(title: str, calls: list[float], remark: str) -> None:
    seconds = np.sort(calls)
    middle, most = seconds[len(seconds) // 2] * 1e3, seconds[-1] * 1e3
    print(f"  {title:<16} {len(seconds):7,} calls: median {middle:6.2f} ms, longest {most:6.1f} ms  {remark}")


def report_opening(matcher: Matcher, event: dict[str, object], *, repeat: int) -> None:
    """Open a snapshot in new processes; the caches of compiled kernels and of the disk are warm."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        matcher.save(f"{folder}/snapshot")
        print(f"  save             {time.perf_counter() - begin:7.2f} s")
        command = [sys.executable, "-c", OPENING, f"{folder}/snapshot", json.dumps(event)]
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603 - our own
            for _ in range(repeat + 1)
        ][1:]
        imported, opened, matched, _ = np.median(np.array(runs), axis=0)
        whole = imported + opened + matched
        parts = f"import {imported:.2f}, open {opened:.3f}, first match {matched:.2f}"
        print(f"  open, new process {whole:6.2f} s in all: {parts}")


if __name__ == "__main__":
    main()
