"""`tidings pattern`: its commands, their options and their help; the modules beside it do the work when they run."""

from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tidings.cli import options as o
from tidings.cli.guard import guarded

pattern_app = typer.Typer(
    no_args_is_help=True, help="Patterns over time: check a file of them, detect them in events, look at the machine."
)


class Mode(StrEnum):
    """What `--mode` takes."""

    restart = "restart"
    overlap = "overlap"
    next = "next"
    any = "any"


class Look(StrEnum):
    """What `show --as` takes."""

    text = "text"
    dot = "dot"
    svg = "svg"
    json = "json"


def span(text: str) -> timedelta:
    """Read `--lateness`: a duration such as `10min`."""
    from tidings.lang.patterns.durations import duration_of
    from tidings.lang.patterns.scan import Stop

    try:
        microseconds = duration_of(text)
    except Stop as problem:
        raise typer.BadParameter(str(problem)) from None
    if microseconds < 0:
        msg = f"`{text}` is not how late an event may come"
        raise typer.BadParameter(msg)
    return timedelta(microseconds=microseconds)


def _typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


FILE_HELP = "File of patterns: blocks that begin `pattern NAME`, or JSON lines; '-' reads standard input."
File: TypeAlias = Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)]
Time: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="FIELD", envvar="TIDINGS_TIME", help="Field that says when; `time` unless given."),
]
Keep: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="FIELD", help="Field of the events that detections carry along; several may be given."),
]
Lateness: TypeAlias = Annotated[
    timedelta | None,
    typer.Option(
        parser=span,
        metavar="SPAN",
        envvar="TIDINGS_LATENESS",
        help="How late an event may come, such as 10min: events wait so long and are put in order.",
    ),
]
Partials: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", envvar="TIDINGS_PARTIALS", help="Partial matches of a key kept at one step; 10,000."
    ),
]


@pattern_app.command("compile")
def pattern_compile(  # noqa: PLR0913 - one parameter for each option
    file: File,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="STATE", help="Also write a state that `detect --state` begins with."),
    ] = None,
    time: Time = None,
    event_id: o.EventId = None,
    keep: Keep = None,
    lateness: Lateness = None,
    partials: Partials = None,
    automata: Annotated[
        bool | None,
        typer.Option("--automata/--no-automata", help="Count the states of automata; yes for up to 50 patterns."),
    ] = None,
    schema: o.Schema = None,
    ontology: o.Ontology = None,
    regions: o.Regions = None,
    as_json: o.Json = False,
) -> None:
    """Check a file of patterns and say what becomes of each.

    For example:

        tidings pattern compile attacks.patterns
        tidings pattern compile attacks.patterns -o attacks.state --event-id id

    where `attacks.patterns` says:

        pattern intrusion
          fail  = status = 'denied'  and ip = $x
          enter = status = 'success' and ip = $x
          fail{3,} ; enter within 5 min

    Mistakes are shown together, each with its line and a caret. States are the places where a match may stand; those
    that a pattern shares with others are kept once for all. `automaton` is how many states a table of all
    situations would have, or why there is none: such patterns are detected all the same.
    """
    with guarded():
        from tidings.cli import pattern_compile as body
        from tidings.cli.pattern_files import Settings, Source

        source = Source(file, None, Settings(time, event_id, keep, lateness, partials), schema, ontology, regions)
        body.run(source, output, automata=automata, as_json=as_json)


@pattern_app.command("detect")
def pattern_detect(  # noqa: PLR0913
    context: typer.Context,
    *,
    events: o.Events,
    patterns: Annotated[
        str | None,
        typer.Option("--patterns", "-p", metavar="PATTERNS", envvar="TIDINGS_PATTERNS", help=FILE_HELP),
    ] = None,
    time: Time = None,
    event_id: o.EventId = None,
    keep: Keep = None,
    lateness: Lateness = None,
    until: Annotated[
        datetime | None,
        typer.Option(
            parser=o.moment,
            metavar="TIME",
            envvar="TIDINGS_UNTIL",
            help="Let time pass so far behind the last event, for patterns that end with an absence.",
        ),
    ] = None,
    mode: Annotated[
        Mode | None, typer.Option(envvar="TIDINGS_MODE", help="Which matches to report, whatever the file says.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="STATE", envvar="TIDINGS_STATE", help="Go on from this state; it knows its patterns."),
    ] = None,
    save_state: Annotated[
        Path | None,
        typer.Option(
            metavar="STATE", envvar="TIDINGS_SAVE_STATE", help="Write where it stands at the end, or at Ctrl-C."
        ),
    ] = None,
    partials: Partials = None,
    schema: o.Schema = None,
    ontology: o.Ontology = None,
    regions: o.Regions = None,
    form: o.Form = None,
    dead_letters: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="TIDINGS_DEAD_LETTERS",
            help="Where events go that cannot be read or come late, with the reason.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", envvar="TIDINGS_QUIET", help="No closing summary.")] = False,
    as_json: o.Json = False,
) -> None:
    """Detect patterns in events: JSON lines of pattern, time and events, or a table on a terminal.

    For example:

        tidings pattern detect -p attacks.patterns -e logins.jsonl --event-id id --keep user
        tail -f logins.log | tidings pattern detect -p attacks.patterns -e - --lateness 10s
        tidings pattern detect --state attacks.state -e monday.jsonl --save-state attacks.state

    Events are expected in the order of time. One that lies behind is late: it is told on standard error and not taken,
    unless `--lateness` lets events wait and puts them in order. Detections come as soon as their last event does. At
    the end, what waited is taken, and absences that were over by the last event (or by `--until`) are reported.

    With `--save-state` the stream is not over: what waits goes into the state, and a run that begins with it goes on
    as if nothing had been between. With `--state` and `--patterns` the file says what is watched from now on; patterns
    that did not change go on where they were.
    """
    if patterns is None and state is None:
        msg = "give the patterns: --patterns FILE, or --state STATE, which knows them"
        raise typer.BadParameter(msg)
    if patterns == "-" == events:
        msg = "standard input can be the patterns or the events, not both"
        raise typer.BadParameter(msg)
    if state is not None and any(_typed(context, name) for name in ("schema", "ontology", "regions")):
        msg = "a state has its own schema, ontology and regions"
        raise typer.BadParameter(msg)
    if patterns is None and mode is not None:
        msg = "a state has its own modes; --mode goes with --patterns"
        raise typer.BadParameter(msg)
    with guarded():
        from tidings.cli import pattern_detect as body
        from tidings.cli.pattern_files import Settings, Source

        settings = Settings(time, event_id, keep, lateness, partials)
        source = Source(patterns, state, settings, schema, ontology, regions, mode.value if mode else None)
        ends = body.Ends(until, save_state, dead_letters, quiet)
        body.run(source, events, ends, form=form, as_json=as_json)


@pattern_app.command("show")
def pattern_show(  # noqa: PLR0913
    context: typer.Context,
    file: File,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One pattern; all of the file unless given.")
    ] = None,
    *,
    look: Annotated[
        Look, typer.Option("--as", help="Text, Graphviz, a picture, or JSON; the output's name tells it too.")
    ] = Look.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")] = None,
    automaton: Annotated[
        bool, typer.Option("--automaton", help="The table of all situations, where the pattern has one.")
    ] = False,
    schema: o.Schema = None,
    ontology: o.Ontology = None,
    regions: o.Regions = None,
    as_json: o.Json = False,
) -> None:
    """Show the machine of a pattern: what it waits for, state by state.

    For example:

        tidings pattern show attacks.patterns intrusion
        tidings pattern show attacks.patterns intrusion -o intrusion.svg
        tidings pattern show attacks.patterns --as dot | dot -Tpdf > attacks.pdf

    In text, `>` stands before the state where a match begins and `!` before the one where it is done; `*` is any event.
    `--automaton` shows all that may be waited for at once as one state, as forecasts will count it.
    """
    typed = _typed(context, "look")
    if as_json and typed and look is not Look.json:
        msg = f"--json and --as {look.value} exclude each other"
        raise typer.BadParameter(msg)
    if not typed and output is not None and output.suffix[1:].lower() in list(Look):
        look = Look(output.suffix[1:].lower())
    with guarded():
        from tidings.cli import pattern_show as body
        from tidings.cli.pattern_files import Settings, Source

        source = Source(file, None, Settings(), schema, ontology, regions)
        body.run(source, name, look=Look.json if as_json else look, output=output, automaton=automaton)
