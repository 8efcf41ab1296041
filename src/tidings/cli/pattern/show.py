"""`tidings pattern show`: the machine of a pattern as text, for Graphviz, as a picture, or as JSON.

With a model, the machine is the one that forecasts count, and carries what they know.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.match.subscription_origin import surroundings
from tidings.cli.pattern.options import Look
from tidings.concepts import did_you_mean
from tidings.errors import FileError, PatternError, TidingsError, UnknownPattern
from tidings.patterns.compile.automaton import NotDeterministic, determinise
from tidings.patterns.compile.derivatives import configurations
from tidings.patterns.drawing import dot, picture_of_automaton, picture_of_configurations, svg, text

if TYPE_CHECKING:
    from tidings.cli.pattern.pattern_origin import Source
    from tidings.forecast import Model
    from tidings.lang import WrittenPattern
    from tidings.patterns.drawing import Picture


@dataclass(frozen=True, slots=True)
class Drawing:
    """How patterns are drawn, and where to; `horizon` goes with a model."""

    look: Look
    output: Path | None
    automaton: bool
    model: Path | None = None
    horizon: str | None = None


def run(source: Source, name: str | None, drawing: Drawing) -> None:
    """Draw the pattern of this name, or all of the file."""
    known = surroundings(source.schema, source.ontology, source.regions)
    wanted = _wanted(source.read(known), name)
    if drawing.look is Look.svg and len(wanted) > 1:
        msg = f"a picture shows one pattern, and the file has {len(wanted)}; name one: {_listed(wanted)}"
        raise TidingsError(msg)
    drawn = _plain(wanted, known, drawing) if drawing.model is None else _counted(wanted, drawing.model, drawing)
    if drawing.output is None:
        render.out(drawn.rstrip("\n"))
        return
    try:
        drawing.output.write_text(drawn.rstrip("\n") + "\n", encoding="utf-8")
    except (OSError, ValueError) as problem:
        reason = (problem.strerror if isinstance(problem, OSError) else None) or problem
        msg = f"cannot write to `{drawing.output}`: {reason}"
        raise FileError(msg) from problem
    render.note(f"wrote `{drawing.output}`")


def _plain(wanted: list[WrittenPattern], known: dict[str, Any], drawing: Drawing) -> str:
    pictures = [_picture(one, known, automaton=drawing.automaton) for one in wanted]
    return "\n".join(_drawn(one, made, drawing.look) for one, made in zip(wanted, pictures, strict=True))


def _counted(wanted: list[WrittenPattern], path: Path, drawing: Drawing) -> str:
    """Draw what a model knows of patterns: as its own text, or as pictures that carry probabilities."""
    from tidings.cli.pattern.model_files import read
    from tidings.cli.pattern.model_picture import ahead_of, picture

    held = _held(read(path), wanted, path)
    ahead = ahead_of(held, drawing.horizon)
    if drawing.look is Look.text:
        return held.show(horizon=ahead)
    made = [picture(held, one, horizon=ahead) for one in held.patterns.values()]
    return "\n".join(_drawn(one, drawn, drawing.look) for one, drawn in zip(wanted, made, strict=True))


def _held(model: Model, wanted: list[WrittenPattern], path: Path) -> Model:
    """Return the model of these patterns alone, called as they are now; it knows them by what they say."""
    from tidings.forecast.model import pattern_key

    keys = [pattern_key(one.pattern, one.mode) for one in wanted]
    missing = [one for one, key in zip(wanted, keys, strict=True) if key not in model.patterns]
    if missing:
        msg = f"`{path}` knows nothing of {_listed(missing)}, as the file has it; train it again"
        raise UnknownPattern(msg)
    named = {key: replace(model.patterns[key], name=one.name) for one, key in zip(wanted, keys, strict=True)}
    return model.with_counts(known=named, traffic=model.traffic)


def _wanted(patterns: list[WrittenPattern], name: str | None) -> list[WrittenPattern]:
    wanted = [one for one in patterns if name in (None, one.name)]
    if not wanted:
        near = did_you_mean(str(name), [one.name for one in patterns]) or f"; there are {_listed(patterns)}"
        msg = f"no pattern is called `{name}`{near}"
        raise UnknownPattern(msg)
    return wanted


def _listed(patterns: list[WrittenPattern]) -> str:
    names = [f"`{one.name}`" for one in patterns]
    return ", ".join([*names[:10], *(["..."] if len(names) > 10 else [])])


def _picture(one: WrittenPattern, known: dict[str, Any], *, automaton: bool) -> Picture:
    if not automaton:
        return picture_of_configurations(one.pattern, configurations(one.pattern, one.mode), title=one.name)
    made = determinise(one.pattern, one.mode, **known)
    if isinstance(made, NotDeterministic):
        msg = f"`{one.name}` has no automaton: {made.reason}; without --automaton it is shown as it is run"
        raise PatternError(msg)
    return picture_of_automaton(made, one.name)


def _drawn(one: WrittenPattern, picture: Picture, look: Look) -> str:
    match look:
        case Look.dot:
            return dot(picture)
        case Look.svg:
            return svg(picture)
        case Look.json:
            head = {"pattern": one.name, "mode": str(one.mode)}
            return render.as_json({**head, **{key: value for key, value in asdict(picture).items() if key != "title"}})
    return text(picture) + "\n"
