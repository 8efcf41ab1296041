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
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

from tidings.engine.persist import segment_arrays
from tidings.engine.persist.checksums import FAST
from tidings.engine.persist.mapped_arrays import has_file, map_arrays, write_arrays, write_atomically
from tidings.errors import SnapshotError, TidingsError
from tidings.lang import parse, render
from tidings.matcher.admission import build_refusal
from tidings.matcher.content import MatcherContent, build_content
from tidings.matcher.registry import ENGINE, build_engine
from tidings.matcher.snapshot import snapshot_folder
from tidings.matcher.snapshot.snapshot_folder import ARRAYS, FILTERS, MANIFEST, read_manifest
from tidings.matcher.snapshot.vocabulary_files import read_file, read_vocabulary, write_file, write_vocabulary
from tidings.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tidings.engine.engine import Engine
    from tidings.engine.segment import Segment
    from tidings.engine.state import LiveSegment
    from tidings.kernels.array_types import NamedArrays
    from tidings.matcher.admission import Admission
    from tidings.matcher.algorithm import SubId
    from tidings.matcher.content import CapturedContent
    from tidings.matcher.snapshot.snapshot_folder import Entry, Manifest
    from tidings.model import Filter

ATTEMPTS = 5
"""How often opening begins anew because a save put another snapshot in place meanwhile."""

SegmentArrays: TypeAlias = "tuple[list[tuple[Entry, NamedArrays]], NamedArrays]"
"""Segments, each with its description, and the deleted slots of all, as arrays that a pickle holds."""

_files: WeakKeyDictionary[Segment, Entry] = WeakKeyDictionary()
"""The manifest entries of segments that were saved or opened: where such a file exists, no checksum is computed."""


def save(capture: Callable[[], CapturedContent], path: str | Path) -> None:
    """Write a snapshot directory, replacing an older snapshot in it.

    `capture` is called under the folder's lock: of two saves at once, the one that writes later has the newer content.
    """
    folder = Path(path)
    snapshot_folder.check_target(folder)
    try:
        with snapshot_folder.lock_folder(folder) as undisturbed:
            # The manifest comes after the files that it names, and files go after the manifest that named them.
            old = snapshot_folder.list_named_files(folder)
            manifest = _write_data(capture(), folder)
            text = snapshot_folder.render_json(snapshot_folder.sign(manifest))
            write_atomically(folder / MANIFEST, iter([text.encode()]))
            snapshot_folder.remove_unnamed(folder, old, undisturbed=undisturbed)
    except OSError as problem:
        msg = f"cannot write the snapshot `{folder}`: {problem}"
        raise SnapshotError(msg) from problem


def _write_data(content: CapturedContent, folder: Path) -> Manifest:
    """Write the data files, and return the manifest that names them."""
    parts, filters = content.parts, content.filters
    files = write_vocabulary(folder, content.vocabulary)
    manifest: Manifest = {"format": FILTERS if parts is None else ARRAYS, "tidings": __version__}
    manifest |= {"kind": content.kind, "count": len(filters)}
    manifest |= {"now": content.now.isoformat() if content.now else None, "files": files}
    if parts is not None:
        return {**manifest, "needs": content.demands, **write_parts(folder, parts)}
    lines = [json.dumps([id, json.loads(render(tree, notation="json"))]) for id, tree in filters]
    files["subscriptions"] = write_file(folder, "subscriptions", "\n".join(lines).encode())
    return manifest


def write_parts(folder: Path, parts: Sequence[LiveSegment]) -> Manifest:
    """Write the segments that have no file yet, and return the entries of a manifest that name them all."""
    dead = segment_arrays.collect_deleted(parts)
    return {
        "count": sum(map(len, parts)),
        "segments": [_write_segment(folder, part.segment) for part in parts],
        "dead": write_arrays(folder, "dead", dead) if dead else None,
    }


def _write_segment(folder: Path, segment: Segment) -> Entry:
    """Write a segment's file unless it exists, and return its entry; a file of an older format is written anew."""
    entry = _files.get(segment)
    if entry is None or FAST not in entry or not has_file(folder, entry):
        description, arrays = _take_apart(segment)
        entry = {**write_arrays(folder, "segment", arrays), **description}
        _files[segment] = entry
    return entry


def load(folder: Path, *, verify: bool = True) -> MatcherContent:
    """Open a snapshot directory; with `verify`, compare every checksum."""
    for _ in range(ATTEMPTS):
        manifest = read_manifest(folder)
        try:
            return _open(folder, manifest, verify=verify)
        except SnapshotError:
            # A save that put another manifest in place has removed files of the one that was read.
            if read_manifest(folder) == manifest:
                raise
    msg = f"the snapshot `{folder}` is replaced faster than it can be opened; try again"
    raise SnapshotError(msg)


def _open(folder: Path, manifest: Manifest, *, verify: bool) -> MatcherContent:
    try:
        files = {name: read_file(folder, entry) for name, entry in manifest["files"].items()}
        content = build_content(manifest["kind"], read_vocabulary(files), parse_time(manifest.get("now")))
        if manifest["format"] == FILTERS:
            rows = [json.loads(line) for line in files["subscriptions"].splitlines()]
            _enter_filters(content, [(id, parse(tree, notation="json")) for id, tree in rows])
        else:
            if manifest["kind"] != ENGINE:
                msg = f"the snapshot `{folder}` has arrays for the matcher `{manifest['kind']}`, which takes none"
                raise SnapshotError(msg)
            content.admission.needs.restore(manifest["needs"])
            content = content._replace(backend=open_engine(folder, [manifest], content.admission, verify=verify))
    except SnapshotError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, TidingsError) as problem:
        msg = f"the snapshot `{folder}`, by tidings {manifest.get('tidings')}, cannot be read: {problem!r:.300}"
        raise SnapshotError(msg) from problem
    if (count := len(content.backend)) != manifest.get("count"):
        msg = f"the snapshot `{folder}` should hold {manifest.get('count')} subscriptions and holds {count}"
        raise SnapshotError(msg)
    return content


def open_engine(
    folder: Path, manifests: Sequence[Mapping[str, Any]], admission: Admission, *, verify: bool = True
) -> Engine:
    """Return an engine of all segments that the entries of `write_parts` name; their files are mapped."""
    parts: list[LiveSegment] = []
    for manifest in manifests:
        segments = [(entry, map_arrays(folder, entry, verify=verify)) for entry in manifest["segments"]]
        dead = {} if manifest["dead"] is None else map_arrays(folder, manifest["dead"], verify=verify)
        opened = _open_parts(segments, dead, admission)
        _files.update((part.segment, entry) for part, (entry, _) in zip(opened, segments, strict=True))
        parts += opened
    return _build_engine(parts, admission)


def _build_engine(parts: list[LiveSegment], admission: Admission) -> Engine:
    engine = build_engine(admission)
    engine.restore(parts)
    return engine


def _open_parts(
    segments: Sequence[tuple[Entry, NamedArrays]], dead: NamedArrays, admission: Admission
) -> list[LiveSegment]:
    units, bind = admission.needs.find_units(), admission.bind_filter
    opened = [segment_arrays.open_segment(description, arrays, bind, units) for description, arrays in segments]
    return segment_arrays.build_parts(opened, dead)


def parse_time(text: str | None) -> datetime | None:
    """Return a time that was written in ISO 8601, or None."""
    return None if text is None else datetime.fromisoformat(text)


def pack(captured: CapturedContent) -> tuple[CapturedContent, SegmentArrays | None]:
    """Return a matcher's content in a form that can be pickled, its segments as arrays; `unpack` takes it."""
    if captured.parts is None:
        return captured, None
    segments = [_take_apart(part.segment) for part in captured.parts]
    return captured._replace(parts=None), (segments, segment_arrays.collect_deleted(captured.parts))


def unpack(captured: CapturedContent, arrays: SegmentArrays | None) -> MatcherContent:
    """Return the parts of the matcher that `pack` packed."""
    content = build_content(captured.kind, captured.vocabulary, captured.now)
    if arrays is None:
        _enter_filters(content, captured.filters)
        return content
    content.admission.needs.restore(captured.demands)
    return content._replace(backend=_build_engine(_open_parts(*arrays, content.admission), content.admission))


def _take_apart(segment: Segment) -> tuple[Entry, NamedArrays]:
    return segment_arrays.describe_segment(segment), segment_arrays.segment_to_arrays(segment)


def _enter_filters(content: MatcherContent, filters: Sequence[tuple[SubId, Filter]]) -> None:
    """Put filters in force that were in force before; one that is refused now is an error, and none goes in."""
    rows = [(id, tree, "text") for id, tree in filters]
    refusals = content.admission.enter_rows(rows, content.backend, keep_good=False)
    if refusals:
        raise build_refusal([(rows[row][0], problem) for row, problem in refusals], len(rows))
