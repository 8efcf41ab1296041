"""What a Spark query understands filters and patterns by: a vocabulary, a time, and a rule for unknown names.

The columns of a frame of events decide which names exist: a filter that uses another name is refused with the nearest
names, unless the rule `unknown="absent"` makes such attributes absent from every event. A `QueryContext` is pickled
into the functions that executors run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import pyarrow as pa
from pyspark.sql.types import StructType

from tidings.concepts import Vocabulary
from tidings.errors import BadFrame, SchemaError, TidingsError
from tidings.matcher import Matcher
from tidings.matcher.unknown_names import refuse_unknown
from tidings.model import Schema
from tidings.spark.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidings.concepts import Ontology, Regions

Unknown: TypeAlias = Literal["error", "absent"]
"""What becomes of a name in a filter that no column has: the filter is refused, or the attribute is absent."""

SchemaLike: TypeAlias = "Schema | Mapping[str, str] | StructType | pa.Schema"
"""The forms of a schema that callers may give."""

WAY_OUT = 'correct the names, or say unknown="absent": then they are absent in every event'


@dataclass(frozen=True, slots=True)
class QueryContext:
    """The vocabulary of a query, the time that ages are measured against, and the rule for unknown names."""

    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    now: datetime | None = None
    unknown: Unknown = "error"

    @classmethod
    def of(
        cls,
        schema: SchemaLike | None,
        ontology: Ontology | None,
        regions: Regions | None,
        *,
        now: datetime | None = None,
        unknown: str = "error",
    ) -> QueryContext:
        """Return the context of the keyword values of a public function; a bad schema or rule is refused."""
        return cls(Vocabulary.of(to_schema(schema), ontology, regions), now, check_unknown(unknown))

    def build_matcher(self) -> Matcher:
        """Return an empty matcher with this vocabulary and time."""
        return Matcher(**self.vocabulary.to_keywords(), now=self.now)

    def with_columns(self, columns: Schema | None, attributes: Collection[str] | None = None) -> QueryContext:
        """Return the context extended by the columns of a frame of events; the context's own schema wins over them.

        `attributes` limits the extension to columns that filters read: the others need not cross into Python
        (`bad_values` checks them in the JVM). The result is closed, so that no other name is
        known, unless `unknown` is `"absent"`.
        """
        if columns is None:
            return self
        if attributes is not None:
            sources = {source for name in attributes for source in self.vocabulary.concepts.sources(name)}
            names = sources | {*attributes}
            columns = Schema({name: columns[name] for name in columns if name in names or name.endswith(".*")})
        own = self.vocabulary.schema
        merged = self.close_schema(columns if own is None else columns.merged(own))
        return replace(self, vocabulary=replace(self.vocabulary, schema=merged))

    def close_schema(self, columns: Schema) -> Schema:
        """Return the same attributes as a closed schema; as an open one where unknown names are absent."""
        return Schema({name: columns[name] for name in columns}, closed=self.unknown == "error")

    def refuse_unknown(self, matcher: Matcher, columns: Schema, subject: str = "subscriptions") -> None:
        """Refuse a matcher whose filters use names that neither the columns nor the matcher's own schema have."""
        if self.unknown == "error":
            refuse_unknown(matcher, columns, subject=subject, where="the DataFrame does", way_out=WAY_OUT)

    @property
    def overrides(self) -> dict[str, Any]:
        """The parts of the vocabulary that the caller gave, by keyword; empty where all are left out."""
        return {name: part for name, part in self.vocabulary.to_keywords().items() if part is not None}

    def refuse_overrides(self, owner: str, way_out: str) -> None:
        """Refuse a vocabulary beside an object, such as a matcher, that has one of its own."""
        if self.overrides:
            words = " and ".join(f"`{name}`" for name in self.overrides)
            msg = f"{owner} brings its own {words}; {way_out}"
            raise TidingsError(msg)


def to_schema(schema: SchemaLike | None) -> Schema | None:
    """Return a schema given in any of the forms of `SchemaLike`; another form raises `SchemaError`."""
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
    """Return the rule for unknown names, or raise `BadFrame` when it is another."""
    if unknown not in ("error", "absent"):
        msg = f'unknown is "error" or "absent", not {unknown!r}'
        raise BadFrame(msg)
    return cast("Unknown", unknown)
