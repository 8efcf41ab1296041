"""`tidings pattern show`: the automaton of a pattern as text, for Graphviz, as a picture, or as JSON.

With a model it is the automaton whose states the model has counted, with its counts and probabilities.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.cli.pattern.options import Look
from tidings.concepts import did_you_mean
from tidings.errors import PatternError, TidingsError, UnknownPattern
from tidings.matcher.loading.row_readers import refuse_failure
from tidings.patterns.compile.derivatives import derive_configurations
from tidings.patterns.compile.pattern_automaton import NotDeterministic, determinise
from tidings.patterns.drawing import to_dot, to_svg, to_text
from tidings.patterns.machine_pictures import draw_automaton, draw_configurations

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.cli.pattern.pattern_origin import PatternOrigin
    from tidings.concepts import Vocabulary
    from tidings.forecast import Model
    from tidings.lang import WrittenPattern
    from tidings.patterns.drawing import Picture


def run(
    origin: PatternOrigin, name: str | None, look: Look, output: Path | None, *, automaton: bool, horizon: str | None
) -> None:
    """Draw the pattern of this name, or all of the file; `horizon` goes with a model."""
    vocabulary, model = origin.load_vocabulary(), origin.options.model
    patterns = _select_patterns(origin.read_patterns(vocabulary), name)
    if look is Look.svg and len(patterns) > 1:
        msg = f"a picture shows one pattern, and the file has {len(patterns)}; name one: {_join_names(patterns)}"
        raise TidingsError(msg)
    if model is None:
        pictures = [_build_picture(pattern, vocabulary, automaton=automaton) for pattern in patterns]
        drawn = _render_pictures(patterns, pictures, look)
    else:
        drawn = _draw_model(patterns, model, look, horizon)
    if output is None:
        render.write(drawn.rstrip("\n"))
        return
    with refuse_failure(f"write to `{output}`", ValueError):
        output.write_text(drawn.rstrip("\n") + "\n", encoding="utf-8")
    render.note(f"wrote `{output}`")


def _draw_model(patterns: list[WrittenPattern], path: Path, look: Look, horizon: str | None) -> str:
    """Draw what a model has counted of patterns: as the model's own text, or as pictures with probabilities."""
    from tidings.cli.pattern.model_picture import build_model_picture, read_horizon
    from tidings.cli.pattern.saved_files import load_model

    model = _restrict_model(load_model(path), patterns, path)
    ahead = read_horizon(model, horizon)
    if look is Look.text:
        return model.show(horizon=ahead)
    pictures = [build_model_picture(model, counted, horizon=ahead) for counted in model.patterns.values()]
    return _render_pictures(patterns, pictures, look)


def _restrict_model(model: Model, patterns: list[WrittenPattern], path: Path) -> Model:
    """Return the model of these patterns alone, under their present names: a model identifies them by content."""
    from tidings.forecast.model import make_pattern_key

    by_key = [(make_pattern_key(pattern.pattern, pattern.mode), pattern) for pattern in patterns]
    if missing := [pattern for key, pattern in by_key if key not in model.patterns]:
        msg = f"`{path}` knows nothing of {_join_names(missing)}, as the file has it; train it again"
        raise UnknownPattern(msg)
    counted = {key: replace(model.patterns[key], name=pattern.name) for key, pattern in by_key}
    return model.with_counts(patterns=counted, traffic=model.traffic)


def _select_patterns(patterns: list[WrittenPattern], name: str | None) -> list[WrittenPattern]:
    selected = [pattern for pattern in patterns if name in (None, pattern.name)]
    if not selected:
        names = [pattern.name for pattern in patterns]
        near = did_you_mean(str(name), names) or f"; there are {_join_names(patterns)}"
        msg = f"no pattern is called `{name}`{near}"
        raise UnknownPattern(msg)
    return selected


def _join_names(patterns: list[WrittenPattern]) -> str:
    names = [f"`{pattern.name}`" for pattern in patterns]
    return ", ".join([*names[:10], *(["..."] if len(names) > 10 else [])])


def _build_picture(pattern: WrittenPattern, vocabulary: Vocabulary, *, automaton: bool) -> Picture:
    if not automaton:
        graph = derive_configurations(pattern.pattern, pattern.mode)
        return draw_configurations(pattern.pattern, graph, title=pattern.name)
    machine = determinise(pattern.pattern, pattern.mode, vocabulary)
    if isinstance(machine, NotDeterministic):
        msg = f"`{pattern.name}` has no automaton: {machine.reason}; without --automaton it is shown as it is run"
        raise PatternError(msg)
    return draw_automaton(machine, pattern.name)


def _render_pictures(patterns: list[WrittenPattern], pictures: list[Picture], look: Look) -> str:
    return "\n".join(_render_picture(*pair, look) for pair in zip(patterns, pictures, strict=True))


def _render_picture(pattern: WrittenPattern, picture: Picture, look: Look) -> str:
    match look:
        case Look.dot:
            return to_dot(picture)
        case Look.svg:
            return to_svg(picture)
        case Look.json:
            parts = {key: value for key, value in asdict(picture).items() if key != "title"}
            return render.to_json({"pattern": pattern.name, "mode": str(pattern.mode), **parts})
    return to_text(picture) + "\n"
