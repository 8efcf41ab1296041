"""What filters are understood by, as it goes to the executors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from tidings.concepts import Ontology, Regions
from tidings.matcher import Matcher
from tidings.model import Schema

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A schema, an ontology, regions and a time; each may be given by the caller or be left out."""

    schema: Schema | None = None
    ontology: Ontology | None = None
    regions: Regions | None = None
    now: datetime | None = None

    def matcher(self) -> Matcher:
        """Return an empty matcher that understands filters so."""
        return Matcher(schema=self.schema, ontology=self.ontology, regions=self.regions, now=self.now)

    def beside(self, frame: Schema | None, asked: Collection[str] | None = None) -> Surroundings:
        """Return these beside the attributes of a frame of events; the given schema wins over the columns' own kinds.

        A closed schema holds events to every attribute it has: the caller's own, yes, but of the frame's columns only
        those that filters ask for. A NaN where nobody looks is no reason for a dead letter.
        """
        if frame is None or self.schema is None:
            return self if frame is None else replace(self, schema=frame)
        if asked is not None and self.schema.closed:
            sources = {source for name in asked for source in (self.ontology or Ontology()).sources(name)}
            frame = Schema({name: frame[name] for name in frame if name in sources or name in asked})
        return replace(self, schema=frame.merged(self.schema))

    @property
    def named(self) -> dict[str, object]:
        """Those that are given, but for the time, by name."""
        names = ("schema", "ontology", "regions")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def schema_given(schema: Schema | Mapping[str, str] | None) -> Schema | None:
    """Return a schema that may be written as a mapping."""
    return schema if schema is None or isinstance(schema, Schema) else Schema(schema)
