"""A folder of versions: subscriptions that change while others read them, in one or several shards.

The data files are those of a snapshot: named by their checksums, never changed, mapped by whoever opens them, and
shared by all versions. A version is one small JSON file that names them, `versions/00000012.json`, and is put in place
by one rename. So a reader opens a version by its number and finds the same subscriptions tomorrow; a writer adds a
version and disturbs nobody. A shard is a list of segments of its own. All shards of a version have the same needs:
whether an event can be read must not depend on who asks.

Old versions are removed, with the data files that nobody names any more, but for those that are claimed
(`matcher.claims`). Everything here is a file operation: no clock, no thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.engine.engine import Engine
from tidings.engine.persist.mapped_arrays import map_arrays, put, write_arrays
from tidings.engine.persist.segment_arrays import dead_of, parts_of, segment_of
from tidings.errors import SnapshotError, TidingsError
from tidings.matcher.registry import ENGINE
from tidings.matcher.snapshot import snapshot
from tidings.matcher.snapshot.directory import OURS, readable, signed
from tidings.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.engine.segment import Segment
    from tidings.engine.state import Part
    from tidings.matcher.matcher import Matcher

FORMAT = 5
"""The format of a version's file; a newer one is refused by its number."""

VERSIONS = "versions"

KEPT = 16
"""So many of the newest versions stay, claimed or not: somebody may have read a number and not opened it yet."""

EMPTY: Mapping[str, Any] = {"count": 0, "segments": [], "dead": None}
"""What a version says of a shard without subscriptions."""

_NAME = re.compile(r"(\d{8,})\.json")


@dataclass(frozen=True, slots=True)
class Version:
    """One state of the subscriptions: its number, what it was made from, and where its shards are."""

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
    return [int(found[1]) for name in names if (found := _NAME.fullmatch(name))]


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
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        msg = f"`{folder}` has no version {number} (any more): there are {_said(_numbers(folder))}"
        raise SnapshotError(msg) from None
    except (OSError, ValueError) as problem:
        msg = f"the version `{path}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    return _checked(told, path)


def _said(numbers: list[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}" if numbers else "none"


def _checked(told: Any, path: Path) -> Version:
    if not isinstance(told, dict) or type(told.get("format")) is not int:
        msg = f"`{path}` is not a version of subscriptions"
        raise SnapshotError(msg)
    if told["format"] > FORMAT:
        written = told.get("tidings", "a newer version")
        msg = f"`{path}` has format {told['format']} (by tidings {written}); this version reads up to {FORMAT}"
        raise SnapshotError(msg)
    if signed(told) != told:
        msg = f"`{path}` is altered: its checksum is another"
        raise SnapshotError(msg)
    try:
        names = ("number", "count", "needs", "files", "checksum", "now", "position", "ids")
        return Version(shards=tuple(told["shards"]), **{name: told[name] for name in names})
    except KeyError as problem:
        msg = f"`{path}` lacks {problem}"
        raise SnapshotError(msg) from problem


# Opening -------------------------------------------------------------------------------------------


def open_version(folder: str | Path, version: Version, shard: int | None = None, *, verify: bool = True) -> Matcher:
    """Return a matcher of one shard, or of all; the files are mapped, and to `verify` them compared with checksums."""
    from tidings.matcher.matcher import Matcher

    folder = Path(folder)
    made = Matcher(ENGINE, **_surroundings(folder, version))
    chosen = version.shards if shard is None else version.shards[shard : shard + 1]
    assert isinstance(made.backend, Engine)
    made.admission.needs.restore(version.needs)
    made.backend.restore([part for one in chosen for part in _parts(folder, one, made, verify=verify)])
    return made


def open_shards(folder: str | Path, version: Version, *, verify: bool = True) -> list[Matcher]:
    """Return a matcher for each shard, for a writer: they agree on the needs of all, and count them together."""
    from tidings.matcher.matcher import Matcher

    folder = Path(folder)
    around = _surroundings(folder, version)
    made = [Matcher(ENGINE, **around) for _ in version.shards]
    made[0].admission.needs.restore(version.needs)
    for matcher, shard in zip(made, version.shards, strict=True):
        matcher.admission = made[0].admission
        assert isinstance(matcher.backend, Engine)
        matcher.backend.restore(_parts(folder, shard, matcher, verify=verify))
    return made


def _surroundings(folder: Path, version: Version) -> dict[str, Any]:
    files = {name: snapshot.read_file(folder, entry) for name, entry in version.files.items()}
    return {**snapshot.read_surroundings(files), "now": snapshot.read_moment(version.now)}


def _parts(folder: Path, shard: Mapping[str, Any], matcher: Matcher, *, verify: bool = True) -> list[Part]:
    try:
        segments = [_mapped(folder, entry, matcher, verify=verify) for entry in shard["segments"]]
        gone = {} if shard["dead"] is None else map_arrays(folder, shard["dead"], verify=verify)
        return parts_of(segments, gone)
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        if isinstance(problem, TidingsError):
            raise
        msg = f"a version in `{folder}` cannot be read: {problem!r:.300}"
        raise SnapshotError(msg) from problem


def _mapped(folder: Path, entry: dict[str, Any], matcher: Matcher, *, verify: bool) -> Segment:
    units = matcher.admission.needs.units()
    segment = segment_of(entry, map_arrays(folder, entry, verify=verify), matcher.admission.bind_filter, units)
    snapshot.remember(segment, entry)
    return segment


# Writing -------------------------------------------------------------------------------------------


def write_shard(folder: Path, matcher: Matcher) -> dict[str, Any]:
    """Write the segments that are not there, and return what a version says of the shard."""
    state, _ = snapshot.captured(matcher)
    assert state is not None
    dead = dead_of(state.parts)
    return {
        "count": len(state),
        "segments": [snapshot.written_segment(folder, part.segment) for part in state.parts],
        "dead": write_arrays(folder, "dead", dead) if dead else None,
    }


def merged_shard(folder: Path, parts: Sequence[Mapping[str, Any]], matcher: Matcher) -> dict[str, Any]:
    """Make one segment of the parts of a shard, in an empty matcher; return what a version says of the shard."""
    assert isinstance(matcher.backend, Engine)
    matcher.backend.restore([part for one in parts for part in _parts(folder, one, matcher)])
    matcher.compact()
    return write_shard(folder, matcher)


def write_version(
    folder: Path,
    number: int,
    shards: Sequence[dict[str, Any]],
    *,
    around: Matcher,
    position: Mapping[str, Any],
    ids: str | None,
) -> Version:
    """Put a version in place; `around` is a matcher with the schema, ontology, regions and needs of all shards."""
    files = {name: snapshot.written_file(folder, name, data) for name, data in snapshot.surroundings_of(around).items()}
    told = {
        "format": FORMAT,
        "tidings": __version__,
        "number": number,
        "count": sum(shard["count"] for shard in shards),
        "now": around.now.isoformat() if around.now else None,
        "ids": ids,
        "position": dict(position),
        "needs": around.admission.needs.to_dict(),
        "files": files,
        "shards": list(shards),
    }
    path = _path(folder, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    put(path, iter([readable(signed(told)).encode()]))
    return _checked(signed(told), path)


# Removing ------------------------------------------------------------------------------------------


def remove_old(folder: Path, claimed: Iterable[int]) -> list[int]:
    """Remove versions that are neither among the newest nor claimed, and the data that nobody names any more.

    Only for who holds the folder's lock (`folder.alone`): a file that is being written is named by nobody yet.
    """
    numbers = sorted(_numbers(folder))
    gone = [number for number in numbers[:-KEPT] if number not in set(claimed)]
    if not gone:
        return []
    for number in gone:
        _path(folder, number).unlink(missing_ok=True)
    remove_unnamed(folder)
    return gone


def remove_unnamed(folder: Path) -> None:
    """Remove the data that no version names, and what broken writers left; only for who holds the folder's lock."""
    try:
        named = {name for number in _numbers(folder) for name in _named(read_version(folder, number))}
    except SnapshotError:  # a version that cannot be read may name any of them
        return
    for path in (folder / VERSIONS).glob("*.tmp"):
        path.unlink(missing_ok=True)
    for path in folder.iterdir():
        if OURS.fullmatch(path.name) and path.name not in named:
            path.unlink(missing_ok=True)


def _named(version: Version) -> set[str]:
    entries = [*version.files.values()]
    for shard in version.shards:
        entries += [*shard["segments"], shard["dead"]]
    return {str(entry["name"]) for entry in entries if entry}
