"""`tidings pattern train`, `forecast` and `score`: their options and their help."""

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options as o
from tidings.cli.guard import guarded
from tidings.cli.pattern import options as po

EVENTS = typer.Argument(metavar="EVENTS", help=o.EVENTS_HELP)


def _one_input(patterns: str, *events: str) -> None:
    if [patterns, *events].count("-") > 1:
        msg = "standard input can be one file, not several"
        raise typer.BadParameter(msg)


def pattern_train(  # noqa: PLR0913 - one parameter for each option
    context_: typer.Context,
    patterns: po.File,
    events: Annotated[list[str], typer.Argument(metavar="EVENTS...", help=o.EVENTS_HELP)],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="Where to write the model.")],
    start: Annotated[
        Path | None, typer.Option("--from", metavar="MODEL", help="Add to what this model has counted, as it counts.")
    ] = None,
    apart: Annotated[
        bool, typer.Option("--apart", help="Each file is a stream of its own; else they are one, in this order.")
    ] = False,
    context: po.Context = 3,
    smoothing: po.Smoothing = 0.5,
    half_life: po.HalfLife = None,
    estimator: po.EstimatorOption = po.Estimator.both,
    horizon: Annotated[
        list[str] | None,
        typer.Option(parser=po.ahead, metavar="SPAN", help="Span such as '5 min' to count directly; several may be."),
    ] = None,
    mode: po.ModeOption = None,
    time: po.Time = None,
    lateness: po.Lateness = None,
    schema: o.Schema = None,
    ontology: o.Ontology = None,
    regions: o.Regions = None,
    form: o.Form = None,
    dead_letters: po.DeadLetters = None,
    quiet: po.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Count patterns in a history of events: a model that `forecast` and `score` reckon with.

    For example:

        tidings pattern train attacks.patterns june.jsonl july.jsonl -o attacks.model
        tidings pattern train attacks.patterns august.jsonl -o attacks.model --from attacks.model
        tidings pattern train attacks.patterns logins.jsonl -o attacks.model --half-life 30d --context 2

    Counts add up: a model of more events is the sum of those of its parts. Horizons in events need not be told here;
    a span of time that is told is counted directly, any other is reckoned from how fast events come.
    """
    _one_input(patterns, *events)
    fixed = [name for name in ("context", "smoothing", "half_life", "estimator") if po.typed(context_, name)]
    if start is not None and fixed:
        msg = f"the model of --from has its own; leave out {', '.join('--' + name.replace('_', '-') for name in fixed)}"
        raise typer.BadParameter(msg)
    with guarded():
        from tidings.cli.pattern import train as body
        from tidings.cli.pattern.pattern_origin import Settings, Source

        source = Source(patterns, None, Settings(time, None, None, lateness), schema, ontology, regions, mode)
        counting = {"context": context, "smoothing": smoothing, "half_life": half_life, "estimator": estimator.value}
        history = body.History(tuple(events), form, dead_letters, apart=apart)
        body.run(source, history, body.Wanted(output, start, counting, tuple(horizon or ()), quiet, as_json))


def pattern_forecast(  # noqa: PLR0913
    patterns: po.File,
    events: Annotated[str, EVENTS],
    *,
    model: po.Model = None,
    horizon: po.Ahead = "10",
    threshold: po.Threshold = 0.5,
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
    mode: po.ModeOption = None,
    time: po.Time = None,
    event_id: o.EventId = None,
    lateness: po.Lateness = None,
    schema: o.Schema = None,
    ontology: o.Ontology = None,
    regions: o.Regions = None,
    form: o.Form = None,
    dead_letters: po.DeadLetters = None,
    quiet: po.Quiet = False,
    as_json: o.Json = False,
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
    _one_input(patterns, events)
    if model is None and not learn:
        msg = "give a --model (`tidings pattern train` makes one), or --learn to begin without"
        raise typer.BadParameter(msg)
    if save is not None and not learn:
        msg = "--save writes what was learned; it goes with --learn"
        raise typer.BadParameter(msg)
    with guarded():
        from tidings.cli.pattern import forecast as body
        from tidings.cli.pattern.pattern_origin import Settings, Source

        source = Source(patterns, None, Settings(time, event_id, None, lateness), schema, ontology, regions, mode)
        plan = {"horizon": horizon, "threshold": threshold, "tell": tell.value, "step": step}
        wanted = body.Wanted(plan, model, learn, save, keys, dead_letters, quiet)
        body.run(source, events, wanted, form=form, as_json=as_json)


def pattern_score(  # noqa: PLR0913
    context_: typer.Context,
    patterns: po.File,
    events: Annotated[str, EVENTS],
    *,
    horizon: po.Ahead = "10",
    threshold: po.Threshold = 0.5,
    model: po.Model = None,
    learn: Annotated[
        bool, typer.Option("--learn/--no-learn", help="Count each event after it was foretold, or let a model be.")
    ] = True,
    every: Annotated[bool, typer.Option("--all", help="Also `chain` and `direct`, each by itself.")] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw how far probabilities can be trusted (extra `bench`).")
    ] = None,
    context: po.Context = 3,
    smoothing: po.Smoothing = 0.5,
    half_life: po.HalfLife = None,
    mode: po.ModeOption = None,
    time: po.Time = None,
    lateness: po.Lateness = None,
    schema: o.Schema = None,
    ontology: o.Ontology = None,
    regions: o.Regions = None,
    form: o.Form = None,
    dead_letters: po.DeadLetters = None,
    quiet: po.Quiet = False,
    as_json: o.Json = False,
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
    _one_input(patterns, events)
    fixed = [name for name in ("context", "smoothing", "half_life") if po.typed(context_, name)]
    if model is not None and fixed:
        msg = f"the model has its own; leave out {', '.join('--' + name.replace('_', '-') for name in fixed)}"
        raise typer.BadParameter(msg)
    if model is None and not learn:
        msg = "without a --model there is nothing but what is learned; leave out --no-learn"
        raise typer.BadParameter(msg)
    with guarded():
        from tidings.cli.pattern import score as body
        from tidings.cli.pattern.pattern_origin import Settings, Source

        source = Source(patterns, None, Settings(time, None, None, lateness), schema, ontology, regions, mode)
        counting = {"context": context, "smoothing": smoothing, "half_life": half_life}
        trial = body.Trying(horizon, threshold, model, learn, every, counting)
        body.run(source, events, trial, body.Ends(plot, dead_letters, quiet), form=form, as_json=as_json)
