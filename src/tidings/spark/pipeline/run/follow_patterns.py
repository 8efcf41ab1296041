"""The detection query of a pipeline whose patterns are those of a store, put together."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.configuration.local_paths import to_local_path
from tidings.service.pattern_model import PatternModel
from tidings.spark.detect.followed.pattern_versions import PatternVersions
from tidings.spark.detect.followed.seen_ids import SeenIds
from tidings.spark.pipeline.run.followed_batches import (
    FollowedBatches,
    FollowTuning,
    build_plan,
    build_vocabulary,
    follow_stream,
)
from tidings.spark.pipeline.run.idle_clock import IdleClock
from tidings.spark.pipeline.run.owner_notices import OwnerNotices
from tidings.spark.pipeline.run.pattern_follower import KEPT_CLAIMS, PatternFollower
from tidings.spark.pipeline.run.pattern_reading import ForecastDefaults, PatternReading
from tidings.spark.pipeline.run.subscription_follower import count_kept_claims

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidings.concepts import Vocabulary
    from tidings.errors import TidingsError
    from tidings.service.store.base import Store
    from tidings.spark.pipeline.config.settings import PatternSettings, Pipeline
    from tidings.spark.pipeline.monitor.batch_report import Monitor
    from tidings.spark.pipeline.run.checkpoint import Checkpoint
    from tidings.spark.pipeline.run.queries import BatchSinks


def open_following(
    events: DataFrame, pipeline: Pipeline, checkpoint: Checkpoint, sinks: BatchSinks, store: Store, monitor: Monitor
) -> tuple[DataFrame, FollowedBatches]:
    """Return the stream of detections and the handler of its batches; a store that cannot be read is an error here."""
    settings, tuning = pipeline.patterns, FollowTuning()
    assert settings is not None
    vocabulary, model = build_vocabulary(events, pipeline), PatternModel(_locate_model(settings))

    def report(id: str | None, problem: TidingsError) -> None:
        if id is not None:
            checkpoint.append_refused([(id, problem)], None)
        monitor.warn(f"pattern `{id}` refused: {problem}" if id is not None else str(problem))

    reading = _build_reading(events, pipeline, settings, vocabulary, model)
    notices = OwnerNotices(store, checkpoint.read_refused())  # a start judges anew what was refused before
    # Where a run ends when all is read, nobody waits for it, and what it does not know now it never will.
    seconds, start = (inf, inf) if pipeline.trigger.available_now else (tuning.read_seconds, tuning.start_seconds)
    versions = PatternVersions(checkpoint.folder / "pattern_versions")
    kept_claims = count_kept_claims(pipeline, KEPT_CLAIMS)
    follower = PatternFollower(
        store, versions, reading, model, report=report, kept_claims=kept_claims, seconds=seconds, notices=notices
    )
    follower.refresh(start)
    clock = IdleClock(checkpoint.folder / "pattern_clock", idle=settings.idle, lateness=settings.lateness)
    plan = build_plan(pipeline, versions.folder, vocabulary, tuning)
    stream = follow_stream(events, pipeline, plan, clock.read_ticks(events.sparkSession))
    ids = None if pipeline.duplicates is None else SeenIds(versions.folder, pipeline.duplicates.within)
    batches = FollowedBatches(pipeline, checkpoint, sinks, follower=follower, clock=clock, tuning=tuning, ids=ids)
    monitor.show_status(f"{follower.count:,} patterns; waiting for events")
    return stream, batches


def _build_reading(
    events: DataFrame, pipeline: Pipeline, settings: PatternSettings, vocabulary: Vocabulary, model: PatternModel
) -> PatternReading:
    frame = None if pipeline.source.has_documents else events.schema
    defaults = ForecastDefaults(settings.threshold, settings.tell, settings.step)
    return PatternReading(vocabulary, model, frame=frame, unknown=pipeline.unknown, key=settings.key, defaults=defaults)


def _locate_model(settings: PatternSettings) -> Path | None:
    return None if settings.model is None else to_local_path(settings.model) or Path(settings.model)
