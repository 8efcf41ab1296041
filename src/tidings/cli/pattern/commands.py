"""`tidings pattern`: its commands, their options and their help.

The modules beside this one do the work and are imported when a command runs, so that `--help` stays fast.
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tidings.cli import options as o
from tidings.cli.options import make_option
from tidings.cli.pattern import options as po

pattern_app = typer.Typer(
    no_args_is_help=True,
    help="Patterns over time: check a file of them, detect them in events, look at the machine, forecast them.",
)


UNTIL_HELP = "Let time pass so far behind the last event, for patterns that end with an absence."

EventsArgument: TypeAlias = Annotated[str, typer.Argument(metavar="EVENTS", help=o.EVENTS_HELP)]


@pattern_app.command("compile")
@o.with_options("file output time event_id keep lateness partials automata schema ontology regions as_json")
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
    events: o.EventsOption,
    patterns: Annotated[str | None, make_option("--patterns -p", po.FILE_HELP, metavar="PATTERNS")] = None,
    until: Annotated[datetime | None, make_option("--until", UNTIL_HELP, parser=o.parse_moment, metavar="TIME")] = None,
    state: Annotated[
        Path | None, make_option("--state", "Go on from this state; it knows its patterns.", metavar="STATE")
    ] = None,
    save_state: Annotated[
        Path | None, make_option("--save-state", "Write where it stands at the end, or at Ctrl-C.", metavar="STATE")
    ] = None,
) -> None:
    """Detect patterns in events: JSON lines of pattern, time and events, or a table on a terminal.

    For example:

        tidings pattern detect -p attacks.patterns -e logins.jsonl --event-id id --keep user
        tail -f logins.log | tidings pattern detect -p attacks.patterns -e - --lateness 10s
        tidings pattern detect --state attacks.state -e monday.jsonl --save-state attacks.state

    Events are expected in the order of time. One that lies behind is late: it is noted on standard error and not taken,
    unless `--lateness` lets events wait and puts them in order. Detections come as soon as their last event does. At
    the end, what waited is taken, and absences that were over by the last event (or by `--until`) are reported.

    With `--save-state` the stream is not over: what waits goes into the state, and a run that begins with it goes on
    as if nothing had been between. With `--state` and `--patterns` the file says what is watched from now on; patterns
    that did not change go on where they were.
    """
    no_patterns = "give the patterns: --patterns FILE, or --state STATE, which knows them"
    o.refuse_when(patterns is None and state is None, no_patterns)
    o.refuse_when(patterns == "-" == events, "standard input can be the patterns or the events, not both")
    has_vocabulary = any(o.is_typed(context, name) for name in ("schema", "ontology", "regions"))
    o.refuse_when(state is not None and has_vocabulary, "a state has its own schema, ontology and regions")
    has_mode = options.mode is not None
    o.refuse_when(patterns is None and has_mode, "a state has its own modes; --mode goes with --patterns")
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
    has_other_look = look_typed and look is not po.Look.json
    o.refuse_when(options.as_json and has_other_look, f"--json and --as {look.value} exclude each other")
    if not look_typed and output is not None and output.suffix[1:].lower() in list(po.Look):
        look = po.Look(output.suffix[1:].lower())
    from tidings.cli.pattern import show as body
    from tidings.cli.pattern.pattern_origin import PatternOrigin

    look = po.Look.json if options.as_json else look
    body.run(PatternOrigin(options, file), name, look, output, automaton=automaton, horizon=horizon)


# Forecasts --------------------------------------------------------------------------------------


@pattern_app.command("train")
@o.with_options(
    "patterns events output start apart context smoothing half_life estimator horizon mode time lateness schema"
    " ontology regions form dead_letters quiet as_json"
)
def pattern_train(
    command_context: typer.Context,
    patterns: po.File,
    events: Annotated[list[str], typer.Argument(metavar="EVENTS...", help=o.EVENTS_HELP)],
    options: po.PatternOptions,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Where to write the model.")],
    start: Annotated[
        Path | None, typer.Option("--from", metavar="MODEL", help="Add to what this model has counted, as it counts.")
    ] = None,
    apart: Annotated[
        bool, typer.Option("--apart", help="Each file is a stream of its own; else they are one, in this order.")
    ] = False,
    horizon: Annotated[
        list[str] | None,
        typer.Option(
            parser=po.check_horizon, metavar="SPAN", help="Span such as '5 min' to count directly; several may be."
        ),
    ] = None,
) -> None:
    """Count patterns in a history of events: a model that `forecast` and `score` use.

    For example:

        tidings pattern train attacks.patterns june.jsonl july.jsonl -o attacks.model
        tidings pattern train attacks.patterns august.jsonl -o attacks.model --from attacks.model
        tidings pattern train attacks.patterns logins.jsonl -o attacks.model --half-life 30d --context 2

    Counts add up: a model of more events is the sum of those of its parts. Horizons in events need not be given here;
    a span of time that is given is counted directly, any other is reckoned from how fast events come.
    """
    _check_inputs(patterns, *events)
    if start is not None:
        _refuse_typed(
            command_context, ("context", "smoothing", "half_life", "estimator"), "the model of --from has its own"
        )
    from tidings.cli.pattern import train as body
    from tidings.cli.pattern.pattern_origin import PatternOrigin

    origin = PatternOrigin(options, patterns)
    body.run(origin, events, output=output, start=start, separate_streams=apart, horizons=horizon or [])


@pattern_app.command("forecast")
@o.with_options(
    "patterns events model horizon threshold tell step learn save keys mode time event_id lateness schema ontology"
    " regions form dead_letters quiet as_json"
)
def pattern_forecast(
    patterns: po.File,
    events: EventsArgument,
    options: po.PatternOptions,
    *,
    tell: Annotated[
        po.Tell, make_option("--tell", "When: above the threshold, once an episode, and so on.")
    ] = po.Tell.crossing,
    step: Annotated[
        float, make_option("--step", "Change that `--tell change` tells.", min=0, max=1, metavar="P")
    ] = 0.1,
    learn: Annotated[bool, typer.Option("--learn", help="Count these events too, each after its forecast.")] = False,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="MODEL", help="With --learn: where to write what was learned.")
    ] = None,
    keys: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Keys of a pattern that are printed at the end, the likeliest first."),
    ] = 5,
) -> None:
    """Forecast patterns while events come: alarms as JSON lines, or a table on a terminal, then how things stand.

    For example:

        tidings pattern forecast attacks.patterns logins.jsonl --model attacks.model --threshold 0.6
        tidings pattern forecast attacks.patterns logins.jsonl --model attacks.model --horizon '5 min' --tell change
        tail -f logins.log | tidings pattern forecast attacks.patterns - --learn --save attacks.model

    A forecast is how likely the pattern is to complete within the horizon, for the key of the event. It is told when it
    rises above the threshold (`crossing`), then not again before the pattern matches or what began is gone (`episode`),
    whenever it has moved by more than `--step` (`change`), or at every event. The last lines (`"kind": "now"`) say how
    likely each pattern is after the last event: for the likeliest keys that have begun something, and for all others.
    """
    _check_inputs(patterns, events)
    no_model = "give a --model (`tidings pattern train` makes one), or --learn to begin without"
    o.refuse_when(options.model is None and not learn, no_model)
    o.refuse_when(save is not None and not learn, "--save writes what was learned; it goes with --learn")
    from tidings.cli.pattern import forecast as body
    from tidings.cli.pattern.pattern_origin import PatternOrigin

    origin = PatternOrigin(options, patterns)
    body.run(origin, events, learn=learn, save_to=save, keys=keys, tell=tell.value, step=step)


@pattern_app.command("score")
@o.with_options(
    "patterns events horizon threshold model learn every plot context smoothing half_life mode time lateness schema"
    " ontology regions form dead_letters quiet as_json"
)
def pattern_score(
    command_context: typer.Context,
    patterns: po.File,
    events: EventsArgument,
    options: po.PatternOptions,
    *,
    learn: Annotated[
        bool, typer.Option("--learn/--no-learn", help="Count each event after its forecast, or let a model be.")
    ] = True,
    every: Annotated[bool, typer.Option("--all", help="Also `chain` and `direct`, each by itself.")] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw how far probabilities can be trusted (extra `bench`).")
    ] = None,
) -> None:
    """Score forecasts on a history: each is made before its event is counted, and judged when its horizon is over.

    For example:

        tidings pattern score attacks.patterns logins.jsonl --horizon 10 --threshold 0.6
        tidings pattern score attacks.patterns july.jsonl --model june.model --no-learn --plot july.png

    Ours stands beside the base rate of what was known so far, and beside the formulas of the paper as printed. `skill`
    is the part of the base rate's Brier score that is gone; `lead` is how many events of the key a match was
    announced before it came, in the median; `false` are alarms in vain in 1,000 events. Forecasts whose horizon
    reaches beyond the last event are not judged.
    """
    _check_inputs(patterns, events)
    if options.model is not None:
        _refuse_typed(command_context, ("context", "smoothing", "half_life"), "the model has its own")
    no_counts = "without a --model there is nothing but what is learned; leave out --no-learn"
    o.refuse_when(options.model is None and not learn, no_counts)
    from tidings.cli.pattern import score as body
    from tidings.cli.pattern.pattern_origin import PatternOrigin

    body.run(PatternOrigin(options, patterns), events, learn=learn, all_estimators=every, plot=plot)


def _check_inputs(patterns: str, *events: str) -> None:
    o.refuse_when([patterns, *events].count("-") > 1, "standard input can be one file, not several")


def _refuse_typed(context: typer.Context, names: tuple[str, ...], reason: str) -> None:
    typed = ["--" + name.replace("_", "-") for name in names if o.is_typed(context, name)]
    o.refuse_when(bool(typed), f"{reason}; leave out {', '.join(typed)}")
