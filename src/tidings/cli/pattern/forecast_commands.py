"""`tidings pattern train`, `forecast` and `score`: their options and their help."""

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options as o
from tidings.cli.guard import guard
from tidings.cli.pattern import options as po

EVENTS = typer.Argument(metavar="EVENTS", help=o.EVENTS_HELP)


def _check_inputs(patterns: str, *events: str) -> None:
    if [patterns, *events].count("-") > 1:
        msg = "standard input can be one file, not several"
        raise typer.BadParameter(msg)


def _refuse_typed(context: typer.Context, names: tuple[str, ...], reason: str) -> None:
    """Refuse options of counting beside a model, which has its own."""
    typed = ["--" + name.replace("_", "-") for name in names if o.is_typed(context, name)]
    if typed:
        msg = f"{reason}; leave out {', '.join(typed)}"
        raise typer.BadParameter(msg)


@o.with_options(
    "patterns events output start apart context smoothing half_life estimator horizon mode time lateness schema"
    " ontology regions form dead_letters quiet as_json"
)
def pattern_train(
    command: typer.Context,
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
    """Count patterns in a history of events: a model that `forecast` and `score` reckon with.

    For example:

        tidings pattern train attacks.patterns june.jsonl july.jsonl -o attacks.model
        tidings pattern train attacks.patterns august.jsonl -o attacks.model --from attacks.model
        tidings pattern train attacks.patterns logins.jsonl -o attacks.model --half-life 30d --context 2

    Counts add up: a model of more events is the sum of those of its parts. Horizons in events need not be told here;
    a span of time that is told is counted directly, any other is reckoned from how fast events come.
    """
    _check_inputs(patterns, *events)
    if start is not None:
        _refuse_typed(command, ("context", "smoothing", "half_life", "estimator"), "the model of --from has its own")
    with guard():
        from tidings.cli.pattern import train as body
        from tidings.cli.pattern.pattern_origin import PatternOrigin

        history = body.History(tuple(events), options.form, options.dead_letters, apart=apart)
        task = body.Training(output, start, tuple(horizon or ()))
        body.run(PatternOrigin(options, patterns), history, task)


@o.with_options(
    "patterns events model horizon threshold tell step learn save keys mode time event_id lateness schema ontology"
    " regions form dead_letters quiet as_json"
)
def pattern_forecast(
    patterns: po.File,
    events: Annotated[str, EVENTS],
    options: po.PatternOptions,
    *,
    tell: Annotated[
        po.Tell, typer.Option(envvar="TIDINGS_TELL", help="When: above the threshold, once an episode, and so on.")
    ] = po.Tell.crossing,
    step: Annotated[
        float,
        typer.Option(min=0, max=1, metavar="P", envvar="TIDINGS_STEP", help="Change that `--tell change` tells."),
    ] = 0.1,
    learn: Annotated[bool, typer.Option("--learn", help="Count these events too, each after it was foretold.")] = False,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="MODEL", help="With --learn: where to write what was learned.")
    ] = None,
    keys: Annotated[
        int, typer.Option(min=0, metavar="N", help="Keys of a pattern that are told at the end, the likeliest first.")
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
    if options.model is None and not learn:
        msg = "give a --model (`tidings pattern train` makes one), or --learn to begin without"
        raise typer.BadParameter(msg)
    if save is not None and not learn:
        msg = "--save writes what was learned; it goes with --learn"
        raise typer.BadParameter(msg)
    with guard():
        from tidings.cli.pattern import forecast as body
        from tidings.cli.pattern.pattern_origin import PatternOrigin

        body.run(PatternOrigin(options, patterns), events, body.Forecasting(tell.value, step, learn, save, keys))


@o.with_options(
    "patterns events horizon threshold model learn every plot context smoothing half_life mode time lateness schema"
    " ontology regions form dead_letters quiet as_json"
)
def pattern_score(
    command: typer.Context,
    patterns: po.File,
    events: Annotated[str, EVENTS],
    options: po.PatternOptions,
    *,
    learn: Annotated[
        bool, typer.Option("--learn/--no-learn", help="Count each event after it was foretold, or let a model be.")
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
        _refuse_typed(command, ("context", "smoothing", "half_life"), "the model has its own")
    elif not learn:
        msg = "without a --model there is nothing but what is learned; leave out --no-learn"
        raise typer.BadParameter(msg)
    with guard():
        from tidings.cli.pattern import score as body
        from tidings.cli.pattern.pattern_origin import PatternOrigin

        body.run(PatternOrigin(options, patterns), events, body.Scoring(learn, every, plot))
