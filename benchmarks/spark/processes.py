"""Processor time and memory of this process and all its descendants, as Linux reports them.

Spark's work is spread over this process, a JVM and its Python workers. On a machine that others use as well the
clock on the wall says little, but processor time holds still, so both are measured.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

TICKS = os.sysconf("SC_CLK_TCK")
"""Processor time is told in these, so many a second."""

LOOK_S = 0.2
"""How often memory is looked at."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What repetitions of one piece of work took: seconds on the wall, and of processors."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    @property
    def wall_s(self) -> float:
        """The middle repetition on the wall."""
        return statistics.median(self.wall)

    @property
    def cpu_s(self) -> float:
        """The middle repetition in processor time."""
        return statistics.median(self.cpu)

    def __str__(self) -> str:
        """Return both with their spread, as text."""
        return (
            f"{self.wall_s:8.2f} s +-{_spread(self.wall):.0%}, processors {self.cpu_s:8.2f} s +-{_spread(self.cpu):.0%}"
        )


def _spread(values: tuple[float, ...]) -> float:
    return (max(values) - min(values)) / 2 / statistics.median(values)


def run_in_turn(works: dict[str, Callable[[], object]], *, repeat: int, warm_up: int = 1) -> dict[str, Spent]:
    """Run the works in turn, so that a noisy minute troubles all of them alike; first a few rounds unmeasured."""
    for _ in range(warm_up):
        for work in works.values():
            work()
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(repeat):
        for name, work in works.items():
            costs[name].append(_measure_once(work))
    return {name: Spent(*zip(*times, strict=True)) for name, times in costs.items()}


def _measure_once(work: Callable[[], object]) -> tuple[float, float]:
    cpu, wall = read_cpu_seconds(), time.perf_counter()
    work()
    return time.perf_counter() - wall, max(read_cpu_seconds() - cpu, 1 / TICKS)


def read_cpu_seconds(root: int | None = None) -> float:
    """Return the processor time of a process (this one) and all below it, those that have ended included."""
    return sum(sum(map(int, _read_stat(pid)[11:15])) for pid in list_family(root)) / TICKS


def list_family(root: int | None = None) -> list[int]:
    """Return a process (this one) and all below it."""
    parents = dict(_read_parents())
    pids = [root or os.getpid()]
    for pid in pids:  # grows while it is gone through
        pids += [child for child, parent in parents.items() if parent == pid]
    return pids


def _read_parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _read_stat(int(entry.name)))[1] != "0":
            yield int(entry.name), int(stat[1])


def _read_stat(pid: int) -> list[str]:
    """Return the fields after the name in `/proc/PID/stat`; zeros when the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ["0"] * 50


# Memory ----------------------------------------------------------------------------------------


class Memory:
    """Watches memory while a `with` block runs: the most that driver, JVM and workers held, in bytes.

    Anonymous memory is what a process has for itself; pages of mapped files (snapshots) are shared by all, and the
    system takes them back when it must, so they are counted apart, as the most that one process had mapped in.
    Of the workers it is their sum.
    """

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self.most: dict[str, int] = {}
        self._ended = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        """Begin to look."""
        self._looking.start()
        return self

    def __exit__(self, kind: type | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        """Stop looking."""
        self._ended.set()
        self._looking.join()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_S):
            for name, size in _measure_memory().items():
                self.most[name] = max(size, self.most.get(name, 0))

    def __str__(self) -> str:
        """Return the peaks in MiB, as text."""
        return ", ".join(f"{name} {size / 2**20:,.0f} MiB" for name, size in self.most.items())


def _measure_memory() -> dict[str, int]:
    totals = {"driver": 0, "JVM": 0, "workers": 0, "all": 0, "mapped": 0}
    for pid in list_family():
        name, own, mapped = _read_memory(pid)
        who = "driver" if pid == os.getpid() else "JVM" if name == "java" else "workers"
        totals[who] += own
        totals["all"] += own
        totals["mapped"] = max(totals["mapped"], mapped)
    return totals


def _read_memory(pid: int) -> tuple[str, int, int]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "", 0, 0
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    own, mapped = (int(fields.get(key, "0 kB").split()[0]) * 1024 for key in ("RssAnon", "RssFile"))
    return fields.get("Name", "").strip(), own, mapped
