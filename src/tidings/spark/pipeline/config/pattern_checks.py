"""What must hold where a pipeline has patterns: their file, the tables that go with them, and what they need of events.

The file is read three times: with the pipeline's own schema when the pipeline is checked, beside the columns of the
events when Spark is asked, and once more when the run begins. Each time a mistake comes with its line and a caret.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.concepts.text_files import read_text
from tidings.errors import PatternError
from tidings.forecast import Detector as ForecastDetector
from tidings.forecast import Model
from tidings.lang import read_patterns
from tidings.patterns.run.portions import written as as_written
from tidings.spark.pipeline.config import checks
from tidings.spark.pipeline.config.tables import Said
from tidings.spark.pipeline.config.variables import like, written
from tidings.spark.pipeline.sinks.batch_folders import local_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidings.lang import WrittenPattern
    from tidings.patterns import Detector
    from tidings.spark.pipeline.config import settings
    from tidings.spark.pipeline.config.tables import Reader
    from tidings.spark.query_context import QueryContext

ALONE = {
    "sink": "[[sink]] needs [subscriptions], whose matches it gets; detections go to [[detections]]",
    "matching": "[matching] needs [subscriptions]; what detections carry is `keep` in [patterns]",
    "late": "[late] needs [subscriptions]; how late an event may be for patterns is `lateness` in [patterns]",
    "duplicates": "[duplicates] needs [subscriptions]: it is for matching, and patterns see every event that comes",
}
"""Tables that say nothing without subscriptions, and the way out."""

ID = "event"
"""What the id of an event is called, among what detections carry of it."""

TWICE = "socket"
"""The source that cannot be read by two queries: who listens at the other end speaks once."""


def written_patterns(path: str, given: QueryContext) -> list[WrittenPattern]:
    """Return the patterns of a file as they are understood by these; `PatternError` has every mistake in it."""
    found = read_patterns(read_text(local_path(path) or Path(path)), **given.named)  # type: ignore[arg-type]
    if not found:
        msg = f"`{written(path)}` holds no pattern; one begins with a line `pattern NAME`"
        raise PatternError(msg)
    return found


def letters_of(sink: settings.Sink) -> settings.Sink:
    """Return where the patterns' dead letters go: into a folder of their own, since their batches have own numbers."""
    return sink if sink.path is None else replace(sink, path=_letters_path(sink.path))


def _letters_path(path: str) -> str:
    return like(path, f"{path.rstrip('/')}_of_patterns")


# What goes together ------------------------------------------------------------------------------


def together(reader: Reader, tables: Sequence[str]) -> None:
    """Refuse tables that belong to what the file does not have."""
    if "subscriptions" not in tables and "patterns" in tables:
        reader.mistakes += [told for name, told in ALONE.items() if name in tables]
    if "detections" in tables and "patterns" not in tables:
        reader.mistakes.append("[[detections]] needs [patterns], whose detections it gets")


def needs(reader: Reader, patterns: Said, source: Said, *, beside: bool) -> None:
    """Ask for what patterns need of events: a name, a time, and a source that two queries can read."""
    if source.lacks("id"):
        reader.mistakes.append("[patterns] needs `id` in [source]: detections name their events by it")
    if source.lacks("time"):
        reader.mistakes.append("[patterns] needs `time` in [source]: it says when an event happened")
    if beside and source["kind"] == TWICE:
        reader.wrong(source, "kind", f'cannot be "{TWICE}" with [subscriptions] and [patterns]: it can be read once')
    if ID in (patterns["keep"] or ()):
        reader.wrong(
            patterns, "keep", f"names `{ID}`, which is what the ids are called; call it otherwise in [derived]"
        )
    checks.doubles(reader, patterns)
    _forecasts(reader, patterns)


def _forecasts(reader: Reader, patterns: Said) -> None:
    """Ask for a model where something is said of forecasts, and for a horizon where there is a model."""
    if patterns.lacks("model"):
        for name in ("horizon", "threshold", "tell", "step"):
            if not patterns.lacks(name):
                reader.wrong(patterns, name, "needs `model`: forecasts are made with one")
    elif patterns.lacks("horizon"):
        reader.mistakes.append("[patterns] `model` needs `horizon`: how far ahead forecasts look")


def loads(reader: Reader, patterns: Said, given: QueryContext) -> None:
    """Read the file of patterns, and their model, to tell what is wrong with them."""
    checks.loaded(reader, patterns, "file", lambda path: written_patterns(path, given))
    checks.loaded(reader, patterns, "model", model_of)


def model_of(path: str) -> Model:
    """Return the model of a file."""
    return Model.load(local_path(path) or Path(path))


def foreseeing(detector: Detector, about: settings.Patterns) -> Detector:
    """Return the same patterns with what is to be foretold of them; as they are, without a model."""
    if about.model is None:
        return detector
    made = ForecastDetector(model=model_of(about.model), time=detector.time, **detector._around)
    told = {"horizon": about.horizon, "threshold": about.threshold, "tell": about.tell, "step": about.step}
    made.add_many([as_written(one) for one in detector.watched], **told)
    return made


def letters_too(letters: Said | None) -> list[Said]:
    """Return the place of the patterns' dead letters, which nobody else may write to."""
    if letters is None or letters["path"] is None:
        return []
    return [Said(f"{letters.place} of patterns", values={"path": _letters_path(letters["path"])})]
