"""The patterns of a store, followed: what changed since the last micro-batch becomes a version, which a batch claims.

The store is read when a batch is claimed, in the order of its change log. At a start all of it is compared with what
the newest version was read from, so a store that was restored, or a vocabulary that has changed, needs no care. A
pattern that is as it was keeps the time from which on it sees events, and with it its partial matches; a new or changed
one sees what is later than all events of earlier batches. A subscription that is refused is reported, to its owner too.

A pattern takes milliseconds to read, and workers need as long to compile it. So one claim reads only for as long as it
may, and what is left waits for the next ones (`waiting_patterns`). What waits is in force as soon as it was read; in
the form that it had before it is not, since that is not what its owner asks for any more.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any

from tidings.errors import TidingsError
from tidings.matcher.live.claims import Claim, read_claim, settle
from tidings.patterns.run.graph_run import LONG_AGO
from tidings.service.store.base import StoreError, Write
from tidings.service.subscription import IN_FORCE, split_engine_id
from tidings.service.training import KINDS
from tidings.spark.detect.followed.followed_plan import QUERY
from tidings.spark.detect.followed.pattern_versions import FollowedPattern, PatternVersion
from tidings.spark.pipeline.run.owner_notices import ACTOR, OwnerNotices
from tidings.spark.pipeline.run.waiting_patterns import WaitingPatterns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidings.service.pattern_model import PatternModel
    from tidings.service.store.base import Position, Store
    from tidings.service.subscription import SubscriptionStatus
    from tidings.spark.detect.followed.pattern_versions import PatternVersions
    from tidings.spark.pipeline.run.pattern_reading import PatternReading

KEPT_CLAIMS = 100
"""Claims of the newest batches that stay: as Spark keeps the offsets of so many, unless it is told another number."""


@dataclass(slots=True)
class _Pending:
    """What changed in the store since the newest version; a name is in one of the two."""

    put: dict[str, FollowedPattern] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)

    def put_pattern(self, pattern: FollowedPattern) -> None:
        self.removed.discard(pattern.name)
        self.put[pattern.name] = pattern

    def remove(self, name: str) -> None:
        self.put.pop(name, None)
        self.removed.add(name)

    def forget(self, name: str) -> None:
        """Leave a pattern as it is in the newest version."""
        self.put.pop(name, None)
        self.removed.discard(name)


class PatternFollower:
    """Follows the change log of a store into a folder of versions; `report` is called with what is refused."""

    def __init__(
        self,
        store: Store,
        versions: PatternVersions,
        reading: PatternReading,
        model: PatternModel,
        *,
        report: Callable[[str | None, TidingsError], object],
        kept_claims: int = KEPT_CLAIMS,
        seconds: float = inf,
        notices: OwnerNotices | None = None,
    ) -> None:
        """`seconds` is how long a claim reads what is new or changed, at most."""
        self._log, self._versions, self._reading, self._report = store.log, versions, reading, report
        self._kept_claims = kept_claims
        self._statuses, self._notices = StatusWriter(store), notices or OwnerNotices(store)
        self._model, self._model_file = model, _ModelFile()
        self._version = versions.read(versions.find_newest())
        self._position: Position | None = None
        self._pending, self._waiting, self._seconds = _Pending(), WaitingPatterns(), seconds
        self._last_problem = ""

    @property
    def count(self) -> int:
        """How many patterns the next version has, as far as the store was read."""
        return len({*self._version.patterns, *self._pending.put} - self._pending.removed)

    @property
    def is_behind(self) -> bool:
        """Whether subscriptions wait to be read."""
        return len(self._waiting) > 0

    def wait(self, seconds: float) -> None:
        """Wait until something may have changed in the store, at most so long."""
        if self._position is not None:
            with suppress(StoreError):
                self._log.wait(self._position, seconds)

    # Reading the store -------------------------------------------------------------------------

    def refresh(self, seconds: float | None = None) -> None:
        """Read what changed, for so long at most, or as long as a claim may; one at least.

        A store that cannot be read is reported once, and what was read stays in force. Where nothing was ever read,
        that is an error.
        """
        try:
            self._read_changes()
        except StoreError as problem:
            if self._position is None and not self._version.number:
                raise
            if str(problem) != self._last_problem:
                self._last_problem = str(problem)
                self._report(None, StoreError(f"the store of patterns cannot be read, what was read stays: {problem}"))
        else:
            self._last_problem = ""
        self._read_waiting(self._seconds if seconds is None else seconds)

    def _read_changes(self) -> None:
        if self._position is not None and self._log.read_head() == self._position:
            return
        with self._log.read(self._position, kinds=KINDS) as changes:
            is_whole = self._position is None or changes.reload
            names, unchanged = set(), []
            if is_whole:
                self._waiting = WaitingPatterns()
            for subscription in changes.running:
                names.add(subscription.engine_id)
                before = self._version.patterns.get(subscription.engine_id)
                if before is not None and before.source == self._reading.sign_source(subscription):
                    self._waiting.remove(before.name)
                    self._pending.forget(before.name)
                    unchanged.append(before)
                else:
                    self._waiting.put(subscription)
                    self._pending.put.pop(subscription.engine_id, None)
            for name in changes.removed:
                self._remove(name)
            if is_whole:
                for name in {*self._version.patterns, *self._pending.put} - names:
                    self._remove(name)
            self._position = changes.position
        for pattern in unchanged:  # whoever wrote it knows neither what bounds its owner nor the model here
            if pattern.wanted is not None:
                self._tell_status(pattern)

    def _remove(self, name: str) -> None:
        self._waiting.remove(name)
        self._pending.remove(name)

    def _read_waiting(self, seconds: float) -> None:
        """Read what waits, for so long at most: parse it, compile it, and note it for the next version."""
        until, unchanged = time.monotonic() + seconds, []
        while (subscription := self._waiting.take()) is not None:
            try:
                pattern = self._reading.read(subscription)
                if not self._put(pattern) and pattern.wanted is not None:
                    unchanged.append(pattern)
            except TidingsError as problem:
                self._pending.remove(subscription.engine_id)
                self._report(subscription.engine_id, problem)
                self._notices.tell([(subscription.engine_id, problem)])
            if time.monotonic() >= until:
                break
        for pattern in unchanged:
            self._tell_status(pattern)

    def _put(self, pattern: FollowedPattern) -> bool:
        """Note a pattern, unless it is in force as it is; tell whether it was noted."""
        before = self._version.patterns.get(pattern.name)
        if before is not None and replace(pattern, since=before.since) == before:
            self._pending.forget(pattern.name)
            return False
        self._pending.put_pattern(pattern)
        return True

    def _tell_status(self, forecast: FollowedPattern) -> None:
        self._statuses.write(forecast.name, "learning" if forecast.horizon is None else "active")

    def pause(self, name: str, problem: TidingsError) -> None:
        """Take a pattern out of the next version, report why, and pause its subscription."""
        if name not in self._version.patterns or name in self._pending.removed:
            return
        self._pending.remove(name)
        self._report(name, problem)
        self._statuses.write(name, "paused", reason=str(problem))

    # Versions ----------------------------------------------------------------------------------

    def claim(self, batch: int, facts: Mapping[str, Any], *, newest: int | None) -> PatternVersion:
        """Settle which version a batch uses, with further facts; one that was settled before is returned as it was.

        `newest` is the newest time of events of earlier batches, in microseconds.
        """
        claim = read_claim(self._versions.folder, QUERY, batch)
        if claim is None:
            self.refresh()
            self._write_version(LONG_AGO if newest is None else newest)
            claim = Claim(self._version.number, facts)
            claim = settle(self._versions.folder, QUERY, batch, claim=claim, keep=self._kept_claims)
        return self._version if claim.version == self._version.number else self._versions.read(claim.version)

    def _write_version(self, newest: int) -> None:
        """Write a version of what changed, if anything did."""
        model = self._model_file.write(self._model, self._versions)
        if model != self._version.model:
            self._renew_forecasts()
        before = self._version
        for subscription in self._waiting:
            pattern = before.patterns.get(subscription.engine_id)
            if pattern is not None and not self._reading.is_asked_for(pattern, subscription):
                self._pending.remove(pattern.name)
        put = [
            _stamp_pattern(pattern, before.patterns.get(pattern.name), newest) for pattern in self._pending.put.values()
        ]
        removed = [name for name in self._pending.removed if name in before.patterns]
        if put or removed or model != before.model or not before.number:
            self._version = self._versions.write(before, put, removed, model=model)
            if not self._version.changes:  # it lists all: older ones may go
                self._versions.prune()
            for pattern in put:
                if pattern.wanted is not None:
                    self._tell_status(pattern)
        self._pending = _Pending()

    def _renew_forecasts(self) -> None:
        """Note the patterns that another model knows, or does not know any more."""
        for pattern in [*{**self._version.patterns, **self._pending.put}.values()]:
            if pattern.wanted is not None and pattern.name not in self._pending.removed:
                renewed = self._reading.renew_forecast(pattern)
                if renewed != pattern:
                    self._pending.put_pattern(renewed)


class StatusWriter:
    """Writes to the store what became of a subscription; where that fails or somebody else was quicker, nothing is."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, engine_id: str, status: SubscriptionStatus, *, reason: str | None = None) -> None:
        """Set the status of a subscription that is in force; its owner finds the reason in the audit log."""
        owner, id = split_engine_id(engine_id)
        with suppress(StoreError):
            subscription = self._store.subscriptions.get(owner, id)
            if subscription is None or subscription.status == status or subscription.status not in IN_FORCE:
                return
            now, revision = datetime.now(UTC), subscription.revision
            actor = ACTOR if reason is None else f"{ACTOR}: {reason}"
            write = Write(action="status", owner=owner, id=id, actor=actor, at=now, status=status, expected=revision)
            self._store.subscriptions.write([write])


class _ModelFile:
    """The model as a file of the folder of versions, written when it is another one than before."""

    def __init__(self) -> None:
        self._model: object = None
        self._name: str | None = None

    def write(self, source: PatternModel, versions: PatternVersions) -> str | None:
        model = source.read()
        if model is not self._model:
            self._model, self._name = model, None if model is None else versions.write_model(model.to_bytes())
        return self._name


def _stamp_pattern(pattern: FollowedPattern, before: FollowedPattern | None, newest: int) -> FollowedPattern:
    """Return a pattern with the time after which it sees events: as before, if it reports the same matches."""
    return replace(pattern, since=before.since if before and pattern.has_same_matches(before) else newest)
