"""Memory of processes: what this one holds, and bytes per subscription of a matcher.

A matcher is measured in a process of its own. The child builds and drops a small matcher first, so that libraries and
compiled code are loaded; then it reads its anonymous resident memory before and after building the real one and
matching a batch, garbage collected and freed pages returned both times. The text of the ids is subtracted: it is the
user's. Linux only; elsewhere nothing is measured.
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
from typing import TYPE_CHECKING

from tidings.bench.harness.subscription_forms import load_matcher, make_subscriptions
from tidings.bench.workloads import workload as find_workload
from tidings.errors import TidingsError

if TYPE_CHECKING:
    from tidings.bench.workloads import Workload
    from tidings.matcher import Matcher

METHOD = "anonymous resident memory of a child process after building and one batch, ids' text taken off"
"""How memory is measured, for notes beside the figures."""

STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class MatcherMemory:
    """Bytes of a matcher: in all, and of the text of its ids."""

    whole: int
    ids: int


def measure_matcher_memory(key: str, n: int, *, kind: str | None, seed: int) -> MatcherMemory | None:
    """Return the memory of a matcher of `n` subscriptions; None where the system does not report it."""
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
    return MatcherMemory(**json.loads(done.stdout.splitlines()[-1]))


def _measure_in_child(key: str, n: int, kind: str | None, seed: int) -> dict[str, int]:
    workload = find_workload(key)
    _build_and_match(workload, min(n, 500), kind, seed)
    before = settle_resident_memory()
    matcher = _build_and_match(workload, n, kind, seed)
    ids = sum(len(str(id).encode()) for id in matcher)
    return {"whole": settle_resident_memory() - before, "ids": ids}


def _build_and_match(workload: Workload, n: int, kind: str | None, seed: int) -> Matcher:
    matcher = load_matcher(workload, make_subscriptions(workload, n, kind=kind, seed=seed).source, kind=kind)
    matcher.match_many(workload.events(16, seed))
    return matcher


# Reading ---------------------------------------------------------------------------------------


def settle_resident_memory() -> int:
    """Collect garbage, return freed pages, and return the anonymous resident memory; 0 where it is not reported."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library has no such call; what it caches is counted
        ctypes.CDLL(None).malloc_trim(0)
    return read_status("RssAnon")


def read_status(name: str, path: Path = STATUS) -> int:
    """Return a line of this process's status in bytes: `VmSize`, `RssAnon`, `VmHWM`; 0 where it is not reported.

    With `path=Path("/proc/meminfo")`, a line of the machine's: `MemAvailable`.
    """
    if not path.exists():
        return 0
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next((line for line in lines if line.startswith(f"{name}:")), f"{name}: 0 kB")
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure_in_child(**json.loads(sys.argv[1]))) + "\n")
