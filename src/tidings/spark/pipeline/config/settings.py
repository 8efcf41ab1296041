"""What a pipeline is told: plain values, read from `pipeline.toml` by `reading`, used by everything else here.

Each class is a table of the file and each field a key of it, under the same name. Values are checked before they
come here; what a key means, what it may be and what it is by default stands in docs/guide/pipeline.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias

from tidings.concepts import Ontology, Regions
from tidings.model import Schema

SourceKind: TypeAlias = Literal["json", "csv", "parquet", "kafka", "rate", "socket"]
SinkKind: TypeAlias = Literal["json", "parquet", "kafka", "console", "python"]

LARGEST = 8_000_000
"""Bytes that an event may have where the file says nothing."""

Options: TypeAlias = Mapping[str, str]
"""Handed to Spark as they are. Values may hold secrets: never print or log them."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where events come from; `id` and `time` are columns, or fields of them such as `kafka.key`."""

    kind: SourceKind
    path: str | None = None  # json, csv, parquet
    columns: str | None = None  # Spark's words: "id BIGINT, make STRING, price DOUBLE"
    servers: str | None = None  # kafka
    topic: str | None = None  # kafka; several are parted by commas
    value: Literal["json", "text"] = "json"  # kafka, socket
    host: str | None = None  # socket
    port: int | None = None  # socket
    id: str | None = None
    time: str | None = None
    largest: int = LARGEST  # bytes of an event; rate has none
    options: Options = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Where subscriptions come from: exactly one of the first five is given."""

    file: str | None = None
    directory: str | None = None
    table: str | None = None
    topic: str | None = None
    snapshot: str | None = None
    servers: str | None = None  # with topic
    notation: Literal["text", "json", "url"] = "text"
    shards: int = 1
    refresh: timedelta | None = None  # with table
    options: Options = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Patterns:
    """What is looked for over time; events wait for `lateness` and are then taken in the order of their times."""

    file: str
    lateness: timedelta
    key: str | None = None
    keep: tuple[str, ...] | None = None
    model: str | None = None
    horizon: int | str | None = None
    threshold: float = 0.5
    tell: str = "crossing"
    step: float = 0.1


@dataclass(frozen=True, slots=True)
class Sink:
    """Where rows go."""

    kind: SinkKind
    path: str | None = None  # json, parquet
    servers: str | None = None  # kafka
    topic: str | None = None  # kafka
    function: str | None = None  # python: "package.module:name", called with a DataFrame and the batch's number
    rows: int = 20  # console
    options: Options = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Matching:
    """What comes out for an event that somebody wants."""

    per: Literal["match", "event"] = "match"
    keep: tuple[str, ...] | None = None
    limit: int | None = None
    spread: int | None = None
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """Events older than `after` before the newest one of the batches before go to the dead letters."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Duplicates:
    """An event whose id came before, `within` this time, is left out and counted."""

    within: timedelta


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a micro-batch starts: every so often, at once after the last one (nothing given), or until all is read."""

    every: timedelta | None = None
    available_now: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """How the running pipeline tells of itself."""

    view: Literal["auto", "on", "off"] = "auto"
    metrics: str | None = None  # "127.0.0.1:9464", for Prometheus
    lines: str | None = None  # a file of JSON lines; "-" is standard output


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A whole pipeline: subscriptions with sinks, patterns with detections, or both."""

    name: str
    folder: Path  # of the file; relative paths were resolved against it
    checkpoint: str
    source: Source
    subscriptions: Subscriptions | None
    sinks: tuple[Sink, ...]
    dead_letters: Sink
    matching: Matching = Matching()
    derived: Mapping[str, str] = field(default_factory=dict)  # name -> Spark SQL
    schema: Schema | None = None
    ontology: Ontology | None = None
    regions: Regions | None = None
    late: Late | None = None
    duplicates: Duplicates | None = None
    patterns: Patterns | None = None
    detections: tuple[Sink, ...] = ()  # where those go
    trigger: Trigger = Trigger()
    shown: Shown = Shown()
    master: str | None = None
    jars: str | None = None
    unknown: Literal["error", "absent"] = "error"  # names in filters and patterns that no column has
    spark: Options = field(default_factory=dict, repr=False)  # settings of the session

    @property
    def kafka(self) -> bool:
        """Whether something of it needs Spark's Kafka connector."""
        kinds = [self.source.kind, self.dead_letters.kind, *(sink.kind for sink in (*self.sinks, *self.detections))]
        return "kafka" in kinds or (self.subscriptions is not None and self.subscriptions.topic is not None)
