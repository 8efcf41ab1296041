"""The tables and keys of `pipeline.toml` as pydantic dataclasses: every key is one field.

The annotation of a field has the Python type, the `ValueKind` that checks and converts a file's value, and a `KeyRule`
for what a field cannot say; the text beneath it is its description. Loading (`load`), messages and the
JSON schema for editors (`reference`) all read these classes, so a new key is one field here. The tables of keys in
docs/guide/pipeline.md are written by hand, and a test compares them.

An object built by code is not checked. One that `load` builds from a file with mistakes has None for refused keys, also
where the type does not allow None; it serves to find further mistakes and is never run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import pydantic.dataclasses
from pydantic import Field

from tidings.concepts import Ontology, Regions
from tidings.concepts.text_files import read_text
from tidings.configuration import measure_kinds, path_kinds
from tidings.configuration import value_kinds as kinds
from tidings.configuration.environment import derive_text, mask
from tidings.configuration.keys import CONFIG, FileKeys, KeyRule
from tidings.configuration.local_paths import to_local_path
from tidings.configuration.value_kinds import make_choice_kind
from tidings.errors import PatternError
from tidings.forecast import Model
from tidings.lang import read_patterns
from tidings.model import Schema
from tidings.spark.pipeline.config import value_kinds as pipeline_kinds
from tidings.spark.pipeline.config.value_kinds import Trigger
from tidings.spark.pipeline.sources.size_limits import DEFAULT_MAX_BYTES
from tidings.spark.query_context import QueryContext, Unknown

if TYPE_CHECKING:
    from tidings.lang import WrittenPattern

SourceKind: TypeAlias = Literal["json", "csv", "parquet", "kafka", "rate", "socket"]
SinkKind: TypeAlias = Literal["json", "parquet", "kafka", "console", "python", "store"]
RecordFormat: TypeAlias = Literal["json", "text"]
Notation: TypeAlias = Literal["text", "json", "url"]
RowUnit: TypeAlias = Literal["match", "event"]
ViewMode: TypeAlias = Literal["auto", "on", "off"]
ReportPolicy: TypeAlias = Literal["crossing", "episode", "every", "change"]

Options: TypeAlias = Mapping[str, str]
"""Handed to Spark as they are. Values may hold secrets: never print or log them."""

FILES = ("json", "csv", "parquet")
FOLDERS = ("json", "parquet")
WITH_COLUMNS = (*FILES, "kafka", "socket")
FEEDS = ("file", "directory", "table", "topic", "snapshot", "store")
ONE_OF = {"subscriptions": FEEDS, "patterns": ("file", "store")}
"""The keys of a table of which exactly one is set."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=CONFIG)
class SourceSettings:
    """Where events come from; `id` and `time` are columns, or fields of them such as `kafka.key`."""

    kind: Annotated[SourceKind, make_choice_kind(SourceKind)]
    """What the events are read from."""
    path: Annotated[str | None, path_kinds.PATH, KeyRule(FILES, required=True)] = None
    """Folder of files; new files are new events. May hold `*`."""
    columns: Annotated[
        str | None, kinds.TEXT, KeyRule(WITH_COLUMNS, required=("csv", "parquet"), default="whole documents")
    ] = None
    """Columns in Spark's words: "id BIGINT, make STRING, price DOUBLE". Not with value = "text"."""
    servers: Annotated[str | None, kinds.TEXT, KeyRule(("kafka",), required=True)] = None
    """The brokers, parted by commas."""
    topic: Annotated[str | None, kinds.TEXT, KeyRule(("kafka",), required=True)] = None
    """The topic; several are parted by commas."""
    value: Annotated[RecordFormat, make_choice_kind(RecordFormat), KeyRule(("kafka", "socket"))] = "json"
    """What a record's value or a line is: JSON, or text in a column `value`."""
    host: Annotated[str | None, kinds.TEXT, KeyRule(("socket",), required=True)] = None
    """Whom to ask for lines."""
    port: Annotated[int | None, measure_kinds.PORT, KeyRule(("socket",), required=True)] = None
    """The port of the host."""
    id: Annotated[str | None, kinds.TEXT] = None
    """Column that names an event, or a field of one such as `kafka.key`."""
    time: Annotated[str | None, kinds.TEXT] = None
    """Column with an event's time, or a field of one such as `kafka.timestamp`."""
    largest: Annotated[int, pipeline_kinds.EVENT_SIZE, KeyRule(WITH_COLUMNS, default='"8 MB"')] = DEFAULT_MAX_BYTES
    """The most bytes an event may have; a larger one is a dead letter with its first 200 bytes."""
    options: Annotated[Options, pipeline_kinds.OPTIONS] = Field(default_factory=dict, repr=False)
    """Handed to Spark's reader as they are."""

    @property
    def has_documents(self) -> bool:
        """Whether each event is one JSON object as text, in the column `document`."""
        is_json = self.kind == "json" or (self.kind in ("kafka", "socket") and self.value == "json")
        return is_json and self.columns is None


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=CONFIG)
class SubscriptionSettings:
    """Where subscriptions come from: exactly one of the six feeds is set."""

    file: Annotated[str | None, path_kinds.FEED_FILE] = None
    """File of subscriptions; it is read again when it changes."""
    directory: Annotated[str | None, path_kinds.FEED_FOLDER] = None
    """Folder of change files, applied in the order of their names."""
    table: Annotated[str | None, kinds.TEXT] = None
    """Table with columns `id` and `filter` (and `notation`)."""
    topic: Annotated[str | None, kinds.TEXT] = None
    """Compacted Kafka topic: the key is the id, the value the filter, null removes."""
    snapshot: Annotated[str | None, path_kinds.FEED_FOLDER] = None
    """Snapshot made by `tidings compile`, or a live folder."""
    store: Annotated[str | None, path_kinds.STORE_URL] = Field(default=None, repr=False)
    """Store of a subscription service; its filters are followed."""
    servers: Annotated[str | None, kinds.TEXT, KeyRule(("topic",), required=True)] = None
    """The brokers of the topic, parted by commas."""
    notation: Annotated[Notation, make_choice_kind(Notation), KeyRule(FEEDS[:4])] = "text"
    """How filters are written where a row does not say."""
    shards: Annotated[int, measure_kinds.COUNT] = 1
    """Into how many parts the subscriptions are split."""
    refresh: Annotated[timedelta | None, measure_kinds.DURATION, KeyRule(("table",), default="each micro-batch")] = None
    """How often the table is looked at."""
    options: Annotated[Options, pipeline_kinds.OPTIONS, KeyRule(("topic",))] = Field(default_factory=dict, repr=False)
    """Handed to Spark's reader as they are."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=CONFIG)
class MatchingSettings:
    """What comes out for an event that matches."""

    per: Annotated[RowUnit, make_choice_kind(RowUnit)] = "match"
    """A row for each match, or one for each event with the array `subscriptions`."""
    keep: Annotated[tuple[str, ...] | None, kinds.TEXTS, KeyRule(default="none with `source.id`, else all")] = None
    """Columns of the event that come along."""
    limit: Annotated[int | None, measure_kinds.COUNT, KeyRule(default="none")] = None
    """The most subscriptions of one event; an event with more is a dead letter."""
    spread: Annotated[int | None, measure_kinds.COUNT, KeyRule(default="as the source gives it")] = None
    """Over how many tasks a micro-batch is spread."""
    now: Annotated[datetime | None, measure_kinds.MOMENT, KeyRule(default="that of each micro-batch")] = None
    """The time that ages are reckoned against."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=CONFIG)
class LateSettings:
    """Events older than `after` before the newest one of earlier batches go to the dead letters."""

    after: Annotated[timedelta, measure_kinds.DURATION]
    """Events that are older than this before the newest one seen are dead letters."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=CONFIG)
class DuplicateSettings:
    """An event whose id came before, `within` this time, is left out and counted."""

    within: Annotated[timedelta, measure_kinds.DURATION]
    """An event whose id came before, within this time, is left out and counted."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=CONFIG)
class SinkSettings:
    """Where rows go."""

    kind: Annotated[SinkKind, make_choice_kind(SinkKind)]
    """What the rows are written to."""
    path: Annotated[str | None, path_kinds.PATH, KeyRule(FOLDERS, required=True)] = None
    """Folder that gets one folder `batch=N` for each micro-batch."""
    servers: Annotated[str | None, kinds.TEXT, KeyRule(("kafka",), required=True)] = None
    """The brokers, parted by commas."""
    topic: Annotated[str | None, kinds.TEXT, KeyRule(("kafka",), required=True)] = None
    """The topic."""
    function: Annotated[str | None, kinds.FUNCTION, KeyRule(("python",), required=True)] = None
    """Called with a DataFrame and the batch's number."""
    rows: Annotated[int, measure_kinds.COUNT, KeyRule(("console",))] = 20
    """How many rows of a micro-batch are shown."""
    store: Annotated[str | None, path_kinds.STORE_URL, KeyRule(("store",), required=True)] = Field(
        default=None, repr=False
    )
    """Store of a subscription service, which has a table of the latest matches."""
    keep: Annotated[int, measure_kinds.COUNT, KeyRule(("store",))] = 1000
    """How many matches each subscription keeps."""
    options: Annotated[Options, pipeline_kinds.OPTIONS, KeyRule((*FOLDERS, "kafka"))] = Field(
        default_factory=dict, repr=False
    )
    """Handed to Spark's writer as they are."""

    def derive_pattern_letters(self) -> SinkSettings:
        """Return where the dead letters of patterns go beside this sink: their batches have numbers of their own."""
        if self.path is None:
            return self
        return dataclasses.replace(self, path=derive_text(self.path, f"{self.path.rstrip('/')}_of_patterns"))


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class PatternSettings:
    """Patterns over time; events wait for `lateness` and are then taken in the order of their times.

    Either `file` or `store` is set.
    """

    file: Annotated[str | None, path_kinds.LOCAL_FILE] = None
    """File of patterns; it is read when the pipeline starts."""
    store: Annotated[str | None, path_kinds.STORE_URL] = Field(default=None, repr=False)
    """Store of a subscription service; its patterns and forecasts are followed."""
    lateness: Annotated[timedelta, measure_kinds.WAIT]
    """How far an event may be behind the newest one seen; events wait so long to be put in order."""
    idle: Annotated[timedelta | None, measure_kinds.DURATION, KeyRule(("store",), default="never")] = None
    """Without events for so long, time passes by the clock, so that absences are noticed."""
    ahead: Annotated[
        timedelta | None, measure_kinds.DURATION, KeyRule(("store",), default='any; "1 hour" with `idle`')
    ] = None
    """How far an event may be dated ahead of its batch; patterns leave out what is further ahead, a dead letter."""
    key: Annotated[str | None, kinds.TEXT, KeyRule(default="none")] = None
    """Column that parts the events for patterns without variables."""
    keep: Annotated[tuple[str, ...] | None, kinds.TEXTS, KeyRule(default="none")] = None
    """Columns of the events that detections carry."""
    model: Annotated[str | None, path_kinds.PATH, KeyRule(default="none")] = None
    """Model of the patterns; then there are forecasts among the detections."""
    horizon: Annotated[int | str | None, pipeline_kinds.HORIZON, KeyRule(("file",), default="none")] = None
    """How far ahead forecasts look; needed with `model`. A subscription of a store brings its own."""
    threshold: Annotated[float, measure_kinds.CHANCE] = 0.5
    """What a probability must exceed for a forecast to be written."""
    tell: Annotated[ReportPolicy, make_choice_kind(ReportPolicy)] = "crossing"
    """When forecasts are written."""
    step: Annotated[float, measure_kinds.CHANCE] = 0.1
    """By how much it must change, with `tell = "change"`."""

    def parse(self, context: QueryContext) -> list[WrittenPattern]:
        """Return the patterns of the file; `PatternError` has every mistake in it, with its line and a caret."""
        if self.file is None:
            return []
        text = read_text(to_local_path(self.file) or Path(self.file))
        patterns = read_patterns(text, **context.vocabulary.to_keywords())
        if not patterns:
            msg = f"`{mask(self.file)}` holds no pattern; one begins with a line `pattern NAME`"
            raise PatternError(msg)
        return patterns

    def load_model(self) -> Model | None:
        """Return the model that forecasts are made with, where there is one."""
        return None if self.model is None else Model.load(to_local_path(self.model) or Path(self.model))


@pydantic.dataclasses.dataclass(frozen=True, slots=True, config=CONFIG)
class MonitorSettings:
    """How a running pipeline reports its progress."""

    view: Annotated[ViewMode, make_choice_kind(ViewMode)] = "auto"
    """A live view on the terminal; `auto` is on where there is one."""
    metrics: Annotated[str | None, kinds.ADDRESS, KeyRule(default="nowhere")] = None
    """Where Prometheus may ask."""
    lines: Annotated[str | None, path_kinds.OUTPUT_FILE, KeyRule(default="none")] = None
    """File of progress as JSON lines; "-" is standard output."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class PipelineFile:
    """A whole `pipeline.toml`: subscriptions with sinks, patterns with detections, or both."""

    name: Annotated[str, kinds.TEXT, KeyRule(default="the file's name")] = ""
    """What the query is called, in Spark and in what is shown."""
    checkpoint: Annotated[str, path_kinds.PATH]
    """Folder where the query remembers how far it came; it belongs to this pipeline alone."""
    trigger: Annotated[Trigger, pipeline_kinds.TRIGGER, KeyRule(default='"1 second"')] = Trigger(
        every=timedelta(seconds=1)
    )
    """When a micro-batch starts."""
    master: Annotated[str | None, kinds.TEXT, KeyRule(default='"local[*,4]", or what spark-submit says')] = None
    """Where Spark runs."""
    jars: Annotated[str | None, path_kinds.JARS, KeyRule(default="TIDINGS_JARS, else by coordinates")] = None
    """Folder with the Kafka connector's jars."""
    schema: Annotated[Schema | None, path_kinds.SCHEMA] = None
    """Kinds of attributes: a file, or the table `[schema]` itself."""
    unknown: Annotated[Unknown, make_choice_kind(Unknown)] = "error"
    """Names that no column has: a subscription is refused and listed, or they are absent in every event."""
    ontology: Annotated[Ontology | None, path_kinds.ONTOLOGY] = None
    """File of concepts, synonyms and units."""
    regions: Annotated[Regions | None, path_kinds.REGIONS] = None
    """GeoJSON file of named regions, for `within @name`."""
    source: SourceSettings
    """Where events come from."""
    subscriptions: SubscriptionSettings | None = None
    """Who wants to hear of what."""
    matching: MatchingSettings = MatchingSettings()
    """What comes out."""
    late: LateSettings | None = None
    """Late events."""
    duplicates: DuplicateSettings | None = None
    """Duplicates."""
    sinks: tuple[SinkSettings, ...] = Field(default=(), validation_alias="sink")
    """Where rows go."""
    patterns: PatternSettings | None = None
    """What is to happen over time."""
    detections: tuple[SinkSettings, ...] = ()
    """Where detections go."""
    dead_letters: SinkSettings | None = None
    """Where dead letters go."""
    shown: MonitorSettings = MonitorSettings()
    """How a running pipeline reports progress."""
    derived: Annotated[Mapping[str, str], kinds.NAMED_TEXTS] = Field(default_factory=dict)
    """Each key is a new column, each value Spark SQL; a later one may use the earlier."""
    spark: Annotated[Options, kinds.SPARK] = Field(default_factory=dict, repr=False)
    """Settings of the Spark session; each begins with `spark.`."""

    @property
    def query_context(self) -> QueryContext:
        """What the file says about the meaning of names in filters and patterns."""
        return QueryContext.of(self.schema, self.ontology, self.regions, unknown=self.unknown)


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class Pipeline(PipelineFile):
    """A pipeline that can run: a file without mistakes, with the defaults that depend on its path."""

    folder: Path
    dead_letters: SinkSettings

    @classmethod
    def from_file(cls, file: PipelineFile, path: Path) -> Pipeline:
        """Complete the settings of the file at `path`."""
        keys = {field.name: getattr(file, field.name) for field in dataclasses.fields(file)}
        beside = derive_text(file.checkpoint, f"{file.checkpoint.rstrip('/')}/dead_letters")
        keys["name"] = file.name or path.stem
        keys["dead_letters"] = file.dead_letters or SinkSettings("json", path=beside)
        return cls(**keys, folder=path.parent)

    @property
    def needs_kafka(self) -> bool:
        """Whether some part needs Spark's Kafka connector."""
        kinds = [self.source.kind, self.dead_letters.kind, *(sink.kind for sink in (*self.sinks, *self.detections))]
        return "kafka" in kinds or (self.subscriptions is not None and self.subscriptions.topic is not None)


KEYS = FileKeys(PipelineFile, "a pipeline", first_table="source")
"""The tables and keys of `pipeline.toml`."""
