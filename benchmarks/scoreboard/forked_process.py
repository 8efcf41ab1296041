"""Work in a forked process: it sees the memory of this one and cannot harm it.

The child is stopped when its time is over, and gets a `MemoryError` when it takes more memory than it may. What it
sends on the way is kept, however it ends. The clock restarts when it sends `READY`, so loading compiled code is free.

Its time is processor time: on a busy machine the wall clock runs several times as fast, and would call work too slow
that only had to wait. A few times the budget on the wall clock ends it all the same.
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

from tidings.bench.harness.process_memory import read_status
from tidings.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

READY = "ready"
"""Sent by the work once it has warmed up."""

GRACE_S = 300.0
"""Most time for warming up; the first run on a machine compiles kernels."""

PATIENCE = 5
"""The work may take so many times its budget on the wall clock."""

POLL_S = 0.2
"""How often the child's processor time is read."""

MACHINE_MEMORY = Path("/proc/meminfo")

Send: TypeAlias = "Callable[[Any], None]"
"""Sends anything that can be pickled to the parent."""


class Ending(StrEnum):
    """How the work ended."""

    DONE = "done"
    OVER = "over its time"
    MEMORY = "does not fit"
    CANNOT = "cannot"
    FAILED = "failed"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class ForkedRun:
    """How the work of a forked process ended and why, how long it took, and the messages it sent."""

    ended: Ending
    reason: str
    seconds: float
    messages: tuple[Any, ...]


def run_forked(work: Callable[[Send], None], *, budget_s: float, memory: int | None = None) -> ForkedRun:
    """Run the work in a forked process, with so much processor time and so many more bytes at most."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    child = context.Process(target=_run_child, args=(work, receiver, sender, memory), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Arrow's threads, which Arrow restarts by itself
        child.start()
    sender.close()
    try:
        return _receive(receiver, child, budget_s)
    finally:
        child.kill()  # it has nothing to clean up, and may have ended already
        child.join()
        child.close()
        receiver.close()


def _receive(receiver: Connection, child: ForkProcess, budget_s: float) -> ForkedRun:
    """Collect messages until the child ends or its time is over."""
    messages: list[Any] = []
    ended: Ending | None = None
    began, allowed, used = monotonic(), GRACE_S, 0.0
    while ended is None:
        if not receiver.poll(min(POLL_S, allowed / 2)):
            over = _read_processor_s(child.pid) - used > allowed or monotonic() - began > PATIENCE * allowed
            if over and not receiver.poll(0):
                ended, reason = Ending.OVER, f"over {budget_s:g} s"
            continue
        try:
            kind, message = receiver.recv()
        except (EOFError, OSError):
            child.join()
            ended, reason = _explain_exit(child.exitcode)
            continue
        if kind != "sent":
            ended, reason = Ending(kind), message
        elif message == READY:
            began, allowed, used = monotonic(), budget_s, _read_processor_s(child.pid)
        else:
            messages.append(message)
    return ForkedRun(ended, reason, monotonic() - began, tuple(messages))


def _run_child(work: Callable[[Send], None], receiver: Connection, sender: Connection, memory: int | None) -> None:
    receiver.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then stops us
    if memory is not None:
        most = read_status("VmSize") + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
    ended, reason = Ending.DONE, ""
    try:
        work(lambda message: sender.send(("sent", message)))
    except Unsupported as problem:
        ended, reason = Ending.CANNOT, str(problem)
    except MemoryError:
        ended, reason = Ending.MEMORY, f"more than {(memory or 0) / 2**30:.1f} GiB"
    except BaseException:  # noqa: BLE001 - the process boundary: the parent reports the traceback
        ended, reason = Ending.FAILED, traceback.format_exc(limit=-6)
    if ended is Ending.MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    sender.send((str(ended), reason))


def _explain_exit(code: int | None) -> tuple[Ending, str]:
    """Say how a process ended that sent no ending; only SIGKILL is the system's own answer to too little memory.

    A SIGSEGV is a mistake in compiled code, such as an index out of bounds, and must not pass for a lack of memory.
    """
    if code is None or code >= 0:
        return Ending.DIED, f"ended with exit code {code} and said nothing"
    name = signal.Signals(-code).name
    if code == -signal.SIGKILL:
        return Ending.MEMORY, f"ended by {name}, as the system does when memory runs out"
    hint = "; NUMBA_BOUNDSCHECK=1 with a fresh NUMBA_CACHE_DIR finds an index out of bounds"
    return Ending.DIED, f"ended by {name}{hint if code == -signal.SIGSEGV else ''}"


def _read_processor_s(pid: int | None) -> float:
    """Return the processor time of a process, all threads; 0 where the system does not report it."""
    try:
        # The name of the program, in parentheses, may hold spaces; user and system time follow at 12 and 13.
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def read_available_memory() -> int:
    """Return how much memory the machine can still give; a terabyte where it is not reported."""
    return read_status("MemAvailable", MACHINE_MEMORY) or 2**40


def compute_allowance(most: int | None = None) -> int:
    """Return how much one forked process may take: most of what is free, less what it may copy of this process."""
    free = int(0.8 * (read_available_memory() - read_status("RssAnon")))
    return max(2**30, free if most is None else min(free, most))
