"""Patterns as workers find them: the version that their micro-batch claimed, compiled from the one before.

A job carries the path of a folder of versions and the vocabulary, never the patterns. The driver settles the claim of a
batch before its job begins; a task reads it by the number of the batch, which Spark passes in a property of the task,
so a batch that runs again uses the same patterns. A worker process keeps what it has compiled: a new version costs the
patterns that it adds, and the graphs of the portions that it changes.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext

from tidings.errors import CheckpointError, TidingsError
from tidings.matcher.live.claims import read_claim
from tidings.matcher.snapshot.vocabulary_files import read_vocabulary
from tidings.patterns.pattern_set import StreamSettings
from tidings.patterns.run.changing_portions import ChangingPortions, DatedPattern
from tidings.spark.detect.followed.pattern_versions import FollowedPattern, PatternVersions
from tidings.spark.detect.worker_plan import OpenPatterns
from tidings.spark.subscriptions.worker_store import BATCH_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

QUERY = "patterns"
"""The name under which batches claim versions; a folder of versions is of one query."""

BATCH, SEGMENTS = "batch", "ids"
"""Facts of a claim: the number of the batch; and, where events may come again, the segments of ids before it."""

MOST_OPEN = 4
"""Pattern sets of different queries that one worker process keeps."""

REBUILD = 4096
"""Patterns that a worker adds before it compiles all of them anew: numbers of removed filters take room."""


@dataclass(frozen=True, slots=True)
class FollowedPlan:
    """Where the patterns of a query are, and how its events are read; the plan of `ts.detect` with fixed patterns.

    `vocabulary` has the files of `dump_vocabulary`, and `digest` stands for it where plans are compared. With
    `document`, an event is the JSON object in this column, with what the columns `beside` have. `partials` bounds what
    one key may have at one place, `most_partials` what a pattern may hold in one bucket.
    """

    folder: str
    vocabulary: tuple[tuple[str, bytes], ...] = field(compare=False)
    digest: str
    buckets: int
    shards: int
    time: str
    event_id: str
    keep: tuple[str, ...] = ()
    partials: int = 1_000
    most_partials: int = 10_000
    document: str | None = None
    beside: tuple[str, ...] = ()

    def open(self) -> OpenPatterns:
        """Return the patterns of the version that the running task's batch uses."""
        batch = find_batch()
        if self not in _open:
            _open[self] = _FollowedPatterns(self)
            while len(_open) > MOST_OPEN:
                _open.popitem(last=False)
        _open.move_to_end(self)
        return _open[self].open(batch)

    def read_facts(self) -> Mapping[str, Any]:
        """Return what else was settled about the running task's batch."""
        self.open()
        return _open[self].facts

    @property
    def reported_columns(self) -> tuple[str, ...]:
        """The columns of its events that a detection has: the id, then those of `keep`."""
        return (self.event_id, *self.keep)


def find_batch() -> int:
    """Return the number of the micro-batch that the running task is part of."""
    task = TaskContext.get()
    batch = task.getLocalProperty(BATCH_ID) if task is not None else None
    if batch is None:
        msg = "patterns that are followed are for the tasks of a stream's micro-batch"
        raise CheckpointError(msg)
    return int(batch)


class _FollowedPatterns:
    """What a worker process has compiled of a folder: one version."""

    def __init__(self, plan: FollowedPlan) -> None:
        self._plan, self._versions = plan, PatternVersions(Path(plan.folder))
        self._vocabulary = read_vocabulary(dict(plan.vocabulary))
        self._batch = -1
        self.facts: Mapping[str, Any] = {}
        self._model: str | None = None
        self._clear()

    def _clear(self) -> None:
        self._number, self._added = 0, 0
        self._portions, self._patterns = self._start_portions(), dict[str, FollowedPattern]()
        self._current, self._is_whole = self._build(), True

    def _start_portions(self) -> ChangingPortions:
        plan = self._plan
        settings = StreamSettings(time=plan.time, event_id=plan.event_id, partials=plan.partials)
        return ChangingPortions(self._vocabulary, settings, buckets=plan.buckets, shards=plan.shards)

    def open(self, batch: int) -> OpenPatterns:
        """Return the patterns of the version that a batch claimed."""
        if batch != self._batch:
            claim = read_claim(Path(self._plan.folder), QUERY, batch)
            if claim is None:
                msg = f"no version of the patterns was claimed for batch {batch}; copy the checkpoint back as a whole"
                raise CheckpointError(msg)
            self._move(claim.version)
            self._batch, self.facts = batch, {**claim.facts, BATCH: batch}
        return self._current

    def _move(self, number: int) -> None:
        """Bring what is compiled to a version."""
        if number == self._number and self._is_whole:
            return
        if number < self._number or not self._is_whole or self._added > REBUILD + 2 * len(self._patterns):
            self._clear()
        changes = self._versions.read_changes(number, self._number)
        if changes.all and self._number:
            self._clear()
        self._is_whole = False  # a task that fails in between is tried again in this process
        for name in changes.removed:
            self._patterns.pop(name, None)
        self._patterns |= {pattern.name: pattern for pattern in changes.patterns}
        try:
            self._portions.change(map(_stamp_pattern, changes.patterns), removed=changes.removed)
        except TidingsError:
            self._portions = self._choose_patterns()
        self._number, self._model = number, changes.model
        self._added += len(changes.patterns)
        self._current, self._is_whole = self._build(), True

    def _choose_patterns(self) -> ChangingPortions:
        """Return the patterns that the vocabulary takes: a version may be older than that."""
        chosen = []
        for pattern in self._patterns.values():
            with suppress(TidingsError):
                dated = _stamp_pattern(pattern)
                self._start_portions().change([dated])
                chosen.append(dated)
        portions = self._start_portions()
        portions.change(chosen)
        return portions

    def _build(self) -> OpenPatterns:
        patterns, portions = self._portions.compile()
        plans = {name: pattern.plan for name, pattern in self._patterns.items()}
        model = None if self._model is None else self._versions.read_model(self._model)
        return OpenPatterns(
            patterns,
            lambda: portions,
            model=model,
            forecasts={name: plan for name, plan in plans.items() if plan is not None},
            only_forecasts=[name for name, pattern in self._patterns.items() if pattern.forecasts_only],
        )


def _stamp_pattern(pattern: FollowedPattern) -> DatedPattern:
    return DatedPattern(pattern.to_written(), pattern.since)


_open: OrderedDict[FollowedPlan, _FollowedPatterns] = OrderedDict()


def forget_patterns() -> None:
    """Forget what this process has compiled."""
    _open.clear()
