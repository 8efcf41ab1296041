"""Subscriptions in any of their forms as a store that workers can open, and what the driver knows of them.

Pairs, Arrow tables and matchers become a snapshot in a folder of this process; a DataFrame is compiled by the
executors, and never passes through the driver; paths and `td.Live` are opened where they lie. Filters are checked
against the frame's schema before any job runs on events, so that a bad one is refused by its id; in a `td.Live`, which
many people write to, it is left out and the others count (`subscriptions.refusals`).
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegralType, LongType, StringType
from pyspark.sql.utils import is_remote

from tidings.algebra import ReadSpec
from tidings.concepts import Ontology
from tidings.errors import BadFrame
from tidings.matcher import Live, Matcher
from tidings.matcher.live.versions import is_versioned, load_version, read_version
from tidings.spark.schema import check_shards, refuse_conflicts
from tidings.spark.subscriptions.compile_frame import collect_subscriptions, compile_into
from tidings.spark.subscriptions.refusals import remove_refused, warn_refused
from tidings.spark.subscriptions.worker_store import LiveStore, PackedStore, SnapshotStore, VersionStore, WorkerStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from tidings.matcher.live.versions import Version
    from tidings.model import Filter, Schema
    from tidings.spark.query_context import QueryContext

SubscriptionPairs: TypeAlias = "Iterable[tuple[str | int, str | Filter]]"
"""Ids and filters, as text or parsed; a third member, where there is one, names the notation."""

Subscriptions: TypeAlias = "DataFrame | Matcher | Live | str | os.PathLike[str] | pa.Table | SubscriptionPairs"
"""What `match` takes: what `td.Matcher.add_many` takes, a DataFrame, a matcher, a folder's path, a `td.Live`."""


SHARED = "TIDINGS_SHARED"
"""The environment variable that names a folder which all machines of a cluster share, such as a mounted volume."""


@dataclass(frozen=True, slots=True)
class SubscriptionHandle:
    """A store of subscriptions that workers open, and what the driver needs to know of them."""

    store: WorkerStore
    needs: Mapping[str, tuple[ReadSpec, ...]]
    ontology: Ontology | None
    ids: str | None  # `"integer"` or `"text"`; nothing where there are none
    now: datetime | None  # the time that the subscriptions bring along
    declared_columns: frozenset[str] = frozenset()  # an event that breaks the type of one is bad, read or not
    checked_attributes: frozenset[str] = frozenset()  # the matcher itself checks the types of these

    @property
    def arrow_id_type(self) -> pa.DataType:
        """The Arrow type of the ids; text where there are none."""
        return pa.int64() if self.ids == "integer" else pa.string()

    @property
    def spark_id_type(self) -> LongType | StringType:
        """The Spark type of the ids."""
        return LongType() if self.ids == "integer" else StringType()

    @property
    def is_live(self) -> bool:
        """Whether subscriptions, and so the attributes they read, may change from batch to batch."""
        return isinstance(self.store, LiveStore)


def open_subscriptions(
    session: SparkSession, subscriptions: Subscriptions, frame: Schema, context: QueryContext, *, shards: int | None
) -> SubscriptionHandle:
    """Return a handle on subscriptions in any form; `frame` is the schema of the events' DataFrame."""
    if shards is not None:
        check_shards(shards)
    if isinstance(subscriptions, Live | str | os.PathLike | Matcher):
        context.refuse_overrides("a matcher", "give them to td.Matcher, or pass the subscriptions as pairs")
    if isinstance(subscriptions, Live):
        return _open_live(subscriptions, frame, context, shards)
    if isinstance(subscriptions, str | os.PathLike):
        return open_stored(str(subscriptions), frame, context, shards)
    folder = make_shared_folder(session)
    if isinstance(subscriptions, Matcher):
        refuse_conflicts(subscriptions.needs(), frame)
        context.refuse_unknown(subscriptions, frame)
        return _store_matcher(subscriptions, folder, shards)
    if isinstance(subscriptions, DataFrame) and folder is not None:
        handle = _compile_frame(subscriptions, folder, frame, context, shards or 1)
    else:
        table = collect_subscriptions(subscriptions) if isinstance(subscriptions, DataFrame) else subscriptions
        handle = _store_matcher(_build_matcher(table, frame, context), folder, shards)
    # The Spark types of columns are declarations, but where the caller's schema declares a column itself.
    own = context.vocabulary.schema or ()
    return replace(handle, declared_columns=frozenset(name for name in frame if "." not in name and name not in own))


def _open_live(live: Live, frame: Schema, context: QueryContext, shards: int | None) -> SubscriptionHandle:
    live.sync()
    version = live.version
    _check_shards(str(live.folder), version, shards)
    columns = context.close_schema(frame)
    store = LiveStore(str(live.folder.resolve()), live.follow, len(version.shards), version.number, columns)
    matcher = live.open(version.number)
    warn_refused(remove_refused(matcher, columns), str(live.folder))
    return _build_handle(store, matcher, version)


def open_stored(path: str, frame: Schema, context: QueryContext, shards: int | None) -> SubscriptionHandle:
    """Return a handle on a snapshot or on the newest version of a folder of versions; it needs no session."""
    store: WorkerStore
    if is_versioned(path):
        version = read_version(path)
        _check_shards(path, version, shards)
        store, matcher = VersionStore.of(path, version), Matcher(content=load_version(path, version))
    elif shards in (None, 1):
        version, matcher, store = None, Matcher.open(path), SnapshotStore.of(path)
    else:
        msg = f"the snapshot `{path}` is of one shard; compile the subscriptions with ts.compile(..., shards={shards})"
        raise BadFrame(msg)
    context.refuse_unknown(matcher, frame)
    refuse_conflicts(matcher.needs(), frame)
    return _build_handle(store, matcher, version)


def _build_handle(store: WorkerStore, matcher: Matcher, version: Version | None = None) -> SubscriptionHandle:
    own = "integer" if isinstance(next(iter(matcher), None), int) else "text"
    ids, checked = own if version is None else version.ids, frozenset(matcher.schema or ())
    return SubscriptionHandle(store, matcher.needs(), matcher.ontology, ids, matcher.now, checked_attributes=checked)


def _check_shards(path: str, version: Version, shards: int | None) -> None:
    if shards is not None and shards != len(version.shards):
        msg = f"`{path}` has {len(version.shards)} shards, not {shards}; leave shards= out, or compile it anew"
        raise BadFrame(msg)


# Subscriptions of this process ---------------------------------------------------------------------


def _store_matcher(matcher: Matcher, folder: Path | None, shards: int | None) -> SubscriptionHandle:
    """Write a matcher to a folder that workers see; without such a folder it travels as bytes."""
    if shards in (None, 1):
        if folder is None:
            return _build_handle(PackedStore.of(matcher), matcher)
        matcher.save(folder)
        return _build_handle(SnapshotStore.of(str(folder)), matcher)
    if folder is None:
        msg = "shards need a folder that all workers see: set TIDINGS_SHARED to one, or compile with ts.compile"
        raise BadFrame(msg)
    keywords = {name: getattr(matcher, name) for name in ("schema", "ontology", "regions", "now")}
    live = Live(folder, shards=shards, **keywords)
    live.add_many([(id, matcher[id]) for id in matcher])
    return _build_handle(VersionStore.of(str(folder)), matcher, live.version)


def make_shared_folder(session: SparkSession) -> Path | None:
    """Return a new, empty folder that workers see, or None where no shared folder is configured.

    With a local master every folder is one, and a temporary folder is used that is removed when the process ends. On a
    cluster the variable TIDINGS_SHARED names it. Without one, small sets travel inside the job.
    """
    root = os.environ.get(SHARED)
    host = session.client.host if is_remote() else "localhost"
    is_local = host in ("localhost", "127.0.0.1") and (session.conf.get("spark.master", "") or "").startswith("local")
    return Path(tempfile.mkdtemp(dir=_make_process_folder(root))) if root is not None or is_local else None


@lru_cache
def _make_process_folder(root: str | None) -> str:
    """Make the folder of this process below the root, to be removed when the process ends."""
    if root is not None:
        Path(root).mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="tidings-", dir=root)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _build_matcher(subscriptions: SubscriptionPairs | pa.Table, frame: Schema, context: QueryContext) -> Matcher:
    """Return a matcher whose schema has, of the frame's columns, those that its filters read."""
    wide = context.with_columns(frame)
    matcher = wide.build_matcher()
    matcher.add_many(subscriptions)
    narrow = context.with_columns(frame, matcher.admission.list_demands())
    if narrow == wide:
        return matcher
    narrowed = narrow.build_matcher()
    narrowed.add_many([(id, matcher[id]) for id in matcher])
    return narrowed


def _compile_frame(
    subscriptions: DataFrame, folder: Path, events: Schema, context: QueryContext, shards: int
) -> SubscriptionHandle:
    version = compile_into(subscriptions, folder, shards=shards, context=context, events=events)
    matcher = Matcher(content=load_version(folder, version))
    refuse_conflicts(matcher.needs(), events)
    handle = _build_handle(VersionStore.of(str(folder), version), matcher, version)
    # An empty DataFrame has no ids, but its column has a type.
    return replace(handle, ids="integer" if isinstance(subscriptions.schema["id"].dataType, IntegralType) else "text")
