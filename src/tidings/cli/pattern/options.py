"""The options that the commands of `tidings pattern` share, each written once, and how their values are read."""

from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


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


class Estimator(StrEnum):
    """What `--estimator` takes."""

    both = "both"
    chain = "chain"
    direct = "direct"
    printed = "printed"


class Tell(StrEnum):
    """What `forecast --tell` takes."""

    crossing = "crossing"
    episode = "episode"
    every = "every"
    change = "change"


def span(text: str) -> timedelta:
    """Read `--lateness`: a duration such as `10min`."""
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


def ahead(text: str) -> str:
    """Check `--horizon`; what it means is read again where it is used."""
    from tidings.errors import TidingsError
    from tidings.forecast.horizon import Horizon

    try:
        return str(Horizon.of(text))
    except TidingsError as problem:
        raise typer.BadParameter(str(problem)) from None


def half(text: str) -> str:
    """Check `--half-life`."""
    from tidings.errors import TidingsError
    from tidings.forecast import Model

    try:
        Model(half_life=text)
    except TidingsError as problem:
        raise typer.BadParameter(str(problem)) from None
    return text


def typed(context: typer.Context, name: str) -> bool:
    """Tell whether an option stands on the command line, whatever its variable says."""
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
ModeOption: TypeAlias = Annotated[
    Mode | None, typer.Option("--mode", envvar="TIDINGS_MODE", help="Which matches to report, whatever the file says.")
]
DeadLetters: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="TIDINGS_DEAD_LETTERS",
        help="Where events go that cannot be read or come late, with the reason.",
    ),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", envvar="TIDINGS_QUIET", help="No closing summary.")]
Model: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="MODEL", envvar="TIDINGS_MODEL", help="Model made by `tidings pattern train`."),
]
Ahead: TypeAlias = Annotated[
    str,
    typer.Option(
        parser=ahead,
        metavar="AHEAD",
        envvar="TIDINGS_HORIZON",
        help="How far ahead: 10 events of the stream, '10 own events' of the key, or '5 min'.",
    ),
]
Threshold: TypeAlias = Annotated[
    float,
    typer.Option(min=0, max=1, metavar="P", envvar="TIDINGS_THRESHOLD", help="An alarm is strictly above it."),
]
Context: TypeAlias = Annotated[
    int,
    typer.Option(
        min=0,
        max=16,
        metavar="N",
        envvar="TIDINGS_CONTEXT",
        help="Events looked back beside the pattern's own state.",
    ),
]
Smoothing: TypeAlias = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="W",
        envvar="TIDINGS_SMOOTHING",
        help="How much is expected before anything is counted; 0 is nothing.",
    ),
]
HalfLife: TypeAlias = Annotated[
    str | None,
    typer.Option(
        parser=half,
        metavar="AGE",
        envvar="TIDINGS_HALF_LIFE",
        help="After so many events, or so long (7d), a count is worth half.",
    ),
]
EstimatorOption: TypeAlias = Annotated[
    Estimator,
    typer.Option("--estimator", envvar="TIDINGS_ESTIMATOR", help="How counts become probabilities."),
]
