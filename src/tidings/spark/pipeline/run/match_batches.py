"""The micro-batches of matching: claim a version of the subscriptions, match in workers once, write to the sinks.

The version of the subscriptions, the time that ages are measured against and the bound of lateness are recorded (a
claim) before anything is done with a batch. Spark delivers a batch at least once, after a crash again: the claim is
then found, the rows are the same, and sinks that have them already write nothing.
"""

from __future__ import annotations

import json
import time
from collections import deque
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField

from tidings.algebra.law.mismatches import MismatchCounts
from tidings.matcher.live.claims import Claim
from tidings.matcher.live.live import Change
from tidings.matcher.live.versions import load_version, read_version
from tidings.matcher.loading.documents import DOCUMENT
from tidings.matcher.mismatch_report import describe_mismatches
from tidings.service.store_feed import parse_position
from tidings.spark.match.output_columns import choose_columns
from tidings.spark.match.shard_gathering import match_tagged_events
from tidings.spark.match.shard_plan import ShardPlan
from tidings.spark.match.worker_matcher import TAG_TYPES, TaggedRows, describe_excess
from tidings.spark.match.worker_stage import WorkerStage
from tidings.spark.pipeline.monitor.batch_report import BatchReport
from tidings.spark.pipeline.run.failures import SPARK_ERRORS
from tidings.spark.pipeline.run.queries import BatchSinks, PipelineQuery, persist_frame
from tidings.spark.pipeline.sinks.sinks import RowSink
from tidings.spark.query_context import QueryContext
from tidings.spark.schema import schema_of, to_column
from tidings.spark.subscriptions.refusals import remove_refused
from tidings.spark.subscriptions.subscription_source import SubscriptionHandle
from tidings.spark.subscriptions.worker_store import VersionStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, Row

    from tidings.errors import TidingsError
    from tidings.matcher import Live
    from tidings.matcher.algorithm import SubId
    from tidings.matcher.live.versions import Version
    from tidings.matcher.mismatch_report import MismatchReport
    from tidings.model import Schema
    from tidings.spark.match.output_columns import OutputColumns
    from tidings.spark.pipeline.config.settings import Pipeline
    from tidings.spark.pipeline.monitor.batch_report import Monitor
    from tidings.spark.pipeline.run.checkpoint import Checkpoint
    from tidings.spark.pipeline.run.owner_notices import OwnerNotices

EVENT, TIME, REFUSED, RAW, ARRIVED = "_event", "_time", "_refused", "_raw", "_arrived"
"""Columns of our own: the event's id and time, why the source refused it, its raw text, its arrival time."""

LATE = "late: "
"""The beginning of the reason of a late event."""

FEW_ROWS = 2_000
"""Rows of a batch that are fetched at once where its sinks take rows: matches of an event are one, or one each."""

WARM_SECONDS = 30.0
"""Seconds without a batch after which workers are kept from ending; Spark ends them after a minute."""

LISTED_REFUSALS = 5
"""Refused subscriptions of a batch that are reported one by one."""


class MatchBatches(PipelineQuery):
    """Processes the micro-batches of the matching query."""

    folder = "query"

    def __init__(
        self,
        pipeline: Pipeline,
        checkpoint: Checkpoint,
        sinks: BatchSinks,
        *,
        live: Live,
        monitor: Monitor,
        notices: OwnerNotices | None = None,
    ) -> None:
        """`notices` tells the owners of a store's subscriptions which are refused."""
        super().__init__(pipeline, checkpoint, sinks)
        self._live, self._monitor, self._notices = live, monitor, notices
        self._id_column = "subscriptions" if pipeline.matching.per == "event" else "subscription"
        self._excess_text = describe_excess(pipeline.matching.limit or 0)
        self._changes: deque[Change] = deque()  # from any thread to the next batch
        self._takes_rows = all(isinstance(sink, RowSink) for sink in sinks.results)
        self._mismatches = PipelineMismatches()
        self._warm_frame: DataFrame | None = None
        self._warmed_at = 0.0
        self._checked_version = 0  # the last version that was checked against the columns
        self._refusals: dict[SubId | None, str] = {}  # its refused subscriptions, with the reason

    def note_change(self, change: Change, batch: int | None = None) -> None:
        """Report the refused subscriptions of a change; the next batch's report counts the change."""
        self._changes.append(change)
        self.totals["refused_subscriptions"] += len(change.refused)
        if change.refused:
            self._report_refused(change.refused, batch)

    def warm(self, frame: DataFrame) -> None:
        """Match a frame like the events and forget the answer: afterwards workers run, and have what a batch needs.

        The first batch would wait for that by itself; and Spark ends workers that had nothing to do for a minute.
        """
        self._warm_frame, self._warmed_at = frame, time.monotonic()
        version = self._live.version.number
        claim = Claim(version, {"now": datetime.now(UTC).isoformat(), "newest": None})
        handle, _ = self._open_subscriptions(claim, self._find_event_columns(frame))
        with ExitStack() as stack, suppress(*SPARK_ERRORS):
            persist_frame(self._match(frame, handle, claim, stack), stack).limit(1).collect()

    def report(self, monitor: Monitor, *, last: bool = False) -> None:
        """Pass on reports, and keep the workers where no batch does."""
        super().report(monitor, last=last)
        if self._warm_frame is not None and not last and time.monotonic() - self._warmed_at > WARM_SECONDS:
            self.warm(self._warm_frame)

    def _process(self, frame: DataFrame, batch: int, started: datetime) -> BatchReport:
        self._warmed_at = time.monotonic()
        claim, columns = self._claim_version(batch, started), self._find_event_columns(frame)
        self._check_version(claim, columns, batch)
        changes = [self._changes.popleft() for _ in range(len(self._changes))]
        handle, version = self._open_subscriptions(claim, columns)
        with ExitStack() as stack:
            tagged = persist_frame(self._match(frame, handle, claim, stack), stack)
            few = self._fetch_few(tagged)
            counts = self._count_rows(tagged).asDict() if few is None else self._count_few(few)
            self._write_rows(tagged, few, counts, batch)
        if counts["newest"] is not None:
            newest, before = counts["newest"].astimezone(UTC), claim.facts["newest"]
            self._checkpoint.write_newest(batch, max(newest, datetime.fromisoformat(before)) if before else newest)
        mismatches = self._mismatches.add(counts["mismatches"], self._live.folder, version)
        for mismatch in self._mismatches.take_new():
            self._monitor.warn(str(mismatch))
        return BatchReport(
            self._pipeline.name,
            batch,
            started,
            events=counts["events"] or 0,
            matches=counts["matches"],
            dead_letters=counts["letters"],
            late=counts["late"],
            over_limit=counts["over_limit"],
            subscriptions=version.count,
            version=claim.version,
            sequence=find_sequence(version),
            changes=sum(change.added + change.removed for change in changes),
            refused_subscriptions=sum(len(change.refused) for change in changes),
            mismatches=tuple({**report.to_dict(), "said": str(report)} for report in mismatches),
        )

    # Subscriptions -----------------------------------------------------------------------------

    def _claim_version(self, batch: int, started: datetime) -> Claim:
        """Record the version, the time and the bound of lateness of a batch; pending changes are applied before."""
        newest = self._checkpoint.read_newest() if self._pipeline.late is not None else None
        now = self._pipeline.matching.now or started
        facts = {"now": now.isoformat(), "newest": newest.isoformat() if newest is not None else None}
        return self._live.claim(
            self._checkpoint.id, batch, facts=facts, on_change=partial(self.note_change, batch=batch)
        )

    def _report_refused(self, refused: Sequence[tuple[SubId | None, TidingsError]], batch: int | None) -> None:
        """List all of them in the checkpoint, tell their owners, and warn of the first few."""
        self._checkpoint.append_refused(refused, batch)
        if self._notices is not None:
            self._notices.tell(refused)
        for id, problem in refused[:LISTED_REFUSALS]:
            self._monitor.warn(f"subscription `{id}` refused: {problem}" if id is not None else str(problem))
        if len(refused) > LISTED_REFUSALS:
            rest = len(refused) - LISTED_REFUSALS
            self._monitor.warn(f"and {rest:,} others: {self._checkpoint.refusals}")

    def _find_event_columns(self, frame: DataFrame) -> Schema | None:
        """Return the events' columns if the subscriptions come from a snapshot, whose writer need not know them."""
        settings = self._pipeline.subscriptions
        if settings is None or settings.snapshot is None or self._pipeline.source.has_documents:
            return None
        return QueryContext(unknown=self._pipeline.unknown).close_schema(schema_of(frame.drop(REFUSED, RAW).schema))

    def _check_version(self, claim: Claim, columns: Schema | None, batch: int) -> None:
        """Report the subscriptions of a new version that the columns refuse; workers leave them out as well."""
        if columns is not None and claim.version != self._checked_version:
            refused = remove_refused(self._live.open(claim.version), columns)
            new = [(id, problem) for id, problem in refused if self._refusals.get(id) != str(problem)]
            self._refusals = {id: str(problem) for id, problem in refused}
            self._checked_version = claim.version
            self.note_change(Change(claim.version, refused=new), batch)

    def _open_subscriptions(self, claim: Claim, columns: Schema | None) -> tuple[SubscriptionHandle, Version]:
        version = read_version(self._live.folder, claim.version)
        store = VersionStore.of(str(self._live.folder), version, frame=columns)
        # Workers get whole events, and the time is the claim's, so the handle says nothing about either.
        return SubscriptionHandle(store, {}, None, version.ids, None), version

    # Rows --------------------------------------------------------------------------------------

    def _match(self, frame: DataFrame, handle: SubscriptionHandle, claim: Claim, stack: ExitStack) -> DataFrame:
        """Return matches, dead letters and tallies as one frame."""
        frame, matching = self._add_event_columns(frame, claim.facts), self._pipeline.matching
        columns, grouped = self._choose_columns(frame), matching.per == "event"
        plan = ShardPlan(handle.store.shards, grouped=grouped, limit=matching.limit, spread=matching.spread)
        time = TIME if self._pipeline.late is not None else None
        document = DOCUMENT if self._pipeline.source.has_documents else None
        build = TaggedRows(plan.row_builder, raw=RAW, document=document, time=time, hidden=(EVENT, TIME))
        added = (plan.build_id_field(columns.id_column, handle.spark_id_type), *ADDED_FIELDS)
        stage = WorkerStage(
            columns.kept,
            columns.names,
            build,
            added,
            plan,
            refused=REFUSED,
            whole_events=True,
            document=document,
            beside=tuple(self._pipeline.derived) if document else (),
        )
        now = datetime.fromisoformat(claim.facts["now"])
        return match_tagged_events(
            frame, handle, stage, now, hidden=_HIDDEN, keep=lambda rows: persist_frame(rows, stack)
        )

    def _add_event_columns(self, frame: DataFrame, facts: Mapping[str, Any]) -> DataFrame:
        """Add the columns of the id and the time, and refuse late events."""
        source, late = self._pipeline.source, self._pipeline.late
        frame = frame.drop(ARRIVED)
        if source.id is not None:
            frame = frame.withColumn(EVENT, resolve_column(frame, source.id))
        if late is None or source.time is None:
            return frame
        frame = frame.withColumn(TIME, resolve_column(frame, source.time).cast("timestamp"))
        if facts["newest"] is None:
            return frame
        bound = datetime.fromisoformat(facts["newest"]) - late.after
        reason = F.concat(F.lit(LATE), to_column(TIME).cast("string"), F.lit(f" is before {bound:%Y-%m-%d %H:%M:%S}"))
        is_late = to_column(REFUSED).isNull() & (to_column(TIME) < F.lit(bound))
        return frame.withColumn(REFUSED, F.when(is_late, reason).otherwise(to_column(REFUSED)))

    def _choose_columns(self, frame: DataFrame) -> OutputColumns:
        matching, source = self._pipeline.matching, self._pipeline.source
        keep = matching.keep
        if keep is None and source.id is None:
            keep = tuple(name for name in frame.columns if name not in _HIDDEN)
        event = EVENT if source.id is not None else None
        return choose_columns(frame.schema, event_id=event, keep=keep, grouped=matching.per == "event")

    def _fetch_few(self, tagged: DataFrame) -> list[Row] | None:
        """Return all rows of a small batch, if its sinks take them: then it costs one Spark action; else None."""
        if not self._takes_rows:
            return None
        rows = tagged.limit(FEW_ROWS + 1).collect()
        return rows if len(rows) <= FEW_ROWS else None

    def _count_rows(self, tagged: DataFrame) -> Row:
        """Count the rows by sort in one Spark action: it runs the matching; sinks read the persisted rows."""
        reason = to_column("reason")
        counts = tagged.agg(
            F.sum("events").alias("events"),
            F.max("newest").alias("newest"),
            self._count_matches().alias("matches"),
            F.count(reason).alias("letters"),
            F.count_if(reason.startswith(LATE)).alias("late"),
            F.count_if(reason.endswith(self._excess_text)).alias("over_limit"),
            F.collect_list("mismatches").alias("mismatches"),
        ).first()
        assert counts is not None
        return counts

    def _count_matches(self) -> Column:
        """Return the number of rows that sinks get: of pairs, or of events; a store makes pairs of these."""
        ids = to_column(self._id_column)
        makes_pairs = self._pipeline.matching.per == "event" and self._takes_rows
        return F.coalesce(F.sum(F.size(ids)), F.lit(0)) if makes_pairs else F.count(ids)

    def _count_few(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Count rows that are here as `_count_rows` counts those of a frame."""
        ids = [row[self._id_column] for row in rows if row[self._id_column] is not None]
        reasons = [row["reason"] for row in rows if row["reason"] is not None]
        return {
            "events": sum(row["events"] or 0 for row in rows),
            "newest": max((row["newest"] for row in rows if row["newest"] is not None), default=None),
            "matches": sum(len(id) if isinstance(id, list) else 1 for id in ids),
            "letters": len(reasons),
            "late": sum(reason.startswith(LATE) for reason in reasons),
            "over_limit": sum(reason.endswith(self._excess_text) for reason in reasons),
            "mismatches": [row["mismatches"] for row in rows if row["mismatches"] is not None],
        }

    def _write_rows(self, tagged: DataFrame, few: Sequence[Row] | None, counts: Mapping[str, Any], batch: int) -> None:
        if counts["matches"]:
            # The event's id, the subscription and the kept columns; without an id, the subscription is last.
            added = {field.name for field in ADDED_FIELDS}
            first = ["event", self._id_column] if self._pipeline.source.id is not None else []
            names = [*first, *(name for name in tagged.columns if name not in added.union(first))]
            rows = tagged.where(to_column(self._id_column).isNotNull()).select(*map(to_column, names))
            for output in self._sinks.results:
                if few is None or not isinstance(output, RowSink):
                    output.write(rows, batch)
                else:
                    matched = [{name: row[name] for name in names} for row in few if row[self._id_column] is not None]
                    output.write_rows(matched, batch)
        if counts["letters"]:
            names = [name for name in ("event", "reason", "row") if name in tagged.columns]
            self._sinks.dead_letters.write(tagged.where(to_column("reason").isNotNull()).select(*names), batch)


ADDED_FIELDS = tuple(StructField(name, from_arrow_type(tag_type)) for name, tag_type in TAG_TYPES.items())
"""The columns of dead letters and tallies, which workers add to those of matches."""

_HIDDEN = (EVENT, TIME, REFUSED, RAW)


def find_sequence(version: Version) -> int | None:
    """Return the change of a store that a version was made at, where it follows one."""
    position = parse_position(version.position)
    return None if position is None else position.sequence


def resolve_column(frame: DataFrame, name: str) -> Column:
    """Return a column, or a field of one such as `kafka.key`."""
    return to_column(name) if name in frame.columns else F.col(name)


class PipelineMismatches:
    """Values of another kind than filters ask for: the counts of one run, and which were reported as warnings.

    Workers count for each shard, and every shard sees every event: counts of a shard are added over batches, and of
    all shards the largest count is reported. The subscriptions that ask are looked up in the version that the batch
    used, only when a batch has new counts.
    """

    def __init__(self) -> None:
        self._shards: dict[int, MismatchCounts] = {}
        self._warned: set[tuple[str, str, str]] = set()
        self._reports: tuple[MismatchReport, ...] = ()

    def add(self, counted: Iterable[str], folder: Path, version: Version) -> tuple[MismatchReport, ...]:
        """Add the workers' counts of a batch; return all mismatches so far.

        Each has the ids of the subscriptions whose tests the values did not fit.
        """
        batches = [json.loads(text) for text in counted]
        if not batches:
            return self._reports
        for shard, rows in batches:
            self._shards.setdefault(shard, MismatchCounts()).merge(rows)
        self._reports = tuple(describe_mismatches(self._merge_shards(), load_version(folder, version).backend))
        return self._reports

    def take_new(self) -> list[MismatchReport]:
        """Return the mismatches that were not returned before."""
        new = [report for report in self._reports if (report.attribute, report.kind, report.unit) not in self._warned]
        self._warned.update((report.attribute, report.kind, report.unit) for report in new)
        return new

    def _merge_shards(self) -> MismatchCounts:
        """Return for each attribute and kind the counts of the shard with the most."""
        largest = MismatchCounts()
        for counts in self._shards.values():
            for key, types in counts.types.items():
                if key not in largest.types or largest.types[key].total() < types.total():
                    largest.values[key], largest.types[key] = counts.values[key], types
        return largest
