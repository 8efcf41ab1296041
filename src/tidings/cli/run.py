"""`tidings run`: a pipeline's file checked, described, or run.

Mistakes come together: those that the file shows, and those that only Spark can tell. Spark is asked on this
machine and without a job, so a check needs neither the cluster nor a broker.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidings.cli import render
from tidings.errors import BadPipeline, SparkUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.spark.pipeline.config.load import PipelineDraft
    from tidings.spark.pipeline.config.reading import FileMistake
    from tidings.spark.pipeline.config.settings import Pipeline


def run(file: Path, *, check: bool, once: bool, as_json: bool) -> None:
    """Run the pipeline until it ends or is stopped; with `check`, only look at it."""
    from tidings.spark.pipeline.config.load import read
    from tidings.spark.pipeline.config.values import Trigger

    try:
        draft = read(file)
        pipeline = checked(draft) if check or draft.pipeline is None else draft.pipeline
    except BadPipeline as refused:
        if as_json:
            render.write_json({"ok": False, "mistakes": list(refused.mistakes)})
        raise
    if once:
        pipeline = replace(pipeline, trigger=Trigger(available_now=True))
    if check:
        _tell(pipeline, as_json=as_json)
    else:
        with draft.variables.mask_errors():
            _run(pipeline, as_json=as_json)


def checked(draft: PipelineDraft) -> Pipeline:
    """Return the pipeline if nothing is wrong with it, Spark's own word included."""
    from tidings.spark.pipeline.config.checks import find_missing_source

    mistakes = [*find_missing_source(draft.events.source), *_asked_of_spark(draft)] if draft.events is not None else []
    if mistakes or draft.pipeline is None:
        raise draft.refuse(*mistakes)
    return draft.pipeline


def _asked_of_spark(draft: PipelineDraft) -> list[FileMistake]:
    from tidings.spark.pipeline.config.analysis import check_locally
    from tidings.spark.pipeline.config.reading import FileMistake

    assert draft.events is not None
    try:
        return check_locally(draft.events)
    except SparkUnavailable as problem:
        if not draft.mistakes:
            raise
        return [FileMistake((), f"columns and SQL were not checked: {problem}")]


def _tell(pipeline: Pipeline, *, as_json: bool) -> None:
    from tidings.spark.pipeline.config.describe import describe_pipeline

    parts = describe_pipeline(pipeline)
    if as_json:
        render.write_json({"ok": True, "pipeline": parts})
        return
    width = max(map(len, parts))
    for part, words in parts.items():
        render.write(f"{part:<{width}}  {words}")


def _run(pipeline: Pipeline, *, as_json: bool) -> None:
    from tidings.spark.pipeline.run import runner

    if as_json:  # progress as JSON lines is then what standard output is for
        pipeline = replace(pipeline, shown=replace(pipeline.shown, view="off", lines="-"))
    runner.run(pipeline)
