"""The engine in plain processes, without Spark: `Plain` starts them, and this module is what each of them runs.

A process opens the snapshot, matches a batch to load compiled code, says that it is ready, and then, as often as it
is told to, reads its Parquet file in Arrow batches and matches them. It counts the pairs and makes nothing of them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow.parquet as pq

import tidings as td

if TYPE_CHECKING:
    from types import TracebackType

BATCH = 10_000
"""Events in a batch: as many as Spark hands over by default, and within a few percent of the engine's best."""


class PlainProcesses:
    """A process for each Parquet file of the events; calling it lets all of them match, and returns the pairs."""

    def __init__(self, snapshot: Path, events: Path, *, batch: int = BATCH) -> None:
        """Start the processes and wait until they are warm."""
        command = [sys.executable, "-m", "benchmarks.spark.plain", str(snapshot)]
        self._processes = [
            subprocess.Popen(  # noqa: S603 - our own
                [*command, str(part), str(batch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT
            )
            for part in sorted(events.glob("*.parquet"))
        ]
        self._read_counts()

    def __call__(self) -> int:
        """Match all events once; return how many pairs there were."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return sum(self._read_counts())

    def _read_counts(self) -> list[int]:
        lines = [process.stdout.readline() for process in self._processes if process.stdout is not None]
        if not all(lines):
            msg = "a plain process ended; what it said is above"
            raise RuntimeError(msg)
        return list(map(int, lines))

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, kind: type | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        """End the processes: closed input is their end."""
        for process in self._processes:
            process.communicate()


_ROOT = Path(__file__).parents[2]


def main(snapshot: str, events: str, batch: int) -> None:
    """Match as often as a line comes in."""
    matcher = td.Matcher.open(snapshot)
    file = pq.ParquetFile(events)
    names = [name for name in file.schema_arrow.names if name != "id"]
    _say(sum(len(matcher.match_many(part)) for part in [next(file.iter_batches(batch, columns=names))]))
    for _ in sys.stdin:
        _say(sum(len(matcher.match_many(part)) for part in file.iter_batches(batch, columns=names)))


def _say(pairs: int) -> None:
    print(pairs, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
