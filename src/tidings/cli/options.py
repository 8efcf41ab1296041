"""The options that commands share: their names, their help and their TIDINGS_* variables, each written once.

Options that several commands take together are the fields of a frozen dataclass; `with_options` turns such a group into
the separate parameters that typer reads, and hands the command one value of the group.
"""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

Command: TypeAlias = Callable[..., None]
"""A function that typer calls with one keyword argument for each parameter."""


def with_options(order: str) -> Callable[[Command], Command]:
    """Expand the groups of options among a command's parameters: one typer parameter for each field.

    `order` names the command's own options and those fields of its groups that it takes, as the help lists them; a
    field that is not named keeps its default. An own option wins over a field of the same name.
    """
    names = order.split()

    def expand(command: Command) -> Command:
        own = inspect.signature(command).parameters
        groups: dict[str, Any] = {
            name: parameter.annotation for name, parameter in own.items() if is_dataclass(parameter.annotation)
        }
        expanded = {name: parameter for group in groups.values() for name, parameter in _parameters_of(group)} | own
        contexts = [name for name, parameter in own.items() if parameter.annotation is typer.Context]

        @wraps(command)
        def run(**values: Any) -> None:
            for name, group in groups.items():
                names_of_group = {field.name for field in fields(group)} - own.keys()
                values[name] = group(**{key: values.pop(key) for key in names_of_group & values.keys()})
            command(**values)

        keyword_only = [expanded[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in [*contexts, *names]]
        run.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
        return run

    return expand


def _parameters_of(group: Any) -> list[tuple[str, inspect.Parameter]]:
    hints = get_type_hints(group, include_extras=True)
    empty, kind = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
    return [
        (field.name, inspect.Parameter(field.name, kind, default=default, annotation=hints[field.name]))
        for field in fields(group)
        for default in [empty if field.default is MISSING else field.default]
    ]


def is_typed(context: typer.Context, name: str) -> bool:
    """Tell whether an option is on the command line, whatever its variable says."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


class Notation(StrEnum):
    """The values of `parse --from`."""

    text = "text"
    json = "json"
    url = "url"


class ParseOutput(StrEnum):
    """The values of `parse --to`."""

    text = "text"
    json = "json"
    url = "url"
    tree = "tree"
    normal = "normal"


class Unknown(StrEnum):
    """The values of `--unknown`."""

    error = "error"
    absent = "absent"


class FileForm(StrEnum):
    """The values of `--format`."""

    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


def parse_moment(text: str) -> datetime:
    """Parse `--now`: an ISO time or date, in UTC unless it has a zone."""
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
        parser=parse_moment,
        metavar="TIME",
        envvar="TIDINGS_NOW",
        help="The time that ages are reckoned against. This moment by default.",
    ),
]
SkipBad: TypeAlias = Annotated[
    bool,
    typer.Option("--skip-bad", envvar="TIDINGS_SKIP_BAD", help="Go on without the subscriptions that are refused."),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", envvar="TIDINGS_QUIET", help="No closing summary.")]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", envvar="TIDINGS_JSON", help="Nothing but JSON on standard output.")
]
