"""`tidings run`: start the queries of a pipeline, follow them, and stop them after their batches.

All state is in the checkpoint: Spark's offsets, the versions of the subscriptions, and the version that each batch
uses. A stop request (SIGTERM, Ctrl-C) waits for the current batch, but for no start; a process that is killed loses
nothing either, and continues when it is started again.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.utils import is_remote
from rich.console import Console

from tidings.errors import BadPipeline, SparkUnavailable
from tidings.spark.pipeline.config.analysis import check_on_spark
from tidings.spark.pipeline.config.checks import find_missing_source, require_brokers
from tidings.spark.pipeline.config.settings import PatternSettings, Pipeline, SinkSettings
from tidings.spark.pipeline.monitor.batch_report import Monitor
from tidings.spark.pipeline.monitor.listeners import open_monitor
from tidings.spark.pipeline.run.checkpoint import Checkpoint
from tidings.spark.pipeline.run.detect_batches import DETECTION, KEY, DetectBatches, detect_stream
from tidings.spark.pipeline.run.failures import SPARK_ERRORS, FailureReport, redirect_spark_log
from tidings.spark.pipeline.run.feed_watch import FeedWatch
from tidings.spark.pipeline.run.follow_patterns import open_following
from tidings.spark.pipeline.run.match_batches import ARRIVED, REFUSED, MatchBatches, resolve_column
from tidings.spark.pipeline.run.open_stores import OpenStores
from tidings.spark.pipeline.run.owner_notices import OwnerNotices
from tidings.spark.pipeline.run.queries import BatchSinks, follow_queries, start_queries
from tidings.spark.pipeline.run.stopping import StopSignal
from tidings.spark.pipeline.run.subscription_follower import build_query_context, open_live
from tidings.spark.pipeline.sinks.sinks import open_sink
from tidings.spark.pipeline.sources.event_folder import EventFolderSettings
from tidings.spark.pipeline.sources.sources import stream_events
from tidings.spark.schema import to_column
from tidings.spark.session import is_submitted
from tidings.spark.session import session as ts_session
from tidings.spark.state_store import IN_MEMORY, ROCKSDB, STATE_STORE, use_state_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import DataFrame

    from tidings.configuration.reading import FileMistake
    from tidings.spark.pipeline.run.queries import PipelineQuery

MASTER = "local[*,4]"
"""All cores of this machine; a task whose worker dies is retried, which `local[*]` alone does not do."""


@dataclass(frozen=True, slots=True)
class RunTotals:
    """The counts of all handlers of a run, added up, and how the run ended."""

    batches: int
    events: int
    matches: int
    dead_letters: int
    stopped: bool  # by a request, and not because all was read
    detections: int = 0
    late: int = 0
    refused_subscriptions: int = 0


def run(
    pipeline: Pipeline,
    *,
    console: Console | None = None,
    started: Callable[[SparkSession], object] | None = None,
    ready: Callable[[], object] | None = None,
    monitors: Sequence[Monitor] = (),
) -> RunTotals:
    """Run a pipeline until all is read or a stop is requested.

    `started` is called with the Spark session, `ready` when all queries have begun: then no batch waits for anything to
    start. `monitors` hear of its progress too, and are closed with it.
    """
    console = console or Console(highlight=False)
    with StopSignal() as stopping, ExitStack() as stack:
        _refuse(find_missing_source(pipeline.source))
        checkpoint = Checkpoint.open(pipeline.checkpoint)
        stack.enter_context(checkpoint.lock())
        monitor = open_monitor(pipeline.shown, name=pipeline.name, console=console, further=monitors)
        stack.callback(monitor.close)
        log = stack.enter_context(redirect_spark_log(checkpoint.folder))
        monitor.show_status("starting Spark" if log is None else f"starting Spark; its own words go to {log}")
        failure_report = stack.enter_context(_translate_errors(FailureReport(checkpoint.folder, log)))
        with stopping.end_at_once():
            session, stores = _open_session(pipeline, log), OpenStores()
            stack.callback(stores.close)
            stopping.install_handlers()  # Spark has just installed its own handler
            if started is not None:
                started(session)
            _refuse(check_on_spark(session, pipeline))
            require_brokers(pipeline)
        # A query takes the session's settings when it starts, so later queries of the session are not concerned.
        with use_state_store(session, _choose_state_store(session, pipeline)):
            builder = _QueryBuilder(session, pipeline, checkpoint, monitor, console, stores)
            with stopping.end_at_once():
                queries = builder.build()
            running = [] if stopping.requested else queries
            if running and builder.watch is not None:
                stack.enter_context(builder.watch)
            started_queries = start_queries(running, monitor, stopping, stack)
        if ready is not None and running and all(query.has_begun for _, query in running):
            ready()
        follow_queries(started_queries, monitor, stopping, failure_report)
        totals = sum((query.totals for _, query in queries), Counter())
        if refused := totals["refused_subscriptions"]:
            monitor.show_status(f"{refused:,} changes of subscriptions were refused: {checkpoint.refusals}")
        counts = {field.name: totals[field.name] for field in fields(RunTotals) if field.name != "stopped"}
        return RunTotals(**counts, stopped=stopping.requested)


def _choose_state_store(session: SparkSession, pipeline: Pipeline) -> str:
    """Return the store that the pipeline or spark-submit names, else Spark's own; patterns need a RocksDB."""
    chosen = pipeline.spark.get(STATE_STORE) or session.sparkContext.getConf().get(STATE_STORE) or IN_MEMORY
    return ROCKSDB if pipeline.patterns is not None and "RocksDB" not in chosen else chosen


def _refuse(mistakes: Sequence[FileMistake]) -> None:
    if mistakes:
        texts = tuple(map(str, mistakes))
        raise BadPipeline("\n".join(texts), mistakes=texts)


def _open_session(pipeline: Pipeline, log: Path | None) -> SparkSession:
    if "SPARK_REMOTE" in os.environ or is_remote():
        msg = "`tidings run` drives Spark itself and cannot do so through Spark Connect; unset SPARK_REMOTE"
        raise SparkUnavailable(msg)
    master = pipeline.master or (None if is_submitted() else MASTER)
    return ts_session(
        pipeline.name, master=master, kafka=pipeline.needs_kafka, jars=pipeline.jars, config=pipeline.spark, log=log
    )


@dataclass(slots=True)
class _QueryBuilder:
    """Builds the queries of a pipeline."""

    session: SparkSession
    pipeline: Pipeline
    checkpoint: Checkpoint
    monitor: Monitor
    console: Console
    stores: OpenStores
    watch: FeedWatch | None = None
    """Follows the store that the subscriptions come from, once `build` has made it."""

    def build(self) -> list[tuple[DataFrame, PipelineQuery]]:
        """Return the queries of the pipeline with their streams; errors are raised before any starts."""
        queries: list[tuple[DataFrame, PipelineQuery]] = []
        if self.pipeline.subscriptions is not None:
            events = self._stream_events(MatchBatches.folder)
            newest = self.checkpoint.find_newest_batch_time(MatchBatches.folder)
            queries.append((_drop_duplicates(events, self.pipeline, newest), batches := self._build_matching()))
            if self.pipeline.source.has_documents and not self.pipeline.trigger.available_now:
                empty = ("{}", *[None] * (len(events.columns) - 1))  # Kafka's own column is never null there
                batches.warm(self.session.createDataFrame([empty], events.schema.toNullable()))
        if self.pipeline.patterns is not None:
            queries.append(self._build_detection(self._stream_events(DetectBatches.folder), self.pipeline.patterns))
        return queries

    def _stream_events(self, query: str) -> DataFrame:
        """Return the events for one query, which reads them by itself."""
        log, source = self.checkpoint.folder / f"files_of_{query}.jsonl", self.pipeline.source
        if query == DetectBatches.folder and isinstance(source, EventFolderSettings):
            source = source.widen_batches()
        return stream_events(self.session, source, self.pipeline.derived, log=log)

    def _build_matching(self) -> MatchBatches:
        pipeline = self.pipeline
        id_columns = ["event"] if pipeline.source.id is not None else []
        key = id_columns if pipeline.matching.per == "event" else ["subscription", *id_columns]
        sinks = self._open_sinks(pipeline.sinks, key, pipeline.dead_letters, id_columns, query=MatchBatches.folder)
        self.monitor.show_status("reading the subscriptions")
        live = open_live(self.session, pipeline, self.checkpoint, self.stores)
        url = None if pipeline.subscriptions is None else pipeline.subscriptions.store
        store = None if url is None else self.stores.open(url)
        notices = None if store is None else OwnerNotices(store)
        batches = MatchBatches(pipeline, self.checkpoint, sinks, live=live, monitor=self.monitor, notices=notices)
        batches.note_change(live.sync())
        if store is not None:
            self.watch = FeedWatch(live, store.log, on_change=batches.note_change, warn=self.monitor.warn)
        self.monitor.show_status(f"{len(live):,} subscriptions; waiting for events")
        return batches

    def _build_detection(self, events: DataFrame, settings: PatternSettings) -> tuple[DataFrame, PipelineQuery]:
        if settings.store is not None:
            return self._build_following(events, settings, settings.store)
        patterns = settings.parse(build_query_context(self.session, self.pipeline))
        letters = self.pipeline.dead_letters.derive_pattern_letters()
        # An event may be a dead letter of both queries, so the reason is part of the key.
        key = KEY if settings.model is None else DETECTION
        names = ["event", "reason"]
        sinks = self._open_sinks(self.pipeline.detections, key, letters, names, query=DetectBatches.folder)
        batches = DetectBatches(self.pipeline, self.checkpoint, sinks, patterns=len(patterns))
        self.monitor.show_status(f"{len(patterns):,} patterns; waiting for events")
        return detect_stream(events, self.pipeline, patterns), batches

    def _build_following(
        self, events: DataFrame, settings: PatternSettings, url: str
    ) -> tuple[DataFrame, PipelineQuery]:
        letters = self.pipeline.dead_letters.derive_pattern_letters()
        key, names = KEY if settings.model is None else DETECTION, ["event", "reason"]
        sinks = self._open_sinks(self.pipeline.detections, key, letters, names, query=DetectBatches.folder)
        return open_following(events, self.pipeline, self.checkpoint, sinks, self.stores.open(url), self.monitor)

    def _open_sinks(
        self,
        sinks: Sequence[SinkSettings],
        key: Sequence[str],
        letters: SinkSettings,
        letters_key: Sequence[str],
        *,
        query: str,
    ) -> BatchSinks:
        open_one = partial(
            open_sink,
            owner=self.checkpoint.id,
            console=self.console,
            folder=self.pipeline.folder,
            stores=self.stores,
            query=query,
            time=self.pipeline.source.time,
        )
        return BatchSinks([open_one(sink, key=key) for sink in sinks], open_one(letters, key=letters_key))


def _drop_duplicates(events: DataFrame, pipeline: Pipeline, newest: datetime | None) -> DataFrame:
    """Drop events whose id came before; the watermark is on arrival times, so no event is too late for it.

    `newest` is when the newest batch began: where the clock went back since, events arrive at that time.
    """
    if pipeline.duplicates is None or pipeline.source.id is None:
        return events
    id = resolve_column(events, pipeline.source.id).cast("string")
    unique = F.concat(F.lit("?"), F.expr("uuid()"))  # an event without an id, or refused, duplicates none
    named = F.when(to_column(REFUSED).isNull() & id.isNotNull(), F.concat(F.lit("="), id)).otherwise(unique)
    within = f"{int(pipeline.duplicates.within.total_seconds() * 1000)} milliseconds"
    arrived = F.current_timestamp() if newest is None else F.greatest(F.current_timestamp(), F.lit(newest))
    marked = events.withColumns({"_double": named, ARRIVED: arrived})
    return marked.withWatermark(ARRIVED, within).dropDuplicatesWithinWatermark(["_double"]).drop("_double")


@contextmanager
def _translate_errors(failure_report: FailureReport) -> Iterator[FailureReport]:
    try:
        yield failure_report
    except (*SPARK_ERRORS, OSError) as problem:
        raise failure_report.explain(problem) from problem
