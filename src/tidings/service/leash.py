"""The tie between a supervisor and its children: a child ends with its supervisor, and says when it is ready.

A supervisor holds the other end of each child's standard input and never writes to it. When it is gone, by whatever
death, the input ends: the child then gets the signal that asks it to stop, and somewhat later the one that it cannot
refuse. Being ready is one line on standard output.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LEASHED = "TIDINGS_LEASHED"
"""The variable that a supervisor sets for its children."""

READY = "ready: "
"""What the line begins with that says a child is ready."""

PATIENCE_S = 60.0
"""How long a child without a supervisor may take to finish what it does."""


def is_leashed(environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether a supervisor started this process."""
    return bool(environ.get(LEASHED))


def follow_supervisor(*, patience_s: float = PATIENCE_S) -> None:
    """From now on, end with the supervisor that started this process; without one, do nothing."""
    if is_leashed():
        os.environ.pop(LEASHED)  # what this process starts has other ties
        threading.Thread(target=_end_with_input, args=(patience_s,), name="tidings-leash", daemon=True).start()


def _end_with_input(patience_s: float) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(patience_s)
    os.killpg(os.getpgrp(), signal.SIGKILL)  # a child leads a group of its own


def follow_parent(*, patience_s: float = PATIENCE_S) -> None:
    """From now on, end with the process of Python that started this one: for workers, whose input is not a leash.

    Workers that outlive their server would go on answering at its port, and the next one could not listen there.
    """
    if (parent := multiprocessing.parent_process()) is not None:
        arguments = (parent, patience_s)
        threading.Thread(target=_end_with_parent, args=arguments, name="tidings-leash", daemon=True).start()


def _end_with_parent(parent: multiprocessing.process.BaseProcess, patience_s: float) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(patience_s)
    os.kill(os.getpid(), signal.SIGKILL)


def announce_ready(text: str) -> None:
    """Say on standard output that this process does its work now."""
    sys.stdout.write(f"{READY}{text}\n")
    sys.stdout.flush()
