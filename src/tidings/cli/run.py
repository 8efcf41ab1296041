"""`tidings run`: a pipeline's file checked, described, or run.

All mistakes are reported together: those of the file, and those that only Spark finds. Spark runs on this machine and
without a job, so a check needs neither the cluster nor a broker.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.errors import BadPipeline, SparkUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.configuration.reading import FileMistake
    from tidings.spark.pipeline.config.load import PipelineDraft
    from tidings.spark.pipeline.config.settings import Pipeline


def run(file: Path, *, check: bool, once: bool, as_json: bool) -> None:
    """Run the pipeline until it ends or is stopped; with `check`, only check and describe it."""
    from tidings.spark.pipeline.config.load import read
    from tidings.spark.pipeline.config.value_kinds import Trigger

    try:
        draft = read(file)
        pipeline = check_draft(draft) if check or draft.pipeline is None else draft.pipeline
    except BadPipeline as problem:
        if as_json:
            render.write_json({"ok": False, "mistakes": list(problem.mistakes)})
        raise
    if once:
        pipeline = replace(pipeline, trigger=Trigger(available_now=True))
    if check:
        _describe(pipeline, as_json=as_json)
    else:
        from tidings.spark.pipeline.run import runner

        if as_json:  # then standard output has the progress as JSON lines
            pipeline = replace(pipeline, shown=replace(pipeline.shown, view="off", lines="-"))
        with draft.variables.mask_errors():
            runner.run(pipeline)


def check_draft(draft: PipelineDraft) -> Pipeline:
    """Return the pipeline of a draft; `BadPipeline` if the file or Spark finds a mistake."""
    from tidings.spark.pipeline.config.checks import find_missing_source

    mistakes = [*find_missing_source(draft.events.source), *_check_by_spark(draft)] if draft.events is not None else []
    if mistakes or draft.pipeline is None:
        raise draft.refuse(*mistakes)
    return draft.pipeline


def _check_by_spark(draft: PipelineDraft) -> list[FileMistake]:
    from tidings.configuration.reading import FileMistake
    from tidings.spark.pipeline.config.analysis import check_locally

    assert draft.events is not None
    try:
        return check_locally(draft.events)
    except SparkUnavailable as problem:
        if draft.pipeline is not None:
            raise
        return [FileMistake((), f"columns and SQL were not checked: {problem}")]


def _describe(pipeline: Pipeline, *, as_json: bool) -> None:
    from tidings.spark.pipeline.config.describe import describe_pipeline

    render.write_parts("pipeline", describe_pipeline(pipeline), as_json=as_json)
