"""`tidings pattern show`: the machine of a pattern as text, for Graphviz, as a picture, or as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.cli.origin import surroundings
from tidings.cli.pattern_commands import Look
from tidings.concepts import did_you_mean
from tidings.errors import FileError, PatternError, TidingsError, UnknownPattern
from tidings.patterns.automaton import NotDeterministic, determinise
from tidings.patterns.drawing import dot, picture_of_automaton, picture_of_configurations, svg, text
from tidings.patterns.residual import configurations

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.cli.pattern_files import Source
    from tidings.lang import WrittenPattern
    from tidings.patterns.drawing import Picture


def run(source: Source, name: str | None, *, look: Look, output: Path | None, automaton: bool) -> None:
    """Draw the pattern of this name, or all of the file."""
    known = surroundings(source.schema, source.ontology, source.regions)
    wanted = _wanted(source.read(known), name)
    if look is Look.svg and len(wanted) > 1:
        msg = f"a picture shows one pattern, and the file has {len(wanted)}; name one: {_listed(wanted)}"
        raise TidingsError(msg)
    drawn = "\n".join(_drawn(one, _picture(one, known, automaton=automaton), look) for one in wanted)
    if output is None:
        render.out(drawn.rstrip("\n"))
        return
    try:
        output.write_text(drawn.rstrip("\n") + "\n", encoding="utf-8")
    except (OSError, ValueError) as problem:
        reason = (problem.strerror if isinstance(problem, OSError) else None) or problem
        msg = f"cannot write to `{output}`: {reason}"
        raise FileError(msg) from problem
    render.note(f"wrote `{output}`")


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
