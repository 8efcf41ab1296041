"""Subscriptions in any of their forms as a place that workers can open, and what is known of it on the driver.

Pairs, Arrow tables and matchers become a snapshot in a folder of this process; a DataFrame is compiled by the
executors, and never passes through the driver; paths and `td.Live` are there already. Filters meet the frame's schema
before any job runs on events, so that a bad one is refused by its id; in a `td.Live`, where each is somebody else's, it
is left out and the others count (`spark.refusals`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegralType, LongType, StringType

from tidings.algebra import ReadSpec
from tidings.concepts import Ontology
from tidings.errors import BadFrame, TidingsError
from tidings.matcher import Live, Matcher
from tidings.matcher.live.versions import is_versioned, open_version, read_version
from tidings.model import Schema
from tidings.spark.schema import refuse_conflicts
from tidings.spark.subscriptions.compile import compile_into, collect_subscriptions
from tidings.spark.subscriptions.refusals import remove_refused, warn_refused
from tidings.spark.subscriptions.shared_folder import make_shared_folder
from tidings.spark.subscriptions.worker_store import LiveStore, PackedStore, WorkerStore, SnapshotStore, VersionStore

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tidings.matcher.live.versions import Version
    from tidings.model import Filter
    from tidings.spark.subscriptions.refusals import Refusals
    from tidings.spark.query_context import QueryContext

Pairs: TypeAlias = "Iterable[tuple[str | int, str | Filter]]"
"""Ids and filters, as text or parsed; a third member, where there is one, names the notation."""

Subscriptions: TypeAlias = "DataFrame | Matcher | Live | str | os.PathLike[str] | pa.Table | Pairs"
"""What `match` takes: what `td.Matcher.add_many` takes, a DataFrame, a matcher, a folder's path, a `td.Live`."""


@dataclass(frozen=True, slots=True)
class SubscriptionHandle:
    """Subscriptions that workers can open, and what the driver needs to know of them."""

    store: WorkerStore
    needs: Mapping[str, tuple[ReadSpec, ...]]
    ontology: Ontology | None
    arrow_id_type: pa.DataType
    now: datetime | None  # its own time, if it brings one
    declared_columns: frozenset[str] = frozenset()  # columns whose types events are held to, read or not
    checked_attributes: frozenset[str] = frozenset()  # attributes that the matcher holds events to itself

    @property
    def spark_id_type(self) -> LongType | StringType:
        """The type of the ids, as Spark has it."""
        return LongType() if pa.types.is_integer(self.arrow_id_type) else StringType()

    @property
    def is_live(self) -> bool:
        """Whether what it needs of events may change from batch to batch."""
        return isinstance(self.store, LiveStore)


def open_subscriptions(
    session: SparkSession, subscriptions: Subscriptions, frame: Schema, given: QueryContext, *, shards: int | None
) -> SubscriptionHandle:
    """Return the place of these subscriptions; `frame` is the schema of the events' DataFrame."""
    if shards is not None and (type(shards) is not int or shards < 1):
        msg = f"shards is 1 or more, not {shards!r}"
        raise BadFrame(msg)
    if isinstance(subscriptions, Live):
        return _live(subscriptions, frame, given, shards)
    if isinstance(subscriptions, str | os.PathLike):
        return open_stored(str(subscriptions), frame, given, shards)
    if isinstance(subscriptions, Matcher):
        _refuse_surroundings(given)
        refuse_conflicts(subscriptions.needs(), frame)
        given.refuse_unknown(subscriptions, frame)
        return _placed(session, subscriptions, shards)
    folder = make_shared_folder(session)
    if isinstance(subscriptions, DataFrame) and folder is not None:
        return _compiled(subscriptions, folder, frame, given, shards or 1)
    table = collect_subscriptions(subscriptions) if isinstance(subscriptions, DataFrame) else subscriptions
    found = _placed(session, _matcher(table, frame, given), shards)
    return replace(found, declared_columns=_declared(frame, given))


def _live(live: Live, frame: Schema, given: QueryContext, shards: int | None) -> SubscriptionHandle:
    _refuse_surroundings(given)
    live.sync()
    version = live.version
    _check_shards(str(live.folder), version, shards)
    columns = given.close_schema(frame)
    place = LiveStore(str(live.folder.resolve()), live.follow, len(version.shards), version.number, columns)
    matcher = live.open(version.number)
    warn_refused(remove_refused(matcher, columns), str(live.folder))
    return _known(place, matcher, frame, version)


def list_refused(live: Live, frame: Schema) -> tuple[Refusals, pa.DataType]:
    """Return the subscriptions that a frame of these columns refuses, with the reasons, and the type of the ids."""
    live.sync()
    version = live.version
    return remove_refused(live.open(version.number), frame), to_arrow_id_type(version.ids)


def open_stored(path: str, frame: Schema, given: QueryContext, shards: int | None) -> SubscriptionHandle:
    """Return the place of a snapshot or of a folder of versions; it needs no session."""
    _refuse_surroundings(given)
    if is_versioned(path):
        version = read_version(path)
        _check_shards(path, version, shards)
        place, matcher = VersionStore.of(path, version.number), open_version(path, version)
        given.refuse_unknown(matcher, frame)
        return _known(place, matcher, frame, version)
    if shards not in (None, 1):
        msg = f"the snapshot `{path}` is of one shard; compile the subscriptions with ts.compile(..., shards={shards})"
        raise BadFrame(msg)
    matcher = Matcher.open(path)
    given.refuse_unknown(matcher, frame)
    return _known(SnapshotStore.of(path), matcher, frame)


def _known(place: WorkerStore, matcher: Matcher, frame: Schema, version: Version | None = None) -> SubscriptionHandle:
    needs = matcher.needs()
    refuse_conflicts(needs, frame)
    kind = version.ids if version is not None else _kind_of_ids(matcher)
    checked = frozenset(matcher.schema or ())
    return SubscriptionHandle(place, needs, matcher.ontology, to_arrow_id_type(kind), matcher.now, checked_attributes=checked)


def to_arrow_id_type(kind: str | None) -> pa.DataType:
    """Return the Arrow type of ids of a kind; of no ids, text."""
    return pa.int64() if kind == "integer" else pa.string()


def _kind_of_ids(matcher: Matcher) -> str:
    return "integer" if isinstance(next(iter(matcher), None), int) else "text"


def _check_shards(path: str, version: Version, shards: int | None) -> None:
    if shards is not None and shards != len(version.shards):
        msg = f"`{path}` has {len(version.shards)} shards, not {shards}; leave shards= out, or compile it anew"
        raise BadFrame(msg)


# What comes from the driver ------------------------------------------------------------------------


def _placed(session: SparkSession, matcher: Matcher, shards: int | None) -> SubscriptionHandle:
    """Write a matcher where workers can open it; without such a folder it travels as bytes."""
    folder = make_shared_folder(session)
    around = Schema({}).opened()
    if folder is None:
        if shards not in (None, 1):
            msg = "shards need a folder that all workers see: set TIDINGS_SHARED to one, or compile with ts.compile"
            raise BadFrame(msg)
        return _known(PackedStore.of(matcher), matcher, around)
    if shards in (None, 1):
        matcher.save(folder)
        return _known(SnapshotStore.of(str(folder)), matcher, around)
    return _known(_dealt(folder, matcher, shards or 1), matcher, around, read_version(folder))


def _dealt(folder: Path, matcher: Matcher, shards: int) -> VersionStore:
    """Deal the subscriptions of a matcher to shards."""
    around = {name: getattr(matcher, name) for name in ("schema", "ontology", "regions", "now")}
    live = Live(folder, shards=shards, **around)
    live.add_many([(id, matcher[id]) for id in matcher])
    return VersionStore.of(str(folder))


def _matcher(subscriptions: Pairs | pa.Table, frame: Schema, given: QueryContext) -> Matcher:
    wide = given.with_columns(frame)
    matcher = wide.build_matcher()
    matcher.add_many(subscriptions)
    narrow = given.with_columns(frame, {name for name, *_ in matcher.admission.needs.to_dict()["demands"]})
    if narrow == wide:
        return matcher
    made = narrow.build_matcher()
    made.add_many([(id, matcher[id]) for id in matcher])
    return made


def _compiled(frame: DataFrame, folder: Path, events: Schema, given: QueryContext, shards: int) -> SubscriptionHandle:
    """Compile a DataFrame on the executors."""
    version = compile_into(frame, folder, shards=shards, context=given, events=events)
    integers = isinstance(frame.schema["id"].dataType, IntegralType)
    known = _known(VersionStore.of(str(folder), version.number), open_version(folder, version), events, version)
    # The type of ids is known even of none.
    return replace(known, arrow_id_type=pa.int64() if integers else pa.string(), declared_columns=_declared(events, given))


def _declared(frame: Schema, given: QueryContext) -> frozenset[str]:
    """Return the columns whose types are declarations: those of which the caller's schema says nothing else."""
    return frozenset(name for name in frame if "." not in name and (given.schema is None or name not in given.schema))


def _refuse_surroundings(given: QueryContext) -> None:
    if given.named:
        words = " and ".join(f"`{name}`" for name in given.named)
        msg = f"a matcher brings its own {words}; give them to td.Matcher, or pass the subscriptions as pairs"
        raise TidingsError(msg)
