"""Snapshots: a directory with `manifest.json` and the files it names (docs/snapshot.md).

Data files carry their checksum in their name and never change; a save writes those that are missing, then puts the
manifest in place with one rename, then removes the files that nothing names any more. So a reader, or a crash
at any moment, sees the old snapshot or the new one. A file that is missing, cut short or altered is refused
by name, and so is a format newer than this version reads.

The engine is kept as its arrays (format 4), which are mapped, not read: opening costs milliseconds whatever
the size. Other matchers are kept as their filters (format 1), which older versions wrote for all kinds.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from tidings.engine.persist.checksums import FAST
from tidings.engine.persist.mapped_arrays import Arrays, has_file, map_arrays, write_arrays, write_atomically
from tidings.engine.persist.segment_arrays import (
    build_parts,
    collect_deleted,
    describe_segment,
    open_segment,
    segment_to_arrays,
)
from tidings.errors import SnapshotError, TidingsError
from tidings.lang import parse, render
from tidings.matcher.registry import ENGINE, build_engine
from tidings.matcher.snapshot.directory import (
    MANIFEST,
    check_target,
    list_named_files,
    lock_folder,
    read_manifest,
    remove_unnamed,
    render_json,
    sign,
)
from tidings.matcher.snapshot.vocabulary_files import read_file, read_vocabulary, write_file, write_vocabulary
from tidings.version import __version__

if TYPE_CHECKING:
    from tidings.engine.segment import Segment
    from tidings.matcher.matcher import Matcher

FILTERS, ARRAYS = 1, 4
"""The formats: a matcher as its filters, and the engine as its arrays.

Format 2, which is read too, has no units of columns: there every filter on an attribute asked for the same one.
"""

ATTEMPTS = 5
"""How often opening begins anew because a save put another snapshot in place meanwhile."""

_files: WeakKeyDictionary[Segment, dict[str, Any]] = WeakKeyDictionary()
"""The manifest entries of segments that were saved or opened: where such a file exists, no checksum is computed."""


class PackedMatcher(NamedTuple):
    """A matcher of the kind `engine` as a pickle has it: no lock, no thread, no filter."""

    keywords: dict[str, Any]
    demands: dict[str, Any]
    segments: list[tuple[dict[str, Any], Arrays]]
    dead: Arrays


# Saving --------------------------------------------------------------------------------------------


def save(matcher: Matcher, path: str | Path) -> None:
    """Write the matcher as a snapshot directory, replacing an older snapshot in it."""
    folder = Path(path)
    check_target(folder)
    try:
        with lock_folder(folder) as undisturbed:
            old = list_named_files(folder)
            manifest = _write_data(matcher, folder)
            write_atomically(folder / MANIFEST, iter([render_json(sign(manifest)).encode()]))
            remove_unnamed(folder, old, undisturbed=undisturbed)
    except OSError as problem:
        msg = f"cannot write the snapshot `{folder}`: {problem}"
        raise SnapshotError(msg) from problem


def _write_data(matcher: Matcher, folder: Path) -> dict[str, Any]:
    """Write the data files, and return the manifest that names them."""
    parts, demands = matcher.capture()
    manifest: dict[str, Any] = {"format": FILTERS if parts is None else ARRAYS, "tidings": __version__}
    manifest |= {"kind": matcher.kind, "count": len(matcher) if parts is None else sum(map(len, parts))}
    manifest["now"] = matcher.now.isoformat() if matcher.now else None
    files = write_vocabulary(folder, matcher.admission.vocabulary)
    if parts is None:
        files["subscriptions"] = write_file(folder, "subscriptions", _render_lines(matcher))
        return {**manifest, "files": files}
    dead = collect_deleted(parts)
    return {
        **manifest,
        "needs": demands,
        "files": files,
        "segments": [write_segment(folder, part.segment) for part in parts],
        "dead": write_arrays(folder, "dead", dead) if dead else None,
    }


def write_segment(folder: Path, segment: Segment) -> dict[str, Any]:
    """Write a segment's file unless it exists, and return its entry; a file of an older format is written anew."""
    entry = _files.get(segment)
    if entry is None or FAST not in entry or not has_file(folder, entry):
        entry = {**write_arrays(folder, "segment", segment_to_arrays(segment)), **describe_segment(segment)}
        _files[segment] = entry
    return entry


def remember(segment: Segment, entry: dict[str, Any]) -> None:
    """Note the file that a segment was opened from, so that saving it again computes no checksum."""
    _files[segment] = entry


def _render_lines(matcher: Matcher) -> bytes:
    lines = [json.dumps([id, json.loads(render(matcher[id], notation="json"))]) for id in matcher]
    return "\n".join(lines).encode()


# Opening -------------------------------------------------------------------------------------------


def load(path: str | Path, *, verify: bool = True) -> Matcher:
    """Open a snapshot directory, or the newest of a folder of versions; with `verify`, compare every checksum."""
    from tidings.matcher.live import versions

    folder = Path(path)
    if versions.is_versioned(folder):
        return versions.open_version(folder, versions.read_version(folder), verify=verify)
    for _ in range(ATTEMPTS):
        manifest = read_manifest(folder, newest=ARRAYS)
        try:
            return _open(folder, manifest, verify=verify)
        except SnapshotError:
            if read_manifest(folder, newest=ARRAYS) == manifest:
                raise
    msg = f"the snapshot `{folder}` is replaced faster than it can be opened; try again"
    raise SnapshotError(msg)


def _open(folder: Path, manifest: dict[str, Any], *, verify: bool) -> Matcher:
    try:
        files = {name: read_file(folder, entry) for name, entry in manifest["files"].items()}
        keywords = {**read_vocabulary(files), "now": parse_time(manifest.get("now"))}
        if manifest["format"] == FILTERS:
            matcher = _open_filters(manifest["kind"], keywords, files["subscriptions"])
        else:
            matcher = _open_arrays(folder, manifest, keywords, verify=verify)
    except SnapshotError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, TidingsError) as problem:
        msg = f"the snapshot `{folder}`, by tidings {manifest.get('tidings')}, cannot be read: {problem!r:.300}"
        raise SnapshotError(msg) from problem
    if len(matcher) != manifest.get("count"):
        msg = f"the snapshot `{folder}` should hold {manifest.get('count')} subscriptions and holds {len(matcher)}"
        raise SnapshotError(msg)
    return matcher


def _open_filters(kind: str, keywords: dict[str, Any], lines: bytes) -> Matcher:
    from tidings.matcher.matcher import Matcher

    matcher = Matcher(kind, **keywords)
    matcher.add_many(_parse_line(line) for line in lines.splitlines())
    return matcher


def _parse_line(line: bytes) -> tuple[Any, Any]:
    id, tree = json.loads(line)
    return id, parse(tree, notation="json")


def _open_arrays(folder: Path, manifest: dict[str, Any], keywords: dict[str, Any], *, verify: bool) -> Matcher:
    if manifest["kind"] != ENGINE:
        msg = f"the snapshot `{folder}` has arrays for the matcher `{manifest['kind']}`, which takes none"
        raise SnapshotError(msg)
    entries, dead = manifest["segments"], manifest["dead"]
    segments = [(entry, map_arrays(folder, entry, verify=verify)) for entry in entries]
    gone = {} if dead is None else map_arrays(folder, dead, verify=verify)
    matcher, opened = _build_matcher(PackedMatcher(keywords, manifest["needs"], segments, gone))
    for segment, entry in zip(opened, entries, strict=True):
        remember(segment, entry)
    return matcher


def _build_matcher(packed: PackedMatcher) -> tuple[Matcher, list[Segment]]:
    from tidings.matcher.matcher import Matcher

    matcher = Matcher(ENGINE, **packed.keywords)
    needs = matcher.admission.needs
    needs.restore(packed.demands)
    units, bind = needs.find_units(), matcher.admission.bind_filter
    segments = [open_segment(description, arrays, bind, units) for description, arrays in packed.segments]
    engine = build_engine(matcher.admission)
    engine.restore(build_parts(segments, packed.dead))
    matcher.adopt(engine)
    return matcher, segments


def parse_time(text: str | None) -> datetime | None:
    """Return a time that was written in ISO 8601, or None."""
    return None if text is None else datetime.fromisoformat(text)


# Pickling ------------------------------------------------------------------------------------------


def reduce_matcher(matcher: Matcher) -> tuple[Any, ...]:
    """Return what `__reduce__` does: segments as arrays, or where the backend has none, filters to be added again."""
    parts, demands = matcher.capture()
    keywords = {**matcher.admission.vocabulary.to_keywords(), "now": matcher.now}
    if parts is None:
        return _rebuild, (matcher.kind, keywords, [(id, matcher[id]) for id in matcher])
    segments = [(describe_segment(part.segment), segment_to_arrays(part.segment)) for part in parts]
    return _unpack, (PackedMatcher(keywords, demands, segments, collect_deleted(parts)),)


def _rebuild(kind: str, keywords: dict[str, Any], filters: list[tuple[Any, Any]]) -> Matcher:
    from tidings.matcher.matcher import Matcher

    matcher = Matcher(kind, **keywords)
    matcher.add_many(filters)
    return matcher


def _unpack(packed: PackedMatcher) -> Matcher:
    return _build_matcher(packed)[0]
