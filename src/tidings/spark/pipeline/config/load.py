"""`pipeline.toml` into a `Pipeline`: all mistakes are reported together, each with its line.

Keys and values are validated by `reading`, then tables are checked against each other and the disk (`checks`). What
only Spark can know (columns, SQL) is `analysis`.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.concepts.text_files import read_text
from tidings.errors import BadPipeline
from tidings.spark.pipeline.config.checks import check_tables
from tidings.spark.pipeline.config.environment import Variables
from tidings.spark.pipeline.config.reading import FileMistake, FileReading
from tidings.spark.pipeline.config.settings import Pipeline, PipelineFile
from tidings.spark.pipeline.config.value_kinds import FileContext

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANALYSED = ("source", "derived", "matching")
"""The tables that must be good before Spark is asked about columns and SQL."""


@dataclass(frozen=True, slots=True)
class PipelineDraft:
    """A file that was read: its mistakes, and the pipeline where there are none.

    `events` is the part about which Spark can be asked. It is there as soon as the tables it depends on are good, so
    that Spark's mistakes can be reported together with the others.
    """

    path: Path
    mistakes: tuple[str, ...]
    pipeline: Pipeline | None
    events: PipelineFile | None
    reading: FileReading | None

    def refuse(self, *mistakes: FileMistake) -> BadPipeline:
        """Return the error with all mistakes: those of the file, and further ones."""
        variables = self.variables
        further = [FileMistake(mistake.path, variables.hide(mistake.text)) for mistake in mistakes]
        texts = (*self.mistakes, *(self.reading.render(further) if self.reading else map(str, further)))
        count = "a mistake" if len(texts) == 1 else f"{len(texts)} mistakes"
        listing = "\n".join(texts)
        return BadPipeline(f"`{self.path.name}` has {count}:\n{listing}", mistakes=texts)

    @property
    def variables(self) -> Variables:
        """The variables that the file names."""
        return self.reading.context.variables if self.reading else Variables({})


def load(path: str | Path, *, environ: Mapping[str, str] = os.environ) -> Pipeline:
    """Read a pipeline; `BadPipeline` has every mistake that can be found without Spark."""
    draft = read(path, environ=environ)
    if draft.pipeline is None:
        raise draft.refuse()
    return draft.pipeline


def read(path: str | Path, *, environ: Mapping[str, str] = os.environ) -> PipelineDraft:
    """Read a pipeline's file with all its mistakes; one that cannot be opened is a `FileError`."""
    path = Path(path).absolute()
    text = read_text(path)
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        return PipelineDraft(path, (f"it is not TOML: {problem}",), None, None, None)
    reading = FileReading(raw, text, FileContext(path.parent, Variables(environ)))
    file = reading.validate()
    check_tables(reading, file)
    reading.sort_mistakes()
    pipeline = None if reading.mistakes else Pipeline.from_file(file, path)
    analysed = file if reading.is_usable("patterns") else replace(file, patterns=None)
    events = analysed if all(map(reading.is_usable, _ANALYSED)) else None
    return PipelineDraft(path, reading.render(reading.mistakes), pipeline, events, reading)
