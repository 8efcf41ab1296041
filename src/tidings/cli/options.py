"""The options that commands share: their names, their help and their TIDINGS_* variables, each written once."""

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


class Notation(StrEnum):
    """What `parse --from` takes."""

    text = "text"
    json = "json"
    url = "url"


class Shape(StrEnum):
    """What `parse --to` takes."""

    text = "text"
    json = "json"
    url = "url"
    tree = "tree"
    normal = "normal"


class Unknown(StrEnum):
    """What `--unknown` takes."""

    error = "error"
    absent = "absent"


class FileForm(StrEnum):
    """What `--format` takes."""

    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


def moment(text: str) -> datetime:
    """Read `--now`: ISO time or date, UTC without a zone."""
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        msg = f"`{text}` is not an ISO time such as 2024-07-01T12:00:00Z"
        raise typer.BadParameter(msg) from None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


Subscriptions: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--subscriptions",
        "-s",
        metavar="SUBS",
        envvar="TIDINGS_SUBSCRIPTIONS",
        help="File of subscriptions: id and filter (JSON lines, CSV, Parquet; .gz too); '-' reads standard input.",
    ),
]
Snapshot: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        envvar="TIDINGS_SNAPSHOT",
        help="Snapshot made by `tidings compile`, instead of --subscriptions.",
    ),
]
EVENTS_HELP = "File of events (JSON lines, CSV, Parquet; .gz too); '-' reads standard input."
Events: TypeAlias = Annotated[
    str, typer.Option("--events", "-e", metavar="EVENTS", envvar="TIDINGS_EVENTS", help=EVENTS_HELP)
]
Sample: TypeAlias = Annotated[
    str | None, typer.Option("--events", "-e", metavar="SAMPLE", envvar="TIDINGS_EVENTS", help=EVENTS_HELP)
]
Form: TypeAlias = Annotated[
    FileForm | None,
    typer.Option(
        "--format",
        envvar="TIDINGS_FORMAT",
        help="Form of standard input, or of a file whose name does not tell. JSON lines by default.",
    ),
]
Kind: TypeAlias = Annotated[
    str | None, typer.Option("--matcher", metavar="KIND", envvar="TIDINGS_MATCHER", help="Matching algorithm.")
]
EventId: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD",
        envvar="TIDINGS_EVENT_ID",
        help="Field that is the event's id; without it the line's number, from 0.",
    ),
]
Schema: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", envvar="TIDINGS_SCHEMA", help="Kinds of attributes (TOML or JSON); names are checked."
    ),
]
Ontology: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", envvar="TIDINGS_ONTOLOGY", help="Concepts, synonyms, units (TOML, JSON, CSV ...)."),
]
Regions: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", envvar="TIDINGS_REGIONS", help="Named regions (GeoJSON), for `within @name`."),
]
UnknownNames: TypeAlias = Annotated[
    Unknown,
    typer.Option(
        "--unknown",
        envvar="TIDINGS_UNKNOWN",
        help="Names in filters that no column of a CSV or Parquet file of events has: an error, or absent.",
    ),
]
Now: TypeAlias = Annotated[
    datetime | None,
    typer.Option(
        parser=moment,
        metavar="TIME",
        envvar="TIDINGS_NOW",
        help="The time that ages are reckoned against. This moment by default.",
    ),
]
SkipBad: TypeAlias = Annotated[
    bool,
    typer.Option("--skip-bad", envvar="TIDINGS_SKIP_BAD", help="Go on without the subscriptions that are refused."),
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", envvar="TIDINGS_JSON", help="Nothing but JSON on standard output.")
]
