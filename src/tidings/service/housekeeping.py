"""What is tidied up beside requests: subscriptions expire; logs, matches, answers and files are bounded.

Every API process does it, and none needs to know of the others: each step may be done twice, or by two at once, and has
the same outcome. A forecast that is `learning` becomes `active` when the model's file has come to know its pattern.
Times come in; `service.api.background` calls this by the clock, in a thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.errors import TidingsError
from tidings.service.checking import find_model
from tidings.service.events.dead_letters import trim_letters
from tidings.service.events.file_keeping import FileKeeper, find_read
from tidings.service.store.base import SubscriptionQuery, Write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tidings.service.checking import SubscriptionChecker
    from tidings.service.events.backlog import EventBacklog
    from tidings.service.settings import ServiceSettings
    from tidings.service.store.base import Store
    from tidings.service.subscription import Subscription

ACTOR = "service"
"""Who changes subscriptions here, for the audit log."""

PAGE = 500
"""Subscriptions that are looked at in one question."""


@dataclass(frozen=True, slots=True)
class TidyReport:
    """How much went away."""

    changes: int
    matches: int
    answers: int
    files: int
    records: int
    letters: int


class Housekeeper:
    """Tidies the store and the folder of a service."""

    def __init__(self, settings: ServiceSettings, store: Store, checker: SubscriptionChecker) -> None:
        self._settings, self._store, self._checker = settings, store, checker
        self._folder = FileKeeper(settings.events_folder, kept=settings.events.kept)
        self._model_stamp: tuple[int, int] | None = None

    def expire(self, now: datetime) -> int:
        """Let subscriptions expire whose time has come; return how many."""
        return self._store.subscriptions.expire(now)

    def tidy(self, now: datetime) -> TidyReport:
        """Remove what is older than the settings say."""
        housekeeping, store = self._settings.housekeeping, self._store
        return TidyReport(
            changes=store.log.compact(now - housekeeping.log),
            matches=store.matches.trim(now - self._settings.matches.within),
            answers=store.idempotency.forget(now - housekeeping.answers),
            files=self._folder.tidy(find_read(store.statuses), now),
            records=store.audit.trim(now - housekeeping.audit),
            letters=trim_letters(self._settings, now),
        )

    def measure(self, backlog: EventBacklog) -> None:
        """Measure what waits for the pipeline."""
        backlog.measure(find_read(self._store.statuses, margin=0))

    def review_forecasts(self, now: datetime) -> int:
        """Make forecasts active whose patterns the model has come to know; return how many."""
        stamp = self._read_model_stamp()
        if stamp is None or stamp == self._model_stamp:
            return 0
        ready = [subscription for subscription in self._list_learning() if self._is_known(subscription, now)]
        writes = [
            Write(
                action="status",
                owner=subscription.owner,
                id=subscription.id,
                actor=ACTOR,
                at=now,
                status="active",
                expected=subscription.revision,
            )
            for subscription in ready
        ]
        outcomes = self._store.subscriptions.write(writes) if writes else []
        self._model_stamp = stamp
        return sum(not isinstance(outcome, TidingsError) for outcome in outcomes)

    def _read_model_stamp(self) -> tuple[int, int] | None:
        try:
            status = find_model(self._settings).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def _list_learning(self) -> Iterator[Subscription]:
        after: tuple[str, str] | None = None
        while True:
            query = SubscriptionQuery(owner=None, status="learning", after=after, limit=PAGE)
            page = self._store.subscriptions.list(query)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].owner, page[-1].id

    def _is_known(self, subscription: Subscription, now: datetime) -> bool:
        body = {
            "id": subscription.id,
            "pattern": subscription.text,
            "notation": subscription.notation,
            "mode": subscription.mode,
            "horizon": subscription.horizon,
            "threshold": subscription.threshold,
        }
        rules = self._store.owners.get(subscription.owner)
        only = None if rules is None else rules.only
        try:
            return self._checker.check(body, now=now, only=only).status == "active"
        except TidingsError:  # another schema than when it was stored; whoever runs the service is told by the pipeline
            return False
