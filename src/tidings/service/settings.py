"""What `service.toml` says, as dataclasses: every key is one field, and every field has a default.

The annotation of a field has the `ValueKind` that checks and converts a file's value, as in `pipeline.toml`; the text
beneath it is its description, which docs/guide/service.md repeats (a test compares them). `reading.read_service` turns
a file into `ServiceSettings`; an object that code builds is not checked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import pydantic.dataclasses
from pydantic import Field

from tidings.concepts import Ontology, Regions, Vocabulary
from tidings.configuration import measure_kinds, path_kinds
from tidings.configuration import value_kinds as kinds
from tidings.configuration.keys import CONFIG, FileKeys, KeyRule
from tidings.configuration.value_kinds import make_choice_kind
from tidings.model import Schema
from tidings.service.store.base import OwnerRules

EventPlace: TypeAlias = Literal["folder", "kafka"]
"""Where events are kept until the pipeline reads them: `DATA/events`, or a topic."""

KafkaProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
"""How the brokers are spoken to, in Kafka's own words."""

LoginMechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
"""How a password is proven to the brokers: those mechanisms that need nothing else."""

STORE_FILE, EVENTS_FOLDER, LETTERS_FOLDER, LOGS_FOLDER = "store.db", "events", "dead_letters", "logs"
"""The store of a service that names none, what waits for its pipeline, what could not be matched, and what its
processes say: all in `data`."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class EventSettings:
    """Events that come over HTTP, and where they go."""

    id: Annotated[str, kinds.TEXT] = "id"
    """The field that names an event; one without it is given an id."""
    time: Annotated[str, kinds.TEXT] = "time"
    """The field with an event's time; one without it gets the time of its arrival."""
    to: Annotated[EventPlace, make_choice_kind(EventPlace)] = "folder"
    """Where events are kept until the pipeline reads them: a folder in `data`, or a topic."""
    servers: Annotated[str | None, kinds.TEXT, KeyRule(("kafka",), required=True)] = None
    """The brokers, parted by commas."""
    topic: Annotated[str | None, kinds.TEXT, KeyRule(("kafka",), required=True)] = None
    """The topic."""
    protocol: Annotated[KafkaProtocol, make_choice_kind(KafkaProtocol), KeyRule(("kafka",))] = "PLAINTEXT"
    """How the brokers are spoken to: SSL is encrypted (TLS), SASL asks for a login."""
    mechanism: Annotated[LoginMechanism, make_choice_kind(LoginMechanism), KeyRule(("kafka",))] = "PLAIN"
    """How the login proves its password."""
    username: Annotated[str | None, kinds.TEXT, KeyRule(("kafka",), default="**required** for SASL")] = None
    """The user of the login."""
    password: Annotated[str | None, kinds.TEXT, KeyRule(("kafka",), default="**required** for SASL")] = Field(
        default=None, repr=False
    )
    """Its password, best as a variable: "${KAFKA_PASSWORD}"."""
    ca: Annotated[str | None, path_kinds.LOCAL_FILE, KeyRule(("kafka",), default="what the system and Java trust")] = (
        None
    )
    """File of certificates (PEM) of the authorities that the brokers' certificates come from."""
    kept: Annotated[timedelta, measure_kinds.DURATION, KeyRule(default='"1 day"')] = timedelta(days=1)
    """How long files of events stay after they were read; also what `:estimate` looks back at."""
    waiting: Annotated[int, measure_kinds.SIZE, KeyRule(default='"4 GB"')] = 4_000_000_000
    """How much may wait in the folder for the pipeline; beyond that, events are refused until it has caught up."""
    within: Annotated[timedelta, measure_kinds.DURATION, KeyRule(default='"1 hour"')] = timedelta(hours=1)
    """An event whose id came before, within this time, is left out by the pipeline and counted."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class LimitSettings:
    """What a request and an owner may ask for; `[owners.X]` changes the latter for one owner."""

    body: Annotated[int, measure_kinds.SIZE, KeyRule(default='"8 MB"')] = 8_000_000
    """The largest body of a request."""
    import_body: Annotated[int, measure_kinds.SIZE, KeyRule(default='"4 GB"')] = 4_000_000_000
    """The largest body of an import, which is read as a stream."""
    event: Annotated[int, measure_kinds.SIZE, KeyRule(default='"1 MB"')] = 1_000_000
    """The largest event."""
    depth: Annotated[int, measure_kinds.COUNT] = 32
    """Levels of objects and lists in a body at most."""
    subscriptions: Annotated[int, measure_kinds.COUNT] = 1_000_000
    """Subscriptions of one owner at most."""
    filter_bytes: Annotated[int, measure_kinds.SIZE, KeyRule(default='"200 kB"')] = 200_000
    """The longest filter or pattern."""
    requests_per_second: Annotated[float, measure_kinds.RATE] = 1_000.0
    """Requests of one owner, on average over a few seconds, in each process."""
    events_per_second: Annotated[float, measure_kinds.RATE] = 100_000.0
    """Events of one owner, likewise."""
    streams: Annotated[int, measure_kinds.COUNT] = 1_000
    """Open streams of matches in one process at most."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class MatchSettings:
    """The table of latest matches."""

    keep: Annotated[int, measure_kinds.COUNT] = 1_000
    """How many each subscription keeps."""
    within: Annotated[timedelta, measure_kinds.DURATION, KeyRule(default='"7 days"')] = timedelta(days=7)
    """How long."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class PatternServiceSettings:
    """Subscriptions to patterns."""

    lateness: Annotated[timedelta, measure_kinds.WAIT, KeyRule(default='"0 s"')] = timedelta(seconds=0)
    """How far an event may be behind the newest one seen; events wait so long to be put in order."""
    idle: Annotated[timedelta | None, measure_kinds.IDLE, KeyRule(default='"5 s"')] = timedelta(seconds=5)
    """Without events for so long, time passes by the clock, so that absences are noticed."""
    ahead: Annotated[timedelta, measure_kinds.DURATION, KeyRule(default='"1 hour"')] = timedelta(hours=1)
    """How far an event may be dated ahead of the clock; patterns leave out what is further ahead, a dead letter."""
    model: Annotated[str | None, path_kinds.LOCAL_FILE, KeyRule(default="none")] = None
    """Model of patterns, for forecasts."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class HousekeepingSettings:
    """What is tidied up beside requests, and how often."""

    every: Annotated[timedelta, measure_kinds.DURATION, KeyRule(default='"1 minute"')] = timedelta(minutes=1)
    """How often old changes, matches, answers, records, files of events and dead letters are removed."""
    expire: Annotated[timedelta, measure_kinds.DURATION, KeyRule(default='"1 s"')] = timedelta(seconds=1)
    """How often subscriptions whose time has come are looked for."""
    log: Annotated[timedelta, measure_kinds.DURATION, KeyRule(default='"1 day"')] = timedelta(days=1)
    """How long a change stays in the log; a reader that was away for longer loads everything anew."""
    answers: Annotated[timedelta, measure_kinds.DURATION, KeyRule(default='"24 h"')] = timedelta(hours=24)
    """How long the answer to an `Idempotency-Key` is kept."""
    audit: Annotated[timedelta, measure_kinds.DURATION, KeyRule(default='"90 days"')] = timedelta(days=90)
    """How long the audit log keeps who changed what."""
    dead_letters: Annotated[timedelta, measure_kinds.DURATION, KeyRule(default='"30 days"')] = timedelta(days=30)
    """How long batches of dead letters stay in `data`, counted from when they were written."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class OwnerSettings:
    """What bounds one owner."""

    only: Annotated[str | None, kinds.TEXT, KeyRule(default="everything")] = None
    """A filter that an event must satisfy to be seen by this owner, in whatever way."""
    subscriptions: Annotated[int | None, measure_kinds.COUNT, KeyRule(default="that of `[limits]`")] = None
    """Subscriptions at most."""
    filter_bytes: Annotated[int | None, measure_kinds.SIZE, KeyRule(default="that of `[limits]`")] = None
    """The longest filter or pattern."""
    requests_per_second: Annotated[float | None, measure_kinds.RATE, KeyRule(default="that of `[limits]`")] = None
    """Requests, in each process."""
    events_per_second: Annotated[float | None, measure_kinds.RATE, KeyRule(default="that of `[limits]`")] = None
    """Events, likewise."""


@pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True, config=CONFIG)
class ServiceFile:
    """A whole `service.toml`."""

    data: Annotated[str | None, path_kinds.PATH, KeyRule(default='"tidings-data"')] = None
    """The folder of everything: the store, the admin key, events, the pipeline's checkpoint, logs."""
    host: Annotated[str, kinds.TEXT] = "127.0.0.1"
    """The address that the API listens on."""
    port: Annotated[int, measure_kinds.PORT] = 8080
    """Its port."""
    workers: Annotated[int, measure_kinds.COUNT] = 1
    """How many processes answer requests."""
    store: Annotated[str | None, path_kinds.STORE_URL, KeyRule(default="SQLite, in `data`")] = Field(
        default=None, repr=False
    )
    """URL of the store."""
    trigger: Annotated[str, measure_kinds.DURATION_TEXT] = "200 ms"
    """How often the pipeline looks for events."""
    schema: Annotated[Schema | None, path_kinds.SCHEMA] = None
    """Kinds of attributes: a file, or the table `[schema]` itself."""
    ontology: Annotated[Ontology | None, path_kinds.ONTOLOGY] = None
    """File of concepts, synonyms and units."""
    regions: Annotated[Regions | None, path_kinds.REGIONS] = None
    """GeoJSON file of named regions, for `within @name`."""
    events: EventSettings = EventSettings()
    """Events that come over HTTP."""
    limits: LimitSettings = LimitSettings()
    """What a request and an owner may ask for."""
    matches: MatchSettings = MatchSettings()
    """The table of latest matches."""
    patterns: PatternServiceSettings = PatternServiceSettings()
    """Subscriptions to patterns."""
    housekeeping: HousekeepingSettings = HousekeepingSettings()
    """What is tidied up, and how often."""
    owners: Mapping[str, OwnerSettings] = Field(default_factory=dict)
    """What bounds single owners."""
    spark: Annotated[Mapping[str, str], kinds.SPARK] = Field(default_factory=dict, repr=False)
    """Settings of the pipeline's Spark session; each begins with `spark.`."""


KEYS = FileKeys(ServiceFile, "a service", first_table="events")
"""The tables and keys of `service.toml`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The settings of a service: those of a `service.toml`, with the defaults that depend on its path."""

    data: Path = Path("tidings-data")
    """The folder of everything: the store, the admin key, events, the pipeline's checkpoint, logs."""
    host: str = "127.0.0.1"
    """The address that the API listens on."""
    port: int = 8080
    """Its port."""
    workers: int = 1
    """How many processes answer requests."""
    store: str = dataclasses.field(default="", repr=False)
    """SQLAlchemy's URL of the store; empty: SQLite, in the folder."""
    vocabulary: Vocabulary = dataclasses.field(default_factory=Vocabulary)
    """Schema, ontology and regions of filters and events."""
    events: EventSettings = dataclasses.field(default_factory=EventSettings)
    limits: LimitSettings = dataclasses.field(default_factory=LimitSettings)
    matches: MatchSettings = dataclasses.field(default_factory=MatchSettings)
    patterns: PatternServiceSettings = dataclasses.field(default_factory=PatternServiceSettings)
    housekeeping: HousekeepingSettings = dataclasses.field(default_factory=HousekeepingSettings)
    owners: Mapping[str, OwnerRules] = dataclasses.field(default_factory=dict)
    trigger: str = "200 ms"
    """How often the pipeline of `tidings serve` looks for events."""
    spark: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    """Settings of Spark for that pipeline."""

    @property
    def store_url(self) -> str:
        """The URL of the store, also where the file names none."""
        return self.store or f"sqlite:///{(self.data / STORE_FILE).absolute()}"

    @property
    def events_folder(self) -> Path:
        """The folder of events that wait for the pipeline."""
        return self.data / EVENTS_FOLDER

    @property
    def letters_folder(self) -> Path:
        """The folder of events that could not be matched; those of the patterns are beside it."""
        return self.data / LETTERS_FOLDER

    @property
    def logs_folder(self) -> Path:
        """The folder of what the processes say."""
        return self.data / LOGS_FOLDER

    @classmethod
    def from_file(cls, file: ServiceFile, folder: Path) -> ServiceSettings:
        """Complete the settings of a file that lies in a folder."""
        same = {field.name for field in dataclasses.fields(cls)} - {"data", "store", "vocabulary", "owners"}
        keys = {name: getattr(file, name) for name in same}
        owners = {name: OwnerRules(owner=name, **dataclasses.asdict(bounds)) for name, bounds in file.owners.items()}
        return cls(
            **keys,
            data=Path(file.data) if file.data else folder / "tidings-data",
            store=file.store or "",
            vocabulary=Vocabulary.of(file.schema, file.ontology, file.regions),
            owners=owners,
        )
