"""Rules between the keys of a table, between tables, and with the disk, patterns and their model included.

A single wrong value was reported and left out by `reading`; the checks here look at good values only.
"""

from __future__ import annotations

import socket
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TYPE_CHECKING

from tidings.configuration.environment import mask
from tidings.configuration.keys import get_rule, summarize_key
from tidings.configuration.local_paths import to_local_path
from tidings.configuration.path_kinds import load_or_reject
from tidings.configuration.reading import FileMistake
from tidings.configuration.value_kinds import WrongValue
from tidings.errors import PipelineFailed, TidingsError
from tidings.matcher.loading.documents import DOCUMENT
from tidings.spark.pipeline.config.settings import KEYS, ONE_OF
from tidings.spark.pipeline.sinks.sinks import import_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidings.configuration.reading import FileReading, TomlPath
    from tidings.spark.pipeline.config.settings import (
        PatternSettings,
        Pipeline,
        PipelineFile,
        SinkSettings,
        SourceSettings,
    )
    from tidings.spark.query_context import QueryContext

RESERVED = ("_refused", "_raw", "_text", "_broken", "_file", "_went_well", "_first", "_again", "_whole")
"""Columns of our own that travel with the events, or that sources use on the way."""

MATCH_COLUMNS = ("event", "subscription", "subscriptions")
"""Columns of the matches that are not the event's."""

ID = "event"
"""The name of an event's id in the records of a detection."""

CONNECT_SECONDS, KAFKA_PORT = 5.0, 9092
"""Seconds that a broker has to accept a connection, and its port where none is given."""

NEED_SUBSCRIPTIONS = {
    "sink": "needs [subscriptions], whose matches it gets; detections go to [[detections]]",
    "matching": "needs [subscriptions]; what detections carry is `keep` in [patterns]",
    "late": "needs [subscriptions]; how late an event may be for patterns is `lateness` in [patterns]",
    "duplicates": "needs [subscriptions]: it is for matching, and patterns see every event that comes",
}
"""Tables that mean nothing without subscriptions, and the way out."""

NEED_COLUMNS = (
    ("duplicates", "id", "it says what comes twice"),
    ("late", "time", "it says how old an event is"),
    ("patterns", "id", "detections name their events by it"),
    ("patterns", "time", "it says when an event happened"),
)
"""Tables that need a column of events, the key of the source that names it, and the reason."""


def check_tables(reading: FileReading, file: PipelineFile) -> None:
    """Add all mistakes that concern more than one key."""
    sinks = list(_list_sinks(file))
    check_kinds(reading, file, sinks)
    check_presence(reading, file)
    check_source(reading, file)
    check_needs(reading, file)
    check_kept(reading, "matching", file.matching.keep, MATCH_COLUMNS, "a column of the matches")
    check_paths(reading, file, sinks)
    check_sinks(reading, file, sinks)
    if file.patterns is not None:
        check_kept(reading, "patterns", file.patterns.keep, (ID,), "which is what the ids are called")
        check_forecasts(reading)
        check_pattern_files(reading, file.patterns, file.query_context)


def _list_sinks(file: PipelineFile) -> Iterator[tuple[TomlPath, SinkSettings]]:
    """Yield all that rows are written to, with its place in the file."""
    for name, sinks in (("sink", file.sinks), ("detections", file.detections)):
        yield from (((name, number), sink) for number, sink in enumerate(sinks))
    if file.dead_letters is not None:
        yield ("dead_letters",), file.dead_letters


# Keys that depend on a table's kind --------------------------------------------------------------


def check_kinds(reading: FileReading, file: PipelineFile, sinks: list[tuple[TomlPath, SinkSettings]]) -> None:
    """Compare the keys of each table with its kind, or with the feed of the subscriptions."""
    tables: list[tuple[TomlPath, SourceSettings | SinkSettings]] = [(("source",), file.source), *sinks]
    for path, settings in tables:
        if settings.kind:
            _check_kind(reading, path, settings.kind, f'kind = "{settings.kind}"')
    for table, feeds in ONE_OF.items():
        if isinstance(reading.get((table,)), dict):
            _check_feeds(reading, table, feeds)


def _check_feeds(reading: FileReading, table: str, names: tuple[str, ...]) -> None:
    feeds = [name for name in names if not reading.lacks((table, name))]
    if len(feeds) == 1:
        _check_kind(reading, (table,), feeds[0], f"`{feeds[0]}`")
        return
    listing = ", ".join(f"`{name}`" for name in names)
    several = f", not {' and '.join(f'`{name}`' for name in feeds)}" if feeds else ""
    reading.refuse_table((table,), f"needs exactly one of {listing}{several}")


def _check_kind(reading: FileReading, table: TomlPath, kind: str, label: str) -> None:
    for name, field in KEYS.list(table[0]).items():
        rule, path = get_rule(field), (*table, name)
        if rule.kinds and kind not in rule.kinds and reading.is_good(path):
            reading.refuse_key(path, f"does not go with {label}; it is for {', '.join(rule.kinds)}")
        if rule.is_needed(kind) and reading.lacks(path):
            reading.refuse_key(path, f"is missing with {label}: {summarize_key(field)}")


# Tables that depend on each other ----------------------------------------------------------------


def check_presence(reading: FileReading, file: PipelineFile) -> None:
    """Require subscriptions or patterns, sinks for what they produce, and no table that only the other one needs."""
    keys = KEYS.list()
    if file.subscriptions is None and file.patterns is None:
        text = f"is missing: {summarize_key(keys['subscriptions'])}; or [patterns], {summarize_key(keys['patterns'])}"
        reading.refuse_table(("subscriptions",), text)
    for name, producer in (("sink", file.subscriptions), ("detections", file.patterns)):
        if producer is not None and not reading.raw.get(name):
            reading.refuse_table((name,), f"is missing: {summarize_key(keys[name])}", label=f"[[{name}]]")
    if file.subscriptions is None and file.patterns is not None:
        for name, text in NEED_SUBSCRIPTIONS.items():
            if name in reading.raw:
                reading.refuse_table((name,), text, label="[[sink]]" if name == "sink" else None)
    if "detections" in reading.raw and file.patterns is None:
        reading.refuse_table(("detections",), "needs [patterns], whose detections it gets", label="[[detections]]")
    for name in ("schema", "ontology", "regions") if file.subscriptions and file.subscriptions.snapshot else ():
        if not reading.lacks((name,)):
            reading.refuse_key((name,), "does not go with `snapshot` in [subscriptions]: a snapshot brings its own")


def check_source(reading: FileReading, file: PipelineFile) -> None:
    """Refuse columns for texts, and derived columns under names of our own."""
    if file.source.value == "text" and file.source.columns is not None:
        text = 'does not go with value = "text", which gives one column `value`'
        reading.refuse_key(("source", "columns"), text)
    if file.source.has_documents:
        _check_document_columns(reading, file.source)
    reserved = (*RESERVED, "kafka") if file.source.kind == "kafka" else RESERVED
    for name in file.derived:
        if name in reserved:
            reading.refuse_key(("derived", name), "is a column of Tidings' own; take another name")


def _check_document_columns(reading: FileReading, source: SourceSettings) -> None:
    """Refuse an id and a time that are one column, to Spark, or that of the whole documents."""
    for key, name in (("id", source.id), ("time", source.time)):
        if name is not None and name.lower() == DOCUMENT:
            reading.refuse_key(("source", key), f"cannot be `{mask(name)}`, the column of the events' text")
    if source.id is not None and source.time is not None and source.id.lower() == source.time.lower():
        text = f"cannot be `{mask(source.time)}`, as `id` is: they are columns of their own"
        reading.refuse_key(("source", "time"), text)


def check_needs(reading: FileReading, file: PipelineFile) -> None:
    """Require the id and the time of events where something depends on them, and a source that queries can share."""
    for table, key, reason in NEED_COLUMNS:
        if getattr(file, table) is not None and reading.lacks(("source", key)):
            reading.refuse_table((table,), f"needs `{key}` in [source]: {reason}")
    if reading.lacks(("source", "id")):
        if file.matching.per == "event":
            reading.refuse_key(("matching", "per"), 'cannot be "event" without `id` in [source]')
        for number, sink in enumerate(file.sinks):
            if sink.kind == "kafka":
                text = 'cannot be "kafka" without `id` in [source]: the key of a record has it'
                reading.refuse_key(("sink", number, "kind"), text)
    if file.patterns is not None and file.subscriptions is not None and file.source.kind == "socket":
        text = 'cannot be "socket" with [subscriptions] and [patterns]: it can be read once'
        reading.refuse_key(("source", "kind"), text)


def check_kept(
    reading: FileReading, table: str, names: tuple[str, ...] | None, reserved: tuple[str, ...], owner: str
) -> None:
    """Refuse columns that `keep` names twice, or that something else is called by."""
    for name, count in Counter(names).items():
        if name in reserved:
            reading.refuse_key((table, "keep"), f"names `{name}`, {owner}; call it otherwise in [derived]")
        if count > 1:
            reading.refuse_key((table, "keep"), f"names `{mask(name)}` twice")


# Patterns ----------------------------------------------------------------------------------------


def check_forecasts(reading: FileReading) -> None:
    """Require a model where a key is about forecasts, and a horizon where there is a model."""
    if reading.lacks(("patterns", "model")):
        for name in ("horizon", "threshold", "tell", "step"):
            if not reading.lacks(("patterns", name)):
                reading.refuse_key(("patterns", name), "needs `model`: forecasts are made with one")
    elif reading.lacks(("patterns", "horizon")) and reading.lacks(("patterns", "store")):
        text = "`model` needs `horizon`: how far ahead forecasts look"
        reading.refuse_table(("patterns", "model"), text, label="[patterns]")


def check_pattern_files(reading: FileReading, patterns: PatternSettings, context: QueryContext) -> None:
    """Read the files of patterns and their model, to find what is wrong with them."""
    loads: dict[str, Callable[[], object]] = {"file": lambda: patterns.parse(context), "model": patterns.load_model}
    for key, load in loads.items():
        if key == "model" and patterns.store is not None:
            continue  # it may come later
        if getattr(patterns, key) is not None:
            try:
                load_or_reject(load, reading.context)
            except WrongValue as wrong:
                reading.refuse_key(("patterns", key), str(wrong))


# Places that are read and written ----------------------------------------------------------------


def check_paths(reading: FileReading, file: PipelineFile, sinks: list[tuple[TomlPath, SinkSettings]]) -> None:
    """Refuse folders whose rows would be read as events, or that two sinks write to."""
    owners: dict[str, str] = {}
    for table, label, path in _list_folders(reading, file, sinks):
        owner, texts = owners.setdefault(_normalize_path(path), label), []
        if owner != label:
            texts.append(f"is that of {owner.rstrip(':')} too: `{mask(path)}`")
        if _is_inside(path, file.source.path):
            texts.append(f"`{mask(path)}` lies within the source's, so its rows would come in as events")
        if _is_inside(path, file.checkpoint):
            texts.append(f"`{mask(path)}` lies within the checkpoint's, which is Spark's own")
        for text in texts:
            reading.refuse_key((*table, "path"), text, table=label)
    if file.checkpoint and _is_inside(file.checkpoint, file.source.path):
        reading.refuse_key(("checkpoint",), f"`{mask(file.checkpoint)}` lies within the source's path")


def _list_folders(
    reading: FileReading, file: PipelineFile, sinks: list[tuple[TomlPath, SinkSettings]]
) -> Iterator[tuple[TomlPath, str, str]]:
    """Yield the folders of sinks: where in the file, how messages name it, and the path."""
    for table, sink in sinks:
        label = reading.label_table(table)
        if sink is file.dead_letters and file.patterns is not None:  # theirs lie beside those of matching
            beside = sink.derive_pattern_letters().path
            if beside is not None:
                yield table, f"{label} of patterns", beside
        if sink.path is not None:
            yield table, label, sink.path


def check_sinks(reading: FileReading, file: PipelineFile, sinks: list[tuple[TomlPath, SinkSettings]]) -> None:
    """Refuse a topic that is read and written, and a function that cannot be imported."""
    topics = {topic.strip() for topic in (file.source.topic or "").split(",")}
    for path, sink in sinks:
        if sink.kind == "store":
            check_store_sink(reading, file, path)
        if sink.topic in topics and sink.servers == file.source.servers:
            text = f"`{mask(sink.topic or '')}` is the source's, so its rows would come in as events"
            reading.refuse_key((*path, "topic"), text)
        if sink.function is not None:
            try:
                import_function(sink.function, reading.context.folder)
            except TidingsError as problem:
                text = reading.context.variables.hide(str(problem))
                reading.refuse_key((*path, "function"), f"cannot be used: {text}")


def check_store_sink(reading: FileReading, file: PipelineFile, path: TomlPath) -> None:
    """Refuse a store as the place of rows that are neither matches nor detections."""
    if path == ("dead_letters",):
        reading.refuse_key((*path, "kind"), 'cannot be "store", which takes matches and detections')
    elif path[0] == "sink" and file.matching.per == "event":
        text = 'cannot be "store" with per = "event" in [matching]: a store has a row for each match'
        reading.refuse_key((*path, "kind"), text)


def _is_inside(path: str, folder: str | None) -> bool:
    """Tell whether a path is the folder or lies in it; the folder may be a pattern.

    >>> _is_inside("/data/in/out", "/data/*"), _is_inside("/data/out", "/data/in")
    (True, False)
    """
    if folder is None:
        return False
    parts, wanted = PurePath(_normalize_path(path)).parts, PurePath(_normalize_path(folder)).parts
    return len(parts) >= len(wanted) and all(map(fnmatchcase, parts, wanted))


def _normalize_path(path: str) -> str:
    """Return one spelling of a path: `file:///data/out` and `/data/out` are the same."""
    local = to_local_path(path)
    return path.rstrip("/") if local is None else str(local)


# At the start of a run ---------------------------------------------------------------------------


def find_missing_source(source: SourceSettings) -> list[FileMistake]:
    """Return the mistake that the folder of events does not exist; it may be created between check and run."""
    local = to_local_path(source.path) if source.path is not None else None
    if local is None or any(sign in str(local) for sign in "*?[{") or local.is_dir():
        return []
    text = f"[source] `path` names `{mask(source.path or '')}`: there is no such folder"
    return [FileMistake(("source", "path"), text)]


def require_brokers(pipeline: Pipeline) -> None:
    """Raise `PipelineFailed` if no broker of some list accepts a connection.

    Spark's connector waits for a broker silently, for minutes and repeatedly. So each list of brokers is tried before:
    one that accepts a connection is enough. Whether it is Kafka, and accepts the login, is left to the connector.
    """
    parts = [("[source]", pipeline.source.servers)]
    if pipeline.subscriptions is not None:
        parts.append(("[subscriptions]", pipeline.subscriptions.servers))
    sinks = _list_sinks(pipeline)
    parts += [(f"[[{path[0]}]]" if len(path) > 1 else f"[{path[0]}]", sink.servers) for path, sink in sinks]
    for where, servers in parts:
        if servers and not any(map(_is_reachable, servers.split(","))):
            msg = f"{where}: none of the servers `{mask(servers)}` takes a connection; is Kafka running there?"
            raise PipelineFailed(msg)


def _is_reachable(server: str) -> bool:
    host, _, port = server.strip().rpartition(":")
    try:
        address = (host.strip("[]") or server.strip(), int(port) if host else KAFKA_PORT)
        with socket.create_connection(address, CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False
