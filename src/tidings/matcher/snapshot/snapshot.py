"""Snapshots: a directory with `manifest.json` and the files it names (docs/snapshot.md).

Data files carry their checksum in their name and never change; a save writes those that are not there, then
puts the manifest in place with one rename, then removes what nothing names any more. So a reader, or a crash
at any moment, sees the old snapshot or the new one. A file that is missing, cut short or altered is refused
by name, and so is a format newer than this version reads.

The engine is kept as its arrays (format 4), which are mapped, not read: opening costs milliseconds whatever
the size. Other matchers are kept as their filters (format 1), which older versions wrote for all kinds.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from tidings.concepts import Ontology, Regions
from tidings.engine.engine import Engine
from tidings.engine.persist.checksums import FAST, NAMING
from tidings.engine.persist.mapped_arrays import Arrays, is_there, map_arrays, plain_path, put, write_arrays
from tidings.engine.persist.segment_arrays import arrays_of, dead_of, description_of, parts_of, segment_of
from tidings.errors import SnapshotError, TidingsError
from tidings.lang import parse, render
from tidings.matcher.registry import ENGINE
from tidings.matcher.snapshot.directory import (
    MANIFEST,
    alone,
    check_target,
    cleared,
    manifest_of,
    named_files,
    readable,
    signed,
)
from tidings.model import Schema
from tidings.version import __version__

if TYPE_CHECKING:
    from tidings.engine.segment import Segment
    from tidings.engine.state import State
    from tidings.matcher.matcher import Matcher

FILTERS, ARRAYS = 1, 4
"""The formats: a matcher as its filters, and the engine as its arrays.

Format 2, which is read too, has no units of columns: there every filter on an attribute asked for the same one.
"""

ATTEMPTS = 5
"""How often opening begins anew because a save put another snapshot in place meanwhile."""

_files: WeakKeyDictionary[Segment, dict[str, Any]] = WeakKeyDictionary()
"""The entries of segments that were saved or opened: where such a file is, nothing is reckoned again."""


class Packed(NamedTuple):
    """A matcher of the kind `engine` as a pickle has it: no lock, no thread, no filter."""

    surroundings: dict[str, Any]
    needs: dict[str, Any]
    segments: list[tuple[dict[str, Any], Arrays]]
    dead: Arrays


# Saving --------------------------------------------------------------------------------------------


def save(matcher: Matcher, path: str | Path) -> None:
    """Write the matcher as a snapshot directory, replacing the one that is there."""
    folder = Path(path)
    check_target(folder)
    try:
        with alone(folder) as undisturbed:
            old = named_files(folder)
            manifest = _manifest(matcher, folder)
            put(folder / MANIFEST, iter([readable(signed(manifest)).encode()]))
            cleared(folder, old, undisturbed=undisturbed)
    except OSError as problem:
        msg = f"cannot write the snapshot `{folder}`: {problem}"
        raise SnapshotError(msg) from problem


def _manifest(matcher: Matcher, folder: Path) -> dict[str, Any]:
    """Write the data files, and return the manifest that names them."""
    state, needs = captured(matcher)
    manifest: dict[str, Any] = {"format": FILTERS if state is None else ARRAYS, "tidings": __version__}
    manifest |= {"kind": matcher.kind, "count": len(matcher) if state is None else len(state)}
    manifest["now"] = matcher.now.isoformat() if matcher.now else None
    files = {name: written_file(folder, name, data) for name, data in surroundings_of(matcher).items()}
    if state is None:
        files["subscriptions"] = written_file(folder, "subscriptions", _lines(matcher))
        return {**manifest, "files": files}
    dead = dead_of(state.parts)
    return {
        **manifest,
        "needs": needs,
        "files": files,
        "segments": [written_segment(folder, part.segment) for part in state.parts],
        "dead": write_arrays(folder, "dead", dead) if dead else None,
    }


def captured(matcher: Matcher) -> tuple[State | None, dict[str, Any]]:
    """Return what is in force in an engine, and the demands that go with it; of other kinds nothing."""
    with matcher._lock:
        if isinstance(matcher.backend, Engine):
            return matcher.backend.seal(), matcher.admission.needs.to_dict()
    return None, {}


def written_segment(folder: Path, segment: Segment) -> dict[str, Any]:
    """Write a segment's file unless it is there, and return its entry; one of an older version is made anew."""
    entry = _files.get(segment)
    if entry is None or FAST not in entry or not is_there(folder, entry):
        entry = {**write_arrays(folder, "segment", arrays_of(segment)), **description_of(segment)}
        _files[segment] = entry
    return entry


def remember(segment: Segment, entry: dict[str, Any]) -> None:
    """Note the file that a segment was opened from, so that saving it again reckons nothing."""
    _files[segment] = entry


def _lines(matcher: Matcher) -> bytes:
    lines = [json.dumps([id, json.loads(render(matcher[id], notation="json"))]) for id in matcher]
    return "\n".join(lines).encode()


def surroundings_of(matcher: Matcher) -> dict[str, bytes]:
    """Return what filters are understood by, each as JSON."""
    schema = matcher.schema
    found = {
        "schema": {"closed": schema.closed, "attributes": schema.to_dict()} if schema is not None else None,
        "ontology": matcher.ontology.to_dict() if matcher.ontology is not None else None,
        "regions": matcher.regions.to_dict() if matcher.regions is not None else None,
    }
    return {name: json.dumps(value).encode() for name, value in found.items() if value is not None}


def written_file(folder: Path, name: str, data: bytes) -> dict[str, Any]:
    """Write a file of JSON unless it is there, and return its entry."""
    digest = hashlib.sha256(data).hexdigest()
    entry: dict[str, Any] = {"name": f"{name}-{digest[:16]}.json", "bytes": len(data), NAMING: digest}
    if not is_there(folder, entry):
        put(folder / entry["name"], iter([data]))
    return entry


# Opening -------------------------------------------------------------------------------------------


def load(path: str | Path, *, verify: bool = True) -> Matcher:
    """Open a snapshot directory, or the newest of a folder of versions; with `verify`, compare every checksum."""
    from tidings.matcher.live import versions

    folder = Path(path)
    if versions.is_versioned(folder):
        return versions.open_version(folder, versions.read_version(folder), verify=verify)
    for _ in range(ATTEMPTS):
        manifest = manifest_of(folder, newest=ARRAYS)
        try:
            return _loaded(folder, manifest, verify=verify)
        except SnapshotError:
            if manifest_of(folder, newest=ARRAYS) == manifest:
                raise
    msg = f"the snapshot `{folder}` is replaced faster than it can be opened; try again"
    raise SnapshotError(msg)


def _loaded(folder: Path, manifest: dict[str, Any], *, verify: bool) -> Matcher:
    try:
        files = {name: read_file(folder, entry) for name, entry in manifest["files"].items()}
        around = {**read_surroundings(files), "now": read_moment(manifest.get("now"))}
        if manifest["format"] == FILTERS:
            made = _of_filters(manifest["kind"], around, files["subscriptions"])
        else:
            made = _of_arrays(folder, manifest, around, verify=verify)
    except SnapshotError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, TidingsError) as problem:
        msg = f"the snapshot `{folder}`, by tidings {manifest.get('tidings')}, cannot be read: {problem!r:.300}"
        raise SnapshotError(msg) from problem
    if len(made) != manifest.get("count"):
        msg = f"the snapshot `{folder}` should hold {manifest.get('count')} subscriptions and holds {len(made)}"
        raise SnapshotError(msg)
    return made


def _of_filters(kind: str, around: dict[str, Any], lines: bytes) -> Matcher:
    from tidings.matcher.matcher import Matcher

    made = Matcher(kind, **around)
    made.add_many(_subscription(line) for line in lines.splitlines())
    return made


def _of_arrays(folder: Path, manifest: dict[str, Any], around: dict[str, Any], *, verify: bool) -> Matcher:
    if manifest["kind"] != ENGINE:
        msg = f"the snapshot `{folder}` has arrays for the matcher `{manifest['kind']}`, which takes none"
        raise SnapshotError(msg)
    entries, dead = manifest["segments"], manifest["dead"]
    segments = [(entry, map_arrays(folder, entry, verify=verify)) for entry in entries]
    gone = {} if dead is None else map_arrays(folder, dead, verify=verify)
    made, parts = _engine(Packed(around, manifest["needs"], segments, gone))
    for segment, entry in zip(parts, entries, strict=True):
        remember(segment, entry)
    return made


def _engine(packed: Packed) -> tuple[Matcher, list[Segment]]:
    from tidings.matcher.matcher import Matcher

    made = Matcher(ENGINE, **packed.surroundings)
    assert isinstance(made.backend, Engine)
    made.admission.needs.restore(packed.needs)
    units = made.admission.needs.units()
    segments = [segment_of(told, arrays, made.admission.bind_filter, units) for told, arrays in packed.segments]
    made.backend.restore(parts_of(segments, packed.dead))
    return made, segments


def read_file(folder: Path, entry: dict[str, Any]) -> bytes:
    """Read a file of JSON, and compare its checksum."""
    path = plain_path(folder, entry["name"])
    try:
        data = path.read_bytes()
    except OSError as problem:
        msg = f"the snapshot's file `{path}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    if len(data) != entry["bytes"] or hashlib.sha256(data).hexdigest() != entry[NAMING]:
        msg = f"the snapshot's file `{path}` is cut short or altered; save the subscriptions again, or copy it back"
        raise SnapshotError(msg)
    return data


def read_surroundings(files: dict[str, bytes]) -> dict[str, Any]:
    """Return what `surroundings_of` wrote."""
    found: dict[str, Any] = {}
    if "schema" in files:
        table = json.loads(files["schema"])
        found["schema"] = Schema(table["attributes"], closed=table["closed"])
    if "ontology" in files:
        found["ontology"] = Ontology.from_dict(json.loads(files["ontology"]))
    if "regions" in files:
        found["regions"] = Regions.from_dict(json.loads(files["regions"]))
    return found


def _subscription(line: bytes) -> tuple[Any, Any]:
    id, tree = json.loads(line)
    return id, parse(tree, notation="json")


def read_moment(text: str | None) -> Any:
    """Return a moment that was written in ISO 8601, or nothing."""
    from datetime import datetime

    return None if text is None else datetime.fromisoformat(text)


# Pickling ------------------------------------------------------------------------------------------


def packed(matcher: Matcher) -> Packed | None:
    """Return what a pickle of the engine carries; of other kinds nothing."""
    state, needs = captured(matcher)
    if state is None:
        return None
    around = {"schema": matcher.schema, "ontology": matcher.ontology, "regions": matcher.regions, "now": matcher.now}
    segments = [(description_of(part.segment), arrays_of(part.segment)) for part in state.parts]
    return Packed(around, needs, segments, dead_of(state.parts))


def unpacked(packed: Packed) -> Matcher:
    """Return the matcher of a pickle."""
    return _engine(packed)[0]
