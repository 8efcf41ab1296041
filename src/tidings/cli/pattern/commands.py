"""`tidings pattern compile`, `detect` and `show`: their options and their help.

The modules beside this one do the work and are imported when a command runs, so that `--help` stays fast.
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options as o
from tidings.cli.guard import guard
from tidings.cli.pattern import options as po
from tidings.cli.pattern.forecast_commands import pattern_forecast, pattern_score, pattern_train

pattern_app = typer.Typer(
    no_args_is_help=True,
    help="Patterns over time: check a file of them, detect them in events, look at the machine, forecast them.",
)


@pattern_app.command("compile")
@o.with_options(
    "file output time event_id keep lateness partials automata schema ontology regions as_json",
)
def pattern_compile(
    file: po.File,
    options: po.PatternOptions,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="STATE", help="Also write a state that `detect --state` begins with."),
    ] = None,
    automata: Annotated[
        bool | None,
        typer.Option("--automata/--no-automata", help="Count the states of automata; yes for up to 50 patterns."),
    ] = None,
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
    with guard():
        from tidings.cli.pattern import compile as body
        from tidings.cli.pattern.pattern_origin import PatternOrigin

        body.run(PatternOrigin(options, file), output, automata=automata)


@pattern_app.command("detect")
@o.with_options(
    "events patterns time event_id keep lateness until mode state save_state partials schema ontology regions form"
    " dead_letters quiet as_json"
)
def pattern_detect(
    context: typer.Context,
    options: po.PatternOptions,
    *,
    events: o.Events,
    patterns: Annotated[
        str | None,
        typer.Option("--patterns", "-p", metavar="PATTERNS", envvar="TIDINGS_PATTERNS", help=po.FILE_HELP),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(
            parser=o.parse_moment,
            metavar="TIME",
            envvar="TIDINGS_UNTIL",
            help="Let time pass so far behind the last event, for patterns that end with an absence.",
        ),
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
    if state is not None and any(o.is_typed(context, name) for name in ("schema", "ontology", "regions")):
        msg = "a state has its own schema, ontology and regions"
        raise typer.BadParameter(msg)
    if patterns is None and options.mode is not None:
        msg = "a state has its own modes; --mode goes with --patterns"
        raise typer.BadParameter(msg)
    with guard():
        from tidings.cli.pattern import detect as body
        from tidings.cli.pattern.pattern_origin import PatternOrigin

        body.run(PatternOrigin(options, patterns, state), events, until=until, save_to=save_state)


@pattern_app.command("show")
@o.with_options("file name look output automaton model horizon schema ontology regions as_json")
def pattern_show(
    context: typer.Context,
    file: po.File,
    options: po.PatternOptions,
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One pattern; all of the file unless given.")
    ] = None,
    look: Annotated[
        po.Look, typer.Option("--as", help="Text, Graphviz, a picture, or JSON; the output's name tells it too.")
    ] = po.Look.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")] = None,
    automaton: Annotated[
        bool, typer.Option("--automaton", help="The table of all situations, where the pattern has one.")
    ] = False,
    horizon: Annotated[
        str | None,
        typer.Option(
            parser=po.check_horizon, metavar="AHEAD", help="With --model: how far ahead; several unless given."
        ),
    ] = None,
) -> None:
    """Show the machine of a pattern: what it waits for, state by state.

    For example:

        tidings pattern show attacks.patterns intrusion
        tidings pattern show attacks.patterns intrusion -o intrusion.svg
        tidings pattern show attacks.patterns --as dot | dot -Tpdf > attacks.pdf
        tidings pattern show attacks.patterns intrusion --model attacks.model --horizon 20

    In text, `>` stands before the state where a match begins and `!` before the one where it is done; `*` is any event.
    `--automaton` shows all that may be waited for at once as one state, as forecasts count it. With `--model` its
    counts and probabilities are shown: how often each event came in each state, and how likely the pattern is to
    complete within the horizon from there; a picture carries them on its arrows and under its states.
    """
    look_typed = o.is_typed(context, "look")
    if options.as_json and look_typed and look is not po.Look.json:
        msg = f"--json and --as {look.value} exclude each other"
        raise typer.BadParameter(msg)
    if not look_typed and output is not None and output.suffix[1:].lower() in list(po.Look):
        look = po.Look(output.suffix[1:].lower())
    with guard():
        from tidings.cli.pattern import show as body
        from tidings.cli.pattern.pattern_origin import PatternOrigin

        drawing = body.Drawing(po.Look.json if options.as_json else look, output, automaton, options.model, horizon)
        body.run(PatternOrigin(options, file), name, drawing)


pattern_app.command("train")(pattern_train)
pattern_app.command("forecast")(pattern_forecast)
pattern_app.command("score")(pattern_score)
