"""Patterns in any of their forms as one detector, understood beside the columns of a DataFrame.

Everything that can be wrong is refused here, before any job runs: patterns that cannot be read, columns that cannot
give a time or a variable its value, filters that use a column as something it is not.
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
from tidings.errors import BadFrame, FileError, PatternError, TidingsError
from tidings.lang import WrittenPattern, read_patterns
from tidings.model import Schema
from tidings.model.patterns import NamedFilter
from tidings.patterns import Detector
from tidings.patterns.pattern_input import variable_attributes
from tidings.patterns.run.portions import written
from tidings.spark.schema import arrow_type_of, find_breakable, refuse_conflicts, require_columns, schema_of
from tidings.spark.query_context import WAY_OUT, QueryContext

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

Patterns: TypeAlias = (
    "Detector | Mapping[str, str] | Iterable[WrittenPattern | tuple[str, str]] | str | os.PathLike[str]"
)
"""What `detect` takes: a detector, names and texts, what `lang.read_patterns` reads, or the path of a pattern file."""


def detector_of(events: DataFrame, patterns: Patterns, given: QueryContext, *, time: str, key: str | None) -> Detector:
    """Return the patterns, understood beside the frame's columns, with the key that was asked for."""
    _check_time(events.schema, time)
    if key is not None:
        require_columns([key], events.schema, why="key")
    frame = schema_of(events.schema)
    if isinstance(patterns, Detector):
        if given.named:
            words = " and ".join(f"`{name}`" for name in given.named)
            msg = f"a detector brings its own {words}; give them to td.Detector, or pass the patterns themselves"
            raise TidingsError(msg)
        refuse_conflicts(patterns._matcher.needs(), frame)
        given.refuse_unknown(patterns._matcher, frame, subject="patterns")
        around, told = _around(patterns), [written(one) for one in patterns.watched]
        partials = patterns.partials
    else:
        wide = given.with_columns(frame)
        told = _written(patterns, wide)
        asked = {time, *(name for one in told for name in variable_attributes(one.pattern)), *([key] if key else ())}
        # What may break its type is read whoever asks: whether an event is bad must not hang on patterns.
        asked |= find_breakable(events.schema)
        around, partials = given.with_columns(frame, asked | _asked(told, wide)), None
    made = Detector(**around.named, time=time, **({} if partials is None else {"partials": partials}))  # type: ignore[arg-type]
    if not told:
        msg = "there are no patterns to detect; name one at least"
        raise PatternError(msg)
    made.add_many(one if key is None else _keyed(one, key) for one in told)
    _check_variables(made, events.schema)
    if given.unknown == "error":
        _refuse_unknown(made, frame)
    return made


def _around(detector: Detector) -> QueryContext:
    matcher = detector._matcher
    return QueryContext(matcher.schema, matcher.ontology, matcher.regions)


def _asked(told: Iterable[WrittenPattern], wide: QueryContext) -> set[str]:
    """Return the attributes that filters ask for."""
    trial = Detector(**wide.named)  # type: ignore[arg-type]
    trial.add_many(told)
    return {name for name, *_ in trial._matcher.admission.needs.to_dict()["demands"]}


def _written(patterns: Patterns, around: QueryContext) -> list[WrittenPattern]:
    """Return patterns in any of their forms as they are read from a file."""
    if isinstance(patterns, str | os.PathLike):
        return read_patterns(_text(patterns), **around.named)  # type: ignore[arg-type]
    pairs = patterns.items() if isinstance(patterns, Mapping) else patterns
    reader = Detector(**around.named)  # type: ignore[arg-type]
    found: list[WrittenPattern] = []
    for one in pairs:
        if isinstance(one, WrittenPattern):
            found.append(one)
            continue
        if not isinstance(one, tuple) or len(one) != 2:
            msg = f"a pattern is a pair of a name and a text, or what lang.read_patterns gives, not `{one!r}`"
            raise PatternError(msg)
        reader.add(*one)
        found.append(WrittenPattern(one[0], reader[one[0]]))
    return found


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as problem:
        msg = f"the pattern file `{path}` cannot be read: {problem.strerror}; patterns as text go in a mapping"
        raise FileError(msg) from problem


def _keyed(told: WrittenPattern, key: str) -> WrittenPattern:
    """Let a column part the stream of a pattern that has no key."""
    pattern = told.pattern
    if pattern.key_variables():
        return told
    taken = {variable for named in pattern.filters for _, variable in named.variables}
    name = "key"
    while name in taken:
        name += "_"
    filters = tuple(NamedFilter(one.name, one.filter, (*one.variables, (key, name))) for one in pattern.filters)
    return replace(told, pattern=replace(pattern, filters=filters))


def attributes_read(detector: Detector) -> set[str]:
    """Return the attributes that give variables their values."""
    return {name for told in detector.watched for name in variable_attributes(told.pattern)}


def _check_time(frame: StructType, time: str) -> None:
    require_columns([time], frame, why="time")
    kind = frame[time].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType | DateType | IntegralType):
        msg = f"time: `{time}` is {kind.simpleString()}; cast it to a timestamp, or to integers, seconds since 1970"
        raise BadFrame(msg)


def _refuse_unknown(detector: Detector, frame: Schema) -> None:
    """Refuse variables whose values no column gives; of filters, reading them has told."""
    around = _around(detector)
    vocabulary = Vocabulary(schema := frame.merged(around.schema or Schema({})), around.ontology)
    lines = [
        describe_unknown_attribute(name, schema)
        for name in sorted(attributes_read(detector))
        if not vocabulary.has_attribute(name)
    ]
    if lines:
        raise BadFrame("\n".join([*lines, WAY_OUT]))


def _check_variables(detector: Detector, frame: StructType) -> None:
    """Refuse columns that cannot give a variable its value; a name that is no column is absent, as in filters."""
    for name in sorted(attributes_read(detector)):
        kind = arrow_type_of(frame[name].dataType) if name in frame.names else None
        if kind is not None and (pa.types.is_nested(kind) or pa.types.is_binary(kind)):
            msg = f"`{name}` gives a variable its value, and is {frame[name].dataType.simpleString()}; "
            msg += "a variable takes one text, number, truth value or time"
            raise BadFrame(msg)
