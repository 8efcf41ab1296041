"""A matcher that lives: calls while a merge runs, and a snapshot opened anew: `python -m benchmarks.living`.

First, `--subscriptions` of the workload `equalities` and a third as many again, which starts a merge of all in the
background; meanwhile calls of add, remove and match are timed one by one, and the longest is told. The baseline is the
longest of as many calls when nothing is being merged. Then the matcher is saved, and new processes open it and match
one event each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.timing import machine
from tidings.testing.workloads import workload

if TYPE_CHECKING:
    from tidings.matcher import Matcher

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
    given = options.parse_args()
    share = 100 if given.quick else 1
    work = workload("equalities")
    count = given.subscriptions // share
    matcher = work.matcher("engine")
    matcher.add_many(work.columns(count, 1))
    events = work.event_rows(64, 2)
    for event in events:
        matcher.match(event)
    print(f"living: {count:,} subscriptions; {machine()}")
    _report("nothing merged", timed_calls(matcher, events, given.calls // share // 10), "(baseline)")
    matcher.add_many(_others(work.columns(count // 3, 3)))
    calls = timed_calls(matcher, events, given.calls // share)
    busy = matcher.merging
    _report("while merging", calls, "" if busy else "(the merge was over before the calls were)")
    matcher.settle()
    report_opening(matcher, events[0], repeat=1 if given.quick else 5)


def timed_calls(matcher: Matcher, events: list[dict[str, object]], calls: int) -> np.ndarray:
    """Add, remove and match in turn; return the seconds of each call, longest last."""
    seconds = []
    for call in range(calls):
        begin = time.perf_counter()
        if call % 3 == 0:
            matcher.add(f"new {call}", f"a1 = {call % 50} and a2 = 7 and a3 = 9")
        elif call % 3 == 1:
            matcher.remove(f"new {call - 1}")
        else:
            matcher.match(events[call % len(events)])
        seconds.append(time.perf_counter() - begin)
    return np.sort(seconds)


def _others(table: pa.Table) -> pa.Table:
    """The same rows under other ids."""
    ids = pa.array([f"other {number}" for number in range(table.num_rows)])
    return table.set_column(table.column_names.index("id"), "id", ids)


def _report(what: str, seconds: np.ndarray, remark: str) -> None:
    middle, most = seconds[len(seconds) // 2] * 1e3, seconds[-1] * 1e3
    print(f"  {what:<16} {len(seconds):7,} calls: median {middle:6.2f} ms, longest {most:6.1f} ms  {remark}")


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
