"""`tidings sub`: its commands, their options and their help; the modules beside this one do the work."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tidings.cli import options as o
from tidings.cli.options import make_option, with_options
from tidings.cli.service.options import ClientOptions, StatusChoice, SubscriptionOptions

sub_app = typer.Typer(
    no_args_is_help=True,
    help="Subscriptions of a running service (`tidings serve`): add, list, change, try and watch them.",
)

IdArgument: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The subscription's id.")]
IdsArgument: TypeAlias = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of subscriptions.")]
FilterArgument: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="FILTER", help="The filter; '-' reads standard input.")
]
LimitOption: TypeAlias = Annotated[int, typer.Option("--limit", "-n", min=0, help="How many at most; 0: all.")]

CLIENT = "url key_file owner as_json"
ABOUT = "name labels notation pattern mode horizon threshold delivery expires"


@sub_app.command("add")
@with_options(f"filter id {ABOUT} {CLIENT}")
def sub_add(subscription: SubscriptionOptions, options: ClientOptions, *, filter: FilterArgument = None) -> None:
    """Subscribe: to events that satisfy a filter, to a pattern over events, or to the forecast of one.

    For example:

        tidings sub add "make = 'ford' and price < 9000" --id cheap-ford --label cars
        tidings sub add --pattern intrusion.pattern --horizon "10 own events" --threshold 0.6

    A refused filter is shown with a caret under each mistake. The id is printed; without --id the service makes one.
    """
    from tidings.cli.service import subscriptions as body

    o.refuse_when((filter is None) == (subscription.pattern is None), "give a filter, or --pattern FILE")
    body.add(filter, subscription, options)


@sub_app.command("edit")
@with_options(f"id filter {ABOUT} {CLIENT}")
def sub_edit(
    subscription: SubscriptionOptions, options: ClientOptions, *, id: IdArgument, filter: FilterArgument = None
) -> None:
    """Change what is said of a subscription, and leave the rest; without anything said, open it in an editor.

    For example:

        tidings sub edit cheap-ford "make = 'ford' and price < 8000"
        tidings sub edit cheap-ford --expires "30 days"
        tidings sub edit cheap-ford

    If somebody else changed it meanwhile, nothing is written over: you are told, and edit it again.
    """
    from tidings.cli.service import subscriptions as body

    o.refuse_when(filter is not None and subscription.pattern is not None, "give a filter or --pattern FILE, not both")
    body.edit(id, filter, subscription, options)


@sub_app.command("pause")
@with_options(f"ids {CLIENT}")
def sub_pause(options: ClientOptions, *, ids: IdsArgument) -> None:
    """Pause subscriptions: they stay, and nothing matches them.

    For example:

        tidings sub pause cheap-ford
    """
    from tidings.cli.service import subscriptions as body

    body.set_status("pause", ids, options)


@sub_app.command("resume")
@with_options(f"ids {CLIENT}")
def sub_resume(options: ClientOptions, *, ids: IdsArgument) -> None:
    """Resume subscriptions that were paused.

    For example:

        tidings sub resume cheap-ford
    """
    from tidings.cli.service import subscriptions as body

    body.set_status("resume", ids, options)


@sub_app.command("remove")
@with_options(f"ids {CLIENT}")
def sub_remove(options: ClientOptions, *, ids: IdsArgument) -> None:
    """Remove subscriptions and their matches.

    For example:

        tidings sub remove cheap-ford
    """
    from tidings.cli.service import subscriptions as body

    body.remove(ids, options)


@sub_app.command("list")
@with_options(f"label status text limit {CLIENT}")
def sub_list(
    options: ClientOptions,
    *,
    label: Annotated[str | None, typer.Option("--label", help="Only those with this label.")] = None,
    status: Annotated[StatusChoice | None, typer.Option("--status", help="Only those of this status.")] = None,
    text: Annotated[
        str | None, typer.Option("--search", "-q", metavar="TEXT", help="Only those with this in id, name or filter.")
    ] = None,
    limit: LimitOption = 100,
) -> None:
    """List subscriptions by their ids.

    For example:

        tidings sub list --label cars
        tidings sub list --limit 0 --json
    """
    from tidings.cli.service import views as body

    body.list_all(label=label, status=None if status is None else status.value, text=text, limit=limit, options=options)


@sub_app.command("show")
@with_options(f"id {CLIENT}")
def sub_show(options: ClientOptions, *, id: IdArgument) -> None:
    """Show a subscription.

    For example:

        tidings sub show cheap-ford
    """
    from tidings.cli.service import views as body

    body.show(id, options)


@sub_app.command("matches")
@with_options(f"id limit {CLIENT}")
def sub_matches(options: ClientOptions, *, id: IdArgument, limit: LimitOption = 20) -> None:
    """Print the latest matches of a subscription, newest first.

    For example:

        tidings sub matches cheap-ford -n 5
    """
    from tidings.cli.service import views as body

    body.show_matches(id, limit=limit, options=options)


@sub_app.command("watch")
@with_options(f"after {CLIENT}")
def sub_watch(
    options: ClientOptions,
    *,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="Go on after this match, by the stream's own number.")
    ] = None,
) -> None:
    """Print matches of your subscriptions as they come, until Ctrl-C; a connection that breaks is taken up again.

    For example:

        tidings sub watch --json
    """
    from tidings.cli.service import views as body

    body.watch(after=after, options=options)


@sub_app.command("try")
@with_options(f"filter id events form notation pattern mode {CLIENT}")
def sub_try(
    subscription: SubscriptionOptions,
    options: ClientOptions,
    *,
    filter: FilterArgument = None,
    events: o.SampleOption = None,
    form: o.FormOption = None,
) -> None:
    """Try a subscription before it is one, or one that is there (--id): which events match, and why or why not.

    For example:

        tidings sub try "price < 9000" -e ads.jsonl
        tidings sub try "price < 9000"
        tidings sub try --id cheap-ford -e ads.jsonl

    Without events it is estimated from those that were posted lately how many matches a day there would be.
    """
    from tidings.cli.service import trying as body

    wanted = [filter, subscription.pattern, subscription.id]
    o.refuse_when(len(wanted) - wanted.count(None) != 1, "give a filter, --pattern FILE or --id ID")
    body.run(filter, subscription, options, events=events, form=form)


@sub_app.command("import")
@with_options(f"file partial {CLIENT}")
def sub_import(
    options: ClientOptions,
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON lines of subscriptions; '-' reads standard input.")],
    partial: Annotated[
        bool, typer.Option("--partial", help="Take what is good, and report the rest; else one mistake refuses all.")
    ] = False,
) -> None:
    """Add or replace many subscriptions, all or none.

    For example:

        tidings sub import searches.jsonl
        tidings sub export | tidings sub import - --url https://other.example

    A line is what `tidings sub show --json` prints, or as little as {"id": "s1", "filter": "price < 9000"}. The exit
    code is 1 if a line was refused.
    """
    from tidings.cli.service import transfer as body

    if not body.import_file(file, partial=partial, options=options):
        raise typer.Exit(1)


@sub_app.command("export")
@with_options(f"output {CLIENT}")
def sub_export(
    options: ClientOptions,
    *,
    output: Annotated[Path | None, make_option("--output -o", "Where to write them.", metavar="FILE")] = None,
) -> None:
    """Write all subscriptions as JSON lines, which `import` reads.

    For example:

        tidings sub export -o subscriptions.jsonl
    """
    from tidings.cli.service import transfer as body

    body.export(output, options)
