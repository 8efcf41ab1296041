"""A pipeline in words, a line for each part: what `tidings run --check` says will happen.

Nothing here shows what a variable stands for, or the value of any option: of options, only the names are told.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidings.lang.filters.literals import shown_seconds
from tidings.spark.pipeline.config.pattern_checks import letters_of
from tidings.spark.pipeline.config.variables import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

    from tidings.spark.pipeline.config.settings import Patterns, Pipeline, Shown, Sink, Source, Subscriptions, Trigger

_FORMS = {"json": "JSON", "csv": "CSV", "parquet": "Parquet"}


def told(pipeline: Pipeline) -> dict[str, str]:
    """Return what each part will do, in the order of the file."""
    return dict(_told(pipeline))


def _told(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    yield "name", written(pipeline.name)
    yield "source", _source(pipeline.source)
    if pipeline.derived:
        yield "derived", _names(pipeline.derived)
    if pipeline.subscriptions is not None:
        yield "subscriptions", _subscriptions(pipeline.subscriptions)
    yield from _meaning(pipeline)
    if pipeline.subscriptions is not None:
        yield "matching", _matching(pipeline)
    if pipeline.late is not None:
        yield "late", f"dead letters when {_length(pipeline.late.after)} older than the newest event before"
    if pipeline.duplicates is not None:
        which = "left out of matching" if pipeline.patterns is not None else "left out"
        yield "duplicates", f"{which} when the id came within {_length(pipeline.duplicates.within)}"
    for at, sink in enumerate(pipeline.sinks, start=1):
        yield ("sink" if len(pipeline.sinks) == 1 else f"sink {at}"), _sink(sink)
    if pipeline.patterns is not None:
        yield "patterns", _patterns(pipeline.patterns)
    for at, sink in enumerate(pipeline.detections, start=1):
        yield ("detections" if len(pipeline.detections) == 1 else f"detections {at}"), _sink(sink)
    if pipeline.subscriptions is not None:
        yield "dead letters", _sink(pipeline.dead_letters)
    if pipeline.patterns is not None:
        yield "letters of patterns", _sink(letters_of(pipeline.dead_letters))
    yield "checkpoint", _shown(pipeline.checkpoint)
    yield "trigger", _trigger(pipeline.trigger)
    yield "shown", _shows(pipeline.shown)
    yield "spark", _spark(pipeline)


def _source(source: Source) -> str:
    match source.kind:
        case "kafka":
            where = f"Kafka topic {_shown(source.topic)} at {_shown(source.servers)}, values as {source.value}"
        case "rate":
            where = "made up by Spark, for trying out"
        case "socket":
            where = f"lines from {_shown(source.host)}:{source.port}, as {source.value}"
        case form:
            where = f"{_FORMS[form]} files in {_shown(source.path)}"
    columns = f"; columns {_shown(source.columns)}" if source.columns else ""
    named = [f"{key} `{_shown(name)}`" for key, name in (("id", source.id), ("time", source.time)) if name]
    return where + columns + "".join(f"; {one}" for one in named) + _options(source.options)


def _subscriptions(said: Subscriptions) -> str:
    if said.file:
        where = f"file {_shown(said.file)}, read again when it changes"
    elif said.directory:
        where = f"change files in {_shown(said.directory)}, in the order of their names"
    elif said.table:
        often = f"every {_length(said.refresh)}" if said.refresh else "with each micro-batch"
        where = f"table {_shown(said.table)}, looked at {often}"
    elif said.topic:
        where = f"Kafka topic {_shown(said.topic)} at {_shown(said.servers)}, followed"
    else:
        where = f"snapshot {_shown(said.snapshot)}"
    notation = "" if said.snapshot else f"; filters as {said.notation}"
    return where + notation + (f"; {said.shards:,} shards" if said.shards > 1 else "") + _options(said.options)


def _meaning(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    if pipeline.schema is not None:
        yield "schema", f"{len(pipeline.schema):,} attributes"
    if pipeline.ontology is not None:
        yield "ontology", "given"
    if pipeline.regions is not None:
        yield "regions", f"{len(pipeline.regions):,} areas"


def _matching(pipeline: Pipeline) -> str:
    said = pipeline.matching
    made = "subscriptions" if said.per == "event" else "subscription"
    kept = said.keep
    if pipeline.source.id is not None:
        columns = ", ".join(["event", made, *map(_shown, kept or ())])
    else:
        columns = ", ".join([*map(_shown, kept), made]) if kept is not None else f"all of the event's, {made}"
    parts = [f"a row for each {said.per}: {columns}"]
    parts += [f"at most {said.limit:,} matches an event"] if said.limit else []
    parts += [f"spread over {said.spread:,} tasks"] if said.spread else []
    parts += [f"ages reckoned from {said.now.isoformat()}"] if said.now else []
    return "; ".join(parts)


def _patterns(said: Patterns) -> str:
    key = f"; parted by `{_shown(said.key)}`" if said.key else ""
    kept = f"; detections carry {', '.join(f'`{_shown(name)}`' for name in said.keep)}" if said.keep else ""
    return f"file {_shown(said.file)}; events wait {_length(said.lateness)} to be put in order{key}{kept}"


def _sink(sink: Sink) -> str:
    match sink.kind:
        case "kafka":
            where = f"Kafka topic {_shown(sink.topic)} at {_shown(sink.servers)}; at least once, exact by key"
        case "console":
            where = f"the terminal, {sink.rows:,} rows of a micro-batch; at least once"
        case "python":
            where = f"the function {_shown(sink.function)}; at least once, with the batch's number"
        case form:
            where = f"{_FORMS[form]} files in {_shown(sink.path)}; exactly once"
    return where + _options(sink.options)


def _trigger(trigger: Trigger) -> str:
    if trigger.available_now:
        return "until all is read, then it ends"
    return f"every {_length(trigger.every)}" if trigger.every else "as soon as the last micro-batch is done"


def _shows(shown: Shown) -> str:
    parts = [f"view {shown.view}"]
    parts += [f"metrics at {_shown(shown.metrics)}"] if shown.metrics else []
    parts += ["JSON lines on standard output"] if shown.lines == "-" else []
    parts += [f"JSON lines in {_shown(shown.lines)}"] if shown.lines not in (None, "-") else []
    return "; ".join(parts)


def _spark(pipeline: Pipeline) -> str:
    where = f"master {_shown(pipeline.master)}" if pipeline.master else "local, or where spark-submit says"
    kafka = "; with the Kafka connector" if pipeline.kafka else ""
    jars = f" from {_shown(pipeline.jars)}" if pipeline.kafka and pipeline.jars else ""
    return where + kafka + jars + _options(pipeline.spark, "settings")


def _shown(text: str | None) -> str:
    """Return a text as the file has it; who logs in by a URI stays hidden."""
    return re.sub(r"//[^/@\s]+@", "//...@", written(text or ""))


def _options(options: Mapping[str, str], word: str = "options") -> str:
    return f"; {word} {_names(options)}" if options else ""


def _names(named: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}`" for name in named)


def _length(length: timedelta) -> str:
    seconds = length.total_seconds()
    return shown_seconds(int(seconds) if seconds.is_integer() else seconds)
