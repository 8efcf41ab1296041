"""What must hold between the parts of a pipeline, and with the files it names.

Everything here needs more than one key, or the disk. What is wrong by itself was told already by `sections`, and is
left out here: a check looks at good values only.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError
from tidings.spark.pipeline.config.variables import written
from tidings.spark.pipeline.sinks.batch_folders import local_path
from tidings.spark.pipeline.sinks.sinks import imported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tidings.spark.pipeline.config import settings
    from tidings.spark.pipeline.config.tables import Reader, Said

RESERVED = ("_refused", "_raw", "_text", "_broken", "_file", "_went_well", "_first", "_again", "_whole")
"""Columns of our own that travel with the events, or that sources use on the way."""

MADE = ("event", "subscription", "subscriptions")
"""Columns of the matches that are not the event's."""


# --- files ---------------------------------------------------------------------------------------


def loaded(reader: Reader, said: Said, name: str, load: Callable[[str], Any]) -> Any:
    """Return what a file that a key names holds; what is wrong with the file is told in its own words."""
    path = said[name]
    if path is None or not _there(reader, said, name, folder=False, remote=False):
        return None
    return attempted(reader, said, name, lambda: load(path))


def attempted(reader: Reader, said: Said, name: str, load: Callable[[], Any]) -> Any:
    """Return what a call makes, or nothing where it refuses."""
    try:
        return load()
    except TidingsError as problem:
        told = reader.variables.hide(str(problem)).replace("\n", "\n  ")
        reader.wrong(said, name, f"does not load:\n  {told}")
        return None


def subscriptions(reader: Reader, said: Said, top: Said) -> None:
    """Look for what subscriptions are read from; a snapshot brings its schema, ontology and regions along."""
    for name, folder in (("file", False), ("directory", True), ("snapshot", True)):
        _there(reader, said, name, folder=folder)
    for name in ("schema", "ontology", "regions") if said["snapshot"] else ():
        if not top.lacks(name):
            reader.wrong(top, name, "does not go with `snapshot` in [subscriptions]: a snapshot brings its own")


def jars(reader: Reader, top: Said) -> None:
    """Look for the folder of jars."""
    if _there(reader, top, "jars", folder=True, remote=False) and not any(Path(top["jars"]).glob("*.jar")):
        reader.wrong(top, "jars", f"names `{written(top['jars'])}`, which holds no jars")


def _there(reader: Reader, said: Said, name: str, *, folder: bool, remote: bool = True) -> bool:
    """Tell whether the path is there; one that only Spark reaches is left to Spark."""
    path = said[name]
    if path is None:
        return False
    local, what = local_path(path), "folder" if folder else "file"
    if local is None:
        if not remote:
            reader.wrong(said, name, f"must be a {what} of this machine, not `{written(path)}`")
        return remote
    if local.is_dir() if folder else local.is_file():
        return True
    hint = f"; it is a {'file' if folder else 'folder'}" if local.exists() else ""
    reader.wrong(said, name, f"names `{written(path)}`: there is no such {what}{hint}")
    return False


# --- source, sinks and checkpoint among each other -----------------------------------------------


def source(reader: Reader, said: Said) -> None:
    """Refuse columns for text, which is a column of its own."""
    if said["value"] == "text" and said["columns"] is not None:
        reader.wrong(said, "columns", 'does not go with value = "text", which gives one column `value`')


def missing_source(about: settings.Source) -> list[str]:
    """Return the mistake that the folder of events is not there, if it is one; it may come between check and run."""
    local = local_path(about.path) if about.path is not None else None
    if local is None or any(sign in str(local) for sign in "*?[{") or local.is_dir():
        return []
    return [f"[source] `path` names `{written(about.path or '')}`: there is no such folder"]


def derived(reader: Reader, said: Said, source: Said) -> None:
    """Refuse names that Tidings uses."""
    taken = (*RESERVED, "kafka") if source["kind"] == "kafka" else RESERVED
    for name in said.values:
        if name in taken:
            reader.wrong(said, name, "is a column of Tidings' own; take another name")


def needs(reader: Reader, source: Said, others: Mapping[str, Said], sinks: Sequence[Said]) -> None:
    """Ask for the id and the time where something needs them."""
    if source.lacks("id"):
        if others["matching"]["per"] == "event":
            reader.wrong(others["matching"], "per", 'cannot be "event" without `id` in [source]')
        if "duplicates" in others:
            reader.mistakes.append("[duplicates] needs `id` in [source]: it says what comes twice")
        for sink in sinks:
            if sink["kind"] == "kafka":
                reader.wrong(sink, "kind", 'cannot be "kafka" without `id` in [source]: the key of a record has it')
    if source.lacks("time") and "late" in others:
        reader.mistakes.append("[late] needs `time` in [source]: it says how old an event is")


def keep(reader: Reader, matching: Said) -> None:
    """Refuse columns that are kept twice, or under a name that the matches have."""
    for name in dict.fromkeys(name for name in matching["keep"] or () if name in MADE):
        reader.wrong(matching, "keep", f"names `{name}`, a column of the matches; call it otherwise in [derived]")
    doubles(reader, matching)


def doubles(reader: Reader, said: Said) -> None:
    """Refuse columns that are kept twice."""
    names = said["keep"] or ()
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        reader.wrong(said, "keep", f"names `{written(name)}` twice")


def places(reader: Reader, top: Said, source: Said, sinks: Sequence[Said], letters: Said | None) -> None:
    """Refuse folders that would be read as events, or written by two."""
    taken: dict[str, Said] = {}
    for sink in (*sinks, *([letters] if letters else [])):
        path = sink["path"]
        if path is None:
            continue
        if (other := taken.setdefault(_bare(path), sink)) is not sink:
            reader.wrong(sink, "path", f"is that of {other.place.rstrip(':')} too: `{written(path)}`")
        _apart(reader, sink, source["path"], "the source's, so its rows would come in as events")
        _apart(reader, sink, top["checkpoint"], "the checkpoint's, which is Spark's own")
    if top["checkpoint"] and source["path"] and _inside(top["checkpoint"], source["path"]):
        reader.wrong(top, "checkpoint", f"`{written(top['checkpoint'])}` lies within the source's path")


def topics(reader: Reader, source: Said, sinks: Sequence[Said], letters: Said | None) -> None:
    """Refuse a topic that is read and written: what comes out would come in again, for ever."""
    read = {topic.strip() for topic in (source["topic"] or "").split(",")}
    for sink in (*sinks, *([letters] if letters else [])):
        if sink["topic"] in read and sink["servers"] == source["servers"]:
            reader.wrong(
                sink, "topic", f"`{written(sink['topic'])}` is the source's, so its rows would come in as events"
            )


def function(reader: Reader, sink: Said) -> None:
    """Import the user's function, which may lie beside the pipeline's file."""
    name = sink["function"]
    if name is None:
        return
    if str(reader.folder) not in sys.path:
        sys.path.append(str(reader.folder))  # and it stays: the function may import more when it runs
    try:
        imported(name)
    except TidingsError as problem:
        reader.wrong(sink, "function", f"cannot be used: {reader.variables.hide(str(problem))}")


def _apart(reader: Reader, sink: Said, other: str | None, whose: str) -> None:
    if other is not None and _inside(sink["path"], other):
        reader.wrong(sink, "path", f"`{written(sink['path'])}` lies within {whose}")


def _inside(path: str, folder: str) -> bool:
    """Tell whether a path is the folder or lies in it; the folder may be a pattern.

    >>> _inside("/data/in/out", "/data/*"), _inside("/data/out", "/data/in")
    (True, False)
    """
    parts, wanted = PurePath(_bare(path)).parts, PurePath(_bare(folder)).parts
    return len(parts) >= len(wanted) and all(map(fnmatchcase, parts, wanted))


def _bare(path: str) -> str:
    """Return one spelling of a path: `file:///data/out` and `/data/out` are the same."""
    local = local_path(path)
    return path.rstrip("/") if local is None else str(local)
