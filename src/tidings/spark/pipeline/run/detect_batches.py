"""Pattern detection in a pipeline: the stream of detections, and its micro-batches.

Detection is stateful, and Spark keeps its state in the checkpoint; so it is a query of its own, which numbers its own
batches. One stream has detections, late events, bad events, and the number of events. The rows of a batch depend on
its events and the state alone, so a retried batch gives the same rows.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import LongType, StructField, StructType

from tidings.configuration.environment import mask
from tidings.forecast import Detector
from tidings.spark.detect.detect import detect
from tidings.spark.detect.pattern_source import build_detector
from tidings.spark.match.shard_plan import ShardPlan
from tidings.spark.match.worker_matcher import TaggedRows
from tidings.spark.match.worker_stage import WorkerStage, match_in_workers
from tidings.spark.pipeline.config.checks import ID
from tidings.spark.pipeline.monitor.batch_report import BatchReport
from tidings.spark.pipeline.run import match_batches
from tidings.spark.pipeline.run.match_batches import EVENT, LATE, RAW, REFUSED, TIME, resolve_column
from tidings.spark.pipeline.run.queries import PipelineQuery, persist_frame
from tidings.spark.pipeline.sinks.batch_folders import EXACT_TIMES
from tidings.spark.query_context import QueryContext
from tidings.spark.schema import schema_of, to_column
from tidings.spark.subscriptions.subscription_source import open_subscriptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, Row

    from tidings.lang import WrittenPattern
    from tidings.spark.pipeline.config.settings import PatternSettings, Pipeline
    from tidings.spark.pipeline.run.checkpoint import Checkpoint
    from tidings.spark.pipeline.run.queries import BatchSinks

KEY = ("pattern", "key", "at", "events")
"""The columns that identify a match."""

DETECTION = ("kind", *KEY)
"""The columns of a detection; with forecasts, they identify one."""

FORECAST = ("probability", "horizon", "estimator")
"""The columns of forecasts, present only with a model."""

LETTER = ("event", "reason", "row")
"""The columns of a dead letter."""

COUNTED = ("events", "detections", "forecasts", "late", "letters")
"""What is counted in a batch; one in which all is 0 is not reported."""

SEEN = "seen"
"""The column with the number of events that a row stands for."""

_ADDED = (StructField("made", LongType()), *match_batches.ADDED_FIELDS)


# The stream ----------------------------------------------------------------------------------------


def detect_stream(events: DataFrame, pipeline: Pipeline, patterns: Sequence[WrittenPattern]) -> DataFrame:
    """Return rows of `ts.detect`, dead letters and event counts of a stream of events, as one frame.

    Events that the source refused are dead letters here only without subscriptions: else matching reports them.
    """
    settings = pipeline.patterns
    assert settings is not None
    events = add_event_columns(
        events if pipeline.subscriptions is None else events.where(to_column(REFUSED).isNull()), pipeline
    )
    in_time = events.where(to_column(REFUSED).isNull()).drop(REFUSED, RAW)
    in_time = in_time.withWatermark(TIME, f"{int(settings.lateness.total_seconds() * 1000)} milliseconds")
    detector = build_detector(in_time, patterns, pipeline.query_context, time=TIME, key=settings.key)
    forecaster = add_forecasts(detector, settings)  # unknown names were refused when the detector was built
    detections = detect(in_time, forecaster, time=TIME, event_id=EVENT, keep=settings.keep, unknown="absent")
    return rename_event_ids(detections, settings.keep or ()).unionByName(
        _find_bad_events(events, detector), allowMissingColumns=True
    )


def add_forecasts(detector: Detector, settings: PatternSettings) -> Detector:
    """Return a detector of the same patterns that also forecasts them; without a model, the detector itself."""
    model = settings.load_model()
    if model is None:
        return detector
    forecaster = Detector(model=model, time=detector.time, **detector.vocabulary.to_keywords())
    forecaster.add_many(
        [pattern.to_written() for pattern in detector.patterns],
        horizon=settings.horizon,
        threshold=settings.threshold,
        tell=settings.tell,
        step=settings.step,
    )
    return forecaster


def rename_event_ids(detections: DataFrame, keep: Sequence[str]) -> DataFrame:
    """Rename the id in the records of events to the name that matches use."""
    if not keep:
        return detections

    def record(event: Column) -> Column:
        return F.struct(event[EVENT].alias(ID), *(event[name].alias(name) for name in keep))

    return detections.withColumn("events", F.transform("events", record))


def add_event_columns(events: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Add the columns of the id and the time; an event without a time is refused, since it has no order."""
    source = pipeline.source
    assert source.id is not None
    assert source.time is not None
    events = events.withColumns(
        {EVENT: resolve_column(events, source.id), TIME: resolve_column(events, source.time).cast("timestamp")}
    )
    lacks = F.when(to_column(TIME).isNull(), F.lit(f"no time: `{mask(source.time)}` is null, and patterns need one"))
    return events.withColumn(REFUSED, F.coalesce(to_column(REFUSED), lacks))


def _find_bad_events(events: DataFrame, detector: Detector) -> DataFrame:
    """Return the events that patterns cannot read, as dead letters, and the number of events.

    They are checked by the matcher of the detector, so exactly the events that detection skips are reported.
    """
    context = QueryContext(unknown="absent")  # the matcher has its own vocabulary, and its names were checked
    handle = open_subscriptions(
        events.sparkSession, detector.compile().matcher, schema_of(events.schema), context, shards=None
    )
    plan = ShardPlan(handle.store.shards, judge=True)
    build = TaggedRows(plan.row_builder, raw=RAW, hidden=(EVENT, TIME))
    stage = WorkerStage((EVENT,), ("event",), build, _ADDED, plan, refused=REFUSED, whole_events=True)
    rows = match_in_workers(events, handle, stage, None)
    return rows.select("event", "reason", "row", to_column("events").alias(SEEN))


# Batches -------------------------------------------------------------------------------------------


class DetectBatches(PipelineQuery):
    """Processes the micro-batches of the detection query; `patterns` is the number of patterns."""

    folder, suffix = "patterns", ": patterns"

    def __init__(self, pipeline: Pipeline, checkpoint: Checkpoint, sinks: BatchSinks, *, patterns: int) -> None:
        super().__init__(pipeline, checkpoint, sinks)
        self._patterns = patterns
        self._is_beside = pipeline.subscriptions is not None
        has_forecasts = pipeline.patterns is not None and pipeline.patterns.model is not None
        self._columns = (*DETECTION, *FORECAST) if has_forecasts else DETECTION

    def _process(self, frame: DataFrame, batch: int, started: datetime) -> BatchReport | None:
        with ExitStack() as stack:
            # Persisted: a stateful stream must not be computed twice in one batch.
            rows = persist_frame(frame, stack)
            counts = self._count_rows(rows)
            self._write_rows(rows, counts, batch)
        self._note_counts(counts, batch)
        if not any(counts[name] for name in COUNTED):
            return None  # a batch without data, which only moves the watermark
        return BatchReport(
            self._pipeline.name,
            batch,
            started,
            events=counts["events"],
            dead_letters=counts["letters"] + counts["late"],
            late=counts["late"],
            query="patterns",
            beside=self._is_beside,
            patterns=self._patterns,
            detections=counts["detections"],
        )

    def _note_counts(self, counts: Row, batch: int) -> None:
        """Remember what later batches need to know of a batch that is written."""

    def _count_rows(self, rows: DataFrame) -> Row:
        """Count the rows by kind in one Spark action: it runs the detection; sinks read the persisted rows."""
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
            for output in self._sinks.results:
                output.write(detections, batch)
        if counts["letters"] or counts["late"]:
            late = _build_late_letters(rows)
            bad = rows.where(to_column("reason").isNotNull()).select(*LETTER)
            bad = bad.withColumn("event", to_column("event").cast(late.schema["event"].dataType))
            self._sinks.dead_letters.write(bad.unionByName(late), batch)


def _build_late_letters(rows: DataFrame) -> DataFrame:
    """Return late events as dead letters; only the columns that detections carry are known of them."""
    first, kind = F.element_at("events", 1), rows.schema["events"].dataType.elementType  # type: ignore[attr-defined]
    columns = {name: first[name] for name in kind.names} if isinstance(kind, StructType) else {ID: first}
    record = F.struct(*(value.alias(name) for name, value in columns.items()), "at")
    reason = F.concat(F.lit(LATE), to_column("at").cast("string"), F.lit(" is behind what patterns wait for"))
    late = rows.where(to_column("kind") == "late")
    return late.select(columns[ID].alias("event"), reason.alias("reason"), F.to_json(record, EXACT_TIMES).alias("row"))
