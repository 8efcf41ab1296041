"""Batches as folders of files, each complete or absent, and each once.

A sink's path holds one folder for each micro-batch that had rows: `batch=00000012`. Spark reads the whole as one
table with a partition column `batch`, an integer: its inference reads the padded number as 12, and the eight
digits make the names sort as the numbers do (for a hundred million batches; after that only the names' order ends).

On a local path, Spark writes into `_staging-...` beside the batches, which no reader lists, and one rename makes it
the batch's folder: readers see complete batches only, and a batch that is tried again finds its folder and writes
nothing. What lies on disk is synced before and after the rename, so a batch that Spark's checkpoint counts as done
is still there after a power cut. A reader with a glob pattern uses `batch=*/`.

On a remote path (`s3a://`, `hdfs://`, ...) the batch's folder is overwritten: a retried batch leaves the same rows
once, but a reader may see half of one that is being written, and a batch without rows leaves a folder without rows.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

import tidings as td
from tidings.errors import BadFrame, SinkError
from tidings.spark.pipeline.run.failures import SPARK_ERRORS, diagnose_folder, summarize_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, DataFrameWriter

Format: TypeAlias = Literal["json", "parquet"]

STAGING = "_staging-"
"""Prefix of a folder that is being written. Spark skips names that begin with `_`, unless they have a `=`."""

OWNER = "_tidings.json"
"""The file with the id of the checkpoint that owns the batches, and the version of Tidings that wrote it."""

EXACT_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options without which Spark's JSON cuts times to milliseconds; the sink's own options win."""


def name_batch_folder(batch: int) -> str:
    """Return the name of a batch's folder.

    >>> name_batch_folder(12)
    'batch=00000012'
    """
    return f"batch={batch:08}"


@dataclass(frozen=True, slots=True)
class RemoteFolder:
    """Batches on a file system that only Spark reaches: a retried batch is overwritten, not atomically."""

    path: str
    format: Format
    options: Mapping[str, str] = field(repr=False)

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write the batch's folder, and replace what an earlier try left."""
        _refuse_batch_column(frame)
        final = f"{self.path.rstrip('/')}/{name_batch_folder(batch)}"
        _make_writer(frame, self.format, self.options).mode("overwrite").save(final)


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """Batches on a path of this machine, or one that every machine of the cluster has mounted at the same place."""

    path: Path
    format: Format
    options: Mapping[str, str] = field(repr=False)
    owner: str | None = None

    @classmethod
    def open(cls, path: Path, format: Format, *, options: Mapping[str, str], owner: str | None = None) -> LocalFolder:
        """Create the folder, remove what a crashed run left half written, and check that its batches are the owner's.

        `owner` is the id of the checkpoint that numbers the batches. Batches of another checkpoint would pass for
        batches already written, and rows would be lost; such a folder is refused.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            if owner is not None:
                _claim(path, owner)
            for leftover in path.glob(f"{STAGING}*"):
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        except OSError as problem:
            way_out = diagnose_folder(path, "") or f"{problem.strerror or problem}; correct this"
            msg = f"the sink's folder `{path}` cannot be used: {way_out}, then start the pipeline again"
            raise SinkError(msg) from problem
        return cls(path, format, options, owner)

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write the batch, unless it exists already or has no rows. One Spark job."""
        _refuse_batch_column(frame)
        final = self.path / name_batch_folder(batch)
        if final.exists():
            return
        self._require_owner()
        staging = self.path / f"{STAGING}{batch}-{uuid.uuid4().hex}"
        try:
            # Spark takes the text after `file://` as it is: no escapes, and never its default file system.
            _make_writer(frame, self.format, self.options).save(f"file://{staging}")
            if self._has_rows(staging):
                publish(staging, final)
        except (*SPARK_ERRORS, OSError) as problem:
            shutil.rmtree(staging, ignore_errors=True)
            way_out = diagnose_folder(self.path, summarize_error(problem))
            if way_out is None:
                raise
            raise self._build_error(batch, way_out) from problem
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _require_owner(self) -> None:
        """Refuse a folder that is not the one that was opened: an unmounted volume leaves an empty one in its place.

        Spark would create what is missing, and write to the wrong disk.
        """
        if self.owner is not None and not (self.path / OWNER).exists():
            lacks = f"it lacks `{OWNER}`, so it is not the folder that the other batches are in"
            gone = lacks if self.path.is_dir() else "it is gone"
            raise self._build_error(None, f"{gone}; mount its volume or put it back")

    def _build_error(self, batch: int | None, way_out: str) -> SinkError:
        failure = "cannot be used" if batch is None else f"does not take batch {batch}"
        return SinkError(
            f"the sink's folder `{self.path}` {failure}: {way_out}, then start the pipeline again: "
            "it goes on with this batch, and what was written before is not written again"
        )

    def _has_rows(self, folder: Path) -> bool:
        """Tell whether a folder has rows; Spark writes a file without rows for an empty frame."""
        if self.format == "parquet":
            return any(pq.read_metadata(path).num_rows for path in _list_row_files(folder))
        return any(map(_has_text, _list_row_files(folder)))


def _make_writer(frame: DataFrame, format: Format, options: Mapping[str, str]) -> DataFrameWriter:
    exact = EXACT_TIMES if format == "json" else {}
    return frame.write.format(format).options(**{**exact, **options})


def _refuse_batch_column(frame: DataFrame) -> None:
    """Refuse a column that the partition column of the folders would hide from every reader."""
    clashes = [name for name in frame.columns if name.lower() == "batch"]
    if clashes:
        msg = f"a column `{clashes[0]}` is hidden by the folders' `batch=...` when read: keep it under another name"
        raise BadFrame(msg)


# --- the owner -----------------------------------------------------------------------------------


def _claim(path: Path, owner: str) -> None:
    """Write the owner into a folder without batches; refuse one with batches of another owner."""
    if _read_owner(path) == owner:
        return
    if any(path.glob("batch=*")):
        msg = (
            f"the sink's folder `{path}` holds batches of another checkpoint, and numbers begin again with a new one; "
            "give the sink an empty folder, or the pipeline the checkpoint that goes with this one"
        )
        raise SinkError(msg)
    written = path / f"{STAGING}owner-{uuid.uuid4().hex}"
    written.write_text(json.dumps({"owner": owner, "tidings": td.__version__}) + "\n", encoding="utf-8")
    _sync(written)
    written.rename(path / OWNER)
    _sync(path)


def set_aside(path: Path, owner: str) -> None:
    """Rename a folder with batches of another checkpoint than the owner, whose own can then go where it was."""
    if _read_owner(path) not in (None, owner):
        path.rename(path.with_name(f"{path.name}-{uuid.uuid4().hex[:8]}"))


def _read_owner(path: Path) -> str | None:
    try:
        content = json.loads((path / OWNER).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as problem:
        msg = f"`{path / OWNER}` is not what Tidings wrote; give the sink an empty folder"
        raise SinkError(msg) from problem
    owner = content.get("owner") if isinstance(content, dict) else None
    return owner if isinstance(owner, str) else None


# --- files ---------------------------------------------------------------------------------------


def _list_row_files(folder: Path) -> Iterator[Path]:
    """Yield the files of rows, without checksums and Spark's `_SUCCESS`."""
    return (path for path in folder.rglob("*") if path.is_file() and path.name[0] not in "._")


def _has_text(path: Path) -> bool:
    """Tell whether a file has text after decompression; an empty compressed file has bytes."""
    try:
        with pa.input_stream(str(path), compression="detect") as text:
            return bool(text.read(1))
    except OSError:  # a compression that Arrow does not know; better an empty folder than a lost batch
        return True


def publish(staging: Path, final: Path) -> None:
    """Sync all files of a folder to disk, then rename it to its final name."""
    for path in _list_row_files(staging):
        _sync(path)
    _sync(staging)
    staging.rename(final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    """Sync a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
