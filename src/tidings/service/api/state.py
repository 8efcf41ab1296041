"""What all operations of one process share: settings, the store, keys, rates, the checker and the writer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from tidings.service.api.auth import KeyRing
from tidings.service.api.limits import RateLimiter
from tidings.service.api.metrics import ApiMetrics
from tidings.service.api.store_access import StoreAccess
from tidings.service.api.writer import GroupWriter
from tidings.service.checking import SubscriptionChecker
from tidings.service.settings import ServiceSettings
from tidings.service.store.base import Store


def tell_time() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Where an API reads the time, and how it measures how long something takes."""

    now: Callable[[], datetime] = tell_time
    clock: Callable[[], float] = monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiState:
    """The parts of a running API; `parts` is for those of single route modules, by a name of their own."""

    settings: ServiceSettings
    store: Store
    access: StoreAccess
    keys: KeyRing
    writer: GroupWriter
    checker: SubscriptionChecker
    requests: RateLimiter
    events: RateLimiter
    metrics: ApiMetrics
    clock: Callable[[], float]
    now: Callable[[], datetime]
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the server is asked to stop: streams end then."""
    parts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def make(
        cls,
        settings: ServiceSettings,
        store: Store,
        checker: SubscriptionChecker,
        *,
        time: Clocks,
    ) -> ApiState:
        """Put the parts together; nothing runs yet."""
        clock, now = time.clock, time.now
        access = StoreAccess(store, is_local=getattr(store, "is_local", True))
        return cls(
            settings=settings,
            store=store,
            access=access,
            keys=KeyRing(access, clock=clock, now=now),
            writer=GroupWriter(store.subscriptions),
            checker=checker,
            requests=RateLimiter("requests", clock),
            events=RateLimiter("events", clock),
            metrics=ApiMetrics(),
            clock=clock,
            now=now,
        )
