"""`tidings serve`, `tidings service` and `tidings sub`: their options and their help.

The modules beside this one do the work and are imported when a command runs, so that `--help` stays fast.
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options as o
from tidings.cli.options import with_options
from tidings.cli.service.options import AdminOptions, PartChoice, ScopeChoice, ServeOptions, parse_expiry


@with_options("file data host port store workers only check as_json")
def serve(
    options: ServeOptions,
    *,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="SERVICE", envvar="TIDINGS_SERVICE", help="The service's file (TOML), if it has one."),
    ] = None,
    only: Annotated[
        PartChoice | None, typer.Option("--only", help="Run one part in this process, for several machines or systemd.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check the file and say what would be served.")] = False,
    as_json: o.JsonOption = False,
) -> None:
    """Serve subscriptions over HTTP: an API, a store, and a pipeline on Spark that matches what is posted.

    For example:

        tidings serve
        tidings serve service.toml --port 9000

    The first start makes the folder `tidings-data` with a store (SQLite) and the admin key, and prints three `curl`
    lines: subscribe, post an event, read what matched. `service.toml` says more, all of it optional:

        port = 8080
        store = "postgresql+psycopg://tidings:${PASSWORD}@db/tidings"

        [schema]
        price = "number"

        [owners.shop]
        only = "country = 'CH'"

    API and pipeline are children of this process: they are started again when they die, and end with it. Ctrl-C and
    SIGTERM stop them after the current request and micro-batch; a second signal does not wait. For several machines,
    `--only api` and `--only pipeline` run one part, over a store in PostgreSQL.
    """
    from tidings.cli.service import serve as body

    body.run(file, options, only=None if only is None else only.value, check=check, as_json=as_json)


service_app = typer.Typer(no_args_is_help=True, help="Administer a service: its keys and its owners.")
key_app = typer.Typer(no_args_is_help=True, help="Keys: who may read, write, publish, or administer.")
service_app.add_typer(key_app, name="key")

ADMIN = "file data store url key_file as_json"


@key_app.command("add")
@with_options(f"owner scopes expires note {ADMIN}")
def key_add(
    context: typer.Context,
    options: AdminOptions,
    *,
    owner: Annotated[str, typer.Option("--owner", metavar="OWNER", help="Whose key it is; a new name is a new owner.")],
    scopes: Annotated[list[ScopeChoice], typer.Option("--scope", help="What it is for; several may be given.")],
    expires: Annotated[
        datetime | None,
        typer.Option("--expires", metavar="WHEN", parser=parse_expiry, help='Until when: a time, or "30 days".'),
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="What it is used for, for lists.")] = "",
) -> None:
    """Make a key. It is printed once; the store keeps a hash of it.

    For example:

        tidings service key add --owner shop --scope read --scope write --expires "90 days"

    `read` sees the owner's subscriptions and matches, `write` changes subscriptions, `publish` posts events, `admin`
    does all of that for every owner, and administers. Without --url the key goes into the store of this machine: that
    of `./tidings-data`, or the one that --data, --store or the service's file names.
    """
    from tidings.cli.service import keys as body

    body.add_key(owner, [scope.value for scope in scopes], options.choose_place(context), expires_at=expires, note=note)


@key_app.command("list")
@with_options(f"owner {ADMIN}")
def key_list(
    context: typer.Context,
    options: AdminOptions,
    *,
    owner: Annotated[str | None, typer.Option("--owner", metavar="OWNER", help="Only this owner's keys.")] = None,
) -> None:
    """List keys: whose they are and what for, never the keys themselves.

    For example:

        tidings service key list --owner shop
    """
    from tidings.cli.service import keys as body

    body.list_keys(owner, options.choose_place(context))


@key_app.command("revoke")
@with_options(f"id {ADMIN}")
def key_revoke(
    context: typer.Context,
    options: AdminOptions,
    *,
    id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, from `key list`.")],
) -> None:
    """Revoke a key: within a second no process takes it any more.

    For example:

        tidings service key revoke key-0123456789ab
    """
    from tidings.cli.service import keys as body

    body.revoke_key(id, options.choose_place(context))


@service_app.command("erase")
@with_options(f"owner yes {ADMIN}")
def service_erase(
    context: typer.Context,
    options: AdminOptions,
    *,
    owner: Annotated[str, typer.Argument(metavar="OWNER", help="The owner.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase an owner: subscriptions, their texts in the change log, matches, keys. It cannot be undone.

    For example:

        tidings service erase shop
    """
    from tidings.cli.service import keys as body

    options = options.choose_place(context)
    if not yes:
        typer.confirm(f"Erase all that is `{owner}`'s, for good?", abort=True, err=True)
    body.erase_owner(owner, options)


@service_app.command("train")
@with_options("files file data store as_json")
def service_train(
    options: AdminOptions,
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILES]...", help="A history, JSON lines in the order of time; else the events kept."),
    ] = None,
) -> None:
    """Count how the patterns of a service went in the past: the model that its forecasts need.

    For example:

        tidings service train
        tidings service train last-year/*.jsonl --data tidings-data

    The running pipeline takes the model by itself, and forecasts that were `learning` become `active`.
    """
    from tidings.cli.service import model_training as body
    from tidings.cli.service.serve import require_extras

    require_extras("service")
    body.run(files or (), options)
