"""`pipeline.toml` into a `Pipeline`: every mistake is told, and all of them together.

Tables are held against the description of their keys (`keys`, `sections`), then against each other and the disk
(`checks`). What only Spark can tell (columns, SQL) is `analysis`. A key that is wrong is left out of what follows, so
a mistake is told once and in one place.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.concepts import Ontology, Regions, did_you_mean
from tidings.concepts.text_files import read_text
from tidings.errors import BadPipeline
from tidings.model import Schema
from tidings.spark.pipeline.config import checks, keys, pattern_checks, settings
from tidings.spark.pipeline.config.key_values import duration, word_for
from tidings.spark.pipeline.config.tables import Reader, Said
from tidings.spark.pipeline.config.variables import Variables, like
from tidings.spark.query_context import QueryContext

if TYPE_CHECKING:
    from collections.abc import Sequence

EVERY = "1 second"
"""The trigger where the file says nothing."""


@dataclass(frozen=True, slots=True)
class Events:
    """What Spark must be asked about: where events come from, what is made of them and what is kept.

    `given` is what the file says of how patterns are understood; the events' columns come in beside it.
    """

    source: settings.Source
    derived: Mapping[str, str]
    matching: settings.Matching
    sinks: tuple[settings.Sink, ...] = ()
    spark: settings.Options = field(default_factory=dict, repr=False)
    patterns: settings.Patterns | None = None
    given: QueryContext = field(default_factory=QueryContext, repr=False)


@dataclass(frozen=True, slots=True)
class Draft:
    """A file as far as it can be understood: its mistakes, and the whole where there are none.

    `events` is there as soon as their tables are sound, so that Spark's word on it can join the other mistakes.
    """

    file: Path
    mistakes: tuple[str, ...]
    pipeline: settings.Pipeline | None
    events: Events | None
    variables: Variables

    def refuse(self, *more: str) -> BadPipeline:
        """Return the error that tells all mistakes: those found here, and more."""
        found = (*self.mistakes, *(self.variables.hide(line) for line in more))
        count = "a mistake" if len(found) == 1 else f"{len(found)} mistakes"
        listed = "\n".join(found)
        return BadPipeline(f"`{self.file.name}` has {count}:\n{listed}", mistakes=found)


def load(path: str | Path, *, environ: Mapping[str, str] = os.environ) -> settings.Pipeline:
    """Read a pipeline; `BadPipeline` has every mistake that can be told without Spark."""
    draft = read(path, environ=environ)
    if draft.pipeline is None:
        raise draft.refuse()
    return draft.pipeline


def read(path: str | Path, *, environ: Mapping[str, str] = os.environ) -> Draft:
    """Read a pipeline's file, whatever is wrong with it; one that cannot be opened is a `FileError`."""
    path = Path(path).absolute()
    variables = Variables(environ)
    try:
        table = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as problem:
        return Draft(path, (f"it is not TOML: {problem}",), None, None, variables)
    reader = Reader(path.parent, variables)
    parts = _Parts(reader, table)
    pipeline = None if reader.mistakes else parts.pipeline(path)
    return Draft(path, tuple(reader.mistakes), pipeline, parts.events(), variables)


class _Parts:
    """The tables of a file, each read and then held against the others."""

    def __init__(self, reader: Reader, table: dict[str, Any]) -> None:
        self._reader = reader
        self._unknown_tables(table)
        self.top = self._top(table)
        self.source = self._table(keys.SOURCE, table, required=True)
        self.patterns = self._table(keys.PATTERNS, table) if "patterns" in table else None
        self.subscriptions = self._subscriptions(table)
        self.others = {
            one.name: self._table(one, table)
            for one in (keys.MATCHING, keys.LATE, keys.DUPLICATES, keys.SHOWN)
            if one.name in table or one in (keys.MATCHING, keys.SHOWN)
        }
        self.sinks = self._sinks(keys.SINK, table, wanted=self.subscriptions is not None)
        self.detections = self._sinks(keys.DETECTIONS, table, wanted=self.patterns is not None)
        self.letters = self._table(keys.DEAD_LETTERS, table) if "dead_letters" in table else None
        self.derived = reader.texts("derived", table.get("derived", {}))
        self.spark = self._spark(table.get("spark", {}))
        pattern_checks.together(reader, [*table])
        self._check()
        self.schema = self._schema(table.get("schema"))
        self.ontology = checks.loaded(reader, self.top, "ontology", Ontology.load)
        self.regions = checks.loaded(reader, self.top, "regions", Regions.load)
        self.given = QueryContext(self.schema, self.ontology, self.regions, unknown=self.top["unknown"] or "error")
        if self.patterns is not None:
            pattern_checks.loads(reader, self.patterns, self.given)

    def _top(self, table: dict[str, Any]) -> Said:
        inline = isinstance(table.get("schema"), dict)
        plain = {name: said for name, said in table.items() if name not in keys.SECTIONS and not _stray(name, said)}
        found = self._reader.table(
            keys.TOP, {name: said for name, said in plain.items() if not (inline and name == "schema")}, place=""
        )
        found.given.update(plain)
        return found

    def _unknown_tables(self, table: dict[str, Any]) -> None:
        for name, said in table.items():
            if _stray(name, said):
                hint = did_you_mean(name, keys.SECTIONS) or f"; the tables are {', '.join(keys.SECTIONS)}"
                self._reader.mistakes.append(f"[{name}] is not a table of a pipeline{hint}")

    def _table(self, description: keys.Table, table: dict[str, Any], *, required: bool = False) -> Said:
        if required and description.name not in table:
            self._reader.mistakes.append(f"[{description.name}] is missing: {description.heading.lower()}")
            return Said(f"[{description.name}]", sound=False, given=set(description.names))
        return self._reader.table(description, table.get(description.name, {}))

    def _subscriptions(self, table: dict[str, Any]) -> Said | None:
        """Read who wants to hear of what; a pipeline may have patterns alone."""
        if "subscriptions" in table:
            return self._table(keys.SUBSCRIPTIONS, table)
        if self.patterns is None:
            either = f"{keys.SUBSCRIPTIONS.heading.lower()}; or [patterns], {keys.PATTERNS.heading.lower()}"
            self._reader.mistakes.append(f"[subscriptions] is missing: {either}")
        return None

    def _sinks(self, description: keys.Table, table: dict[str, Any], *, wanted: bool) -> list[Said]:
        name, said = description.name, table.get(description.name, [])
        if not isinstance(said, list):
            what = f"written [[{name}]], since there may be several" if isinstance(said, dict) else word_for(said)
            self._reader.mistakes.append(f"[{name}] is {what}")
            return []
        if not said and wanted:
            self._reader.mistakes.append(f"[[{name}]] is missing: {description.heading.lower()}")
        places = [f"[[{name}]]"] if len(said) == 1 else [f"[[{name}]] {at}:" for at in range(1, len(said) + 1)]
        return [self._reader.table(description, one, place=place) for one, place in zip(said, places, strict=True)]

    def _spark(self, said: Any) -> Said:
        found = self._reader.settings(said, place="[spark]", taken={"spark.master": "master", "spark.app.name": "name"})
        for name in found.values:
            if not name.startswith("spark."):
                self._reader.wrong(found, name, "is not a setting of Spark; each begins with `spark.`")
        return found

    def _schema(self, said: Any) -> Schema | None:
        if isinstance(said, dict):
            listed = said.get("attributes", said)
            flat = _flat(listed) if isinstance(listed, dict) else listed
            return checks.attempted(self._reader, self.top, "schema", lambda: Schema(flat))  # type: ignore[no-any-return]
        return checks.loaded(self._reader, self.top, "schema", Schema.load)  # type: ignore[no-any-return]

    def _check(self) -> None:
        reader = self._reader
        checks.source(reader, self.source)
        checks.derived(reader, self.derived, self.source)
        if self.subscriptions is not None:
            checks.subscriptions(reader, self.subscriptions, self.top)
        if self.patterns is not None:
            pattern_checks.needs(reader, self.patterns, self.source, beside=self.subscriptions is not None)
        checks.jars(reader, self.top)
        checks.needs(reader, self.source, self.others, self.sinks)
        checks.keep(reader, self.others["matching"])
        sinks = [*self.sinks, *self.detections]
        theirs = pattern_checks.letters_too(self.letters) if self.patterns is not None else []
        checks.places(reader, self.top, self.source, [*sinks, *theirs], self.letters)
        checks.topics(reader, self.source, sinks, self.letters)
        for sink in (*sinks, *([self.letters] if self.letters else [])):
            checks.function(reader, sink)

    def events(self) -> Events | None:
        """Return what Spark must be asked about, where nothing of it is wrong already."""
        if not (self.source.sound and self.derived.sound and self.others["matching"].sound):
            return None
        sinks = tuple(settings.Sink(**sink.values) for sink in self.sinks if sink["kind"] is not None)
        return Events(
            settings.Source(**self.source.values),
            self.derived.values,
            settings.Matching(**self.others["matching"].values),
            sinks,
            self.spark.values,
            settings.Patterns(**self.patterns.values) if self.patterns is not None and self.patterns.sound else None,
            self.given,
        )

    def pipeline(self, path: Path) -> settings.Pipeline:
        """Return the whole; there was no mistake."""
        top, others = self.top.values, self.others
        plain = {name: top[name] for name in ("master", "jars", "unknown") if name in top}
        return settings.Pipeline(
            name=top.get("name", path.stem),
            folder=path.parent,
            checkpoint=top["checkpoint"],
            source=settings.Source(**self.source.values),
            subscriptions=settings.Subscriptions(**self.subscriptions.values) if self.subscriptions else None,
            sinks=_sinks(self.sinks),
            dead_letters=_sinks([self.letters])[0] if self.letters else _letters_beside(top["checkpoint"]),
            matching=settings.Matching(**others["matching"].values),
            derived=self.derived.values,
            schema=self.schema,
            ontology=self.ontology,
            regions=self.regions,
            late=settings.Late(**others["late"].values) if "late" in others else None,
            duplicates=settings.Duplicates(**others["duplicates"].values) if "duplicates" in others else None,
            patterns=settings.Patterns(**self.patterns.values) if self.patterns else None,
            detections=_sinks(self.detections),
            trigger=top.get("trigger", settings.Trigger(every=duration(EVERY))),
            shown=settings.Shown(**others["shown"].values),
            spark=self.spark.values,
            **plain,
        )


def _sinks(said: Sequence[Said]) -> tuple[settings.Sink, ...]:
    return tuple(settings.Sink(**sink.values) for sink in said)


def _letters_beside(checkpoint: str) -> settings.Sink:
    return settings.Sink("json", path=like(checkpoint, f"{checkpoint.rstrip('/')}/dead_letters"))


def _stray(name: str, said: Any) -> bool:
    """Tell whether it is a table that nobody knows; a key of the top that is a table is a wrong type instead."""
    tables = isinstance(said, dict) or (isinstance(said, list) and any(isinstance(one, dict) for one in said))
    return tables and name not in keys.SECTIONS and name not in keys.TOP.names


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return attributes under their dotted names, which TOML takes for tables."""
    flat: dict[str, Any] = {}
    for name, said in table.items():
        flat.update(_flat(said, f"{prefix}{name}.") if isinstance(said, dict) else {prefix + name: said})
    return flat
