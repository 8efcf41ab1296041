"""The pipeline of a service, built from the service's settings: an ordinary one over the events that its API wrote.

Events are whole documents, from the folder or the topic that the API writes to; subscriptions and patterns are those of
the store, and what comes out goes back to the store's table of matches. State and dead letters lie in the service's
folder. A report of the last batch is in the store after each, and every few seconds without one (`StoreReports`).
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from tidings.configuration.measure_kinds import parse_duration
from tidings.service.events.dead_letters import trim_letters
from tidings.service.events.kafka_clients import build_spark_options
from tidings.service.leash import announce_ready
from tidings.service.store.opening import open_store
from tidings.spark.pipeline.config.settings import (
    DuplicateSettings,
    MatchingSettings,
    MonitorSettings,
    PatternSettings,
    Pipeline,
    SinkSettings,
    SourceSettings,
    SubscriptionSettings,
)
from tidings.spark.pipeline.config.value_kinds import Trigger
from tidings.spark.pipeline.monitor.batch_report import get_utc_now
from tidings.spark.pipeline.monitor.store_reports import StoreReports
from tidings.spark.pipeline.run.checkpoint import Checkpoint, CheckpointInUse
from tidings.spark.pipeline.run.detect_batches import DetectBatches
from tidings.spark.pipeline.run.match_batches import MatchBatches
from tidings.spark.pipeline.run.runner import RunTotals, run
from tidings.spark.pipeline.sinks.batch_folders import set_aside
from tidings.spark.pipeline.sources.event_folder import EventFolderSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tidings.service.settings import ServiceSettings

NAME = "tidings service"

FOLDERS = {"matching": MatchBatches.folder, "patterns": DetectBatches.folder}
"""The folders of the queries in the checkpoint, as reports call them."""

KEPT = ("document",)
"""What matches and detections say of their events: everything."""

LARGEST = 8_000_000
"""The least bytes that an event may have here: the API has its own bound, before it adds an id and a time."""

MOST_RECORDS = 100_000
"""Records of a topic in a batch at most: after a day without the pipeline, what waits is more than memory holds."""

SPARK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # half of Java's time per batch
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.limit.initialNumPartitions": "1000",
    "spark.sql.shuffle.partitions": str(max(1, (os.cpu_count() or 1) // 2)),  # patterns have the other half
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Settings of a session whose batches are small and many: less time to plan each, and fewer files kept."""


def announce() -> None:
    """Say on standard output that events are matched now."""
    announce_ready("events are matched")


def run_service_pipeline(settings: ServiceSettings, *, ready: Callable[[], object] = announce) -> RunTotals:
    """Run the pipeline of a service until a stop is requested; `ready` is called when it waits for events."""
    pipeline = build_service_pipeline(settings)
    settings.events_folder.mkdir(parents=True, exist_ok=True)
    store = open_store(settings.store_url)
    try:
        checkpoint = Checkpoint.open(pipeline.checkpoint)
        read = {query: checkpoint.find_newest_file(folder) for query, folder in FOLDERS.items()}
        letters = pipeline.dead_letters
        for sink in (letters, letters.derive_pattern_letters()):
            set_aside(Path(sink.path or ""), checkpoint.id)  # whoever removes the checkpoint keeps what it is for
        reports = StoreReports(store.statuses, read=read)
        with trim_by_the_clock(settings):
            return run(pipeline, console=Console(stderr=True, highlight=False), ready=ready, monitors=[reports])
    except CheckpointInUse as problem:
        msg = f"another pipeline serves `{settings.data}` already; there is one of a service: stop that one first"
        raise CheckpointInUse(msg) from problem
    finally:
        store.close()


@contextmanager
def trim_by_the_clock(settings: ServiceSettings) -> Iterator[None]:
    """Remove old dead letters while the block runs: on a machine of the pipeline alone no API does it."""
    ending, seconds = threading.Event(), settings.housekeeping.every.total_seconds()

    def work() -> None:
        while not ending.wait(seconds):
            with suppress(OSError):  # it is tried again
                trim_letters(settings, get_utc_now())

    thread = threading.Thread(target=work, name="tidings-letters", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def build_service_pipeline(settings: ServiceSettings) -> Pipeline:
    """Return the pipeline of a service."""
    store, vocabulary = settings.store_url, settings.vocabulary
    table = SinkSettings("store", store=store, keep=settings.matches.keep)
    return Pipeline(
        name=NAME,
        folder=settings.data.absolute(),
        checkpoint=str(settings.data.absolute() / "checkpoint"),
        trigger=Trigger(every=parse_duration(settings.trigger)),
        schema=vocabulary.schema,
        ontology=vocabulary.ontology,
        regions=vocabulary.regions,
        source=build_source(settings),
        subscriptions=SubscriptionSettings(store=store),
        matching=MatchingSettings(per="event", keep=KEPT),
        duplicates=DuplicateSettings(settings.events.within),
        sinks=(table,),
        patterns=_build_patterns(settings),
        detections=(table,),
        dead_letters=SinkSettings("json", path=str(settings.letters_folder.absolute())),
        shown=MonitorSettings(view="off"),
        spark={**SPARK, **settings.spark},
    )


def _build_patterns(settings: ServiceSettings) -> PatternSettings:
    patterns = settings.patterns
    return PatternSettings(
        store=settings.store_url,
        lateness=patterns.lateness,
        idle=patterns.idle,
        ahead=patterns.ahead,
        model=patterns.model or str(settings.data.absolute() / "patterns.model"),
        keep=KEPT,
    )


def build_source(settings: ServiceSettings) -> SourceSettings:
    """Return where the API leaves events."""
    events, largest = settings.events, max(LARGEST, 2 * settings.limits.event)
    if events.to == "kafka":
        return SourceSettings(
            "kafka",
            servers=events.servers,
            topic=events.topic,
            id=events.id,
            time=events.time,
            largest=largest,
            options={
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(MOST_RECORDS),
                **build_spark_options(events),
            },
        )
    path = str(settings.events_folder.absolute())
    return EventFolderSettings("json", path=path, id=events.id, time=events.time, largest=largest)
