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

from tidings.algebra import Need
from tidings.concepts import Ontology
from tidings.errors import BadFrame, TidingsError
from tidings.matcher import Live, Matcher
from tidings.matcher.live.versions import is_versioned, open_version, read_version
from tidings.model import Schema
from tidings.spark.schema import refuse_conflicts
from tidings.spark.subscriptions.compile import compiled, subscriptions_table
from tidings.spark.subscriptions.refusals import leave_out, warn
from tidings.spark.subscriptions.shared_folder import shared_folder
from tidings.spark.subscriptions.worker_store import Following, Packed, Place, Snapshot, Versioned

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tidings.matcher.live.versions import Version
    from tidings.model import Filter
    from tidings.spark.subscriptions.refusals import Refusals
    from tidings.spark.query_context import Surroundings

Pairs: TypeAlias = "Iterable[tuple[str | int, str | Filter]]"
"""Ids and filters, as text or parsed; a third member, where there is one, names the notation."""

Subscriptions: TypeAlias = "DataFrame | Matcher | Live | str | os.PathLike[str] | pa.Table | Pairs"
"""What `match` takes: what `td.Matcher.add_many` takes, a DataFrame, a matcher, a folder's path, a `td.Live`."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """Subscriptions that workers can open, and what the driver needs to know of them."""

    place: Place
    needs: Mapping[str, tuple[Need, ...]]
    ontology: Ontology | None
    ids: pa.DataType
    now: datetime | None  # its own time, if it brings one
    declared: frozenset[str] = frozenset()  # columns whose types events are held to, read or not
    checked: frozenset[str] = frozenset()  # attributes that the matcher holds events to itself

    @property
    def id_type(self) -> LongType | StringType:
        """The type of the ids, as Spark has it."""
        return LongType() if pa.types.is_integer(self.ids) else StringType()

    @property
    def changing(self) -> bool:
        """Whether what it needs of events may change from batch to batch."""
        return isinstance(self.place, Following)


def subscribed(
    session: SparkSession, subscriptions: Subscriptions, frame: Schema, given: Surroundings, *, shards: int | None
) -> Subscribed:
    """Return the place of these subscriptions; `frame` is the schema of the events' DataFrame."""
    if shards is not None and (type(shards) is not int or shards < 1):
        msg = f"shards is 1 or more, not {shards!r}"
        raise BadFrame(msg)
    if isinstance(subscriptions, Live):
        return _live(subscriptions, frame, given, shards)
    if isinstance(subscriptions, str | os.PathLike):
        return stored(str(subscriptions), frame, given, shards)
    if isinstance(subscriptions, Matcher):
        _refuse_surroundings(given)
        refuse_conflicts(subscriptions.needs(), frame)
        given.refuse_unknown(subscriptions, frame)
        return _placed(session, subscriptions, shards)
    folder = shared_folder(session)
    if isinstance(subscriptions, DataFrame) and folder is not None:
        return _compiled(subscriptions, folder, frame, given, shards or 1)
    table = subscriptions_table(subscriptions) if isinstance(subscriptions, DataFrame) else subscriptions
    found = _placed(session, _matcher(table, frame, given), shards)
    return replace(found, declared=_declared(frame, given))


def _live(live: Live, frame: Schema, given: Surroundings, shards: int | None) -> Subscribed:
    _refuse_surroundings(given)
    live.sync()
    version = live.version
    _check_shards(str(live.folder), version, shards)
    columns = given.held(frame)
    place = Following(str(live.folder.resolve()), live.follow, len(version.shards), version.number, columns)
    matcher = live.open(version.number)
    warn(leave_out(matcher, columns), str(live.folder))
    return _known(place, matcher, frame, version)


def refused_of(live: Live, frame: Schema) -> tuple[Refusals, pa.DataType]:
    """Return the subscriptions that a frame of these columns refuses, with the reasons, and the type of the ids."""
    live.sync()
    version = live.version
    return leave_out(live.open(version.number), frame), arrow_ids(version.ids)


def stored(path: str, frame: Schema, given: Surroundings, shards: int | None) -> Subscribed:
    """Return the place of a snapshot or of a folder of versions; it needs no session."""
    _refuse_surroundings(given)
    if is_versioned(path):
        version = read_version(path)
        _check_shards(path, version, shards)
        place, matcher = Versioned.of(path, version.number), open_version(path, version)
        given.refuse_unknown(matcher, frame)
        return _known(place, matcher, frame, version)
    if shards not in (None, 1):
        msg = f"the snapshot `{path}` is of one shard; compile the subscriptions with ts.compile(..., shards={shards})"
        raise BadFrame(msg)
    matcher = Matcher.open(path)
    given.refuse_unknown(matcher, frame)
    return _known(Snapshot.of(path), matcher, frame)


def _known(place: Place, matcher: Matcher, frame: Schema, version: Version | None = None) -> Subscribed:
    needs = matcher.needs()
    refuse_conflicts(needs, frame)
    kind = version.ids if version is not None else _kind_of_ids(matcher)
    checked = frozenset(matcher.schema or ())
    return Subscribed(place, needs, matcher.ontology, arrow_ids(kind), matcher.now, checked=checked)


def arrow_ids(kind: str | None) -> pa.DataType:
    """Return the Arrow type of ids of a kind; of no ids, text."""
    return pa.int64() if kind == "integer" else pa.string()


def _kind_of_ids(matcher: Matcher) -> str:
    return "integer" if isinstance(next(iter(matcher), None), int) else "text"


def _check_shards(path: str, version: Version, shards: int | None) -> None:
    if shards is not None and shards != len(version.shards):
        msg = f"`{path}` has {len(version.shards)} shards, not {shards}; leave shards= out, or compile it anew"
        raise BadFrame(msg)


# What comes from the driver ------------------------------------------------------------------------


def _placed(session: SparkSession, matcher: Matcher, shards: int | None) -> Subscribed:
    """Write a matcher where workers can open it; without such a folder it travels as bytes."""
    folder = shared_folder(session)
    around = Schema({}).opened()
    if folder is None:
        if shards not in (None, 1):
            msg = "shards need a folder that all workers see: set TIDINGS_SHARED to one, or compile with ts.compile"
            raise BadFrame(msg)
        return _known(Packed.of(matcher), matcher, around)
    if shards in (None, 1):
        matcher.save(folder)
        return _known(Snapshot.of(str(folder)), matcher, around)
    return _known(_dealt(folder, matcher, shards or 1), matcher, around, read_version(folder))


def _dealt(folder: Path, matcher: Matcher, shards: int) -> Versioned:
    """Deal the subscriptions of a matcher to shards."""
    around = {name: getattr(matcher, name) for name in ("schema", "ontology", "regions", "now")}
    live = Live(folder, shards=shards, **around)
    live.add_many([(id, matcher[id]) for id in matcher])
    return Versioned.of(str(folder))


def _matcher(subscriptions: Pairs | pa.Table, frame: Schema, given: Surroundings) -> Matcher:
    wide = given.beside(frame)
    matcher = wide.matcher()
    matcher.add_many(subscriptions)
    narrow = given.beside(frame, {name for name, *_ in matcher.admission.needs.to_dict()["demands"]})
    if narrow == wide:
        return matcher
    made = narrow.matcher()
    made.add_many([(id, matcher[id]) for id in matcher])
    return made


def _compiled(frame: DataFrame, folder: Path, events: Schema, given: Surroundings, shards: int) -> Subscribed:
    """Compile a DataFrame on the executors."""
    version = compiled(frame, folder, shards=shards, given=given, events=events)
    integers = isinstance(frame.schema["id"].dataType, IntegralType)
    known = _known(Versioned.of(str(folder), version.number), open_version(folder, version), events, version)
    # The type of ids is known even of none.
    return replace(known, ids=pa.int64() if integers else pa.string(), declared=_declared(events, given))


def _declared(frame: Schema, given: Surroundings) -> frozenset[str]:
    """Return the columns whose types are declarations: those of which the caller's schema says nothing else."""
    return frozenset(name for name in frame if "." not in name and (given.schema is None or name not in given.schema))


def _refuse_surroundings(given: Surroundings) -> None:
    if given.named:
        words = " and ".join(f"`{name}`" for name in given.named)
        msg = f"a matcher brings its own {words}; give them to td.Matcher, or pass the subscriptions as pairs"
        raise TidingsError(msg)
