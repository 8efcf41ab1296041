"""Where Spark's streams keep their state: the store of a session, and another one for the queries that start meanwhile.

Spark reads the store from the session when a query starts and keeps it in the query's checkpoint; no option of a query
can say it. Pattern detection needs RocksDB: Spark's own store in memory has neither timers nor several values a key.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidings.errors import SparkUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
"""Spark's default: the state is in Java's memory, and each change of it in the checkpoint."""
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def prefer_rocksdb(session: SparkSession) -> None:
    """Let the session's streams keep state in RocksDB, unless somebody has chosen a store for it."""
    if session.conf.get(STATE_STORE, None) is None:
        session.conf.set(STATE_STORE, ROCKSDB)


def require_rocksdb(session: SparkSession) -> None:
    """Raise where the session keeps state in another store; a vendor's own RocksDB will do."""
    if "RocksDB" not in (session.conf.get(STATE_STORE, None) or ""):
        way_out = f"session.conf.set({STATE_STORE!r}, {ROCKSDB!r})"
        msg = f"patterns over a stream need RocksDB as the session's state store: take ts.session(), or {way_out}"
        raise SparkUnavailable(msg)


@contextmanager
def use_state_store(session: SparkSession, provider: str) -> Iterator[None]:
    """Let queries that start inside keep their state in this store; others of the session are left as they were."""
    with use_settings(session, {STATE_STORE: provider}):
        yield


@contextmanager
def use_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Let queries that start inside have these settings, which Spark reads when a query starts."""
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, former in before.items():
            if former is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, former)
