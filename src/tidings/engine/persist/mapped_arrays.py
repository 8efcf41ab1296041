"""Many arrays in one file that never changes, and back again without reading it.

A file begins with `MAGIC`; each array starts at a multiple of 64 bytes, as cache lines and vector instructions want it.
The place, type and shape of each array are in the snapshot's manifest. The file is named by its checksum: one of that
name and content need not be written again. A file is compared with its checksum when it is mapped
(`persist.checksums`): kernels trust what they read, and a wrong number in an array would be a wrong answer, or the end
of the process.
"""

from __future__ import annotations

import math
import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.arrays import freeze
from tidings.engine.persist.checksums import NAMING, compute_checksums, is_intact
from tidings.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from tidings.kernels.array_types import NamedArrays

ALIGNED = 64
"""Arrays begin at multiples of this: a line of the processor's cache."""

MAGIC = b"tidings arrays 2\n".ljust(ALIGNED, b"\0")
"""What every file begins with."""

NUMBERS = "biuf"
"""The kinds of numpy's types that a file may hold: truth values, integers, floats."""


def write_arrays(folder: Path, stem: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Write arrays as the file `stem-CHECKSUM.bin` unless it exists; return its entry in the manifest."""
    layout: dict[str, list[Any]] = {}
    length = len(MAGIC)
    for name, array in arrays.items():
        layout[name] = [array.dtype.str, list(array.shape), length]
        length += _pad(array.nbytes)
    checksums = compute_checksums(_iterate_chunks(arrays))
    entry: dict[str, Any] = {"name": f"{stem}-{checksums[NAMING][:16]}.bin", "bytes": length, **checksums}
    if not has_file(folder, entry):
        write_atomically(folder / entry["name"], _iterate_chunks(arrays))
    return {**entry, "arrays": layout}


def has_file(folder: Path, entry: Mapping[str, Any]) -> bool:
    """Tell whether the folder has the file of an entry, undamaged: a damaged one must be written again."""
    try:
        _map_file(folder / entry["name"], entry, verify=True)
    except SnapshotError:
        return False
    return True


def write_atomically(path: Path, chunks: Iterator[Any]) -> None:
    """Write a temporary file, flush it to disk, rename it into place."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as out:
            for chunk in chunks:
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())  # else a crash after the rename may leave the name with an empty file
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _pad(length: int) -> int:
    return -(-length // ALIGNED) * ALIGNED


def _iterate_chunks(arrays: Mapping[str, NDArray[Any]]) -> Iterator[Any]:
    yield MAGIC
    for array in arrays.values():
        if array.size:
            yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            yield bytes(_pad(array.nbytes) - array.nbytes)


def map_arrays(folder: Path, entry: Mapping[str, Any], *, verify: bool = True) -> NamedArrays:
    """Return the arrays of a file, mapped read-only; with `verify`, its checksum is compared."""
    path = resolve_name(folder, entry["name"])
    whole = _map_file(path, entry, verify=verify)
    if whole[: len(MAGIC)] != MAGIC:
        msg = f"the file `{path}` is not one of a snapshot's arrays"
        raise SnapshotError(msg)
    return {name: _view_array(whole, *place, path=path) for name, place in entry["arrays"].items()}


def _map_file(path: Path, entry: Mapping[str, Any], *, verify: bool) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            length = status.st_size
            if length != entry["bytes"] or not length:
                msg = f"the snapshot's file `{path}` is cut short or altered: {length} bytes, not {entry['bytes']}"
                raise SnapshotError(msg)
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as problem:
        msg = f"the snapshot's file `{path}` cannot be read: {problem}"
        raise SnapshotError(msg) from problem
    if verify and not is_intact(whole, entry, status):
        way_out = "save the subscriptions again, or copy the file back"
        msg = f"the snapshot's file `{path}` is altered: its checksum is another; {way_out}"
        raise SnapshotError(msg)
    return whole


def resolve_name(folder: Path, name: object) -> Path:
    """Return the path of a file that a manifest names; refuse a name that leads out of the folder."""
    if not isinstance(name, str) or Path(name).name != name:
        msg = f"the manifest of `{folder}` names the file `{name}`, which is not in it"
        raise SnapshotError(msg)
    return folder / name


def _view_array(whole: mmap.mmap, kind: str, shape: list[int], start: int, *, path: Path) -> NDArray[Any]:
    dtype, count = np.dtype(kind), math.prod(shape)
    inside = len(MAGIC) <= start and min(shape, default=0) >= 0 and start + count * dtype.itemsize <= len(whole)
    if dtype.kind not in NUMBERS or start % ALIGNED or not inside:
        msg = f"the manifest and the snapshot's file `{path}` do not agree"
        raise SnapshotError(msg)
    if not count:
        return freeze(np.empty(shape, dtype))
    return np.frombuffer(whole, dtype, count, start).reshape(shape)
