"""Subscriptions in any of their forms as one matcher: a DataFrame, pairs, an Arrow table, a matcher, a snapshot.

Filters meet the frame's schema here, on the driver, so that a bad one is refused by its id before any job runs.
A DataFrame of subscriptions passes through the driver.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import IntegralType, StringType, StructType

from tidings.concepts import Ontology, Regions
from tidings.errors import BadFrame, BadSubscriptions, TidingsError
from tidings.matcher import Matcher
from tidings.model import Compare, Kind, Schema, condition_kind, tests
from tidings.spark.schema import refuse_conflicts, require_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidings.model import Filter

Pairs: TypeAlias = "Iterable[tuple[str | int, str | Filter]]"
"""Ids and filters, as text or parsed; a third member, where there is one, names the notation."""

Subscriptions: TypeAlias = "DataFrame | Matcher | str | os.PathLike[str] | pa.Table | Pairs"
"""What `match` takes: each form that `td.Matcher.add_many` takes, a DataFrame, a matcher, or a snapshot's path."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What filters are understood by; each may be given by the caller or be left out."""

    schema: Schema | None = None
    ontology: Ontology | None = None
    regions: Regions | None = None
    now: datetime | None = None


def matcher_of(subscriptions: Subscriptions, frame: Schema, given: Surroundings) -> Matcher:
    """Return the matcher of these subscriptions; `frame` is the schema of the events' DataFrame."""
    if isinstance(subscriptions, str | os.PathLike):
        subscriptions = Matcher.open(Path(subscriptions))
    if isinstance(subscriptions, Matcher):
        _refuse_surroundings(given)
        refuse_conflicts(subscriptions.needs(), frame)
        return subscriptions
    table = _table(subscriptions) if isinstance(subscriptions, DataFrame) else subscriptions
    if given.schema is None:
        return _matcher(table, frame, given)
    matcher = _matcher(table, frame.merged(given.schema), given)
    if not given.schema.closed:
        return matcher
    # A closed schema holds events to every attribute it has: the caller's own, yes, but of the frame's columns
    # only those that filters use. A NaN where nobody looks is no reason for a dead letter.
    used = {name for id_ in matcher for name, _ in tests(matcher[id_])}
    columns = Schema({name: frame[name] for name in used if name in frame})
    return _matcher([(id_, matcher[id_]) for id_ in matcher], columns.merged(given.schema), given)


def _matcher(subscriptions: Pairs | pa.Table, schema: Schema | None, given: Surroundings) -> Matcher:
    matcher = Matcher(schema=schema, ontology=given.ontology, regions=given.regions, now=given.now)
    matcher.add_many(subscriptions)
    return matcher


def judge_of(matcher: Matcher) -> Matcher:
    """Return a smaller matcher that finds the same events bad.

    Reading decides that, and reading depends on what filters ask of each attribute, not on how many ask it; only
    two attributes compared can find an event bad later. So one filter for each thing asked stands for all.
    """
    chosen = [(id_, matcher[id_]) for id_ in _speakers(matcher)]
    given = Surroundings(matcher.schema, matcher.ontology, matcher.regions, matcher.now)
    judge = _matcher(chosen, matcher.schema, given)
    return judge if judge.needs() == matcher.needs() else matcher


def _speakers(matcher: Matcher) -> Iterator[str | int]:
    asked: set[tuple[str, type, Kind | None]] = set()
    for id_ in matcher:
        asks = {(name, type(test.condition), condition_kind(test.condition)) for name, test in tests(matcher[id_])}
        if not asks <= asked or any(condition is Compare for _, condition, _ in asks):
            asked |= asks
            yield id_


def id_type(subscriptions: Matcher) -> pa.DataType:
    """Return the Arrow type of the ids: text, or integers; of no ids, text."""
    return pa.int64() if isinstance(next(iter(subscriptions), None), int) else pa.string()


def _refuse_surroundings(given: Surroundings) -> None:
    named = [name for name in ("schema", "ontology", "regions") if getattr(given, name) is not None]
    if named:
        words = " and ".join(f"`{name}`" for name in named)
        msg = f"a matcher brings its own {words}; give them to td.Matcher, or pass the subscriptions as pairs"
        raise TidingsError(msg)


def _table(frame: DataFrame) -> pa.Table:
    """Bring a DataFrame of subscriptions to the driver, its ids as text or 64-bit integers."""
    if frame.isStreaming:
        msg = "the subscriptions are a streaming DataFrame; read them with session.read, not session.readStream"
        raise BadFrame(msg)
    names = ["id", "filter", *(["notation"] if "notation" in frame.columns else [])]
    require_columns(names, frame.schema, why="the subscriptions")
    _require_types(names, frame.schema)
    kind = "long" if isinstance(frame.schema["id"].dataType, IntegralType) else "string"
    table = frame.select(F.col("id").cast(kind), *names[1:]).distinct().toArrow()
    _refuse_nulls(table)
    _refuse_repeated(table)
    return table


def _require_types(names: list[str], schema: StructType) -> None:
    for name in names:
        kind = schema[name].dataType
        if not isinstance(kind, (StringType, IntegralType) if name == "id" else StringType):
            wanted = "text or integers" if name == "id" else "text"
            msg = f"the subscriptions: `{name}` is {kind.simpleString()}; it must be {wanted}"
            raise BadFrame(msg)


def _refuse_nulls(table: pa.Table) -> None:
    for name in ("id", "filter"):
        if missing := table[name].null_count:
            msg = f"the subscriptions: `{name}` is null in {missing} rows; leave them out: .where('{name} is not null')"
            raise BadFrame(msg)


def _refuse_repeated(table: pa.Table) -> None:
    """Rows of a frame have no order, so of two filters under one id neither is the later one."""
    counted = pc.value_counts(table["id"])
    repeated = counted.filter(pc.greater(counted.field("counts"), 1)).field("values").to_pylist()
    if repeated:
        shown = ", ".join(f"`{id_}`" for id_ in sorted(repeated)[:10]) + (", ..." if len(repeated) > 10 else "")
        msg = f"{len(repeated)} ids have several filters in the subscriptions' DataFrame: {shown}; an id has one filter"
        errors = tuple((id_, BadFrame(msg)) for id_ in repeated)
        raise BadSubscriptions(msg, errors=errors)
