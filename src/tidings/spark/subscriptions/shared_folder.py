"""A folder that the driver and all workers see, for the snapshots that this process makes.

With a local master every folder is one, and a temporary folder is used that is removed when the process ends. On a
cluster the environment variable TIDINGS_SHARED names it: a mounted volume. Without one, small sets travel inside the
job.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.utils import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARED = "TIDINGS_SHARED"
"""The variable that names a folder which driver and workers share."""


def make_shared_folder(session: SparkSession) -> Path | None:
    """Return a new, empty folder that workers see, or nothing where no shared folder is configured."""
    root = os.environ.get(SHARED)
    if root is None and not is_local(session):
        return None
    return Path(tempfile.mkdtemp(dir=_make_process_folder(root)))


def count_tasks_per_shard(session: SparkSession, shards: int) -> int:
    """Return how many tasks a shard gets so that all cores are busy."""
    cores = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    return max(1, -(-cores // shards))


def is_local(session: SparkSession) -> bool:
    """Tell whether the workers run on this machine: a local master, and not one behind a remote connection."""
    host = session.client.host if is_remote() else "localhost"
    return host in ("localhost", "127.0.0.1") and (session.conf.get("spark.master", "") or "").startswith("local")


@lru_cache
def _make_process_folder(root: str | None) -> str:
    """Make the folder of this process below the root, to be removed when the process ends."""
    if root is not None:
        Path(root).mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="tidings-", dir=root)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
