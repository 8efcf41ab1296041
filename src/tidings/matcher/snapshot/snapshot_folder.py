"""The folder of a snapshot: its manifest, the lock that savers take, and the files that no manifest names any more."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

MANIFEST = "manifest.json"

FILTERS, ARRAYS = 1, 4
"""The formats: a matcher as its filters, and the engine as its arrays.

Format 2, which is read too, has no units of columns: there every filter on an attribute asked for the same one.
"""

Entry: TypeAlias = "dict[str, Any]"
"""What a manifest says of one file: its name, size and checksum, and of a segment the description of its columns."""

Manifest: TypeAlias = "dict[str, Any]"
"""Decoded JSON of a manifest, or of the part of one that describes a shard; entries are checked as they are read."""

OURS = re.compile(r"(?:(?:[a-z]+-[0-9a-f]{16}\.(?:bin|json)|manifest\.json)(?:\.[0-9]+\.tmp)?)")
"""What files of snapshots are called, and what they are called while they are written."""


def check_target(folder: Path) -> None:
    """Make the directory, or refuse one that holds anything but a snapshot or what a broken save left."""
    if folder.exists() and not folder.is_dir():
        msg = f"`{folder}` is a file; a snapshot is a directory"
        raise SnapshotError(msg)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = not (folder / MANIFEST).exists() and any(not OURS.fullmatch(path.name) for path in folder.iterdir())
    except OSError as problem:
        msg = f"cannot write the snapshot `{folder}`: {problem}"
        raise SnapshotError(msg) from problem
    if (folder / "versions").is_dir():
        msg = f"`{folder}` holds versions of subscriptions; open it with td.Live to change them, or save elsewhere"
        raise SnapshotError(msg)
    if others:
        msg = f"`{folder}` holds other files and no snapshot; give a new or empty directory"
        raise SnapshotError(msg)


@contextmanager
def lock_folder(folder: Path) -> Iterator[bool]:
    """Keep other savers out where the system can; tell whether it does.

    Two saves at once could each remove what the other's manifest names. Readers are never kept waiting.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield False
        return
    descriptor, undisturbed = os.open(folder, os.O_RDONLY), True
    _locked_folders[descriptor] = threading.get_ident()
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            undisturbed = False
        yield undisturbed
        os.fsync(descriptor)  # the renames, too, are on disk
    finally:
        if _locked_folders.pop(descriptor, None) is not None:
            with suppress(OSError):  # closing alone would leave the lock with a child that was forked meanwhile
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


_locked_folders: dict[int, int] = {}
"""The folders that are locked, by file descriptor, and the threads that do it."""


def _close_foreign_locks() -> None:
    """In a child: close what other threads of the parent have locked; the lock stays theirs."""
    for descriptor in [descriptor for descriptor, thread in _locked_folders.items() if thread != threading.get_ident()]:
        del _locked_folders[descriptor]
        os.close(descriptor)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_foreign_locks)


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a snapshot; `SnapshotError` if it is missing, altered or of a newer format."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        msg = f"`{folder}` is not a snapshot: it has no {MANIFEST}"
        raise SnapshotError(msg) from None
    except (OSError, ValueError) as problem:
        msg = f"the manifest of `{folder}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    file, whole = f"the manifest of `{folder}`", f"the snapshot `{folder}`"
    check_manifest(manifest, newest=ARRAYS, file=file, whole=whole, noun="a snapshot's")
    return dict(manifest)


def check_manifest(manifest: object, *, newest: int, file: str, whole: str, noun: str) -> None:
    """Refuse anything but an unaltered manifest of a format up to `newest`; the texts name it in messages."""
    if not isinstance(manifest, dict) or type(manifest.get("format")) is not int:
        msg = f"{file} is not {noun}"
        raise SnapshotError(msg)
    if manifest["format"] > newest:
        newer = f"format {manifest['format']} (by tidings {manifest.get('tidings', 'a newer version')})"
        msg = f"{whole} has {newer}; this version reads up to {newest}"
        raise SnapshotError(msg)
    if ("checksum" in manifest or manifest["format"] > 1) and sign(manifest) != manifest:
        msg = f"{file} is altered: its checksum is another"
        raise SnapshotError(msg)


def sign(manifest: Manifest) -> Manifest:
    """Return a manifest with the checksum of all its other entries."""
    rest = {name: value for name, value in manifest.items() if name != "checksum"}
    plain = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return {**rest, "checksum": hashlib.sha256(plain.encode()).hexdigest()}


def render_json(value: object, indent: str = "\n") -> str:
    """Return JSON that a person can read: an entry on each line, small lists on one."""
    inner = indent + " "
    if isinstance(value, dict) and value:
        entries = (f"{json.dumps(name)}: {render_json(item, inner)}" for name, item in value.items())
        return "{" + inner + f",{inner}".join(entries) + indent + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        return "[" + inner + f",{inner}".join(render_json(item, inner) for item in value) + indent + "]"
    return json.dumps(value)


def list_named_files(folder: Path) -> set[str]:
    """Return the names of the data files of the snapshot that is there, if one is."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return list_names(manifest["files"], [manifest])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return set()


def list_names(files: Mapping[str, Entry], shards: Iterable[Manifest]) -> set[str]:
    """Return the names of data files: of a vocabulary, and of shards with their segments and deleted slots."""
    entries = [entry for shard in shards for entry in (*shard.get("segments", ()), shard.get("dead"))]
    return {str(entry["name"]) for entry in (*files.values(), *entries) if entry}


def remove_unnamed(folder: Path, old: set[str], *, undisturbed: bool) -> None:
    """Remove what the old manifest named and the new one does not; where nobody else saves, what broken saves left."""
    names = {name for name in old if OURS.fullmatch(name)}
    if undisturbed:
        names |= {path.name for path in folder.iterdir() if OURS.fullmatch(path.name)}
    for name in names - list_named_files(folder) - {MANIFEST}:
        (folder / name).unlink(missing_ok=True)
