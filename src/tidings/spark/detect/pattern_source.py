"""Patterns in any of their forms as one detector whose vocabulary includes the columns of a DataFrame.

Every mistake is refused here, before any job runs: patterns that cannot be read, columns that cannot give a time or
the value of a variable, filters that read a column as a kind that it is not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.sql.types import DateType, IntegralType, StructType, TimestampNTZType, TimestampType

from tidings.algebra.law.requirements import describe_unknown_attribute
from tidings.concepts import Vocabulary
from tidings.errors import BadFrame, FileError, PatternError
from tidings.forecast import Detector
from tidings.lang import WrittenPattern, read_patterns
from tidings.model import Schema
from tidings.model.patterns import NamedFilter
from tidings.spark.bad_values import find_breakable
from tidings.spark.query_context import WAY_OUT, QueryContext, Unknown
from tidings.spark.schema import find_arrow_type, refuse_conflicts, require_columns, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

Patterns: TypeAlias = (
    "Detector | Mapping[str, str] | Iterable[WrittenPattern | tuple[str, str]] | str | os.PathLike[str]"
)
"""What `detect` takes: a detector, names and texts, what `lang.read_patterns` reads, or the path of a pattern file."""


def build_detector(
    events: DataFrame, patterns: Patterns, context: QueryContext, *, time: str, key: str | None
) -> Detector:
    """Return a detector of the patterns for events of these columns; patterns without a key get `key` as theirs."""
    _check_time(events.schema, time)
    if key is not None:
        require_columns([key], events.schema, why="key")
    columns = schema_of(events.schema)
    if isinstance(patterns, Detector):
        written, detector = _copy_detector(patterns, columns, context, time=time)
    else:
        wide = context.with_columns(columns)
        written = _read_all(patterns, wide.vocabulary)
        trial = Detector(**wide.vocabulary.to_keywords())
        trial.add_many(written)
        # Columns that may break their types are read in any case: whether an event is bad must not depend on patterns.
        attributes = {time, *([key] if key else ()), *find_breakable(events.schema)}
        attributes.update(trial.compile().matcher.admission.list_demands())
        attributes.update(*(pattern.pattern.variable_attributes() for pattern in written))
        narrow = context.with_columns(columns, attributes)
        detector = Detector(**narrow.vocabulary.to_keywords(), time=time)
    if not written:
        msg = "there are no patterns to detect; name one at least"
        raise PatternError(msg)
    detector.add_many(pattern if key is None else add_key(pattern, key) for pattern in written)
    compiled = detector.compile()
    check_variables(compiled.attributes, events.schema, compiled.vocabulary, context.unknown)
    return detector


def _copy_detector(
    detector: Detector, columns: Schema, context: QueryContext, *, time: str
) -> tuple[list[WrittenPattern], Detector]:
    """Return the patterns of a detector and an empty one of the same settings, checked against the columns."""
    context.refuse_overrides("a detector", "give them to td.Detector, or pass the patterns themselves")
    compiled = detector.compile()
    refuse_conflicts(compiled.matcher.needs(), columns)
    context.refuse_unknown(compiled.matcher, columns, subject="patterns")
    empty = Detector(**compiled.vocabulary.to_keywords(), time=time, partials=detector.partials)
    return [pattern.to_written() for pattern in detector.patterns], empty


def _read_all(patterns: Patterns, vocabulary: Vocabulary) -> list[WrittenPattern]:
    """Return patterns in any of their forms but a detector."""
    assert not isinstance(patterns, Detector)
    if isinstance(patterns, str | os.PathLike):
        return read_patterns(_read_text(patterns), **vocabulary.to_keywords())
    pairs: Iterable[object] = patterns.items() if isinstance(patterns, Mapping) else patterns
    reader = Detector(**vocabulary.to_keywords())
    written: list[WrittenPattern] = []
    for pattern in pairs:
        if isinstance(pattern, WrittenPattern):
            written.append(pattern)
            continue
        if not isinstance(pattern, tuple) or len(pattern) != 2:
            msg = f"a pattern is a pair of a name and a text, or what lang.read_patterns gives, not `{pattern!r}`"
            raise PatternError(msg)
        name, text = pattern
        reader.add(name, text)
        written.append(WrittenPattern(name, reader[name]))
    return written


def _read_text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as problem:
        msg = f"the pattern file `{path}` cannot be read: {problem.strerror}; patterns as text go in a mapping"
        raise FileError(msg) from problem


def add_key(written: WrittenPattern, key: str) -> WrittenPattern:
    """Return a pattern that the column `key` partitions, unless the pattern has a key of its own."""
    pattern = written.pattern
    if pattern.key_variables():
        return written
    used = {variable for named in pattern.filters for _, variable in named.variables}
    name = "key"
    while name in used:
        name += "_"
    filters = tuple(NamedFilter(named.name, named.filter, (*named.variables, (key, name))) for named in pattern.filters)
    return replace(written, pattern=replace(pattern, filters=filters))


def _check_time(frame: StructType, time: str) -> None:
    require_columns([time], frame, why="time")
    kind = frame[time].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType | DateType | IntegralType):
        msg = f"time: `{time}` is {kind.simpleString()}; cast it to a timestamp, or to integers, seconds since 1970"
        raise BadFrame(msg)


def check_variables(attributes: Iterable[str], frame: StructType, vocabulary: Vocabulary, unknown: Unknown) -> None:
    """Refuse columns that cannot give a variable its value, and variables whose values no column gives.

    Unknown names in filters are refused when they are parsed; where unknown names are absent, those of variables are.
    """
    names = sorted(set(attributes))
    for name in names:
        kind = find_arrow_type(frame[name].dataType) if name in frame.names else None
        if kind is not None and (pa.types.is_nested(kind) or pa.types.is_binary(kind)):
            msg = f"`{name}` gives a variable its value, and is {frame[name].dataType.simpleString()}; "
            msg += "a variable takes one text, number, truth value or time"
            raise BadFrame(msg)
    schema = schema_of(frame).merged(vocabulary.schema or Schema({}))
    own = Vocabulary(schema, vocabulary.ontology)
    missing = [name for name in names if not own.has_attribute(name)]
    if missing and unknown == "error":
        raise BadFrame("\n".join([*(describe_unknown_attribute(name, schema) for name in missing), WAY_OUT]))
