"""`pipeline.toml` into a `Pipeline`: all mistakes are reported together, each with its line.

Keys and values are validated by `reading`, then tables are checked against each other and the disk (`checks`). What
only Spark can know (columns, SQL) is `analysis`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.configuration.environment import Variables
from tidings.configuration.reading import FileMistake, FileReading, build_error, read_settings
from tidings.errors import BadPipeline, BadSettings
from tidings.spark.pipeline.config.checks import check_tables
from tidings.spark.pipeline.config.settings import KEYS, Pipeline, PipelineFile

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANALYSED = ("source", "derived", "matching")
"""The tables that must be good before Spark is asked about columns and SQL."""


@dataclass(frozen=True, slots=True)
class PipelineDraft:
    """A file that was read: its mistakes, and the pipeline where there are none.

    `events` is the part about which Spark can be asked. It is there as soon as the tables it depends on are good, so
    that Spark's mistakes can be reported together with the others. `variables` are those that the file names.
    """

    path: Path
    reading: FileReading
    variables: Variables
    pipeline: Pipeline | None
    events: PipelineFile | None

    def refuse(self, *mistakes: FileMistake) -> BadSettings:
        """Return the error with all mistakes: those of the file, and further ones."""
        further = [FileMistake(mistake.path, self.variables.hide(mistake.text)) for mistake in mistakes]
        return build_error(self.path, self.reading.render([*self.reading.mistakes, *further]), BadPipeline)


def load(path: str | Path, *, environ: Mapping[str, str] = os.environ) -> Pipeline:
    """Read a pipeline; `BadPipeline` has every mistake that can be found without Spark."""
    draft = read(path, environ=environ)
    if draft.pipeline is None:
        raise draft.refuse()
    return draft.pipeline


def read(path: str | Path, *, environ: Mapping[str, str] = os.environ) -> PipelineDraft:
    """Read a pipeline's file with all its mistakes.

    A file that cannot be opened is a `FileError`, one that is not TOML a `BadPipeline`.
    """
    path = Path(path).absolute()
    reading = read_settings(path, KEYS, environ, error=BadPipeline)
    file: PipelineFile = reading.validate()
    check_tables(reading, file)
    reading.mistakes.sort(key=reading.find_line)
    pipeline = None if reading.mistakes else Pipeline.from_file(file, path)
    analysed = replace(file, patterns=None) if "patterns" in reading.unusable else file
    events = analysed if reading.unusable.isdisjoint(_ANALYSED) else None
    return PipelineDraft(path, reading, reading.context.variables, pipeline, events)
