"""The options that commands share: their names, their help and their TIDINGS_* variables, each written once.

Options that several commands take together are the fields of a frozen dataclass; `with_options` turns such a group into
the separate parameters that typer reads, and hands the command one value of the group.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeAlias

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
        expanded: dict[str, inspect.Parameter] = {}
        for group in groups.values():
            expanded |= inspect.signature(group, eval_str=True).parameters
        expanded |= own
        contexts = [name for name, parameter in own.items() if parameter.annotation is typer.Context]

        @wraps(command)
        def run(**values: Any) -> None:
            for name, group in groups.items():
                names_of_group = {field.name for field in fields(group)} - own.keys()
                values[name] = group(**{key: values.pop(key) for key in names_of_group & values.keys()})
            command(**values)

        keyword_only = [expanded[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in [*contexts, *names]]
        # typer reads the options of a command from its signature.
        run.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
        return run

    return expand


def is_typed(context: typer.Context, name: str) -> bool:
    """Tell whether an option is on the command line, whatever its variable says."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def make_option(flags: str, help: str, **settings: Any) -> Any:
    """Return a typer option that a variable may set too: `--event-id` by TIDINGS_EVENT_ID, after the first flag."""
    names = flags.split()
    variable = names[0].removeprefix("--").replace("-", "_").upper()
    return typer.Option(*names, envvar=f"TIDINGS_{variable}", help=help, **settings)


def refuse_when(is_wrong: bool, message: str) -> None:
    """Refuse the command line as wrong usage, where its options contradict each other."""
    if is_wrong:
        raise typer.BadParameter(message)


def parse_moment(text: str) -> datetime:
    """Parse `--now`: an ISO time or date, in UTC unless it has a zone."""
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        msg = f"`{text}` is not an ISO time such as 2024-07-01T12:00:00Z"
        raise typer.BadParameter(msg) from None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


ParseInput = StrEnum("ParseInput", ["text", "json", "url"])
"""The values of `parse --from`."""

ParseOutput = StrEnum("ParseOutput", ["text", "json", "url", "tree", "normal"])
"""The values of `parse --to`."""

UnknownChoice = StrEnum("UnknownChoice", ["error", "absent"])
"""The values of `--unknown`."""

FileForm = StrEnum("FileForm", ["jsonl", "csv", "parquet"])
"""The values of `--format`."""

SUBS_HELP = "File of subscriptions: id and filter (JSON lines, CSV, Parquet; .gz too); '-' reads standard input."
EVENTS_HELP = "File of events (JSON lines, CSV, Parquet; .gz too); '-' reads standard input."
FORM_HELP = "Form of standard input, or of a file whose name does not tell. JSON lines by default."
UNKNOWN_HELP = "Names in filters that no column of a CSV or Parquet file of events has: an error, or absent."
NOW_HELP = "The time that ages are measured against. This moment by default."

SubscriptionsOption: TypeAlias = Annotated[str | None, make_option("--subscriptions -s", SUBS_HELP, metavar="SUBS")]
SnapshotOption: TypeAlias = Annotated[
    Path | None,
    make_option("--snapshot", "Snapshot made by `tidings compile`, instead of --subscriptions.", metavar="FOLDER"),
]
EventsOption: TypeAlias = Annotated[str, make_option("--events -e", EVENTS_HELP, metavar="EVENTS")]
SampleOption: TypeAlias = Annotated[str | None, make_option("--events -e", EVENTS_HELP, metavar="SAMPLE")]
FormOption: TypeAlias = Annotated[FileForm | None, make_option("--format", FORM_HELP)]
KindOption: TypeAlias = Annotated[str | None, make_option("--matcher", "Matching algorithm.", metavar="KIND")]
EventIdOption: TypeAlias = Annotated[
    str | None,
    make_option("--event-id", "Field that is the event's id; without it the line's number, from 0.", metavar="FIELD"),
]
SchemaOption: TypeAlias = Annotated[
    Path | None, make_option("--schema", "Kinds of attributes (TOML or JSON); names are checked.", metavar="FILE")
]
OntologyOption: TypeAlias = Annotated[
    Path | None, make_option("--ontology", "Concepts, synonyms, units (TOML, JSON, CSV ...).", metavar="FILE")
]
RegionsOption: TypeAlias = Annotated[
    Path | None, make_option("--regions", "Named regions (GeoJSON), for `within @name`.", metavar="FILE")
]
UnknownOption: TypeAlias = Annotated[UnknownChoice, make_option("--unknown", UNKNOWN_HELP)]
NowOption: TypeAlias = Annotated[datetime | None, make_option("--now", NOW_HELP, parser=parse_moment, metavar="TIME")]
SkipOption: TypeAlias = Annotated[bool, make_option("--skip-bad", "Go on without the subscriptions that are refused.")]
QuietOption: TypeAlias = Annotated[bool, make_option("--quiet -q", "No closing summary.")]
JsonOption: TypeAlias = Annotated[bool, make_option("--json", "Nothing but JSON on standard output.")]
