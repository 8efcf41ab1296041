"""Bytes for each subscription, measured in a process of its own.

The child builds and drops a small matcher first, so that libraries and compiled code are there already; then it
reads its anonymous resident memory before and after building the real one and matching a batch, garbage collected
and freed pages given back both times. The text of the ids is taken off: it is the user's. Linux only.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.bench.workloads import Workload
    from tidings.matcher import Matcher

METHOD = "anonymous resident memory of a child process after building and one batch, ids' text taken off"
"""How it is measured, for reports."""

STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class Bytes:
    """What a matcher takes, in all and for the text of its ids."""

    whole: int
    ids: int

    def beside_ids(self, n: int) -> float:
        """Return the bytes of one subscription beside the text of its id."""
        return (self.whole - self.ids) / n


def measured(key: str, n: int, *, kind: str | None, seed: int) -> Bytes | None:
    """Return what a matcher of `n` subscriptions takes, or nothing where the system does not tell."""
    if not STATUS.exists():
        return None
    order = json.dumps({"key": key, "n": n, "kind": kind, "seed": seed})
    # Arrow's own allocator keeps what it freed; the system's gives it back.
    settings = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    command = [sys.executable, "-m", "tidings.bench.harness.process_memory", order]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=settings)  # noqa: S603
    if done.returncode:
        msg = f"measuring the memory of `{key}` failed: {done.stderr.strip()[-300:]}"
        raise TidingsError(msg)
    return Bytes(**json.loads(done.stdout.splitlines()[-1]))


def _child(key: str, n: int, kind: str | None, seed: int) -> dict[str, int]:
    from tidings.bench.workloads import workload

    chosen = workload(key)
    _built(chosen, min(n, 500), kind, seed)
    before = _resident()
    kept, ids = _built(chosen, n, kind, seed)
    after = _resident()
    del kept
    return {"whole": after - before, "ids": ids}


def _built(workload: Workload, n: int, kind: str | None, seed: int) -> tuple[Matcher, int]:
    """Return a matcher that has answered a batch, and the bytes of its ids' text."""
    from tidings.bench.harness.subscription_forms import loaded, subscriptions_for

    made = loaded(workload, subscriptions_for(workload, n, kind=kind, seed=seed).given, kind=kind)
    made.match_many(workload.events(16, seed))
    return made, sum(len(str(id).encode()) for id in made)


def _resident() -> int:
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library; what it keeps is counted
        ctypes.CDLL(None).malloc_trim(0)
    found: dict[str, Any] = dict(
        line.split(":", 1) for line in STATUS.read_text(encoding="utf-8").splitlines() if ":" in line
    )
    return int(found["RssAnon"].split()[0]) * 1024


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_child(**json.loads(sys.argv[1]))) + "\n")
