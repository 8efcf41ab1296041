"""`tidings`: the commands, their options and their help.

A command imports its work when it runs, so `tidings --help` loads none of the large packages. Exit codes: 0 done,
1 refused, 2 wrong usage.
"""

import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options as o
from tidings.cli import render
from tidings.cli.bench.commands import bench_app
from tidings.cli.guard import INTERRUPTED, GuardedGroup
from tidings.cli.match.concept import concept_app
from tidings.cli.match.subscription_origin import SubscriptionOrigin, choose_origin, load_vocabulary
from tidings.cli.options import make_option
from tidings.cli.pattern.commands import pattern_app
from tidings.cli.service.commands import serve, service_app
from tidings.cli.service.sub_commands import sub_app

app = typer.Typer(
    name="tidings",
    cls=GuardedGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,  # a traceback is a bug of ours; Python's own form is best for a report
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command has its own help with an example: tidings match --help",
)
app.add_typer(concept_app, name="concept")
app.add_typer(pattern_app, name="pattern")
app.add_typer(bench_app, name="bench")
app.add_typer(service_app, name="service")
app.add_typer(sub_app, name="sub")


def main() -> None:
    """Run the command line; JSON is UTF-8 whatever the terminal's encoding."""
    if sys.stdout is None:  # closed by the caller, who wants the exit code alone
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Half of a surrogate pair becomes an escape, as JSON writes it.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        app(prog_name="tidings")
    except KeyboardInterrupt:  # while Python was still loading a command
        sys.exit(INTERRUPTED)


def _print_version(requested: bool) -> None:
    if requested:
        from tidings import __version__

        typer.echo(f"tidings {__version__}")
        raise typer.Exit


@app.callback()
def tidings(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Filters in, events in, who must hear of what out."""


@app.command()
def parse(
    filter: Annotated[str, typer.Argument(metavar="FILTER", help="The filter; '-' reads standard input.")],
    notation: Annotated[o.ParseInput, make_option("--from", "The notation it is written in.")] = o.ParseInput.text,
    output: Annotated[
        o.ParseOutput, make_option("--to", "What to print: a notation, a picture, the normal form.")
    ] = o.ParseOutput.text,
    schema: o.SchemaOption = None,
    ontology: o.OntologyOption = None,
    regions: o.RegionsOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Check a filter and write it in another notation.

    For example:

        tidings parse "make = 'ford' and price <= 9000" --to url

    A refused filter is shown with a caret under each mistake. `--to tree` draws it, `--to normal` writes it as a
    disjunction of conjunctions.
    """
    from tidings.cli.match import parse as body

    vocabulary = load_vocabulary(schema, ontology, regions)
    body.run(filter, notation, output, vocabulary, as_json=as_json)


@app.command()
@o.with_options(
    "events subscriptions snapshot event_id kind schema ontology regions now form skip_bad unknown dead_letters quiet"
    " as_json"
)
def match(
    context: typer.Context,
    origin: SubscriptionOrigin,
    *,
    events: o.EventsOption,
    event_id: o.EventIdOption = None,
    unknown: o.UnknownOption = o.UnknownChoice.error,
    dead_letters: Annotated[
        Path | None,
        make_option("--dead-letters", "Where events that cannot be read go, with the reason.", metavar="FILE"),
    ] = None,
    quiet: o.QuietOption = False,
    as_json: o.JsonOption = False,  # noqa: ARG001 - the output is JSON lines with or without it
) -> None:
    """Match events against subscriptions: JSON lines of event and subscription.

    For example:

        tidings match -s searches.jsonl -e ads.jsonl --event-id id
        tail -f ads.log | tidings match -s searches.jsonl -e -

    Lines come as soon as their events do; messages go to standard error. An event that cannot be read is reported and
    does not stop the others.
    """
    origin = choose_origin(context, origin, events=events)
    from tidings.cli.match import match as body

    body.run(origin, events, event_id=event_id, unknown=unknown, dead_letters=dead_letters, quiet=quiet)


@app.command()
@o.with_options("cases subscriptions snapshot kind schema ontology regions now form as_json")
def test(
    context: typer.Context,
    origin: SubscriptionOrigin,
    *,
    cases: Annotated[
        str, typer.Argument(metavar="CASES", help="File of cases (JSON lines); '-' reads standard input.")
    ],
    as_json: o.JsonOption = False,
) -> None:
    """Test subscriptions: each case is an event and the ids that must hear of it.

    For example:

        tidings test -s searches.jsonl cases.jsonl

    A case is an object such as {"name": "a cheap Ford", "event": {"make": "ford", "price": 8500}, "expect": ["s1"]}.
    `expect` alone means exactly these ids; with `expect_not` only the ids that are named count. `now` sets the time
    that ages are measured against. A case that fails is shown with the tests that decided it, and the exit code is 1.
    """
    origin = choose_origin(context, origin, events=cases)
    from tidings.cli.match import subscription_tests as body

    if not body.run(origin, cases, as_json=as_json):
        raise typer.Exit(1)


@app.command()
@o.with_options("events id row subscriptions snapshot schema ontology regions now form as_json")
def why(
    context: typer.Context,
    origin: SubscriptionOrigin,
    *,
    events: o.EventsOption,
    id: Annotated[str, typer.Option("--id", metavar="ID", help="The subscription to ask about.")],
    row: Annotated[
        int | None, typer.Option(metavar="N", help="The event's number, where the file has several.")
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Tell why a subscription hears of an event, or why not.

    For example:

        tidings why -s searches.jsonl -e event.json --id s1
    """
    origin = choose_origin(context, origin, events=events)
    from tidings.cli.match import explain as body

    body.explain_match(origin, events, id=id, row=row, as_json=as_json)


@app.command()
@o.with_options("events subscriptions snapshot kind schema ontology regions now form as_json")
def explain(
    context: typer.Context, origin: SubscriptionOrigin, *, events: o.SampleOption = None, as_json: o.JsonOption = False
) -> None:
    """Show how the matcher goes about these subscriptions; with a sample of events, how it fares.

    For example:

        tidings explain -s searches.jsonl -e ads.jsonl
    """
    origin = choose_origin(context, origin, events=events)
    from tidings.cli.match import explain as body

    body.explain_plan(origin, events, as_json=as_json)


@app.command()
@o.with_options("output subscriptions kind schema ontology regions form skip_bad as_json")
def compile(
    context: typer.Context,
    origin: SubscriptionOrigin,
    *,
    output: Annotated[Path, make_option("--output -o", "The snapshot to write.", metavar="FOLDER")],
    as_json: o.JsonOption = False,
) -> None:
    """Make a snapshot of subscriptions, with their schema, ontology and regions.

    For example:

        tidings compile -s searches.jsonl -o searches/
        tidings match --snapshot searches/ -e ads.jsonl
    """
    origin = choose_origin(context, origin)
    matcher = origin.open_matcher()
    matcher.save(output)
    if as_json:
        render.write_json({"snapshot": str(output), "subscriptions": len(matcher), "matcher": matcher.kind})
    else:
        onward = f"match with: tidings match --snapshot {output} -e EVENTS"
        render.note(f"{len(matcher):,} subscriptions in `{output}`; {onward}")


@app.command()
def run(
    pipeline: Annotated[Path, typer.Argument(metavar="PIPELINE", help="The pipeline's file (TOML).")],
    check: Annotated[
        bool, typer.Option("--check", help="Only check the file and say what would happen; nothing runs.")
    ] = False,
    once: Annotated[bool, make_option("--once", "Take what is there now, then end, whatever `trigger` says.")] = False,
    as_json: o.JsonOption = False,
) -> None:
    """Run a pipeline on Spark: events stream in, subscriptions change, matches and detections stream out.

    For example:

        tidings run pipeline.toml --check
        tidings run pipeline.toml

    where `pipeline.toml` says:

        checkpoint = "state"
        trigger = "1 second"

        [source]
        kind = "json"
        path = "ads"
        columns = "id BIGINT, make STRING, price DOUBLE"
        id = "id"

        [subscriptions]
        directory = "searches"

        [[sink]]
        kind = "json"
        path = "matches"

    Patterns over several events stand beside the subscriptions, or alone:

        [patterns]
        file = "attacks.patterns"
        lateness = "10 minutes"

        [[detections]]
        kind = "json"
        path = "detections"

    Paths are reckoned from the file's folder. `${NAME}` in a value is a variable of the environment, for secrets.
    All mistakes are listed together, before anything starts. Ctrl-C and SIGTERM stop it after the current micro-batch;
    the next run goes on from there.
    """
    from tidings.cli import run as body

    body.run(pipeline, check=check, once=once, as_json=as_json)


app.command()(serve)


@app.command()
def doctor(as_json: o.JsonOption = False) -> None:
    """Say whether this machine has what Tidings needs, and how to mend what it has not.

    For example:

        tidings doctor
    """
    from tidings.cli import doctor as body

    if not body.run(as_json=as_json):
        raise typer.Exit(1)
