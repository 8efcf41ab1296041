"""Which version a batch of a query uses: settled once, written down, and the same whenever the batch is run again.

`claims/QUERY/BATCH.json` is made by whoever asks first, by a link that cannot replace another, so that of several
workers that begin a batch together all use the same version. A claimed version is not removed. The newest claims of
each query stay; a stream never goes back further than its last batch.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tidings.engine.persist.mapped_arrays import put
from tidings.errors import SnapshotError
from tidings.matcher.snapshot.directory import signed

if TYPE_CHECKING:
    from pathlib import Path

CLAIMS = "claims"

KEPT = 64
"""So many claims of a query stay."""

SILENT = 30 * 86_400
"""Seconds after its last claim that a query is taken to be gone; it would find other versions if it came back."""

_NAME = re.compile(r"(\d{10,})\.json")


@dataclass(frozen=True, slots=True)
class Claim:
    """The version that a batch uses, and whatever else was settled when it began."""

    version: int
    facts: Mapping[str, Any]


def claimed(folder: Path, query: str, batch: int) -> Claim | None:
    """Return what was settled for a batch, if it was."""
    path = _path(folder, query, batch)
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        claim = Claim(int(told["version"]), told["facts"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError) as problem:
        msg = f"the claim `{path}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    if "checksum" in told and signed(told) != told:  # older versions wrote none
        msg = f"the claim `{path}` is altered: its checksum is another; copy it back, or begin with a new checkpoint"
        raise SnapshotError(msg)
    return claim


def settle(folder: Path, query: str, batch: int, *, claim: Claim) -> Claim:
    """Write a claim, and return it, or the one that was there first."""
    path = _path(folder, query, batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    put(beside, iter([json.dumps(signed({"version": claim.version, "facts": dict(claim.facts)})).encode()]))
    try:
        os.link(beside, path)
    except FileExistsError:
        first = claimed(folder, query, batch)
        assert first is not None
        return first
    finally:
        beside.unlink(missing_ok=True)
    _forget(path.parent)
    return claim


def versions_claimed(folder: Path) -> set[int]:
    """Return the versions that some claim names; of queries that have been silent for long, claims are removed."""
    _forget_silent(folder)
    found = set()
    for path in (folder / CLAIMS).glob("*/*.json"):
        try:
            found.add(int(json.loads(path.read_text(encoding="utf-8"))["version"]))
        except FileNotFoundError:  # forgotten meanwhile
            continue
    return found


def _forget_silent(folder: Path) -> None:
    for query in (folder / CLAIMS).glob("*"):
        with suppress(FileNotFoundError):  # forgotten meanwhile
            times = [path.stat().st_mtime for path in query.glob("*.json")]
            if times and time.time() - max(times) > SILENT:
                shutil.rmtree(query, ignore_errors=True)


def _forget(folder: Path) -> None:
    numbered = sorted((int(found[1]), path) for path in folder.iterdir() if (found := _NAME.fullmatch(path.name)))
    for _, path in numbered[:-KEPT]:
        path.unlink(missing_ok=True)


def _path(folder: Path, query: str, batch: int) -> Path:
    return folder / CLAIMS / quote(query, safe="") / f"{batch:010}.json"
