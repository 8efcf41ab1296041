"""Batches as folders of files, each there as a whole or not at all, and each once.

A sink's path holds one folder for each micro-batch that had rows: `batch=00000012`. Spark reads the whole as one
table with a partition column `batch`, an integer: its inference reads the padded number as 12, and the eight
digits make the names sort as the numbers do (for a hundred million batches; after that only the names' order ends).

On a local path, Spark writes into `_staging-...` beside the batches, which no reader lists, and one rename makes it
the batch's folder: readers see complete batches only, and a batch that is tried again finds its folder and writes
nothing. What lies on disk is synced before and after the rename, so a batch that Spark's checkpoint counts as done
is still there after a power cut. Whoever reads with a pattern of their own says `batch=*/`.

On a remote path (`s3a://`, `hdfs://`, ...) the batch's folder is overwritten: a retried batch leaves the same rows
once, but a reader may see half of one that is being written, and a batch without rows leaves a folder without rows.
"""

from __future__ import annotations

import json
import os
import re
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
from tidings.spark.pipeline.run.trouble import SPARK_ERRORS, diagnose_folder, summarize_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, DataFrameWriter

Format: TypeAlias = Literal["json", "parquet"]

STAGING = "_staging-"
"""How the folder of a batch that is being written is called. Spark skips names with `_` in front, unless with a `=`."""

OWNER = "_tidings.json"
"""Says whose batches these are, and which version of Tidings wrote the first of them."""

EXACT_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options of Spark's JSON without which it cuts times to milliseconds. The sink's own options win."""


def name_batch_folder(batch: int) -> str:
    """Return what the folder of a batch is called.

    >>> name_batch_folder(12)
    'batch=00000012'
    """
    return f"batch={batch:08}"


def to_local_path(path: str) -> Path | None:
    """Return the folder of this machine that a path names, or nothing for a remote one.

    A bare path is a local one, whatever file system Spark takes by default.

    >>> to_local_path("file:///data/out"), to_local_path("/data/out"), to_local_path("s3a://bucket/out")
    (PosixPath('/data/out'), PosixPath('/data/out'), None)
    """
    scheme, colon, rest = path.partition(":")
    if colon and scheme == "file":
        return Path("/" + rest.lstrip("/"))
    return None if colon and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) else Path(path).absolute()


@dataclass(frozen=True, slots=True)
class RemoteFolder:
    """Batches on a file system that only Spark reaches: written over when tried again, not at one stroke."""

    path: str
    format: Format
    options: Mapping[str, str] = field(repr=False)

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write the batch's folder, in place of what an earlier try left."""
        _refuse_batch_column(frame)
        final = f"{self.path.rstrip('/')}/{name_batch_folder(batch)}"
        _make_writer(frame, self.format, self.options).mode("overwrite").save(final)

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """Batches on a path of this machine, or one that every machine of the cluster has mounted at the same place."""

    path: Path
    format: Format
    options: Mapping[str, str] = field(repr=False)
    owner: str | None = None

    @classmethod
    def open(cls, path: Path, format: Format, *, options: Mapping[str, str], owner: str | None = None) -> LocalFolder:
        """Make the folder, take away what a crashed run left half written, and see that its batches are the owner's.

        `owner` stands for the checkpoint: its numbers are the batches' names, so those of another checkpoint would
        pass for batches already written, and their rows would be lost. Such a folder is refused.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            if owner is not None:
                _claim(path, owner)
            for left in path.glob(f"{STAGING}*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        except OSError as problem:
            way_out = diagnose_folder(path, "") or f"{problem.strerror or problem}; see to it"
            msg = f"the sink's folder `{path}` cannot be used: {way_out}, then start the pipeline again"
            raise SinkError(msg) from problem
        return cls(path, format, options, owner)

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write the batch, unless it is there already or has no rows. One Spark job."""
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
        """Refuse a folder that is not the one that was opened: a volume that is gone leaves an empty one in its place.

        Spark would make what is missing, and write where nobody looks.
        """
        if self.owner is not None and not (self.path / OWNER).exists():
            is_folder = self.path.is_dir()
            gone = (
                f"it lacks `{OWNER}`, so it is not the folder that the other batches are in"
                if is_folder
                else "it is gone"
            )
            raise self._build_error(None, f"{gone}; mount its volume or put it back")

    def _build_error(self, batch: int | None, way_out: str) -> SinkError:
        failure = "cannot be used" if batch is None else f"does not take batch {batch}"
        return SinkError(
            f"the sink's folder `{self.path}` {failure}: {way_out}, then start the pipeline again: "
            "it goes on with this batch, and what was written before is not written again"
        )

    def close(self) -> None:
        """Nothing is open."""

    def _has_rows(self, folder: Path) -> bool:
        """Tell whether files in there hold rows; Spark leaves one without any for a frame without any."""
        holds = _parquet_has_rows if self.format == "parquet" else _text_has_bytes
        return any(holds(path) for path in _list_row_files(folder))


def _make_writer(frame: DataFrame, format: Format, options: Mapping[str, str]) -> DataFrameWriter:
    exact = EXACT_TIMES if format == "json" else {}
    return frame.write.format(format).options(**{**exact, **options})


def _refuse_batch_column(frame: DataFrame) -> None:
    """Refuse a column that the folders' own would hide from every reader."""
    clashes = [name for name in frame.columns if name.lower() == "batch"]
    if clashes:
        msg = f"a column `{clashes[0]}` is hidden by the folders' `batch=...` when read: keep it under another name"
        raise BadFrame(msg)


# --- whose batches -------------------------------------------------------------------------------


def _claim(path: Path, owner: str) -> None:
    """Write the owner's name into a folder without batches; refuse one whose batches are somebody else's."""
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


# --- what was written ----------------------------------------------------------------------------


def _list_row_files(folder: Path) -> Iterator[Path]:
    """Yield the files of rows, without checksums and Spark's `_SUCCESS`."""
    return (path for path in folder.rglob("*") if path.is_file() and path.name[0] not in "._")


def _parquet_has_rows(path: Path) -> bool:
    return bool(pq.read_metadata(path).num_rows)


def _text_has_bytes(path: Path) -> bool:
    """Tell whether there is text inside: an empty file that was compressed has bytes."""
    try:
        with pa.input_stream(str(path), compression="detect") as text:
            return bool(text.read(1))
    except OSError:  # a compression that Arrow does not know; better an empty folder than a lost batch
        return True


def publish(staging: Path, final: Path) -> None:
    """Give the folder its name, once all of it is on disk."""
    for path in _list_row_files(staging):
        _sync(path)
    _sync(staging)
    staging.rename(final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
