"""Rules for a pipeline with patterns: their file, the tables that go with them, and what they need of events.

The file is read three times: with the pipeline's own schema when the pipeline is checked, beside the columns of the
events when Spark is asked, and when the run begins. Each time a mistake comes with its line and a caret.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.concepts.text_files import read_text
from tidings.errors import PatternError
from tidings.forecast import Model
from tidings.lang import read_patterns
from tidings.spark.pipeline.config.path_values import load_or_reject
from tidings.spark.pipeline.config.values import WrongValue
from tidings.spark.pipeline.config.variables import derive_text, mask
from tidings.spark.pipeline.sinks.batch_folders import to_local_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidings.lang import WrittenPattern
    from tidings.spark.pipeline.config.reading import FileReading
    from tidings.spark.pipeline.config.settings import PipelineFile, SinkSettings
    from tidings.spark.query_context import QueryContext

NEED_SUBSCRIPTIONS = {
    "sink": "needs [subscriptions], whose matches it gets; detections go to [[detections]]",
    "matching": "needs [subscriptions]; what detections carry is `keep` in [patterns]",
    "late": "needs [subscriptions]; how late an event may be for patterns is `lateness` in [patterns]",
    "duplicates": "needs [subscriptions]: it is for matching, and patterns see every event that comes",
}
"""Tables that mean nothing without subscriptions, and the way out."""

ID = "event"
"""The name of an event's id in the records of a detection."""

ONE_READER = "socket"
"""The source that two queries cannot both read."""


def parse_pattern_file(path: str, context: QueryContext) -> list[WrittenPattern]:
    """Return the patterns of a file; `PatternError` has every mistake in it."""
    patterns = read_patterns(read_text(to_local_path(path) or Path(path)), **context.vocabulary.to_keywords())
    if not patterns:
        msg = f"`{mask(path)}` holds no pattern; one begins with a line `pattern NAME`"
        raise PatternError(msg)
    return patterns


def load_model(path: str) -> Model:
    """Return the model of a file."""
    return Model.load(to_local_path(path) or Path(path))


def place_pattern_letters(sink: SinkSettings) -> SinkSettings:
    """Return where the patterns' dead letters go: a folder of their own, since their batches have own numbers."""
    if sink.path is None:
        return sink
    return replace(sink, path=derive_text(sink.path, f"{sink.path.rstrip('/')}_of_patterns"))


def check_presence(reading: FileReading, file: PipelineFile) -> None:
    """Refuse tables that depend on subscriptions or patterns which the file does not have."""
    if file.subscriptions is None and file.patterns is not None:
        for name, text in NEED_SUBSCRIPTIONS.items():
            if name in reading.raw:
                reading.refuse_table((name,), text, shown="[[sink]]" if name == "sink" else None)
    if "detections" in reading.raw and file.patterns is None:
        reading.refuse_table(("detections",), "needs [patterns], whose detections it gets", shown="[[detections]]")


def check_patterns(reading: FileReading, file: PipelineFile) -> None:
    """Require what patterns need of events: an id, a time, and a source that two queries can read."""
    patterns = file.patterns
    assert patterns is not None
    if reading.lacks(("source", "id")):
        reading.refuse_table(("patterns",), "needs `id` in [source]: detections name their events by it")
    if reading.lacks(("source", "time")):
        reading.refuse_table(("patterns",), "needs `time` in [source]: it says when an event happened")
    if file.subscriptions is not None and file.source.kind == ONE_READER:
        text = f'cannot be "{ONE_READER}" with [subscriptions] and [patterns]: it can be read once'
        reading.refuse_key(("source", "kind"), text)
    if ID in (patterns.keep or ()):
        text = f"names `{ID}`, which is what the ids are called; call it otherwise in [derived]"
        reading.refuse_key(("patterns", "keep"), text)
    _check_forecasts(reading)


def _check_forecasts(reading: FileReading) -> None:
    """Require a model for the keys about forecasts, and a horizon for a model."""
    if reading.lacks(("patterns", "model")):
        for name in ("horizon", "threshold", "tell", "step"):
            if not reading.lacks(("patterns", name)):
                reading.refuse_key(("patterns", name), "needs `model`: forecasts are made with one")
    elif reading.lacks(("patterns", "horizon")):
        text = "`model` needs `horizon`: how far ahead forecasts look"
        reading.refuse_table(("patterns", "model"), text, shown="[patterns]")


def check_pattern_files(reading: FileReading, file: PipelineFile) -> None:
    """Read the files of patterns and their model, to find what is wrong with them."""
    if file.patterns is None:
        return
    context = file.query_context
    _check_loading(reading, "file", file.patterns.file, lambda path: parse_pattern_file(path, context))
    _check_loading(reading, "model", file.patterns.model, load_model)


def _check_loading(reading: FileReading, key: str, path: str | None, load: Callable[[str], Any]) -> None:
    if path is None:
        return
    try:
        load_or_reject(lambda: load(path), reading.context)
    except WrongValue as wrong:
        for _, text in wrong.mistakes:
            reading.refuse_key(("patterns", key), text)
