"""A pipeline in words, a line for each part: the output of `tidings run --check`.

Neither the value of a variable nor that of an option appears: of options, only the names are listed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidings.configuration.environment import mask
from tidings.lang.filters.value_text import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidings.spark.pipeline.config import settings
    from tidings.spark.pipeline.config.settings import Pipeline
    from tidings.spark.pipeline.config.value_kinds import Trigger

_FORMS = {"json": "JSON", "csv": "CSV", "parquet": "Parquet"}


def describe_pipeline(pipeline: Pipeline) -> dict[str, str]:
    """Return what each part will do, in the order of the file."""
    parts = {"name": mask(pipeline.name), "source": _describe_source(pipeline.source)}
    if pipeline.derived:
        parts["derived"] = _list_names(pipeline.derived)
    if pipeline.subscriptions is not None:
        parts["subscriptions"] = _describe_subscriptions(pipeline.subscriptions)
    if pipeline.schema is not None:
        parts["schema"] = f"{len(pipeline.schema):,} attributes"
    if pipeline.ontology is not None:
        parts["ontology"] = "given"
    if pipeline.regions is not None:
        parts["regions"] = f"{len(pipeline.regions):,} areas"
    if pipeline.subscriptions is not None:
        parts["matching"] = _describe_matching(pipeline)
    if pipeline.late is not None:
        age = format_duration(pipeline.late.after)
        parts["late"] = f"dead letters when {age} older than the newest event before"
    if pipeline.duplicates is not None:
        effect = "left out of matching" if pipeline.patterns is not None else "left out"
        parts["duplicates"] = f"{effect} when the id came within {format_duration(pipeline.duplicates.within)}"
    parts |= _describe_sinks("sink", pipeline.sinks)
    if pipeline.patterns is not None:
        parts["patterns"] = _describe_patterns(pipeline.patterns)
    parts |= _describe_sinks("detections", pipeline.detections)
    if pipeline.subscriptions is not None:
        parts["dead letters"] = _describe_sink(pipeline.dead_letters)
    if pipeline.patterns is not None:
        parts["letters of patterns"] = _describe_sink(pipeline.dead_letters.derive_pattern_letters())
    parts |= {"checkpoint": _show(pipeline.checkpoint), "trigger": _describe_trigger(pipeline.trigger)}
    return parts | {"shown": _describe_monitor(pipeline.shown), "spark": _describe_spark(pipeline)}


def _describe_source(source: settings.SourceSettings) -> str:
    match source.kind:
        case "kafka":
            where = f"Kafka topic {_show(source.topic)} at {_show(source.servers)}, values as {source.value}"
        case "rate":
            where = "made up by Spark, for trying out"
        case "socket":
            where = f"lines from {_show(source.host)}:{source.port}, as {source.value}"
        case form:
            where = f"{_FORMS[form]} files in {_show(source.path)}"
    columns = f"; columns {_show(source.columns)}" if source.columns else "; documents" * source.has_documents
    named = [f"{key} `{_show(name)}`" for key, name in (("id", source.id), ("time", source.time)) if name]
    return where + columns + "".join(f"; {column}" for column in named) + _describe_options(source.options)


def _describe_subscriptions(feed: settings.SubscriptionSettings) -> str:
    if feed.file:
        where = f"file {_show(feed.file)}, read again when it changes"
    elif feed.directory:
        where = f"change files in {_show(feed.directory)}, in the order of their names"
    elif feed.table:
        interval = f"every {format_duration(feed.refresh)}" if feed.refresh else "with each micro-batch"
        where = f"table {_show(feed.table)}, looked at {interval}"
    elif feed.topic:
        where = f"Kafka topic {_show(feed.topic)} at {_show(feed.servers)}, followed"
    elif feed.store:
        where = f"store {_show(feed.store)}, followed"
    else:
        where = f"snapshot {_show(feed.snapshot)}"
    notation = "" if feed.snapshot or feed.store else f"; filters as {feed.notation}"
    shards = f"; {feed.shards:,} shards" if feed.shards > 1 else ""
    return where + notation + shards + _describe_options(feed.options)


def _describe_matching(pipeline: Pipeline) -> str:
    matching = pipeline.matching
    unit = "subscriptions" if matching.per == "event" else "subscription"
    kept = matching.keep
    if pipeline.source.id is not None:
        columns = ", ".join(["event", unit, *map(_show, kept or ())])
    else:
        columns = ", ".join([*map(_show, kept), unit]) if kept is not None else f"all of the event's, {unit}"
    parts = [f"a row for each {matching.per}: {columns}"]
    parts += [f"at most {matching.limit:,} matches an event"] if matching.limit else []
    parts += [f"spread over {matching.spread:,} tasks"] if matching.spread else []
    parts += [f"ages reckoned from {matching.now.isoformat()}"] if matching.now else []
    return "; ".join(parts)


def _describe_patterns(patterns: settings.PatternSettings) -> str:
    key = f"; parted by `{_show(patterns.key)}`" if patterns.key else ""
    kept = f"; detections carry {', '.join(f'`{_show(name)}`' for name in patterns.keep)}" if patterns.keep else ""
    wait = f"events wait {format_duration(patterns.lateness)} to be put in order"
    where = f"file {_show(patterns.file)}" if patterns.file else f"store {_show(patterns.store)}, followed"
    idle = f"; after {format_duration(patterns.idle)} without events by the clock" if patterns.idle else ""
    ahead = f"; none is more than {format_duration(patterns.ahead)} ahead of its batch" if patterns.ahead else ""
    return f"{where}; {wait}{ahead}{idle}{key}{kept}"


def _describe_sinks(name: str, sinks: Sequence[settings.SinkSettings]) -> dict[str, str]:
    """Return a part for each sink, numbered where there are several."""
    labels = [name] if len(sinks) == 1 else [f"{name} {number + 1}" for number in range(len(sinks))]
    return dict(zip(labels, map(_describe_sink, sinks), strict=True))


def _describe_sink(sink: settings.SinkSettings) -> str:
    return _describe_target(sink) + _describe_options(sink.options)


def _describe_target(sink: settings.SinkSettings) -> str:
    match sink.kind:
        case "kafka":
            return f"Kafka topic {_show(sink.topic)} at {_show(sink.servers)}; at least once, exact by key"
        case "console":
            return f"the terminal, {sink.rows:,} rows of a micro-batch; at least once"
        case "python":
            return f"the function {_show(sink.function)}; at least once, with the batch's number"
        case "store":
            return f"store {_show(sink.store)}, the {sink.keep:,} latest of each subscription; exactly once"
        case "json" | "parquet" as form:
            return f"{_FORMS[form]} files in {_show(sink.path)}; exactly once"


def _describe_trigger(trigger: Trigger) -> str:
    if trigger.available_now:
        return "until all is read, then it ends"
    return f"every {format_duration(trigger.every)}" if trigger.every else "as soon as the last micro-batch is done"


def _describe_monitor(monitor: settings.MonitorSettings) -> str:
    parts = [f"view {monitor.view}"]
    parts += [f"metrics at {_show(monitor.metrics)}"] if monitor.metrics else []
    parts += ["JSON lines on standard output"] if monitor.lines == "-" else []
    parts += [f"JSON lines in {_show(monitor.lines)}"] if monitor.lines not in (None, "-") else []
    return "; ".join(parts)


def _describe_spark(pipeline: Pipeline) -> str:
    where = f"master {_show(pipeline.master)}" if pipeline.master else "local, or where spark-submit says"
    kafka = "; with the Kafka connector" if pipeline.needs_kafka else ""
    jars = f" from {_show(pipeline.jars)}" if pipeline.needs_kafka and pipeline.jars else ""
    return where + kafka + jars + _describe_options(pipeline.spark, "settings")


def _show(text: str | None) -> str:
    """Return a text as the file has it; who logs in by a URI stays hidden."""
    return re.sub(r"//[^/@\s]+@", "//...@", mask(text or ""))


def _describe_options(options: Mapping[str, str], word: str = "options") -> str:
    return f"; {word} {_list_names(options)}" if options else ""


def _list_names(named: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}`" for name in named)
