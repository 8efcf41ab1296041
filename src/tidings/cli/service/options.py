"""The options of `tidings serve`, `tidings service` and `tidings sub` that several commands share."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options as o
from tidings.cli.options import make_option, parse_moment
from tidings.cli.pattern.options import ModeOption

PartChoice = StrEnum("PartChoice", ["api", "pipeline"])
"""The values of `serve --only`."""

DATA_HELP = "The folder of everything: store, admin key, events, logs. `tidings-data` by default."
STORE_HELP = 'The store, "sqlite:///store.db" or "postgresql+psycopg://..."; in a variable, no process list shows it.'


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the command line says over `service.toml`; None where it says nothing."""

    data: Annotated[
        Path | None, typer.Option("--data", metavar="FOLDER", envvar="TIDINGS_SERVICE_DATA", help=DATA_HELP)
    ] = None
    host: Annotated[str | None, typer.Option("--host", help="The address to listen on; 127.0.0.1 by default.")] = None
    port: Annotated[int | None, typer.Option("--port", help="The port; 8080 by default.")] = None
    store: Annotated[str | None, make_option("--store", STORE_HELP, metavar="URL", show_default=False)] = None
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="How many processes answer requests; 1 by default.")
    ] = None


# Clients of a running service ---------------------------------------------------------------------------

NotationChoice = StrEnum("NotationChoice", ["text", "json", "url"])
"""The values of `sub add --notation`."""

StatusChoice = StrEnum("StatusChoice", ["active", "learning", "paused", "expired"])
"""The values of `sub list --status`."""


def parse_expiry(text: str) -> datetime:
    """Parse `--expires`: an ISO time, or a duration from now such as `30 days`."""
    from tidings.configuration.measure_kinds import parse_duration
    from tidings.configuration.value_kinds import WrongValue

    try:
        return datetime.now(UTC) + parse_duration(text)
    except WrongValue:
        return parse_moment(text)


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Which service is asked, for whom, and how the answer is shown; a key as an option would be in process lists."""

    url: Annotated[str, make_option("--url", "The service.", metavar="URL")] = "http://127.0.0.1:8080"
    key_file: Annotated[
        Path | None,
        make_option(
            "--key-file", "A file with the key; else TIDINGS_KEY, else ./tidings-data/admin.key.", metavar="FILE"
        ),
    ] = None
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="OWNER", help="Whose subscriptions are meant; for administrators.")
    ] = None
    as_json: o.JsonOption = False


@dataclass(frozen=True, slots=True)
class SubscriptionOptions:
    """What a subscription says beside its filter; None where the command line says nothing."""

    id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Its id; the service makes one otherwise.")] = (
        None
    )
    name: Annotated[str | None, typer.Option("--name", metavar="TEXT", help="A name for people.")] = None
    labels: Annotated[
        list[str] | None, typer.Option("--label", metavar="LABEL", help="A label; several may be given.")
    ] = None
    notation: Annotated[NotationChoice | None, typer.Option("--notation", help="How the filter is written; text.")] = (
        None
    )
    pattern: Annotated[
        str | None, typer.Option("--pattern", metavar="FILE", help="A file with a pattern, instead of a filter.")
    ] = None
    mode: Annotated[ModeOption | None, typer.Option("--mode", help="Which matches of the pattern count; restart.")] = (
        None
    )
    horizon: Annotated[
        str | None,
        typer.Option(
            "--horizon", metavar="LENGTH", help='Forecast the pattern, so far ahead: "10 own events", "5 min".'
        ),
    ] = None
    threshold: Annotated[
        float | None, typer.Option("--threshold", metavar="P", help="The least probability of a forecast.")
    ] = None
    delivery: Annotated[
        str | None,
        typer.Option("--delivery", metavar="JSON", help="How matches are to be sent, kept for the notifier."),
    ] = None
    expires: Annotated[
        datetime | None,
        typer.Option("--expires", metavar="WHEN", parser=parse_expiry, help='Until when: a time, or "30 days".'),
    ] = None


# Administrators -----------------------------------------------------------------------------------------

ScopeChoice = StrEnum("ScopeChoice", ["read", "write", "publish", "admin"])
"""The values of `service key add --scope`."""


@dataclass(frozen=True, slots=True)
class AdminOptions:
    """Where keys and owners are: in a store that is opened here, or with `url` behind an API."""

    file: Annotated[
        Path | None,
        typer.Option(
            "--service", metavar="FILE", envvar="TIDINGS_SERVICE", help="The service's file (TOML), if it has one."
        ),
    ] = None
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FOLDER", envvar="TIDINGS_SERVICE_DATA", help=DATA_HELP)
    ] = None
    store: Annotated[str | None, make_option("--store", STORE_HELP, metavar="URL", show_default=False)] = None
    url: Annotated[str | None, make_option("--url", "A running service, instead of its store.", metavar="URL")] = None
    key_file: Annotated[
        Path | None,
        make_option("--key-file", "A file with an admin's key, for --url; else TIDINGS_KEY.", metavar="FILE"),
    ] = None
    as_json: o.JsonOption = False

    def choose_place(self, context: typer.Context) -> "AdminOptions":
        """Return them without the URL of a variable, where the command line names a store; both are wrong usage."""
        typed = [flag for name, flag in _PLACES.items() if o.is_typed(context, name)]
        if not typed:
            return self
        message = f"--url is a service elsewhere, {typed[0]} is a store of this machine: give one of them"
        o.refuse_when(o.is_typed(context, "url"), message)
        return replace(self, url=None)


_PLACES = {"data": "--data", "store": "--store", "file": "--service"}
"""The options that name a store of this machine, by their parameters."""
