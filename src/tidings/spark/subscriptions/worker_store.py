"""Where the workers find the subscriptions: by path and version, memory-mapped, and kept open between batches.

A job carries a path, never the subscriptions: the workers of a host share the pages of one file. Only where the workers
cannot see the driver's files (a cluster without a shared folder) do the arrays travel as bytes. A worker keeps the
matchers it opened by their content, a checksum, so that none goes stale.

Every store has the attribute `shards` and the method `resolve`, which returns the store of the current micro-batch;
the `open` of that one returns the matcher of a shard.
"""

from __future__ import annotations

import hashlib
import pickle
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Self, TypeAlias

from pyspark import TaskContext

from tidings.errors import SnapshotError
from tidings.matcher import Live, Matcher
from tidings.matcher.live.feeds import Feed
from tidings.matcher.live.versions import Version, load_version, read_version
from tidings.matcher.snapshot.snapshot_folder import read_manifest
from tidings.model import Schema
from tidings.spark.subscriptions.refusals import remove_refused, warn_refused

BATCH_ID, QUERY_ID = "streaming.sql.batchId", "sql.streaming.queryId"
"""The task properties in which Spark passes the number of the micro-batch and the id of the query."""

_live: dict[str, Live] = {}


class _FixedStore(ABC):
    """A store that does not depend on the micro-batch."""

    __slots__ = ()

    def resolve(self) -> Self:
        """Return itself."""
        return self

    def open(self, shard: int) -> Matcher:
        """Return the subscriptions of a shard, opened once in this process."""
        return open_matcher(self, shard)

    @abstractmethod
    def load(self, shard: int) -> Matcher:
        """Open the subscriptions of a shard."""


@lru_cache(maxsize=12)  # several shards, and a few queries that share a worker's process
def open_matcher(store: _FixedStore, shard: int) -> Matcher:
    """Return the subscriptions of a store's shard; the most recently used few stay open."""
    return store.load(shard)


@dataclass(frozen=True, slots=True)
class SnapshotStore(_FixedStore):
    """A snapshot directory, with the checksum that its manifest had when the job was made."""

    folder: str
    checksum: str
    shards: int = 1

    @classmethod
    def of(cls, folder: str) -> SnapshotStore:
        """Return the store of the snapshot that the folder holds now."""
        return cls(str(Path(folder).resolve()), _read_checksum(folder))

    def load(self, shard: int) -> Matcher:  # noqa: ARG002 - one shard
        """Open the snapshot, unless another one has taken its place."""
        matcher = Matcher.open(self.folder)
        # Compared after opening: a snapshot that is replaced meanwhile is noticed.
        if _read_checksum(self.folder) != self.checksum:
            msg = f"the snapshot `{self.folder}` was replaced after the job began; start it again, or use td.Live"
            raise SnapshotError(msg)
        return matcher


def _read_checksum(folder: str) -> str:
    manifest = read_manifest(Path(folder))
    return str(manifest.get("checksum") or hashlib.sha256(repr(manifest).encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class VersionStore(_FixedStore):
    """One version of a folder of versions; the checksum tells it from the same number in a folder made anew.

    With `frame`, the events' columns, the subscriptions that those columns refuse are left out.
    """

    folder: str
    number: int
    shards: int
    checksum: str = ""
    frame: Schema | None = None

    @classmethod
    def of(cls, folder: str, version: Version | None = None, *, frame: Schema | None = None) -> VersionStore:
        """Return the store of a version, by default the newest."""
        version = version or read_version(folder)
        return cls(str(Path(folder).resolve()), version.number, len(version.shards), version.checksum, frame)

    def load(self, shard: int) -> Matcher:
        """Open a shard without its refused subscriptions."""
        version = read_version(self.folder, self.number)
        matcher = Matcher(content=load_version(self.folder, version, shard))
        if self.frame is not None:
            refusals = remove_refused(matcher, self.frame, lambda: Matcher(content=load_version(self.folder, version)))
            warn_refused(refusals, self.folder)
        return matcher


@dataclass(frozen=True, slots=True)
class LiveStore:
    """Subscriptions that change: each micro-batch uses the version that was the newest when it began.

    The first task of a micro-batch claims the version, and all other tasks and retries find that claim. Outside of
    streams it is `number`, the newest when the job was made: the tasks of one job must not differ.
    """

    folder: str
    follow: Feed | None
    shards: int
    number: int
    frame: Schema | None = None

    def resolve(self) -> VersionStore:
        """Return the version for the micro-batch that this task is part of."""
        task = TaskContext.get()
        batch = task.getLocalProperty(BATCH_ID) if task is not None else None
        number = self.number
        if task is not None and batch is not None:
            number = self._open_live().claim(task.getLocalProperty(QUERY_ID) or "query", int(batch)).version
        return VersionStore.of(self.folder, read_version(self.folder, number), frame=self.frame)

    def _open_live(self) -> Live:
        """Return this process's own `Live`, which knows what it wrote last; a folder not visible here is an error."""
        live = _live.get(self.folder)
        if live is None or live.follow != self.follow:
            read_version(self.folder)  # raises where there is no version: `Live` would make an empty folder
            live = _live[self.folder] = Live(self.folder, follow=self.follow)
        return live


@dataclass(frozen=True, slots=True)
class _PackedBytes(_FixedStore):
    """The cache's key of a packed matcher: its bytes are given up when it is opened, or the cache would keep both."""

    digest: str
    payloads: list[bytes] = field(compare=False)

    def load(self, shard: int) -> Matcher:  # noqa: ARG002 - one shard
        """Unpack the matcher."""
        matcher: Matcher = pickle.loads(self.payloads.pop())  # noqa: S301 - bytes of our own driver
        return matcher


@dataclass(frozen=True, slots=True)
class PackedStore:
    """A matcher as bytes inside the job, for clusters without a shared folder."""

    digest: str
    payload: bytes = field(compare=False)
    shards: int = 1

    @classmethod
    def of(cls, matcher: Matcher) -> PackedStore:
        """Pack the matcher; changes made to it later do not reach the job."""
        payload = pickle.dumps(matcher, protocol=pickle.HIGHEST_PROTOCOL)
        return cls(hashlib.blake2b(payload, digest_size=16).hexdigest(), payload)

    def resolve(self) -> Self:
        """Return itself."""
        return self

    def open(self, shard: int) -> Matcher:
        """Return the matcher, opened once in this process."""
        return open_matcher(_PackedBytes(self.digest, [self.payload]), shard)


WorkerStore: TypeAlias = SnapshotStore | VersionStore | LiveStore | PackedStore
"""Any store that workers can open."""
