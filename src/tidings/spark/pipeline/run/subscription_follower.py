"""The subscriptions of a pipeline, from any feed, as a folder of versions that follows the feed.

The folder lies in the checkpoint, under a name derived from schema, ontology, regions and feed: with another of these,
the subscriptions are read again. A folder of versions that others write (`td.Live`) is used where it is. A table is
compiled by the executors the first time; later changes are applied one by one.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.errors import BadFrame, BadSubscriptions, SnapshotError
from tidings.matcher import Live, Matcher
from tidings.matcher.live.change_rounds import ChangeStep
from tidings.matcher.live.feeds import Changes, Feed, FileFeed, FolderFeed
from tidings.matcher.live.versions import find_newest, is_versioned
from tidings.matcher.snapshot.snapshot_folder import read_manifest
from tidings.matcher.tuning import LIVE_TUNING, LiveTuning
from tidings.service.store_feed import StoreFeed
from tidings.spark.pipeline.run.spark_feeds import TableFeed, TopicFeed
from tidings.spark.pipeline.sources.sources import HIDDEN, stream_events
from tidings.spark.query_context import QueryContext
from tidings.spark.schema import schema_of, to_column
from tidings.spark.subscriptions.compile_frame import compile_into

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from tidings.spark.pipeline.config.settings import Pipeline, SubscriptionSettings
    from tidings.spark.pipeline.run.checkpoint import Checkpoint
    from tidings.spark.pipeline.run.open_stores import OpenStores


RETAINED = "spark.sql.streaming.minBatchesToRetain"
"""The setting that says how many batches Spark's checkpoint goes back."""


def open_live(session: SparkSession, pipeline: Pipeline, checkpoint: Checkpoint, stores: OpenStores) -> Live:
    """Open the subscriptions of a pipeline with their feed; errors of a first read are raised here."""
    settings = pipeline.subscriptions
    assert settings is not None
    if settings.snapshot is not None:
        return _open_snapshot(settings.snapshot, checkpoint)
    context = build_query_context(session, pipeline)
    folder = checkpoint.locate_subscriptions(context, _identify_feed(settings))
    feed: Feed
    if settings.store is not None:
        feed = StoreFeed(stores.open(settings.store), vocabulary=context.vocabulary)
    else:
        feed = _open_feed(session, settings, folder)
    if isinstance(feed, TableFeed) and find_newest(folder) is None:
        live = _compile_table(feed, folder, context, settings.shards)
        if live is not None:
            return live
    keywords = context.vocabulary.to_keywords() if find_newest(folder) is None else {}
    return Live(folder, shards=settings.shards, follow=feed, tuning=_keep_claims(pipeline), **keywords)


def _keep_claims(pipeline: Pipeline) -> LiveTuning:
    return replace(LIVE_TUNING, claims_kept=count_kept_claims(pipeline, LIVE_TUNING.claims_kept))


def count_kept_claims(pipeline: Pipeline, least: int) -> int:
    """Return how many claims of a query stay: of as many batches as Spark keeps, where the pipeline says how many."""
    return max(least, int(pipeline.spark.get(RETAINED, "0")))


def _identify_feed(settings: SubscriptionSettings) -> dict[str, object]:
    """Return a fingerprint of the feed; a different one means that the subscriptions must be read again.

    A file and a table are compared with the current version, so their path is not part of it; change files and records
    are increments, so their folder or topic is. A store tells by itself that a position is not its own.
    """
    kind = next(
        name for name in ("file", "directory", "table", "topic", "store") if getattr(settings, name) is not None
    )
    where = str(settings.directory or settings.topic or "")
    return {"kind": kind, "where": where, "notation": settings.notation, "shards": settings.shards}


def _open_feed(session: SparkSession, settings: SubscriptionSettings, folder: Path) -> Feed:
    if settings.table is not None:
        seconds = settings.refresh.total_seconds() if settings.refresh is not None else 0.0
        return TableFeed(session, settings.table, folder / "table", seconds, settings.notation)
    if settings.file is not None:
        return FileFeed(settings.file, settings.notation)
    if settings.directory is not None:
        return FolderFeed(settings.directory, settings.notation)
    assert settings.topic is not None
    return TopicFeed(session, settings.topic, settings.servers or "", settings.notation, settings.options)


def build_query_context(session: SparkSession, pipeline: Pipeline) -> QueryContext:
    """Return the context of filters: the events' columns, overridden by the pipeline's vocabulary.

    With a closed schema the columns are not added: filters can name nothing else. Documents have no columns, so a name
    that one of them lacks is absent in it; derived columns are attributes beside their fields.
    """
    context = pipeline.query_context
    if pipeline.schema is not None and pipeline.schema.closed and pipeline.unknown == "error":
        return context
    events = stream_events(session, pipeline.source, pipeline.derived).drop(*HIDDEN)
    if not pipeline.source.has_documents:
        return context.with_columns(schema_of(events.schema))
    if not pipeline.derived and pipeline.schema is None:
        return context  # with no schema at all filters are read faster
    return replace(context, unknown="absent").with_columns(schema_of(events.select(*map(to_column, pipeline.derived))))


def _compile_table(feed: TableFeed, folder: Path, context: QueryContext, shards: int) -> Live | None:
    """Compile a table on the executors, and follow it from there; None if a row is bad.

    Then the driver adds the rows one by one, as it does with changes, and refuses the bad ones.
    """
    shutil.rmtree(folder, ignore_errors=True)  # without a version, it is what a crash left half compiled
    files, rows = feed.fingerprint(), feed.read_table().persist()
    try:
        compile_into(rows.select("id", "filter", "notation"), folder, shards=shards, context=context)
        live = Live(folder, follow=feed)
        live.change(position={"table": {"files": files, "state": feed.save_state(rows)}})
    except (BadSubscriptions, BadFrame):
        shutil.rmtree(folder, ignore_errors=True)
        return None
    finally:
        rows.unpersist()
    return live


# Snapshots -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SnapshotFeed:
    """A snapshot directory that may be saved again; a new one replaces all subscriptions."""

    path: str

    def changes(self, position: Mapping[str, Any], current: Iterable[Any]) -> Changes:
        """Replace all subscriptions if the snapshot's checksum changed; return no changes: a snapshot lists none."""
        assert isinstance(current, Live)
        try:
            checksum = read_manifest(Path(self.path)).get("checksum")
            if position.get("snapshot") != checksum:
                current.replace(Matcher.open(self.path), position={"snapshot": checksum})
        except SnapshotError as problem:
            if not position:
                raise
            # It is being replaced: the last version stays in force.
            return Changes([ChangeStep(None, problem=problem)], position)
        return Changes([], {"snapshot": checksum})


def _open_snapshot(path: str, checkpoint: Checkpoint) -> Live:
    if is_versioned(path):
        return Live(path)
    if read_manifest(Path(path)).get("kind") != "engine":
        msg = f"the snapshot `{path}` is not of the engine; a pipeline needs one of td.Matcher()"
        raise SnapshotError(msg)
    live = Live(checkpoint.locate_subscriptions(QueryContext(), {"kind": "snapshot"}), follow=SnapshotFeed(path))
    live.sync()
    return live
