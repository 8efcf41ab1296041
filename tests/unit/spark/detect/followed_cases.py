"""A followed stream without Spark: a store, versions, claims, and the stateful operator under `TwsTester`."""

import json
from collections import Counter
from datetime import UTC, datetime
from math import inf

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType
from tests.unit.spark.detect.pattern_cases import NAMES, TYPES

from tidings.concepts import Vocabulary
from tidings.matcher.snapshot.vocabulary_files import dump_vocabulary
from tidings.service.pattern_model import PatternModel
from tidings.service.store.base import OwnerRules, Write
from tidings.service.store.memory import MemoryStore
from tidings.service.subscription import SubscriptionDraft
from tidings.spark.detect.bucket_processor import make_unpacker
from tidings.spark.detect.followed import followed_plan
from tidings.spark.detect.followed.detect_followed import FollowedProcessor, build_rows_schema
from tidings.spark.detect.followed.followed_plan import SEGMENTS, FollowedPlan
from tidings.spark.detect.followed.followed_step import FollowedColumns, FollowedStep
from tidings.spark.detect.followed.pattern_versions import PatternVersions
from tidings.spark.detect.followed.seen_ids import SeenIds
from tidings.spark.pipeline.run.pattern_follower import PatternFollower
from tidings.spark.pipeline.run.pattern_reading import PatternReading

NOW = datetime(2026, 11, 1, tzinfo=UTC)
COLUMNS = FollowedColumns("id", "_moves", "_refused", "_raw", hidden=("_moves", "_refused"))


class Subscribers:
    """A store, and who changes it."""

    def __init__(self):
        self.store = MemoryStore()

    def put(self, id, text, *, kind="pattern", owner="o", **draft):
        """Create or replace a subscription."""
        draft = SubscriptionDraft(id=id, kind=kind, text=text, **draft)
        self._write("put", owner, id, draft=draft)

    def remove(self, id, *, owner="o"):
        """Remove a subscription."""
        self._write("remove", owner, id)

    def set_status(self, id, status, *, owner="o"):
        """Pause a subscription, or resume it."""
        self._write("status", owner, id, status=status)

    def limit_owner(self, owner, only):
        """Let an owner see only what satisfies a filter."""
        self.store.owners.set([OwnerRules(owner=owner, only=only)], actor="admin", at=NOW)

    def _write(self, action, owner, id, **more):
        write = Write(action=action, owner=owner, id=id, actor=owner, at=NOW, **more)
        (outcome,) = self.store.subscriptions.write([write])
        if isinstance(outcome, Exception):
            raise outcome


class FollowedStream:
    """A detection query without Spark: batches claim versions, and a watermark moves when it is asked to."""

    def __init__(
        self,
        subscribers,
        folder,
        monkeypatch,
        *,
        documents=False,
        model=None,
        schema=None,
        within=None,
        seconds=inf,
        **numbers,
    ):
        self.subscribers, self.versions = subscribers, PatternVersions(folder)
        self.model, self.vocabulary = PatternModel(model), Vocabulary(schema)
        self._within, self._now, self._seconds = within, 0.0, seconds
        self.refused, self.newest, self.batch, self.rows = [], None, -1, []
        self._documents, self._watermark = documents, 0
        names = ("document", "id", "ts") if documents else NAMES
        files = tuple(dump_vocabulary(self.vocabulary).items())
        document = "document" if documents else None
        numbers = {"buckets": 3, "shards": 2, **numbers}
        plan = FollowedPlan(str(folder), files, "", time="ts", event_id="id", document=document, **numbers)
        kinds = {"id": StringType() if documents else LongType(), "ts": TimestampType()}
        frame = StructType([StructField(name, kinds.get(name, StringType())) for name in names])
        schema = build_rows_schema(frame, plan)[1]
        names = (*names, "_moves", "_refused")
        read = ("ts",) if documents else NAMES
        self._step = FollowedStep(plan, names, read, COLUMNS, schema)
        processor = FollowedProcessor(plan, schema)
        self._tester = TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _: 1 << 60)
        monkeypatch.setattr(followed_plan, "find_batch", lambda: self.batch)
        self.restart()

    def restart(self):
        """Follow the store anew, as after a start; workers have nothing compiled."""
        followed_plan.forget_patterns()
        self._ids = None if self._within is None else SeenIds(self.versions.folder, self._within)
        reading = PatternReading(self.vocabulary, self.model)
        self.follower = PatternFollower(
            self.subscribers.store,
            self.versions,
            reading,
            self.model,
            report=lambda name, problem: self.refused.append((name, str(problem))),
            seconds=self._seconds,
        )

    def claim(self, batch=None, now=None):
        """Begin a batch, and end the one before: the next one, or one that runs again."""
        if self._ids is not None and self.batch >= 0:
            self._ids.note_batch(self.batch, self._now)
        self.batch = self.batch + 1 if batch is None else batch
        self._now = self._now if now is None else float(now)
        facts = {} if self._ids is None else {SEGMENTS: self._ids.list_segments(self._now)}
        return self.follower.claim(self.batch, facts, newest=self.newest)

    def take(self, rows, *, pieces=1, clock=None):
        """Take the events of a batch, in several pieces that come in any order; time moves to `clock` at most."""
        each = -(-len(rows) // pieces) or 1
        self._take([self._build_batch(rows[place : place + each], clock) for place in range(0, len(rows), each)])

    def take_document(self, document, moment):
        """Take a JSON object."""
        columns = [pa.array([json.dumps(document)]), pa.array([document["id"]]), pa.array([moment], TYPES[1])]
        names = ["document", "id", "ts", "_moves", "_refused"]
        self._take([pa.RecordBatch.from_arrays([*columns, columns[-1], pa.nulls(1, pa.string())], names)])

    def _take(self, batches):
        packets = {}
        for place, batch in enumerate(batches):
            for packet in self._step(iter([batch])):
                for row in packet.to_pylist():
                    packets.setdefault(row["bucket"], []).append(Row(**row | {"arrival_order": place}))
        for bucket, rows in packets.items():
            self._collect(self._tester.test(bucket, rows[::-1]))
        times = [row["at"] for row in self.rows if row["kind"] == "tally" and row["at"] is not None]
        self.newest = max((round(at.timestamp() * 1e6) for at in times), default=None)

    def pass_time(self, moment):
        """Let the watermark come to a time."""
        watermark = round(moment.timestamp() * 1000)
        if watermark > self._watermark:
            self._watermark = watermark
            self._collect(self._tester.setWatermark(watermark))

    def matches(self, names=None):
        """Count the matches by pattern, time and events."""
        rows = [row for row in self.rows if row["kind"] == "match" and (names is None or row["pattern"] in names)]
        return Counter((row["pattern"], row["at"], tuple(map(int, row["events"]))) for row in rows)

    def _build_batch(self, rows, clock=None):
        columns = list(zip(*rows, strict=True))
        arrays = [pa.array(list(column), kind) for column, kind in zip(columns, TYPES, strict=True)]
        names = list(NAMES)
        if self._documents:
            texts = [json.dumps(dict(zip(NAMES, row, strict=True)), default=str) for row in rows]
            arrays = [pa.array(texts), arrays[0].cast(pa.string()), arrays[1]]
            names = ["document", "id", "ts"]
        arrays.append(pa.array([min(row[1], clock or row[1]) for row in rows], TYPES[1]))
        arrays.append(pa.nulls(len(rows), pa.string()))
        return pa.RecordBatch.from_arrays(arrays, [*names, "_moves", "_refused"])

    def _collect(self, rows):
        packed = pa.RecordBatch.from_arrays([pa.array([row.rows for row in rows], pa.binary())], ["rows"])
        for batch in make_unpacker()(iter([packed])):
            self.rows += batch.to_pylist()
