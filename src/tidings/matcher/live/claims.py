"""Live claims: the version that a batch of a query uses, written down once and the same whenever the batch runs again.

`claims/QUERY/BATCH.json` is written by the first worker that begins the batch, through a link that cannot replace
another, so that of several workers that begin together all use the same version. A claimed version is not removed. The
newest claims of each query stay (`LiveTuning`).
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

from tidings.engine.persist.mapped_arrays import write_atomically
from tidings.errors import SnapshotError
from tidings.matcher.snapshot.snapshot_folder import sign

if TYPE_CHECKING:
    from pathlib import Path

CLAIMS = "claims"

_NAME = re.compile(r"(\d{10,})\.json")


@dataclass(frozen=True, slots=True)
class Claim:
    """The version that a batch uses, and further facts that were settled when it began."""

    version: int
    facts: Mapping[str, Any]


def read_claim(folder: Path, query: str, batch: int) -> Claim | None:
    """Return what was settled for a batch, or None."""
    path = _get_path(folder, query, batch)
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        claim = Claim(int(table["version"]), table["facts"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError) as problem:
        msg = f"the claim `{path}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    if "checksum" in table and sign(table) != table:  # older versions wrote none
        msg = f"the claim `{path}` is altered: its checksum is another; copy it back, or begin with a new checkpoint"
        raise SnapshotError(msg)
    return claim


def settle(folder: Path, query: str, batch: int, *, claim: Claim, keep: int) -> Claim:
    """Write a claim and return it, or return the one that was written first; the `keep` newest of the query stay."""
    path = _get_path(folder, query, batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    write_atomically(draft, iter([json.dumps(sign({"version": claim.version, "facts": dict(claim.facts)})).encode()]))
    try:
        os.link(draft, path)
    except FileExistsError:
        first = read_claim(folder, query, batch)
        assert first is not None
        return first
    finally:
        draft.unlink(missing_ok=True)
    claims = sorted((int(match[1]), path) for path in path.parent.iterdir() if (match := _NAME.fullmatch(path.name)))
    for _, old in claims[:-keep]:
        old.unlink(missing_ok=True)
    return claim


def find_claimed_versions(folder: Path, *, silent_seconds: float) -> set[int]:
    """Return the versions that some claim names; claims of queries that have been silent for so long are removed."""
    _remove_silent(folder, silent_seconds)
    versions = set()
    for path in (folder / CLAIMS).glob("*/*.json"):
        with suppress(FileNotFoundError):  # removed meanwhile
            versions.add(int(json.loads(path.read_text(encoding="utf-8"))["version"]))
    return versions


def _remove_silent(folder: Path, silent_seconds: float) -> None:
    for query in (folder / CLAIMS).glob("*"):
        with suppress(FileNotFoundError):  # removed meanwhile
            times = [path.stat().st_mtime for path in query.glob("*.json")]
            if times and time.time() - max(times) > silent_seconds:
                shutil.rmtree(query, ignore_errors=True)


def _get_path(folder: Path, query: str, batch: int) -> Path:
    return folder / CLAIMS / quote(query, safe="") / f"{batch:010}.json"
