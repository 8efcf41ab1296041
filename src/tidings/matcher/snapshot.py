"""Snapshots: a directory with `manifest.json` and the files it names.

Data files carry their checksum in their name and never change; a save writes new ones, then puts the
manifest in place with one rename, then removes what the old manifest named. So a reader, or a crash at
any moment, sees the old snapshot or the new one. A file that is missing, cut short or altered is
refused by name, and so is a format newer than this version reads.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tidings as td
from tidings.concepts import Ontology, Regions
from tidings.errors import SnapshotError, TidingsError
from tidings.lang import parse, render
from tidings.model import Schema

if TYPE_CHECKING:
    from tidings.matcher.matcher import Matcher

FORMAT = 1
"""The format this version writes; older ones are read, newer ones refused."""


def save(matcher: Matcher, path: str | Path) -> None:
    """Write the matcher as a snapshot directory, replacing the one that is there."""
    folder = Path(path)
    _check_target(folder)
    old = _named_files(folder)
    parts = {name: data for name, data in _parts(matcher).items() if data is not None}
    files = {name: _written(folder, name, data) for name, data in parts.items()}
    manifest = {"format": FORMAT, "tidings": td.__version__, "kind": matcher.kind, "count": len(matcher)}
    manifest["now"] = matcher.now.isoformat() if matcher.now else None
    _put(folder / "manifest.json", json.dumps({**manifest, "files": files}, indent=1).encode())
    for name in old - {entry["name"] for entry in files.values()}:
        (folder / name).unlink(missing_ok=True)


def load(path: str | Path) -> Matcher:
    """Open a snapshot directory."""
    from tidings.matcher.matcher import Matcher

    folder = Path(path)
    manifest = _manifest(folder)
    try:
        parts = {name: _read(folder, entry) for name, entry in manifest["files"].items()}
        made = Matcher(manifest["kind"], **_surroundings(parts), now=_moment(manifest.get("now")))
        made.add_many(_subscription(line) for line in parts["subscriptions"].splitlines())
    except SnapshotError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, TidingsError) as problem:
        msg = f"the snapshot `{folder}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    if len(made) != manifest.get("count"):
        msg = f"the snapshot `{folder}` should hold {manifest.get('count')} subscriptions and holds {len(made)}"
        raise SnapshotError(msg)
    return made


def _parts(matcher: Matcher) -> dict[str, bytes | None]:
    lines = [json.dumps([id, json.loads(render(matcher[id], notation="json"))]) for id in matcher]
    schema = matcher.schema and {"closed": matcher.schema.closed, "attributes": matcher.schema.to_dict()}
    return {
        "subscriptions": "\n".join(lines).encode(),
        "schema": json.dumps(schema).encode() if schema else None,
        "ontology": json.dumps(matcher.ontology.to_dict()).encode() if matcher.ontology is not None else None,
        "regions": json.dumps(matcher.regions.to_dict()).encode() if matcher.regions is not None else None,
    }


def _surroundings(parts: dict[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "schema" in parts:
        table = json.loads(parts["schema"])
        found["schema"] = Schema(table["attributes"], closed=table["closed"])
    if "ontology" in parts:
        found["ontology"] = Ontology.from_dict(json.loads(parts["ontology"]))
    if "regions" in parts:
        found["regions"] = Regions.from_dict(json.loads(parts["regions"]))
    return found


def _subscription(line: bytes) -> tuple[Any, Any]:
    id, tree = json.loads(line)
    return id, parse(tree, notation="json")


def _moment(text: str | None) -> Any:
    from datetime import datetime

    return None if text is None else datetime.fromisoformat(text)


def _check_target(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        msg = f"`{folder}` is a file; a snapshot is a directory"
        raise SnapshotError(msg)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "manifest.json").exists():
        msg = f"`{folder}` holds other files and no snapshot; give a new or empty directory"
        raise SnapshotError(msg)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        msg = f"cannot write the snapshot `{folder}`: {problem}"
        raise SnapshotError(msg) from problem


def _named_files(folder: Path) -> set[str]:
    try:
        return {entry["name"] for entry in _manifest(folder)["files"].values()}
    except (SnapshotError, KeyError, TypeError):
        return set()


def _written(folder: Path, name: str, data: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    file = f"{name}-{digest[:16]}.json"
    _put(folder / file, data)
    return {"name": file, "bytes": len(data), "sha256": digest}


def _put(path: Path, data: bytes) -> None:
    """Write beside, flush to disk, rename into place."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with beside.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(path)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        msg = f"`{folder}` is not a snapshot: it has no manifest.json"
        raise SnapshotError(msg) from None
    except (OSError, ValueError) as problem:
        msg = f"the manifest of `{folder}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        msg = f"the manifest of `{folder}` is not a snapshot's"
        raise SnapshotError(msg)
    if manifest["format"] > FORMAT:
        written = manifest.get("tidings", "a newer version")
        newer = f"format {manifest['format']} (by tidings {written})"
        msg = f"the snapshot `{folder}` has {newer}; this version reads up to {FORMAT}"
        raise SnapshotError(msg)
    return manifest


def _read(folder: Path, entry: dict[str, Any]) -> bytes:
    path = folder / str(entry["name"])
    try:
        data = path.read_bytes()
    except OSError as problem:
        msg = f"the snapshot's file `{path}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    if len(data) != entry["bytes"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
        msg = f"the snapshot's file `{path}` is cut short or altered"
        raise SnapshotError(msg)
    return data
