"""Patterns in a pipeline: the stream that looks for them, and what becomes of each of its micro-batches.

Looking for patterns has a memory, which Spark keeps in the checkpoint, so it is a query of its own, with its own
numbers of batches. One stream has it all: detections, events that came too late, bad events, and how many there
were. What comes out of a batch depends on its events and the memory alone: tried again, it gives the same rows.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from tidings.forecast import Detector
from tidings.spark.detect.detect import detect
from tidings.spark.detect.pattern_source import build_detector
from tidings.spark.match.shard_plan import ShardPlan
from tidings.spark.match.worker_matcher import TaggedRows
from tidings.spark.match.worker_stage import WorkerStage, match_in_workers
from tidings.spark.pipeline.config.pattern_checks import ID, load_model
from tidings.spark.pipeline.config.variables import mask
from tidings.spark.pipeline.monitor.report import Report
from tidings.spark.pipeline.run.match_batches import EVENT, LATE, RAW, REFUSED, TIME, resolve_column
from tidings.spark.pipeline.run.microbatch import BatchHandler, persist_frame
from tidings.spark.pipeline.sinks.batch_folders import EXACT_TIMES
from tidings.spark.query_context import QueryContext
from tidings.spark.schema import schema_of, to_column
from tidings.spark.subscriptions.subscription_source import open_subscriptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, Row

    from tidings.lang import WrittenPattern
    from tidings.spark.pipeline.config.settings import PatternSettings, Pipeline
    from tidings.spark.pipeline.run.checkpoint import Checkpoint
    from tidings.spark.pipeline.run.match_batches import BatchSinks

FOLDER = "patterns"
"""The query's own folder in the checkpoint."""

KEY = ("pattern", "key", "at", "events")
"""What makes a detection the one it is."""

DETECTION = ("kind", *KEY)
"""The columns of a detection; where there are forecasts, this is what makes each the one it is."""

FORECAST = ("probability", "horizon", "estimator")
"""The columns of forecasts, which are there with a model only."""

LETTER = ("event", "reason", "row")
"""The columns of a dead letter."""

SEEN = "seen"
"""How many events a row of the stream stands for."""

_ADDED = (
    StructField("made", LongType()),
    StructField("reason", StringType()),
    StructField("row", StringType()),
    StructField("events", LongType()),
    StructField("newest", TimestampType()),
    StructField("mismatches", StringType()),
)


# The stream ----------------------------------------------------------------------------------------


def detect_stream(
    events: DataFrame, pipeline: Pipeline, patterns: Sequence[WrittenPattern], *, context: QueryContext
) -> DataFrame:
    """Return what comes of a stream of events: rows of `ts.detect`, dead letters and tallies, as one frame.

    What the source could not read is told once: by matching, where there are subscriptions.
    """
    settings = pipeline.patterns
    assert settings is not None
    events = _add_event_columns(
        events if pipeline.subscriptions is None else events.where(to_column(REFUSED).isNull()), pipeline
    )
    in_time = events.where(to_column(REFUSED).isNull()).drop(REFUSED, RAW)
    in_time = in_time.withWatermark(TIME, f"{int(settings.lateness.total_seconds() * 1000)} milliseconds")
    detector = build_detector(in_time, patterns, context, time=TIME, key=settings.key)
    forecaster = add_forecasts(detector, settings)  # its names were judged when it was made
    detections = detect(in_time, forecaster, time=TIME, event_id=EVENT, keep=settings.keep, unknown="absent")
    return _rename_event_ids(detections, settings.keep or ()).unionByName(
        _find_bad_events(events, detector), allowMissingColumns=True
    )


def add_forecasts(detector: Detector, settings: PatternSettings) -> Detector:
    """Return a detector of the same patterns that also forecasts them; without a model, the detector itself."""
    if settings.model is None:
        return detector
    forecaster = Detector(model=load_model(settings.model), time=detector.time, **detector.vocabulary.to_keywords())
    forecaster.add_many(
        [pattern.to_written() for pattern in detector.patterns],
        horizon=settings.horizon,
        threshold=settings.threshold,
        tell=settings.tell,
        step=settings.step,
    )
    return forecaster


def _rename_event_ids(detections: DataFrame, keep: Sequence[str]) -> DataFrame:
    """Call the id of an event what matches call it, where events are records."""
    if not keep:
        return detections

    def record(event: Column) -> Column:
        return F.struct(event[EVENT].alias(ID), *(event[name].alias(name) for name in keep))

    return detections.withColumn("events", F.transform("events", record))


def _add_event_columns(events: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Add the events' ids and times under names of our own; one without a time has no place in any order."""
    source = pipeline.source
    assert source.id is not None
    assert source.time is not None
    events = events.withColumns(
        {EVENT: resolve_column(events, source.id), TIME: resolve_column(events, source.time).cast("timestamp")}
    )
    lacks = F.when(to_column(TIME).isNull(), F.lit(f"no time: `{mask(source.time)}` is null, and patterns need one"))
    return events.withColumn(REFUSED, F.coalesce(to_column(REFUSED), lacks))


def _find_bad_events(events: DataFrame, detector: Detector) -> DataFrame:
    """Return the events that patterns cannot read, as dead letters, and how many events there were.

    They are judged by the matcher that detection reads them with: what takes no part there is told here.
    """
    alone = QueryContext(unknown="absent")  # the matcher brings its own, and its names were judged
    handle = open_subscriptions(
        events.sparkSession, detector.compile().matcher, schema_of(events.schema), alone, shards=None
    )
    plan = ShardPlan(handle.store.shards, judge=True)
    build = TaggedRows(plan.row_builder, raw=RAW, hidden=(EVENT, TIME))
    stage = WorkerStage((EVENT,), ("event",), build, _ADDED, plan, refused=REFUSED, whole_events=True)
    rows = match_in_workers(events, handle, stage, None)
    return rows.select("event", "reason", "row", to_column("events").alias(SEEN))


# Its batches ---------------------------------------------------------------------------------------


class DetectBatches(BatchHandler):
    """Takes the micro-batches of the query that looks for patterns."""

    def __init__(self, pipeline: Pipeline, *, patterns: int, checkpoint: Checkpoint, sinks: BatchSinks) -> None:
        """Take all that a batch needs, and how many patterns there are."""
        super().__init__(checkpoint, FOLDER)
        self._pipeline, self._sinks, self._patterns = pipeline, sinks, patterns
        self._is_beside = pipeline.subscriptions is not None
        has_forecasts = pipeline.patterns is not None and pipeline.patterns.model is not None
        self._columns = (*DETECTION, *FORECAST) if has_forecasts else DETECTION

    def _process(self, frame: DataFrame, batch: int) -> None:
        started, begun = datetime.now(UTC), time.monotonic()
        with ExitStack() as stack:
            # Kept, and read from there: what has a memory must not be computed twice in one batch.
            rows = persist_frame(frame, stack)
            counts = self._count_rows(rows)
            self._write_rows(rows, counts, batch)
        if not any(counts):
            return  # Spark let time pass, and nothing came of it
        self._report(
            Report(
                self._pipeline.name,
                batch,
                started,
                time.monotonic() - begun,
                counts["events"],
                0,
                dead_letters=counts["letters"] + counts["late"],
                late=counts["late"],
                query="patterns",
                beside=self._is_beside,
                patterns=self._patterns,
                detections=counts["detections"],
            )
        )

    def _count_rows(self, rows: DataFrame) -> Row:
        """Count what there is; this is the one pass through the patterns."""
        kind = to_column("kind")
        counts = rows.agg(
            F.coalesce(F.sum(SEEN), F.lit(0)).alias("events"),
            F.count_if(kind == "match").alias("detections"),
            F.count_if(kind == "forecast").alias("forecasts"),
            F.count_if(kind == "late").alias("late"),
            F.count("reason").alias("letters"),
        ).first()
        assert counts is not None
        return counts

    def _write_rows(self, rows: DataFrame, counts: Row, batch: int) -> None:
        if counts["detections"] or counts["forecasts"]:
            detections = rows.where(to_column("kind").isin("match", "forecast")).select(*self._columns)
            for output in self._sinks.matches:
                output.write(detections, batch)
        if counts["letters"] or counts["late"]:
            bad = rows.where(to_column("reason").isNotNull()).select(*LETTER)
            self._sinks.dead_letters.write(bad.unionByName(_build_late_letters(rows)), batch)


def _build_late_letters(rows: DataFrame) -> DataFrame:
    """Return the events that came too late, as dead letters; of those, what detections carry is known."""
    first, kind = F.element_at("events", 1), rows.schema["events"].dataType.elementType  # type: ignore[attr-defined]
    columns = {name: first[name] for name in kind.names} if isinstance(kind, StructType) else {ID: first}
    shown = F.struct(*(value.alias(name) for name, value in columns.items()), "at")
    reason = F.concat(F.lit(LATE), to_column("at").cast("string"), F.lit(" is behind what patterns wait for"))
    late = rows.where(to_column("kind") == "late")
    return late.select(columns[ID].alias("event"), reason.alias("reason"), F.to_json(shown, EXACT_TIMES).alias("row"))
