"""`tidings run`: the query is started, watched, and stopped after its batch; what is lost with the process is nothing.

All that must outlive it is in the checkpoint: Spark's offsets, the versions of the subscriptions, and which of them a
batch uses. So stopping is only a matter of manners: a wish to stop (SIGTERM, Ctrl-C) waits for the batch that is being
worked on, and a process that is killed is started again and goes on.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.utils import is_remote
from rich.console import Console

from tidings.errors import BadPipeline, SparkUnavailable
from tidings.spark.pipeline.config.analysis import check_on_spark
from tidings.spark.pipeline.config.checks import find_missing_source
from tidings.spark.pipeline.config.pattern_checks import parse_pattern_file, place_pattern_letters
from tidings.spark.pipeline.config.settings import PatternSettings, Pipeline, SinkSettings
from tidings.spark.pipeline.monitor.listeners import watch_of
from tidings.spark.pipeline.monitor.report import Watch
from tidings.spark.pipeline.run.checkpoint import Checkpoint
from tidings.spark.pipeline.run.detect_batches import DETECTION, FOLDER, KEY, Detecting, watched
from tidings.spark.pipeline.run.kafka_reach import require_brokers
from tidings.spark.pipeline.run.match_batches import ARRIVED, REFUSED, Batches, Sinks, path
from tidings.spark.pipeline.run.microbatch import SUMMED
from tidings.spark.pipeline.run.queries import follow, start
from tidings.spark.pipeline.run.spark_log import spark_log
from tidings.spark.pipeline.run.stopping import Stopping
from tidings.spark.pipeline.run.subscription_follower import build_query_context, live_of
from tidings.spark.pipeline.run.trouble import SPARKS, Trouble
from tidings.spark.pipeline.sinks.sinks import SinkContext, open_sink
from tidings.spark.pipeline.sources.sources import events_of
from tidings.spark.schema import to_column
from tidings.spark.session import is_submitted
from tidings.spark.session import session as ts_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from tidings.spark.pipeline.config.reading import FileMistake
    from tidings.spark.pipeline.run.microbatch import Turns
    from tidings.spark.pipeline.run.queries import Running

MASTER = "local[*,4]"
"""All cores of this machine; a task whose worker dies is tried again, which `local[*]` alone does not do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pipeline did until it ended."""

    batches: int
    events: int
    matches: int
    dead_letters: int
    stopped: bool  # by a wish, and not because all was read
    detections: int = 0
    late: int = 0
    refused_subscriptions: int = 0


def run(
    pipeline: Pipeline,
    *,
    console: Console | None = None,
    started: Callable[[SparkSession], object] | None = None,
) -> Outcome:
    """Run a pipeline until all is read, or somebody wishes it to stop; `started` is told when Spark is there."""
    console = console or Console(highlight=False)
    with ExitStack() as stack:
        stopping = stack.enter_context(Stopping())
        _refuse(find_missing_source(pipeline.source))
        checkpoint = Checkpoint.opened(pipeline.checkpoint)
        stack.enter_context(checkpoint.alone())
        watch = watch_of(pipeline.shown, name=pipeline.name, console=console)
        stack.callback(watch.close)
        log = stack.enter_context(spark_log(checkpoint.folder))
        watch.status("starting Spark" if log is None else f"starting Spark; its own words go to {log}")
        trouble = Trouble(checkpoint.folder, log)
        stack.enter_context(_in_one_line(trouble))
        session = _session(pipeline, log)
        stopping.take()  # Spark has just put its own handler in place
        if started is not None:
            started(session)
        _refuse(check_on_spark(session, pipeline))
        require_brokers(pipeline)
        made = _Making(session, pipeline, checkpoint, watch, stack, console).turns()
        if not stopping.asked.is_set():
            running = [_started(*one, pipeline, checkpoint, stack) for one in made]
            follow(running, watch, stopping, trouble)
        totals = sum((turns.totals for _, turns in made), Counter())
        if refused := totals["refused_subscriptions"]:
            watch.status(f"{refused:,} changes of subscriptions were refused: {checkpoint.refusals}")
        counts = {name: totals[name] for name in ("batches", *SUMMED, "refused_subscriptions")}
        return Outcome(**counts, stopped=stopping.asked.is_set())


def _started(events: DataFrame, turns: Turns, pipeline: Pipeline, checkpoint: Checkpoint, stack: ExitStack) -> Running:
    name = pipeline.name if turns.folder != FOLDER else f"{pipeline.name}: patterns"
    running = start(events, turns, name=name, checkpoint=checkpoint, trigger=pipeline.trigger)
    stack.callback(running.end)
    return running


def _refuse(mistakes: Sequence[FileMistake]) -> None:
    if mistakes:
        texts = tuple(map(str, mistakes))
        raise BadPipeline("\n".join(texts), mistakes=texts)


def _session(pipeline: Pipeline, log: Path | None) -> SparkSession:
    if "SPARK_REMOTE" in os.environ or is_remote():
        msg = "`tidings run` drives Spark itself and cannot do so through Spark Connect; unset SPARK_REMOTE"
        raise SparkUnavailable(msg)
    master = pipeline.master or (None if is_submitted() else MASTER)
    return ts_session(
        pipeline.name, master=master, kafka=pipeline.needs_kafka, jars=pipeline.jars, config=pipeline.spark, log=log
    )


@dataclass(frozen=True, slots=True)
class _Making:
    """What both queries are made of."""

    session: SparkSession
    pipeline: Pipeline
    checkpoint: Checkpoint
    watch: Watch
    stack: ExitStack
    console: Console

    def turns(self) -> list[tuple[DataFrame, Turns]]:
        """Return the streams of the pipeline and who takes their batches; what is wrong is told before any starts."""
        events = events_of(self.session, self.pipeline.source, self.pipeline.derived)
        made: list[tuple[DataFrame, Turns]] = []
        if self.pipeline.subscriptions is not None:
            made.append((_once(events, self.pipeline), self._matching()))
        if self.pipeline.patterns is not None:
            made.append(self._patterns(events, self.pipeline.patterns))
        return made

    def _matching(self) -> Batches:
        pipeline = self.pipeline
        made = "event" if pipeline.source.id is not None else None
        key = [name for name in (None if pipeline.matching.per == "event" else "subscription", made) if name]
        sinks = self._sinks(pipeline.sinks, key, pipeline.dead_letters, [made] if made else [])
        self.watch.status("reading the subscriptions")
        live = live_of(self.session, pipeline, self.checkpoint)
        batches = Batches(pipeline, live=live, checkpoint=self.checkpoint, sinks=sinks, watch=self.watch)
        batches.heard(live.sync())
        self.watch.status(f"{len(live):,} subscriptions; waiting for events")
        return batches

    def _patterns(self, events: DataFrame, about: PatternSettings) -> tuple[DataFrame, Turns]:
        patterns = parse_pattern_file(about.file, build_query_context(self.session, self.pipeline))
        given = self.pipeline.query_context
        letters = place_pattern_letters(self.pipeline.dead_letters)
        # An event may be a dead letter of both queries, so the reason is part of what names one of these.
        key = KEY if about.model is None else DETECTION
        sinks = self._sinks(self.pipeline.detections, key, letters, ["event", "reason"])
        turns = Detecting(self.pipeline, patterns=len(patterns), checkpoint=self.checkpoint, sinks=sinks)
        self.watch.status(f"{len(patterns):,} patterns; waiting for events")
        return watched(events, self.pipeline, patterns, given=given), turns

    def _sinks(
        self, sinks: Sequence[SinkSettings], key: Sequence[str], letters: SinkSettings, letters_key: Sequence[str]
    ) -> Sinks:
        """Open sinks; each is closed when the pipeline ends."""
        context = SinkContext(key=key, owner=self.checkpoint.id, console=self.console, folder=self.pipeline.folder)
        opened = [open_sink(sink, context) for sink in sinks]
        dead = open_sink(letters, replace(context, key=letters_key))
        for output in (*opened, dead):
            self.stack.callback(output.close)
        return Sinks(opened, dead)


def _once(events: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Leave out events whose id came before, by when they came: so none of them is too late to be looked at."""
    if pipeline.duplicates is None or pipeline.source.id is None:
        return events
    id = path(events, pipeline.source.id).cast("string")
    alone = F.concat(F.lit("?"), F.expr("uuid()"))  # what has no id, or could not be read, is nobody's double
    named = F.when(to_column(REFUSED).isNull() & id.isNotNull(), F.concat(F.lit("="), id)).otherwise(alone)
    within = f"{int(pipeline.duplicates.within.total_seconds() * 1000)} milliseconds"
    marked = events.withColumns({"_double": named, ARRIVED: F.current_timestamp()})
    return marked.withWatermark(ARRIVED, within).dropDuplicatesWithinWatermark(["_double"]).drop("_double")


@contextmanager
def _in_one_line(trouble: Trouble) -> Iterator[None]:
    """Let Spark's own errors out as ours, and what the disk raises."""
    try:
        yield
    except (*SPARKS, OSError) as problem:
        raise trouble.told(problem) from problem
