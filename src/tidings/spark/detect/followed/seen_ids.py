"""Ids of events that came before, as sorted hashes in files: what comes again, within a time, is left out.

Spark's own way keeps ids in the state of an operator with a watermark on arrival times, and a query has one watermark,
which the patterns need. So each micro-batch names, in its claim, the segments of ids that came before it; its tasks
leave out what is in one of them, and write the ids that are new. When the batch is done these become a segment too.
A batch that runs again finds the segments of its claim, and writes the same ids. Segments of one eighth of the time are
merged, and those that are older than the time are removed. Two ids with equal hashes of 64 bits would be one id.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from tidings.engine.persist.mapped_arrays import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta
    from pathlib import Path

    from tidings.kernels.array_types import BoolArray

FOLDER, STATE = "ids", "segments.json"
"""The folder of ids in that of the versions, and the list of segments in it."""

SLICES, MOST_SEGMENTS = 8, 16
"""Parts of the time whose ids end up in one segment each; and segments of one part before they are merged."""


# In workers -------------------------------------------------------------------------------------------


def hash_ids(ids: Iterable[str | None]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return a hash of each id; of no id, some number."""
    digests = (bytes(8) if id is None else blake2b(id.encode("utf-8", "replace"), digest_size=8).digest() for id in ids)
    return np.frombuffer(b"".join(digests), np.uint64)


class NewIds:
    """The ids of one task that did not come before, neither in a segment nor in the task."""

    def __init__(self, folder: Path, segments: Sequence[str], batch: int, task: int) -> None:
        self._folder, self._path = folder, _get_parts(folder, batch) / f"{task}.npy"
        self._segments = [_open_segment(str(_get_segment(folder, name))) for name in segments]
        self._seen = np.empty(0, np.uint64)

    def find_new(self, ids: Sequence[str | None]) -> BoolArray:
        """Tell which ids are new, and remember them; what has no id is always new."""
        hashes, has_id = hash_ids(ids), np.array([id is not None for id in ids], bool)
        is_new = np.zeros(len(hashes), bool)
        is_new[np.unique(hashes, return_index=True)[1]] = True
        for segment in [*self._segments, self._seen]:
            if len(segment):
                places = np.minimum(np.searchsorted(segment, hashes), len(segment) - 1)
                is_new &= segment[places] != hashes
        self._seen = np.unique(np.concatenate([self._seen, hashes[is_new & has_id]]))
        return np.asarray(is_new | ~has_id)

    def write(self) -> None:
        """Write them; when the task runs again, the file is replaced by an equal one."""
        if len(self._seen):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            _write_hashes(self._path, self._seen)


@lru_cache(maxsize=256)
def _open_segment(path: str) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    segment: np.ndarray[tuple[int], np.dtype[np.uint64]] = np.load(path, mmap_mode="r")
    return segment


# In the driver ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IdSegment:
    """A file of ids, the time when the newest of them came, in seconds, and the part of time they are of."""

    name: str
    at: float
    slice: int


class SeenIds:
    """The segments of a detection query, in the order of time."""

    def __init__(self, folder: Path, within: timedelta) -> None:
        self._folder, self._within = folder, within.total_seconds()
        self._batch, self._segments = self._load()
        # Of the claim before: its batch may yet run again, and the first claim of this process names what is here.
        self._former = {segment.name for segment in self._segments}

    def list_segments(self, now: float) -> list[str]:
        """Return the names of the segments that a batch that begins now compares its ids with."""
        return [segment.name for segment in self._segments if segment.at >= now - self._within]

    def prepare(self, batch: int) -> None:
        """Remove what an attempt at a batch has left."""
        shutil.rmtree(_get_parts(self._folder, batch), ignore_errors=True)

    def note_batch(self, batch: int, now: float) -> None:
        """Make a segment of the ids that the tasks of a finished batch wrote; `now` is when it began."""
        parts = _get_parts(self._folder, batch)
        if batch <= self._batch or not parts.is_dir():
            return
        name, position = f"{batch:010}", int(now / (self._within / SLICES))
        hashes = [np.load(path) for path in parts.glob("*.npy")]
        if sum(map(len, hashes)):
            self._write_segment(name, hashes)
            self._segments.append(IdSegment(name, now, position))
        self._segments = [segment for segment in self._segments if segment.at >= now - self._within]
        self._merge(position)
        self._batch = batch
        self._save()
        self._remove_unnamed(parts)

    def _merge(self, position: int) -> None:
        """Merge the segments of each part of the time: of the current one, when there are many."""
        for part in sorted({segment.slice for segment in self._segments}):
            members = [segment for segment in self._segments if segment.slice == part]
            if len(members) > (MOST_SEGMENTS if part == position else 1):
                name = f"{members[0].name.partition('-')[0]}-{members[-1].name.rpartition('-')[2]}"
                self._write_segment(name, [np.load(self._get_path(segment.name)) for segment in members])
                merged = IdSegment(name, members[-1].at, part)
                rest = [segment for segment in self._segments if segment.slice != part]
                self._segments = sorted([*rest, merged], key=lambda segment: segment.at)

    def _write_segment(self, name: str, hashes: list[np.ndarray[tuple[int], np.dtype[np.uint64]]]) -> None:
        _write_hashes(self._get_path(name), np.unique(np.concatenate(hashes)))

    def _remove_unnamed(self, parts: Path) -> None:
        """Remove files that neither this list nor the one before names, and what tasks wrote."""
        shutil.rmtree(parts, ignore_errors=True)
        names = {segment.name for segment in self._segments}
        for path in (self._folder / FOLDER).glob("*.npy"):
            if path.stem not in names | self._former:
                path.unlink(missing_ok=True)
        self._former = names

    def _get_path(self, name: str) -> Path:
        return _get_segment(self._folder, name)

    def _load(self) -> tuple[int, list[IdSegment]]:
        try:
            content = json.loads((self._folder / FOLDER / STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return -1, []
        return int(content["batch"]), [IdSegment(**fields) for fields in content["segments"]]

    def _save(self) -> None:
        content = {"batch": self._batch, "segments": [asdict(segment) for segment in self._segments]}
        write_atomically(self._folder / FOLDER / STATE, iter([json.dumps(content).encode()]))


def _get_segment(folder: Path, name: str) -> Path:
    return folder / FOLDER / f"{name}.npy"


def _get_parts(folder: Path, batch: int) -> Path:
    return folder / FOLDER / f"batch-{batch:010}"


def _write_hashes(path: Path, hashes: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> None:
    content = BytesIO()
    np.save(content, hashes)
    write_atomically(path, iter([content.getvalue()]))
