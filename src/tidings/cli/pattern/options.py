"""The options of the `tidings pattern` commands, each written once, and the parsers of their values."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tidings.cli import options as o


class ModeOption(StrEnum):
    """The values of `--mode`."""

    restart = "restart"
    overlap = "overlap"
    next = "next"
    any = "any"


class Look(StrEnum):
    """The values of `show --as`."""

    text = "text"
    dot = "dot"
    svg = "svg"
    json = "json"


class Estimator(StrEnum):
    """The values of `--estimator`."""

    both = "both"
    chain = "chain"
    direct = "direct"
    printed = "printed"


class Tell(StrEnum):
    """The values of `forecast --tell`."""

    crossing = "crossing"
    episode = "episode"
    every = "every"
    change = "change"


def parse_lateness(text: str) -> timedelta:
    """Parse `--lateness`: a duration such as `10min`."""
    from tidings.lang.patterns.durations import parse_duration
    from tidings.lang.patterns.tokens import PatternReadError

    try:
        microseconds = parse_duration(text)
    except PatternReadError as problem:
        raise typer.BadParameter(str(problem)) from None
    if microseconds < 0:
        msg = f"`{text}` is not how late an event may come"
        raise typer.BadParameter(msg)
    return timedelta(microseconds=microseconds)


def check_horizon(text: str) -> str:
    """Return the value of `--horizon` in its normal form; the detector parses it again."""
    from tidings.errors import TidingsError
    from tidings.forecast.horizon import Horizon

    try:
        return str(Horizon.of(text))
    except TidingsError as problem:
        raise typer.BadParameter(str(problem)) from None


def check_half_life(text: str) -> str:
    """Return the value of `--half-life` if a model takes it."""
    from tidings.errors import TidingsError
    from tidings.forecast import Model

    try:
        Model(half_life=text)
    except TidingsError as problem:
        raise typer.BadParameter(str(problem)) from None
    return text


FILE_HELP = "File of patterns: blocks that begin `pattern NAME`, or JSON lines; '-' reads standard input."
File: TypeAlias = Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)]


@dataclass(frozen=True, slots=True)
class PatternOptions:
    """The options that pattern commands share; a command names those it takes, the others keep their defaults."""

    time: Annotated[
        str | None,
        typer.Option(metavar="FIELD", envvar="TIDINGS_TIME", help="Field that says when; `time` unless given."),
    ] = None
    event_id: o.EventId = None
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Field of the events that detections carry along; several may be given."),
    ] = None
    lateness: Annotated[
        timedelta | None,
        typer.Option(
            parser=parse_lateness,
            metavar="SPAN",
            envvar="TIDINGS_LATENESS",
            help="How late an event may come, such as 10min: events wait so long and are put in order.",
        ),
    ] = None
    partials: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", envvar="TIDINGS_PARTIALS", help="Partial matches of a key kept at one step; 10,000."
        ),
    ] = None
    mode: Annotated[
        ModeOption | None,
        typer.Option("--mode", envvar="TIDINGS_MODE", help="Which matches to report, whatever the file says."),
    ] = None
    schema: o.Schema = None
    ontology: o.Ontology = None
    regions: o.Regions = None
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", envvar="TIDINGS_MODEL", help="Model made by `tidings pattern train`."),
    ] = None
    horizon: Annotated[
        str,
        typer.Option(
            parser=check_horizon,
            metavar="AHEAD",
            envvar="TIDINGS_HORIZON",
            help="How far ahead: 10 events of the stream, '10 own events' of the key, or '5 min'.",
        ),
    ] = "10"
    threshold: Annotated[
        float,
        typer.Option(min=0, max=1, metavar="P", envvar="TIDINGS_THRESHOLD", help="An alarm is strictly above it."),
    ] = 0.5
    context: Annotated[
        int,
        typer.Option(
            min=0,
            max=16,
            metavar="N",
            envvar="TIDINGS_CONTEXT",
            help="Events looked back beside the pattern's own state.",
        ),
    ] = 3
    smoothing: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="W",
            envvar="TIDINGS_SMOOTHING",
            help="How much is expected before anything is counted; 0 is nothing.",
        ),
    ] = 0.5
    half_life: Annotated[
        str | None,
        typer.Option(
            parser=check_half_life,
            metavar="AGE",
            envvar="TIDINGS_HALF_LIFE",
            help="After so many events, or so long (7d), a count is worth half.",
        ),
    ] = None
    estimator: Annotated[
        Estimator,
        typer.Option("--estimator", envvar="TIDINGS_ESTIMATOR", help="How counts become probabilities."),
    ] = Estimator.both
    form: o.Form = None
    dead_letters: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="TIDINGS_DEAD_LETTERS",
            help="Where events go that cannot be read or come late, with the reason.",
        ),
    ] = None
    quiet: o.Quiet = False
    as_json: o.Json = False
