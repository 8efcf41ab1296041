"""The options of the `tidings pattern` commands, each written once, and the parsers of their values."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tidings.cli import options as o
from tidings.cli.options import make_option

ModeOption = StrEnum("ModeOption", ["restart", "overlap", "next", "any"])
"""The values of `--mode`."""

Look = StrEnum("Look", ["text", "dot", "svg", "json"])
"""The values of `show --as`."""

Estimator = StrEnum("Estimator", ["both", "chain", "direct", "printed"])
"""The values of `--estimator`."""

Tell = StrEnum("Tell", ["crossing", "episode", "every", "change"])
"""The values of `forecast --tell`."""


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
KEEP_HELP = "Field of the events that detections carry along; several may be given."
LATENESS_HELP = "How late an event may come, such as 10min: events wait so long and are put in order."
HORIZON_HELP = "How far ahead: 10 events of the stream, '10 own events' of the key, or '5 min'."
SMOOTHING_HELP = "How much is expected before anything is counted; 0 is nothing."
HALF_LIFE_HELP = "After so many events, or so long (7d), a count is worth half."
DEAD_HELP = "Where events go that cannot be read or come late, with the reason."

File: TypeAlias = Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)]


@dataclass(frozen=True, slots=True)
class PatternOptions:
    """The options that pattern commands share; a command names those it takes, the others keep their defaults."""

    time: Annotated[
        str | None, make_option("--time", "Field that says when; `time` unless given.", metavar="FIELD")
    ] = None
    event_id: o.EventIdOption = None
    keep: Annotated[list[str] | None, typer.Option(metavar="FIELD", help=KEEP_HELP)] = None
    lateness: Annotated[
        timedelta | None, make_option("--lateness", LATENESS_HELP, parser=parse_lateness, metavar="SPAN")
    ] = None
    partials: Annotated[
        int | None, make_option("--partials", "Partial matches of a key kept at one step; 10,000.", min=1, metavar="N")
    ] = None
    mode: Annotated[ModeOption | None, make_option("--mode", "Which matches to report, whatever the file says.")] = None
    schema: o.SchemaOption = None
    ontology: o.OntologyOption = None
    regions: o.RegionsOption = None
    model: Annotated[Path | None, make_option("--model", "Model made by `tidings pattern train`.", metavar="MODEL")] = (
        None
    )
    horizon: Annotated[str, make_option("--horizon", HORIZON_HELP, parser=check_horizon, metavar="AHEAD")] = "10"
    threshold: Annotated[
        float, make_option("--threshold", "An alarm is strictly above it.", min=0, max=1, metavar="P")
    ] = 0.5
    context: Annotated[
        int, make_option("--context", "Events looked back beside the pattern's own state.", min=0, max=16, metavar="N")
    ] = 3
    smoothing: Annotated[float, make_option("--smoothing", SMOOTHING_HELP, min=0, metavar="W")] = 0.5
    half_life: Annotated[
        str | None, make_option("--half-life", HALF_LIFE_HELP, parser=check_half_life, metavar="AGE")
    ] = None
    estimator: Annotated[Estimator, make_option("--estimator", "How counts become probabilities.")] = Estimator.both
    form: o.FormOption = None
    dead_letters: Annotated[Path | None, make_option("--dead-letters", DEAD_HELP, metavar="FILE")] = None
    quiet: o.QuietOption = False
    as_json: o.JsonOption = False
