"""Work in a process of its own, forked from this one: it sees what lies in memory, and cannot harm it.

It is stopped when its time is over, and gets a `MemoryError` when it takes more memory than it may. What it sends
on the way is kept, however it ends. The clock starts anew when it sends `READY`, so loading compiled code is free.

Its time is processor time: on a busy machine the clock on the wall runs several times as fast, and would call work
too slow that only had to wait. A few times the budget on that clock is the end all the same.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import traceback
import warnings
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

READY = "ready"
"""Sent by the work once it has warmed up."""

GRACE_S = 300.0
"""So long may the warming up take; the first on a machine compiles kernels."""

PATIENCE = 5
"""So many times its budget may the work take on the wall's clock."""

LOOK_S = 0.2
"""How often the processor time is looked at."""

STATUS = Path("/proc/self/status")
MEMORY = Path("/proc/meminfo")

Send: TypeAlias = "Callable[[Any], None]"
"""How the work sends something home; what can be pickled."""


class Ended(StrEnum):
    """How the work came to its end."""

    DONE = "done"
    OVER = "over its time"
    MEMORY = "does not fit"
    CANNOT = "cannot"
    FAILED = "failed"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Apart:
    """What came of the work: how it ended, why, how long it took, and what it sent."""

    ended: Ended
    reason: str
    seconds: float
    sent: tuple[Any, ...]


def apart(work: Callable[[Send], None], *, budget_s: float, memory: int | None = None) -> Apart:
    """Run the work in a forked process, for so many seconds of a processor and so many more bytes at most."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    child = context.Process(target=_child, args=(work, here, there, memory), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Arrow's threads, which Arrow itself sets right
        child.start()
    there.close()
    try:
        return _listened(here, child, budget_s)
    finally:
        _stop(child)
        here.close()


def _listened(here: Connection, child: Any, budget_s: float) -> Apart:
    sent: list[Any] = []
    began, allowed, used = monotonic(), GRACE_S, 0.0
    while True:
        if not here.poll(min(LOOK_S, allowed / 2)):
            over = _processor_s(child.pid) - used > allowed or monotonic() - began > PATIENCE * allowed
            if over and not here.poll(0):
                return Apart(Ended.OVER, f"over {budget_s:g} s", monotonic() - began, tuple(sent))
            continue
        try:
            kind, said = here.recv()
        except (EOFError, OSError):
            child.join()
            ended, reason = _death(child.exitcode)
            return Apart(ended, reason, monotonic() - began, tuple(sent))
        if kind == "sent" and said == READY:
            began, allowed, used = monotonic(), budget_s, _processor_s(child.pid)
        elif kind == "sent":
            sent.append(said)
        else:
            return Apart(Ended(kind), said, monotonic() - began, tuple(sent))


def _child(work: Callable[[Send], None], here: Connection, there: Connection, memory: int | None) -> None:
    here.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then stops us
    if memory is not None:
        most = status("VmSize") + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
    end, reason = Ended.DONE, ""
    try:
        work(lambda said: there.send(("sent", said)))
    except Unsupported as problem:
        end, reason = Ended.CANNOT, str(problem)
    except MemoryError:
        end, reason = Ended.MEMORY, f"more than {(memory or 0) / 2**30:.1f} GiB"
    except BaseException:  # a mistake of the work's; it is told at home
        end, reason = Ended.FAILED, traceback.format_exc(limit=-6)
    if end is Ended.MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    there.send((str(end), reason))


def _death(code: int | None) -> tuple[Ended, str]:
    """Say how a process ended that said nothing; only SIGKILL is the system's own answer to too little memory.

    A SIGSEGV is a mistake in compiled code, such as an index out of bounds, and must not pass for a lack of memory.
    """
    if code is None or code >= 0:
        return Ended.DIED, f"ended with exit code {code} and said nothing"
    name = signal.Signals(-code).name
    if code == -signal.SIGKILL:
        return Ended.MEMORY, f"ended by {name}, as the system does when memory runs out"
    hint = "; NUMBA_BOUNDSCHECK=1 with a fresh NUMBA_CACHE_DIR finds an index out of bounds"
    return Ended.DIED, f"ended by {name}{hint if code == -signal.SIGSEGV else ''}"


def _processor_s(pid: int) -> float:
    """Return the processor time that a process has had, all threads; 0 where nothing tells."""
    try:
        # The name of the program, in parentheses, may hold spaces; user and system time follow at 12 and 13.
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _stop(child: Any) -> None:
    if child.is_alive():
        child.terminate()
        child.join(2)
    if child.is_alive():
        child.kill()
    child.join()
    child.close()


# Memory ----------------------------------------------------------------------------------------


def status(name: str) -> int:
    """Return a line of this process's status in bytes: `VmSize`, `RssAnon`, `VmHWM`; 0 where nothing tells."""
    return _kibibytes(STATUS, name)


def available() -> int:
    """Return how much memory the machine could still give; a terabyte where nothing tells."""
    return _kibibytes(MEMORY, "MemAvailable") or 2**40


def allowance(most: int | None = None) -> int:
    """Return what one forked process may take: most of what is free, less what it may copy of this process."""
    free = int(0.8 * (available() - status("RssAnon")))
    return max(2**30, free if most is None else min(free, most))


def _kibibytes(path: Path, name: str) -> int:
    if not path.exists():
        return 0
    lines = path.read_text(encoding="utf-8").splitlines()
    found = next((line for line in lines if line.startswith(f"{name}:")), f"{name}: 0 kB")
    return int(found.split()[1]) * 1024
