"""Events written at a rate, and when their rows were there: what `latency` measures by.

The sink's folder is looked at every few milliseconds by a thread that notes when each batch appeared; what is in the
batches is read when the writing is over, so that looking costs next to nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

import tidings as td
from benchmarks.spark import ground
from tidings.bench.workloads import workload

LOOK_S = 0.01
"""How often the sink is looked at: what a figure may be too large by."""

PATIENCE_S = 180.0
"""So long may the first rows take to come, and the last ones after the writing ended."""

Write: TypeAlias = Callable[[int, pa.Table], float]
"""Takes the number of a file and its events, and returns when they were there."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How events come: files (or requests) a second, events in each, and for how long."""

    files: int = 10
    events: int = 100
    warm_up_s: float = 20.0
    measured_s: float = 60.0

    @property
    def count(self) -> int:
        """Number of files, including the first, which only shows that the pipeline is up."""
        return 1 + round((self.warm_up_s + self.measured_s) * self.files)


@dataclass(frozen=True, slots=True)
class Late:
    """Seconds of each event that counts, all micro-batches and rows, and the processor time that went into them."""

    seconds: NDArray[np.float64]
    batches: int
    pairs: int
    cpu_s: float = 0.0

    def __str__(self) -> str:
        """Return the median, the 99th percentile and the maximum."""
        p50, p99, most = np.percentile(self.seconds, [50, 99, 100])
        text = f"p50 {p50:.2f} s, p99 {p99:.2f} s, most {most:.2f} s"
        came = f"{len(self.seconds):,} events; {self.pairs:,} rows in {self.batches} micro-batches"
        return f"{text} of {came}, {self.cpu_s / max(self.batches, 1):.2f} s of a processor each"


def count_pairs(snapshot: Path, rate: Rate) -> NDArray[np.int64]:
    """Return how many rows each event must give, as the engine finds them here."""
    matcher, table = td.Matcher.open(snapshot), workload("ranges").events(rate.count * rate.events, ground.EVENTS_SEED)
    counts = np.zeros(table.num_rows, np.int64)
    for first in range(0, table.num_rows, 10_000):
        index = matcher.match_many(table.slice(first, 10_000)).event_index
        counts[first : first + 10_000] += np.bincount(index, minlength=min(10_000, table.num_rows - first))
    return counts


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks at the sink's folder, in a thread, and notes when each batch was first there."""

    out: Path
    seen: dict[str, float] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> None:
        """Watch the folder until the end is signalled."""
        while not self.ended.wait(LOOK_S):
            now = time.time()
            for entry in os.scandir(self.out):
                if entry.name.startswith("batch="):
                    self.seen.setdefault(entry.name, now)

    def get_rows(self, name: str) -> NDArray[np.int64]:
        """Return the events of a batch's rows."""
        files = [str(path) for path in (self.out / name).iterdir() if path.name.startswith("part-")]
        kind = "parquet" if files and files[0].endswith(".parquet") else "json"
        return np.asarray(ds.dataset(files, format=kind).to_table(["event"])["event"].to_numpy(), np.int64)


def watch_folder(folder: Path, rate: Rate, write: Write, pairs: NDArray[np.int64]) -> Late:
    """Write at the rate, watch the sink, and hold what came to what must come."""
    table = ground.with_ids(workload("ranges").events(rate.count * rate.events, ground.EVENTS_SEED))
    watch = Watch(folder / "out")
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        write_times = _write_files(table, rate, write, lambda: _has_arrived(watch, int(pairs[: rate.events].sum())))
        _wait(lambda: _has_arrived(watch, int(pairs.sum())), "the last rows did not come")
    finally:
        watch.ended.set()
        thread.join()
    return _measure_lateness(
        watch, np.repeat(write_times, rate.events), pairs, first=rate.count * rate.events - _count_rows(rate)
    )


def _count_rows(rate: Rate) -> int:
    return round(rate.measured_s * rate.files) * rate.events


def _write_files(table: pa.Table, rate: Rate, write: Write, up: Callable[[], bool]) -> list[float]:
    """Write the first file, wait for its rows, then write the others, each at its time."""
    write_times = [write(0, table.slice(0, rate.events))]
    _wait(up, "no rows came")
    begin = time.monotonic()
    for number in range(1, rate.count):
        time.sleep(max(0.0, begin + number / rate.files - time.monotonic()))  # the rate, not a wait for somebody
        write_times.append(write(number, table.slice(number * rate.events, rate.events)))
    return write_times


def _has_arrived(watch: Watch, rows: int) -> bool:
    return sum(len(watch.get_rows(name)) for name in list(watch.seen)) >= rows


def _wait(condition: Callable[[], bool], otherwise: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(otherwise)
        time.sleep(0.2)


def _measure_lateness(watch: Watch, write_times: NDArray[np.float64], pairs: NDArray[np.int64], *, first: int) -> Late:
    """Return the time of each event from `first` on that has rows; refuse rows that are missing or come twice."""
    came, counts = np.full(len(pairs), np.nan), np.zeros(len(pairs), np.int64)
    for name, at in watch.seen.items():
        rows = watch.get_rows(name)
        counts += np.bincount(rows, minlength=len(pairs))
        came[rows] = at
    if (wrong := np.flatnonzero(counts != pairs)).size:
        event = int(wrong[0])
        msg = (
            f"{wrong.size:,} events have other rows than they must: event {event} has {counts[event]} of {pairs[event]}"
        )
        raise RuntimeError(msg)
    late = (came - write_times)[first:]
    return Late(late[~np.isnan(late)], len(watch.seen), int(pairs.sum()))
