"""A folder of versions: subscriptions that change while others read them, in one or several shards.

The data files are those of a snapshot: named by their checksums, never changed, mapped by readers, and shared by all
versions. A version is one small JSON file that names them, `versions/00000012.json`, and is put in place by one rename.
So a reader opens a version by its number and finds the same subscriptions tomorrow; a writer adds a version and
disturbs no reader. A shard is a list of segments of its own. All shards of a version have the same demands on
attributes: whether an event can be read must not depend on the shard that reads it.

Old versions are removed, with the data files that no version names any more, except those that a batch has claimed
(`matcher.live.claims`). Everything here is a file operation: no clock, no thread.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.algebra.law.requirement_counts import DemandTable
from tidings.engine.persist.mapped_arrays import write_atomically
from tidings.errors import SnapshotError, TidingsError
from tidings.matcher.content import MatcherContent, build_content
from tidings.matcher.registry import ENGINE
from tidings.matcher.snapshot import snapshot
from tidings.matcher.snapshot.snapshot_folder import (
    OURS,
    Entry,
    Manifest,
    check_manifest,
    list_names,
    render_json,
    sign,
)
from tidings.matcher.snapshot.vocabulary_files import read_file, read_vocabulary, write_vocabulary
from tidings.version import __version__

if TYPE_CHECKING:
    from tidings.engine.engine import Engine
    from tidings.matcher.admission import Admission
    from tidings.matcher.matcher import Matcher

FORMAT = 5
"""The format of a version's file; a newer one is refused by its number."""

VERSIONS = "versions"

EMPTY: Manifest = {"count": 0, "segments": [], "dead": None}
"""The entry of a shard without subscriptions."""

_NAME = re.compile(r"(\d{8,})\.json")


@dataclass(frozen=True, slots=True)
class Version:
    """One state of the subscriptions: its number, the files of its shards, and the position of the feed."""

    number: int
    count: int
    shards: tuple[Manifest, ...] = field(repr=False)
    needs: DemandTable = field(repr=False)
    files: dict[str, Entry] = field(repr=False)
    checksum: str
    now: str | None = None
    position: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ids: str | None = None  # "text" or "integer", once there was one


def is_versioned(folder: str | Path) -> bool:
    """Tell whether a folder holds versions; a name that no file system takes does not."""
    return os.path.isdir(Path(folder) / VERSIONS)


def find_newest(folder: Path) -> int | None:
    """Return the number of the newest version, if there is one."""
    return max(_list_numbers(folder), default=None)


def _list_numbers(folder: Path) -> list[int]:
    try:
        names = [path.name for path in (folder / VERSIONS).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [int(match[1]) for name in names if (match := _NAME.fullmatch(name))]


def _get_path(folder: Path, number: int) -> Path:
    return folder / VERSIONS / f"{number:08}.json"


def read_version(folder: str | Path, number: int | None = None) -> Version:
    """Read version `number`, or the newest; `SnapshotError` if it is missing, altered or of a newer format."""
    folder = Path(folder)
    number = find_newest(folder) if number is None else number
    if number is None:
        msg = f"`{folder}` holds no version of subscriptions yet"
        raise SnapshotError(msg)
    path = _get_path(folder, number)
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        numbers = _list_numbers(folder)
        kept = f"{min(numbers)} to {max(numbers)}" if numbers else "none"
        msg = f"`{folder}` has no version {number} (any more): there are {kept}"
        raise SnapshotError(msg) from None
    except (OSError, ValueError) as problem:
        msg = f"the version `{path}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    return _parse_version(table, path)


def _parse_version(table: Any, path: Path) -> Version:
    check_manifest(table, newest=FORMAT, file=f"`{path}`", whole=f"`{path}`", noun="a version of subscriptions")
    try:
        names = ("number", "count", "needs", "files", "checksum", "now", "position", "ids")
        return Version(shards=tuple(table["shards"]), **{name: table[name] for name in names})
    except KeyError as problem:
        msg = f"`{path}` lacks {problem}"
        raise SnapshotError(msg) from problem


def load_folder(path: str | Path, *, verify: bool = True) -> MatcherContent:
    """Load a snapshot, or the newest version of a folder of versions; with `verify`, compare every checksum."""
    folder = Path(path)
    if is_versioned(folder):
        return load_version(folder, read_version(folder), verify=verify)
    return snapshot.load(folder, verify=verify)


def load_version(
    folder: str | Path, version: Version, shard: int | None = None, *, verify: bool = True
) -> MatcherContent:
    """Load one shard of a version, or all; files are mapped, and with `verify` compared with their checksums."""
    content = prepare_content(folder, version)
    entries = version.shards if shard is None else version.shards[shard : shard + 1]
    return content._replace(backend=load_engine(folder, entries, content.admission, verify=verify))


def prepare_content(folder: str | Path, version: Version) -> MatcherContent:
    """Return content without subscriptions that has the vocabulary, the time and the demands of a version."""
    files = {name: read_file(Path(folder), entry) for name, entry in version.files.items()}
    content = build_content(ENGINE, read_vocabulary(files), snapshot.parse_time(version.now))
    content.admission.needs.restore(version.needs)
    return content


def load_engine(folder: str | Path, shards: Sequence[Manifest], admission: Admission, *, verify: bool = True) -> Engine:
    """Return one engine of all segments of these shards; a file that cannot be read raises `SnapshotError`."""
    try:
        return snapshot.open_engine(Path(folder), shards, admission, verify=verify)
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        if isinstance(problem, TidingsError):
            raise
        msg = f"a version in `{folder}` cannot be read: {problem!r:.300}"
        raise SnapshotError(msg) from problem


def write_shard(folder: Path, matcher: Matcher) -> Manifest:
    """Write the segments of a matcher that have no file yet, and return the entry of a shard that consists of them."""
    parts = matcher.capture().parts
    assert parts is not None
    return snapshot.write_parts(folder, parts)


def merge_shard(folder: Path, shards: Sequence[Manifest], matcher: Matcher) -> Manifest:
    """Merge the segments of several shards into one, with the vocabulary of an empty matcher; return its entry."""
    engine = load_engine(folder, shards, matcher.admission)
    engine.compact()
    return snapshot.write_parts(folder, engine.seal().parts)


def write_version(
    folder: Path,
    number: int,
    shards: Sequence[Manifest],
    *,
    matcher: Matcher,
    position: Mapping[str, Any],
    ids: str | None,
) -> Version:
    """Put a version in place; `matcher` has the vocabulary, the time and the demands of all shards."""
    unsigned = {
        "format": FORMAT,
        "tidings": __version__,
        "number": number,
        "count": sum(shard["count"] for shard in shards),
        "now": matcher.now.isoformat() if matcher.now else None,
        "ids": ids,
        "position": dict(position),
        "needs": matcher.admission.needs.to_dict(),
        "files": write_vocabulary(folder, matcher.admission.vocabulary),
        "shards": list(shards),
    }
    table, path = sign(unsigned), _get_path(folder, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, iter([render_json(table).encode()]))
    return _parse_version(table, path)


def remove_old(folder: Path, claimed: Collection[int], *, keep: int) -> None:
    """Remove versions that are neither among the `keep` newest nor claimed, and the data that none names any more.

    Only under the lock of the folder (`snapshot_folder.lock_folder`): no version names a file that is being written.
    """
    removed = [number for number in sorted(_list_numbers(folder))[:-keep] if number not in claimed]
    for number in removed:
        _get_path(folder, number).unlink(missing_ok=True)
    if removed:
        remove_unnamed(folder)


def remove_unnamed(folder: Path) -> None:
    """Remove data that no version names, and what broken writers left; only under the folder's lock."""
    try:
        kept = [read_version(folder, number) for number in _list_numbers(folder)]
        named = {name for version in kept for name in list_names(version.files, version.shards)}
    except SnapshotError:  # a version that cannot be read may name any of them
        return
    for path in (folder / VERSIONS).glob("*.tmp"):
        path.unlink(missing_ok=True)
    for path in folder.iterdir():
        if OURS.fullmatch(path.name) and path.name not in named:
            path.unlink(missing_ok=True)
