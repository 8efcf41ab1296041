"""Where the workers find the subscriptions: by path and version, mapped, and kept open between batches.

What travels with a job is a path, never the subscriptions: the workers of a host share the pages of one file. Only
where the workers cannot see the driver's files (a cluster without a shared folder) do the arrays travel as bytes.
Nothing here is asked twice: a worker keeps the matchers it opened, by what they hold and not by where they lie.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tidings.errors import SnapshotError, TidingsError
from tidings.matcher import Live, Matcher
from tidings.matcher.live.feeds import Feed
from tidings.matcher.live.versions import open_version, read_version
from tidings.matcher.snapshot.directory import manifest_of
from tidings.matcher.snapshot.snapshot import ARRAYS
from tidings.model import Schema
from tidings.spark.subscriptions.refusals import remove_refused, warn_refused

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT = 12
"""Matchers a worker keeps open: several shards, and a few queries that share its process."""

BATCH_ID, QUERY_ID = "streaming.sql.batchId", "sql.streaming.queryId"
"""What Spark calls the number of the micro-batch and the query, in the properties that it hands to each task."""

_open: OrderedDict[Any, Matcher] = OrderedDict()
_live: dict[str, Live] = {}


def _kept(key: Any, make: Callable[[], Matcher]) -> Matcher:
    """Return what is open under a key; the least used is closed when there are too many."""
    found = _open.pop(key, None)
    _open[key] = make() if found is None else found
    while len(_open) > KEPT:
        _open.popitem(last=False)
    return _open[key]


@dataclass(frozen=True, slots=True)
class SnapshotStore:
    """A snapshot directory, and the checksum of the manifest that was there when the job was made."""

    folder: str
    checksum: str
    shards: int = 1

    @classmethod
    def of(cls, folder: str) -> SnapshotStore:
        """Take the snapshot that is there now."""
        return cls(str(Path(folder).resolve()), _checksum(folder))

    def resolve(self) -> SnapshotStore:
        """Return itself: it does not depend on the batch."""
        return self

    def open(self, shard: int) -> Matcher:  # noqa: ARG002 - a place's shape
        """Return the subscriptions."""
        return _kept((self.folder, self.checksum), self._opened)

    def _opened(self) -> Matcher:
        matcher = Matcher.open(self.folder)
        if _checksum(self.folder) != self.checksum:
            msg = f"the snapshot `{self.folder}` was replaced after the job began; start it again, or use td.Live"
            raise SnapshotError(msg)
        return matcher


def _checksum(folder: str) -> str:
    manifest = manifest_of(Path(folder), newest=ARRAYS)
    return str(manifest.get("checksum") or hashlib.sha256(repr(manifest).encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class VersionStore:
    """One version of a folder of versions; with its checksum it is not taken for one of a folder made anew."""

    folder: str
    number: int
    shards: int
    checksum: str = ""
    frame: Schema | None = None  # the events' columns, where subscriptions that they refuse are left out

    @classmethod
    def of(cls, folder: str, number: int | None = None, *, frame: Schema | None = None) -> VersionStore:
        """Take a version, by default the newest."""
        version = read_version(folder, number)
        return cls(str(Path(folder).resolve()), version.number, len(version.shards), version.checksum, frame)

    def resolve(self) -> VersionStore:
        """Return itself: it does not depend on the batch."""
        return self

    def open(self, shard: int) -> Matcher:
        """Return the subscriptions of a shard."""
        columns = None if self.frame is None else str(sorted(self.frame.to_dict().items()))
        return _kept((self.folder, self.number, self.checksum, shard, columns), lambda: self._opened(shard))

    def _opened(self, shard: int) -> Matcher:
        version = read_version(self.folder, self.number)
        matcher = open_version(self.folder, version, shard)
        if self.frame is not None:
            refused = remove_refused(matcher, self.frame, lambda: open_version(self.folder, version))
            warn_refused(refused, self.folder)
        return matcher


@dataclass(frozen=True, slots=True)
class LiveStore:
    """Subscriptions that change: each micro-batch uses the version that was the newest when it began.

    The first task of a batch settles the version, and all others, and all retries, find it settled. Outside of
    streams it is `number`, the newest when the job was made: the tasks of one job must not differ.
    """

    folder: str
    follow: Feed | None
    shards: int
    number: int
    frame: Schema | None = None

    def resolve(self) -> VersionStore:
        """Return the version of the micro-batch that this task is part of."""
        from pyspark import TaskContext

        task = TaskContext.get()
        batch = task.getLocalProperty(BATCH_ID) if task is not None else None
        if task is None or batch is None:
            return VersionStore.of(self.folder, self.number, frame=self.frame)
        claim = self._followed().claim(task.getLocalProperty(QUERY_ID) or "query", int(batch))
        return VersionStore.of(self.folder, claim.version, frame=self.frame)

    def _followed(self) -> Live:
        """Return this process's own, which knows what it wrote last; a folder that is not seen here is not made."""
        live = _live.get(self.folder)
        if live is None or live.follow != self.follow:
            read_version(self.folder)
            live = _live[self.folder] = Live(self.folder, follow=self.follow)
        return live

    def open(self, shard: int) -> Matcher:
        """Refuse: it is the settled place that can be opened."""
        msg = f"shard {shard} of `{self.folder}` is asked for before its version is settled"
        raise TidingsError(msg)


@dataclass(frozen=True, slots=True)
class PackedStore:
    """A matcher as bytes inside the job, as it was when it was packed; for clusters without a shared folder."""

    digest: str
    payload: bytes
    shards: int = 1

    @classmethod
    def of(cls, matcher: Matcher) -> PackedStore:
        """Pack the matcher; changes made to it later do not travel."""
        payload = pickle.dumps(matcher, protocol=pickle.HIGHEST_PROTOCOL)
        return cls(hashlib.blake2b(payload, digest_size=16).hexdigest(), payload)

    def resolve(self) -> PackedStore:
        """Return itself: it does not depend on the batch."""
        return self

    def open(self, shard: int) -> Matcher:  # noqa: ARG002 - a place's shape
        """Return the matcher, unpacked once in this process."""
        return _kept(self.digest, lambda: pickle.loads(self.payload))  # noqa: S301 - our own bytes, from our driver


WorkerStore: TypeAlias = SnapshotStore | VersionStore | LiveStore | PackedStore
"""Anything that workers can open."""
