"""What filters are understood by, as it goes to the executors.

A frame of events says which names there are: a filter that asks for another one is refused with the nearest names,
unless `unknown` says that such names are absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql.types import StructType

from tidings.concepts import Ontology, Regions
from tidings.errors import BadFrame, SchemaError
from tidings.matcher import Matcher
from tidings.matcher.unknown_names import refuse_unknown
from tidings.model import Schema
from tidings.spark.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Collection

Unknown: TypeAlias = Literal["error", "absent"]
"""What becomes of a name in a filter that no column has: the filter is refused, or the attribute is absent."""

SchemaLike: TypeAlias = "Schema | Mapping[str, str] | StructType | pa.Schema"
"""The forms of a schema that callers may give."""

WAY_OUT = 'correct the names, or say unknown="absent": then they are absent in every event'


@dataclass(frozen=True, slots=True)
class QueryContext:
    """A schema, an ontology, regions and a time; each may be given by the caller or be left out."""

    schema: Schema | None = None
    ontology: Ontology | None = None
    regions: Regions | None = None
    now: datetime | None = None
    unknown: Unknown = "error"

    def build_matcher(self) -> Matcher:
        """Return an empty matcher that understands filters so."""
        return Matcher(schema=self.schema, ontology=self.ontology, regions=self.regions, now=self.now)

    def with_columns(self, frame: Schema | None, attributes: Collection[str] | None = None) -> QueryContext:
        """Return these beside the attributes of a frame of events; the given schema wins over the columns' own kinds.

        With `asked`, of the frame's columns only those that filters ask for: the others need not cross into Python
        (`schema.bad_values` looks at them where they are). The names are the frame's and the schema's, and no others,
        unless `unknown` says otherwise.
        """
        if frame is None:
            return self
        closed = self.unknown == "error"
        if attributes is not None:
            sources = {source for name in attributes for source in (self.ontology or Ontology()).sources(name)}
            frame = Schema({name: frame[name] for name in frame if name in sources | {*attributes} or name.endswith(".*")})
        around = frame if self.schema is None else frame.merged(self.schema)
        return replace(self, schema=Schema({name: around[name] for name in around}, closed=closed))

    def close_schema(self, frame: Schema) -> Schema:
        """Return a frame's attributes as filters of others are held against them: closed, unless `unknown` opens it."""
        return Schema({name: frame[name] for name in frame}, closed=self.unknown == "error")

    def refuse_unknown(self, matcher: Matcher, frame: Schema, subject: str = "subscriptions") -> None:
        """Refuse a matcher whose filters ask for names that neither the frame nor the matcher's own schema has."""
        if self.unknown == "error":
            refuse_unknown(matcher, frame, what=subject, where="the DataFrame does", way_out=WAY_OUT)

    @property
    def named(self) -> dict[str, object]:
        """Those that are given, but for the time, by name."""
        names = ("schema", "ontology", "regions")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def to_schema(schema: SchemaLike | None) -> Schema | None:
    """Return a schema in any of the forms that a caller may give it in."""
    if schema is None or isinstance(schema, Schema):
        return schema
    if isinstance(schema, StructType):
        columns = schema_of(schema)
        return Schema({name: columns[name] for name in columns})
    if isinstance(schema, pa.Schema):
        return Schema.from_arrow(schema)
    if isinstance(schema, Mapping):
        return Schema(schema)
    forms = "a td.Schema, a mapping of names to kinds, Spark's StructType or an Arrow schema"
    msg = f"schema= takes {forms}, not `{type(schema).__name__}`"
    raise SchemaError(msg)


def check_unknown(unknown: str) -> Unknown:
    """Return what is to become of names that no column has, or say what it may be."""
    if unknown not in ("error", "absent"):
        msg = f'unknown is "error" or "absent", not {unknown!r}'
        raise BadFrame(msg)
    return unknown  # type: ignore[return-value]
