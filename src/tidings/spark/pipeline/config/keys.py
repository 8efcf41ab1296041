"""Every key that `pipeline.toml` may have, described once: its type, its default, where it belongs, what it does.

Reading, the errors' texts and docs/guide/pipeline.md all come from here (a test holds the page to it), so a new key
is one line here and one field in `config`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import get_args

from tidings.forecast.predicting.following import POLICIES
from tidings.spark.pipeline.config.settings import SinkKind, SourceKind


class Kind(Enum):
    """What a key's value is; the words are those of an error's text."""

    TEXT = "a text"
    CHOICE = "one of a few words"
    COUNT = "a whole number"
    TEXTS = "a list of texts"
    PATH = "a path"
    DURATION = 'a duration such as "10 minutes"'
    SIZE = 'a size such as "8 MB"'
    TRIGGER = '"1 second", "available now" or "as soon as possible"'
    MOMENT = "a time such as 2024-07-01T12:00:00Z"
    ADDRESS = 'an address such as "127.0.0.1:9464"'
    FUNCTION = 'a function such as "package.module:name"'
    CHANCE = "a probability from 0 to 1"
    HORIZON = 'a number of events, "10 own events" or "5 min"'
    SETTINGS = "a table of settings"
    ATTRIBUTES = "a path, or a table of attributes"


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a table. `of` names the kinds (or rivals) it belongs to: all of them where it is empty."""

    name: str
    kind: Kind
    help: str
    default: str = ""  # as a file would say it
    of: tuple[str, ...] = ()
    required: bool = False  # by each of `of`
    choices: tuple[str, ...] = ()
    least: int = 1

    @property
    def what(self) -> str:
        """What its value is, for the docs: the choices, where there are a few."""
        return " ".join(f"`{one}`" for one in self.choices) if self.choices else self.kind.value


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the file. `rivals` are keys of which exactly one is given; it then says what the others belong to."""

    name: str
    keys: tuple[Key, ...]
    rivals: tuple[str, ...] = ()
    heading: str = ""

    def __getitem__(self, name: str) -> Key:
        """Return the key of that name."""
        return next(key for key in self.keys if key.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its keys."""
        return tuple(key.name for key in self.keys)


FILES = ("json", "csv", "parquet")
WRITTEN = ("json", "parquet")

TOP = Table(
    "",
    (
        Key("name", Kind.TEXT, "What the query is called, in Spark and in what is shown.", default="the file's name"),
        Key(
            "checkpoint",
            Kind.PATH,
            "Folder where the query remembers how far it came; it belongs to this pipeline alone.",
            required=True,
        ),
        Key("trigger", Kind.TRIGGER, "When a micro-batch starts.", default='"1 second"'),
        Key("master", Kind.TEXT, "Where Spark runs.", default='"local[*,4]", or what spark-submit says'),
        Key("jars", Kind.PATH, "Folder with the Kafka connector's jars.", default="TIDINGS_JARS, else by coordinates"),
        Key("schema", Kind.ATTRIBUTES, "Kinds of attributes: a file, or the table `[schema]` itself."),
        Key(
            "unknown",
            Kind.CHOICE,
            "Names that no column has: a subscription is refused and listed, or they are absent in every event.",
            default='"error"',
            choices=("error", "absent"),
        ),
        Key("ontology", Kind.PATH, "File of concepts, synonyms and units."),
        Key("regions", Kind.PATH, "GeoJSON file of named regions, for `within @name`."),
    ),
    heading="The top of the file",
)

SOURCE = Table(
    "source",
    (
        Key("kind", Kind.CHOICE, "What the events are read from.", required=True, choices=tuple(get_args(SourceKind))),
        Key("path", Kind.PATH, "Folder of files; new files are new events. May hold `*`.", of=FILES, required=True),
        Key(
            "columns",
            Kind.TEXT,
            'Columns in Spark\'s words: "id BIGINT, make STRING, price DOUBLE". Not with value = "text".',
            of=(*FILES, "kafka", "socket"),
            required=True,
        ),
        Key("servers", Kind.TEXT, "The brokers, parted by commas.", of=("kafka",), required=True),
        Key("topic", Kind.TEXT, "The topic; several are parted by commas.", of=("kafka",), required=True),
        Key(
            "value",
            Kind.CHOICE,
            "What a record's value or a line is: JSON with `columns`, or text in a column `value`.",
            default='"json"',
            of=("kafka", "socket"),
            choices=("json", "text"),
        ),
        Key("host", Kind.TEXT, "Whom to ask for lines.", of=("socket",), required=True),
        Key("port", Kind.COUNT, "The port of the host.", of=("socket",), required=True),
        Key("id", Kind.TEXT, "Column that names an event, or a field of one such as `kafka.key`."),
        Key("time", Kind.TEXT, "Column with an event's time, or a field of one such as `kafka.timestamp`."),
        Key(
            "largest",
            Kind.SIZE,
            "The most bytes an event may have; a larger one is a dead letter with its first 200 bytes.",
            default='"8 MB"',
            of=(*FILES, "kafka", "socket"),
        ),
        Key("options", Kind.SETTINGS, "Handed to Spark's reader as they are."),
    ),
    heading="Where events come from",
)

FEEDS = ("file", "directory", "table", "topic", "snapshot")

SUBSCRIPTIONS = Table(
    "subscriptions",
    (
        Key("file", Kind.PATH, "File of subscriptions; it is read again when it changes."),
        Key("directory", Kind.PATH, "Folder of change files, applied in the order of their names."),
        Key("table", Kind.TEXT, "Table with columns `id` and `filter` (and `notation`)."),
        Key("topic", Kind.TEXT, "Compacted Kafka topic: the key is the id, the value the filter, null removes."),
        Key("snapshot", Kind.PATH, "Snapshot made by `tidings compile`, or a live folder."),
        Key("servers", Kind.TEXT, "The brokers of the topic, parted by commas.", of=("topic",), required=True),
        Key(
            "notation",
            Kind.CHOICE,
            "How filters are written where a row does not say.",
            default='"text"',
            of=("file", "directory", "table", "topic"),
            choices=("text", "json", "url"),
        ),
        Key("shards", Kind.COUNT, "Into how many parts the subscriptions are split.", default="1"),
        Key(
            "refresh",
            Kind.DURATION,
            "How often the table is looked at.",
            default="each micro-batch",
            of=("table",),
        ),
        Key("options", Kind.SETTINGS, "Handed to Spark's reader as they are.", of=("topic",)),
    ),
    rivals=FEEDS,
    heading="Who wants to hear of what",
)

MATCHING = Table(
    "matching",
    (
        Key(
            "per",
            Kind.CHOICE,
            "A row for each match, or one for each event with the array `subscriptions`.",
            default='"match"',
            choices=("match", "event"),
        ),
        Key(
            "keep",
            Kind.TEXTS,
            "Columns of the event that come along.",
            default="none with `source.id`, else all",
        ),
        Key("limit", Kind.COUNT, "The most subscriptions of one event; an event with more is told of.", default="none"),
        Key("spread", Kind.COUNT, "Over how many tasks a micro-batch is spread.", default="as the source gives it"),
        Key("now", Kind.MOMENT, "The time that ages are reckoned against.", default="that of each micro-batch"),
    ),
    heading="What comes out",
)

LATE = Table(
    "late",
    (
        Key(
            "after",
            Kind.DURATION,
            "Events that are older than this before the newest one seen are dead letters.",
            required=True,
        ),
    ),
    heading="Late events",
)

DUPLICATES = Table(
    "duplicates",
    (
        Key(
            "within",
            Kind.DURATION,
            "An event whose id came before, within this time, is left out and counted.",
            required=True,
        ),
    ),
    heading="Duplicates",
)

PATTERNS = Table(
    "patterns",
    (
        Key("file", Kind.PATH, "File of patterns; it is read when the pipeline starts.", required=True),
        Key(
            "lateness",
            Kind.DURATION,
            "How far an event may be behind the newest one seen; events wait so long to be put in order.",
            required=True,
        ),
        Key("key", Kind.TEXT, "Column that parts the events for patterns without variables.", default="none"),
        Key("keep", Kind.TEXTS, "Columns of the events that detections carry.", default="none"),
        Key(
            "model", Kind.PATH, "Model of the patterns; then there are forecasts among the detections.", default="none"
        ),
        Key("horizon", Kind.HORIZON, "How far ahead forecasts look; needed with `model`.", default="none"),
        Key("threshold", Kind.CHANCE, "What a probability must exceed to be told.", default="0.5"),
        Key("tell", Kind.CHOICE, "When forecasts are told.", default='"crossing"', choices=tuple(POLICIES)),
        Key("step", Kind.CHANCE, 'By how much it must change, with `tell = "change"`.', default="0.1"),
    ),
    heading="What is to happen over time",
)

_OUT = (
    Key("kind", Kind.CHOICE, "What the rows are written to.", required=True, choices=tuple(get_args(SinkKind))),
    Key(
        "path",
        Kind.PATH,
        "Folder that gets one folder `batch=N` for each micro-batch.",
        of=WRITTEN,
        required=True,
    ),
    Key("servers", Kind.TEXT, "The brokers, parted by commas.", of=("kafka",), required=True),
    Key("topic", Kind.TEXT, "The topic.", of=("kafka",), required=True),
    Key(
        "function",
        Kind.FUNCTION,
        "Called with a DataFrame and the batch's number.",
        of=("python",),
        required=True,
    ),
    Key("rows", Kind.COUNT, "How many rows of a micro-batch are shown.", default="20", of=("console",)),
    Key("options", Kind.SETTINGS, "Handed to Spark's writer as they are.", of=(*WRITTEN, "kafka")),
)

SINK = Table("sink", _OUT, heading="Where rows go")

DETECTIONS = Table("detections", _OUT, heading="Where detections go")

DEAD_LETTERS = Table("dead_letters", _OUT, heading="Where dead letters go")

SHOWN = Table(
    "shown",
    (
        Key(
            "view",
            Kind.CHOICE,
            "A live view on the terminal; `auto` is on where there is one.",
            default='"auto"',
            choices=("auto", "on", "off"),
        ),
        Key("metrics", Kind.ADDRESS, "Where Prometheus may ask.", default="nowhere"),
        Key("lines", Kind.PATH, 'File of progress as JSON lines; "-" is standard output.', default="none"),
    ),
    heading="How it tells of itself",
)

TABLES = (
    TOP,
    SOURCE,
    SUBSCRIPTIONS,
    MATCHING,
    LATE,
    DUPLICATES,
    SINK,
    PATTERNS,
    DETECTIONS,
    DEAD_LETTERS,
    SHOWN,
)
"""The tables with keys of their own."""

FREE = {
    "derived": "Each key is a new column, each value Spark SQL; a later one may use the earlier.",
    "spark": "Settings of the Spark session; each begins with `spark.`.",
}
"""The tables whose keys are the user's, and what they are."""

SECTIONS = (*(table.name for table in TABLES if table.name), *FREE)
"""The names of all tables."""

TAKEN = {
    "kafka.bootstrap.servers": "servers",
    "subscribe": "topic",
    "subscribePattern": "topic",
    "assign": "topic",
    "topic": "topic",
    "path": "path",
    "host": "host",
    "port": "port",
    "checkpointLocation": "checkpoint",
}
"""Options of Spark that a key of ours says already."""


def described(table: Table) -> str:
    """Return the table's keys as rows of a Markdown table, as they stand in docs/guide/pipeline.md."""
    of = "with" if table.rivals else "kind"
    head = f"| key | value | default | {of} | meaning |\n|---|---|---|---|---|\n"
    return head + "".join(_row(table, key) for key in table.keys)


def _row(table: Table, key: Key) -> str:
    default = "**required**" if key.required else key.default
    default = "one of these five" if key.name in table.rivals else default
    cells = (f"`{key.name}`", key.what, default, ", ".join(key.of), key.help)
    return "| " + " | ".join(cells) + " |\n"
