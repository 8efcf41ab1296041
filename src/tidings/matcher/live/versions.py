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
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tidings.engine.persist.mapped_arrays import map_arrays, write_arrays, write_atomically
from tidings.engine.persist.segment_arrays import build_parts, collect_deleted, open_segment
from tidings.errors import SnapshotError, TidingsError
from tidings.matcher.live.sharded_store import ShardedStore
from tidings.matcher.registry import ENGINE, build_engine
from tidings.matcher.snapshot import snapshot
from tidings.matcher.snapshot.directory import OURS, render_json, sign
from tidings.matcher.snapshot.vocabulary_files import read_file, read_vocabulary, write_vocabulary
from tidings.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.engine.engine import Engine
    from tidings.engine.segment import Segment
    from tidings.engine.state import LiveSegment
    from tidings.matcher.admission import Admission
    from tidings.matcher.matcher import Matcher

FORMAT = 5
"""The format of a version's file; a newer one is refused by its number."""

VERSIONS = "versions"

EMPTY: Mapping[str, Any] = {"count": 0, "segments": [], "dead": None}
"""The entry of a shard without subscriptions."""

_NAME = re.compile(r"(\d{8,})\.json")


@dataclass(frozen=True, slots=True)
class Version:
    """One state of the subscriptions: its number, the files of its shards, and the position of the feed."""

    number: int
    count: int
    shards: tuple[dict[str, Any], ...] = field(repr=False)
    needs: dict[str, Any] = field(repr=False)
    files: dict[str, Any] = field(repr=False)
    checksum: str
    now: str | None = None
    position: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ids: str | None = None  # "text" or "integer", once there was one


def is_versioned(folder: str | Path) -> bool:
    """Tell whether a folder holds versions."""
    try:
        return (Path(folder) / VERSIONS).is_dir()
    except OSError:  # a name that no file system takes
        return False


def newest(folder: Path) -> int | None:
    """Return the number of the newest version, if there is one."""
    return max(_numbers(folder), default=None)


def _numbers(folder: Path) -> list[int]:
    try:
        names = [path.name for path in (folder / VERSIONS).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [int(match[1]) for name in names if (match := _NAME.fullmatch(name))]


def _path(folder: Path, number: int) -> Path:
    return folder / VERSIONS / f"{number:08}.json"


def read_version(folder: str | Path, number: int | None = None) -> Version:
    """Read a version by its number, or the newest; refuse what is none, is altered, or has a newer format."""
    folder = Path(folder)
    number = newest(folder) if number is None else number
    if number is None:
        msg = f"`{folder}` holds no version of subscriptions yet"
        raise SnapshotError(msg)
    path = _path(folder, number)
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        msg = f"`{folder}` has no version {number} (any more): there are {_describe(_numbers(folder))}"
        raise SnapshotError(msg) from None
    except (OSError, ValueError) as problem:
        msg = f"the version `{path}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    return _parse_version(table, path)


def _describe(numbers: list[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}" if numbers else "none"


def _parse_version(table: Any, path: Path) -> Version:
    if not isinstance(table, dict) or type(table.get("format")) is not int:
        msg = f"`{path}` is not a version of subscriptions"
        raise SnapshotError(msg)
    if table["format"] > FORMAT:
        written = table.get("tidings", "a newer version")
        msg = f"`{path}` has format {table['format']} (by tidings {written}); this version reads up to {FORMAT}"
        raise SnapshotError(msg)
    if sign(table) != table:
        msg = f"`{path}` is altered: its checksum is another"
        raise SnapshotError(msg)
    try:
        names = ("number", "count", "needs", "files", "checksum", "now", "position", "ids")
        return Version(shards=tuple(table["shards"]), **{name: table[name] for name in names})
    except KeyError as problem:
        msg = f"`{path}` lacks {problem}"
        raise SnapshotError(msg) from problem


# Opening -------------------------------------------------------------------------------------------


def open_version(folder: str | Path, version: Version, shard: int | None = None, *, verify: bool = True) -> Matcher:
    """Return a matcher of one shard, or of all; files are mapped, and with `verify` compared with their checksums."""
    matcher = _build_matcher(Path(folder), version)
    entries = version.shards if shard is None else version.shards[shard : shard + 1]
    matcher.adopt(_open_engine(folder, entries, matcher.admission, verify=verify))
    return matcher


class WritableShards(NamedTuple):
    """A version open to be changed: a matcher of all its subscriptions, and the engine of each shard behind it."""

    matcher: Matcher
    engines: list[Engine]


def open_shards(folder: str | Path, version: Version, *, verify: bool = True) -> WritableShards:
    """Open a version for a writer: every shard keeps an engine of its own, and the demands are those of all."""
    matcher = _build_matcher(Path(folder), version)
    engines = [_open_engine(folder, [entry], matcher.admission, verify=verify) for entry in version.shards]
    matcher.adopt(ShardedStore(engines))
    return WritableShards(matcher, engines)


def _build_matcher(folder: Path, version: Version) -> Matcher:
    """Return an empty matcher with the vocabulary, the time and the demands of a version."""
    from tidings.matcher.matcher import Matcher

    files = {name: read_file(folder, entry) for name, entry in version.files.items()}
    matcher = Matcher(ENGINE, **read_vocabulary(files), now=snapshot.parse_time(version.now))
    matcher.admission.needs.restore(version.needs)
    return matcher


def _open_engine(
    folder: str | Path, shards: Sequence[Mapping[str, Any]], admission: Admission, *, verify: bool = True
) -> Engine:
    engine = build_engine(admission)
    engine.restore([part for shard in shards for part in _open_parts(Path(folder), shard, admission, verify=verify)])
    return engine


def _open_parts(folder: Path, shard: Mapping[str, Any], admission: Admission, *, verify: bool) -> list[LiveSegment]:
    try:
        segments = [_open_segment(folder, entry, admission, verify=verify) for entry in shard["segments"]]
        dead = {} if shard["dead"] is None else map_arrays(folder, shard["dead"], verify=verify)
        return build_parts(segments, dead)
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        if isinstance(problem, TidingsError):
            raise
        msg = f"a version in `{folder}` cannot be read: {problem!r:.300}"
        raise SnapshotError(msg) from problem


def _open_segment(folder: Path, entry: dict[str, Any], admission: Admission, *, verify: bool) -> Segment:
    arrays, units = map_arrays(folder, entry, verify=verify), admission.needs.find_units()
    segment = open_segment(entry, arrays, admission.bind_filter, units)
    snapshot.remember(segment, entry)
    return segment


# Writing -------------------------------------------------------------------------------------------


def write_shard(folder: Path, matcher: Matcher) -> dict[str, Any]:
    """Write the segments of a matcher that have no file yet, and return the entry of a shard that consists of them."""
    parts = matcher.capture().parts
    assert parts is not None
    return write_parts(folder, parts)


def write_parts(folder: Path, parts: Sequence[LiveSegment]) -> dict[str, Any]:
    """Write the segments that have no file yet, and return the entry of a shard that consists of them."""
    dead = collect_deleted(parts)
    return {
        "count": sum(map(len, parts)),
        "segments": [snapshot.write_segment(folder, part.segment) for part in parts],
        "dead": write_arrays(folder, "dead", dead) if dead else None,
    }


def merge_shard(folder: Path, shards: Sequence[Mapping[str, Any]], matcher: Matcher) -> dict[str, Any]:
    """Merge the segments of several shards into one, with the vocabulary of an empty matcher; return its entry."""
    engine = _open_engine(folder, shards, matcher.admission)
    engine.compact()
    return write_parts(folder, engine.seal().parts)


def write_version(
    folder: Path,
    number: int,
    shards: Sequence[dict[str, Any]],
    *,
    matcher: Matcher,
    position: Mapping[str, Any],
    ids: str | None,
) -> Version:
    """Put a version in place; `matcher` has the vocabulary, the time and the demands of all shards."""
    table = {
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
    path = _path(folder, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, iter([render_json(sign(table)).encode()]))
    return _parse_version(sign(table), path)


# Removing ------------------------------------------------------------------------------------------


def remove_old(folder: Path, claimed: Iterable[int], *, keep: int) -> list[int]:
    """Remove versions that are neither among the `keep` newest nor claimed, and the data that none names any more.

    Only for a caller that holds the folder's lock (`directory.alone`): no version names a file that is being written.
    """
    numbers = sorted(_numbers(folder))
    removed = [number for number in numbers[:-keep] if number not in set(claimed)]
    if not removed:
        return []
    for number in removed:
        _path(folder, number).unlink(missing_ok=True)
    remove_unnamed(folder)
    return removed


def remove_unnamed(folder: Path) -> None:
    """Remove data that no version names, and what broken writers left; only under the folder's lock."""
    try:
        named = {name for number in _numbers(folder) for name in list_files(read_version(folder, number))}
    except SnapshotError:  # a version that cannot be read may name any of them
        return
    for path in (folder / VERSIONS).glob("*.tmp"):
        path.unlink(missing_ok=True)
    for path in folder.iterdir():
        if OURS.fullmatch(path.name) and path.name not in named:
            path.unlink(missing_ok=True)


def list_files(version: Version) -> set[str]:
    """Return the names of the data files that a version consists of."""
    entries = [*version.files.values()]
    for shard in version.shards:
        entries += [*shard["segments"], shard["dead"]]
    return {str(entry["name"]) for entry in entries if entry}
