"""Detection of patterns that a store has: the stream of detections, and its micro-batches.

Each batch claims a version of the patterns before its job begins, and with it the newest time of events before, which
is where new patterns begin; so a batch that runs again gives the same rows. While there are no patterns every batch but
the first of a process waits for one, twenty seconds at most: events come and go, and little is done about them.
"""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from tidings.errors import TooLarge
from tidings.lang.filters.value_text import format_seconds
from tidings.matcher.loading.documents import DOCUMENT
from tidings.matcher.snapshot.vocabulary_files import dump_vocabulary
from tidings.spark.detect.followed.detect_followed import detect_followed
from tidings.spark.detect.followed.followed_plan import SEGMENTS, FollowedPlan
from tidings.spark.detect.followed.followed_step import FollowedColumns
from tidings.spark.pipeline.run.detect_batches import DetectBatches, add_event_columns, rename_event_ids
from tidings.spark.pipeline.run.idle_clock import TICK
from tidings.spark.pipeline.run.match_batches import EVENT, RAW, REFUSED, TIME
from tidings.spark.schema import schema_of, to_column
from tidings.spark.state_store import use_settings

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, Row

    from tidings.concepts import Vocabulary
    from tidings.spark.detect.followed.seen_ids import SeenIds
    from tidings.spark.pipeline.config.settings import PatternSettings, Pipeline
    from tidings.spark.pipeline.monitor.batch_report import BatchReport, Monitor
    from tidings.spark.pipeline.run.checkpoint import Checkpoint
    from tidings.spark.pipeline.run.idle_clock import IdleClock
    from tidings.spark.pipeline.run.pattern_follower import PatternFollower
    from tidings.spark.pipeline.run.queries import BatchSinks


@dataclass(frozen=True, slots=True)
class FollowTuning:
    """Numbers of the detection query, which its checkpoint depends on, and how long a batch without patterns waits."""

    buckets: int = 16
    shards: int = 8
    partitions: int = 2
    wait_seconds: float = 20.0
    poll_seconds: float = 0.5
    read_seconds: float = 2.0  # that a claim reads patterns which are new; others wait for it
    start_seconds: float = 20.0  # the same of a start


# The stream ----------------------------------------------------------------------------------------


def build_plan(pipeline: Pipeline, folder: Path, vocabulary: Vocabulary, tuning: FollowTuning) -> FollowedPlan:
    """Return the plan of workers that read patterns of a folder by one vocabulary."""
    settings, files = pipeline.patterns, tuple(sorted(dump_vocabulary(vocabulary).items()))
    assert settings is not None
    digest = hashlib.sha256(repr(files).encode()).hexdigest()
    document = DOCUMENT if pipeline.source.has_documents else None
    return FollowedPlan(
        str(folder),
        files,
        digest,
        tuning.buckets,
        tuning.shards,
        time=TIME,
        event_id=EVENT,
        keep=settings.keep or (),
        document=document,
        beside=tuple(pipeline.derived) if document else (),
    )


def follow_stream(events: DataFrame, pipeline: Pipeline, plan: FollowedPlan, ticks: DataFrame) -> DataFrame:
    """Return rows of `detect_followed` for a stream of events and one of ticks.

    Events that the source refused are dead letters here only without subscriptions: else matching reports them.
    """
    settings = pipeline.patterns
    assert settings is not None
    if pipeline.subscriptions is not None:
        events = events.where(to_column(REFUSED).isNull())
    events, moved = add_event_columns(events, pipeline), to_column(TIME)
    if (ahead := find_most_ahead(settings)) is not None:
        events, moved = _refuse_future(events, ahead), _limit_move(moved)
    # What is refused must not move the watermark.
    events = events.withColumn(MOVES, F.when(to_column(REFUSED).isNull(), moved))
    marked = events.withColumn(TICK, F.lit(None).cast("timestamp"))
    ticked = marked.unionByName(ticks.withColumn(MOVES, to_column(TICK)), allowMissingColumns=True)
    watermarked = ticked.withWatermark(MOVES, f"{round(settings.lateness.total_seconds() * 1000)} milliseconds")
    columns = FollowedColumns(EVENT, MOVES, REFUSED, RAW, TICK, hidden=(EVENT, TIME, MOVES, REFUSED, TICK))
    return rename_event_ids(detect_followed(watermarked, plan, columns), settings.keep or ())


def find_most_ahead(settings: PatternSettings) -> timedelta | None:
    """Return how far an event may be dated ahead of its batch; None: as far as it likes."""
    return settings.ahead or (None if settings.idle is None else MOST_AHEAD)


def _refuse_future(events: DataFrame, ahead: timedelta) -> DataFrame:
    """Refuse events that are further ahead of the clock than is worth waiting for.

    Spark's time is that of the batch, which is in its checkpoint: so a batch that runs again refuses the same.
    """
    moment, seconds = to_column(TIME), ahead.total_seconds()
    is_ahead = F.unix_micros(moment) - F.unix_micros(F.current_timestamp()) > round(seconds * 1_000_000)
    length = format_seconds(int(seconds) if seconds.is_integer() else seconds)
    reason = F.concat(F.lit("ahead of the clock: "), moment.cast("string"), F.lit(AHEAD.format(length)))
    return events.withColumn(REFUSED, F.coalesce(to_column(REFUSED), F.when(is_ahead, reason)))


def _limit_move(moment: Column) -> Column:
    """Return the time that an event moves the watermark to: its own, or, ahead of the clock, a little before that.

    So what comes in the next batches is not late on account of one publisher's clock; the event waits for its time.
    """
    now = F.current_timestamp()
    return F.when(moment <= now, moment).otherwise(F.timestamp_micros(F.unix_micros(now) - F.lit(SLACK)))


def build_vocabulary(frame: DataFrame, pipeline: Pipeline) -> Vocabulary:
    """Return what names in patterns mean: by the columns of the events, or by declarations alone for documents."""
    context = pipeline.query_context
    if pipeline.source.has_documents:
        return context.vocabulary
    return context.with_columns(schema_of(frame.drop(REFUSED, RAW, TICK).schema)).vocabulary


# Batches -------------------------------------------------------------------------------------------


class FollowedBatches(DetectBatches):
    """Processes the micro-batches of a detection query whose patterns follow a store."""

    least_seconds = 1.0  # beside matching, which is to be quick; a detection waits for its watermark anyway

    def __init__(
        self,
        pipeline: Pipeline,
        checkpoint: Checkpoint,
        sinks: BatchSinks,
        *,
        follower: PatternFollower,
        clock: IdleClock,
        tuning: FollowTuning,
        ids: SeenIds | None = None,
    ) -> None:
        super().__init__(pipeline, checkpoint, sinks, patterns=0)
        self._follower, self._clock, self._tuning, self._ids = follower, clock, tuning, ids
        self._ending = threading.Event()

    def start(self, events: DataFrame) -> None:
        """Start the query: small batches, in few tasks, and one without events where only the watermark has moved."""
        settings = {"spark.sql.shuffle.partitions": str(self._tuning.partitions), NO_DATA_BATCHES: "true"}
        with use_settings(events.sparkSession, settings):
            super().start(events)

    def close(self) -> None:
        """Wait for the current batch; none begins after that, and none waits for patterns any more."""
        self._ending.set()
        super().close()

    def report(self, monitor: Monitor, *, last: bool = False) -> None:
        """Pass on reports, and let time pass where the query waits for events."""
        super().report(monitor, last=last)
        if not last and not self._pipeline.trigger.available_now:
            waits = self.is_waiting
            if self._follower.is_behind:  # what waits is read when a batch begins
                self._clock.begin_batch(is_waiting=waits)
            self._clock.advance(is_waiting=waits)

    def _process(self, frame: DataFrame, batch: int, started: datetime) -> BatchReport | None:
        newest, ids = self._clock.newest, self._ids
        facts: dict[str, Any] = {"newest": newest, "now": started.isoformat()}
        if ids is not None:
            ids.prepare(batch)
            facts[SEGMENTS] = ids.list_segments(started.timestamp())
        version = self._follower.claim(batch, facts, newest=newest)
        self._patterns = len(version.patterns)
        is_first = self._last_batch is None  # of this process: it gets ready what the others need
        if not version.patterns and not self._pipeline.trigger.available_now and not is_first:
            self._wait_for_patterns()
        report = super()._process(frame, batch, started)
        if ids is not None:
            ids.note_batch(batch, started.timestamp())
        return report

    def _wait_for_patterns(self) -> None:
        """Wait until the store has a pattern: this batch has none, and need not hurry."""
        until = time.monotonic() + self._tuning.wait_seconds
        while time.monotonic() < until and not self._ending.is_set():
            self._follower.refresh()
            if self._follower.count:
                return
            self._follower.wait(self._tuning.poll_seconds)

    def _count_rows(self, rows: DataFrame) -> Row:
        kind, at = to_column("kind"), to_column("at")
        counts = rows.agg(
            F.coalesce(F.sum("seen"), F.lit(0)).alias("events"),
            F.count_if(kind == "match").alias("detections"),
            F.count_if(kind == "forecast").alias("forecasts"),
            F.count_if(kind == "late").alias("late"),
            F.count("reason").alias("letters"),
            F.unix_micros(F.max(F.when(kind == "tally", at))).alias("newest"),
            F.collect_set(F.when(kind == "due", F.unix_micros(at))).alias("due"),
            F.collect_set(F.when(kind == "heavy", to_column("pattern"))).alias("heavy"),
        ).first()
        assert counts is not None
        return counts

    def _note_counts(self, counts: Row, batch: int) -> None:
        self._clock.note_batch(batch, counts["newest"], counts["due"])
        for name in counts["heavy"]:
            self._follower.pause(name, TooLarge(HEAVY))


MOVES = "_moves"
"""The column of the time that a row moves the watermark to."""

MOST_AHEAD = timedelta(hours=1)
"""How far the time of an event may be ahead of its batch where nobody says so, and time passes by the clock.

What is ahead waits, and each bucket lists the batches of which it has something: an hour of them is little.
"""

SLACK = 2_000_000
"""Microseconds that the watermark stays behind the clock on account of an event that is ahead of it.

An event of the next batch may have its time from the API, and then have been on its way to a file, or to the broker,
while Spark began this batch.
"""

AHEAD = " is more than {} after its batch; mend the clock of who published it, or raise `ahead` in [patterns]"
"""Why such an event is left out by patterns, after its time."""

HEAVY = "it holds too many partial matches and is paused; give it a `within`, or variables that fewer events share"
"""Why a pattern is paused that would make all others slow."""

NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
"""Events wait until the watermark has passed them, which it does in the batch after."""
