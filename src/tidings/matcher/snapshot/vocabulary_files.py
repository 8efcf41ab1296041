"""The files of a snapshot that say what filters mean: schema, ontology and regions, each as JSON.

A file carries the SHA-256 of its bytes in its name and is never changed, so equal vocabularies share one.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from tidings.concepts import Ontology, Regions, Vocabulary
from tidings.engine.persist.checksums import NAMING
from tidings.engine.persist.mapped_arrays import has_file, resolve_name, write_atomically
from tidings.errors import SnapshotError
from tidings.model import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tidings.matcher.snapshot.snapshot_folder import Entry


def dump_vocabulary(vocabulary: Vocabulary) -> dict[str, bytes]:
    """Return the parts of a vocabulary that are present, each as JSON."""
    schema, ontology, regions = vocabulary.schema, vocabulary.ontology, vocabulary.regions
    tables = {
        "schema": {"closed": schema.closed, "attributes": schema.to_dict()} if schema is not None else None,
        "ontology": ontology.to_dict() if ontology is not None else None,
        "regions": regions.to_dict() if regions is not None else None,
    }
    return {name: json.dumps(table).encode() for name, table in tables.items() if table is not None}


def read_vocabulary(files: Mapping[str, bytes]) -> Vocabulary:
    """Return what `dump_vocabulary` wrote; other files among them are left alone."""
    tables = {name: json.loads(files[name]) for name in ("schema", "ontology", "regions") if name in files}
    schema = tables.get("schema")
    return Vocabulary(
        None if schema is None else Schema(schema["attributes"], closed=schema["closed"]),
        Ontology.from_dict(tables["ontology"]) if "ontology" in tables else None,
        Regions.from_dict(tables["regions"]) if "regions" in tables else None,
    )


def write_vocabulary(folder: Path, vocabulary: Vocabulary) -> dict[str, Entry]:
    """Write the files of a vocabulary, and return their manifest entries by name."""
    return {name: write_file(folder, name, data) for name, data in dump_vocabulary(vocabulary).items()}


def write_file(folder: Path, name: str, data: bytes) -> Entry:
    """Write a file of JSON unless it exists, and return its manifest entry."""
    digest = hashlib.sha256(data).hexdigest()
    entry: Entry = {"name": f"{name}-{digest[:16]}.json", "bytes": len(data), NAMING: digest}
    if not has_file(folder, entry):
        write_atomically(folder / entry["name"], iter([data]))
    return entry


def read_file(folder: Path, entry: Entry) -> bytes:
    """Read the file of a manifest entry, and compare its checksum."""
    path = resolve_name(folder, entry["name"])
    try:
        data = path.read_bytes()
    except OSError as problem:
        msg = f"the snapshot's file `{path}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    if len(data) != entry["bytes"] or hashlib.sha256(data).hexdigest() != entry[NAMING]:
        msg = f"the snapshot's file `{path}` is cut short or altered; save the subscriptions again, or copy it back"
        raise SnapshotError(msg)
    return data
