"""Opening a store by its URL: SQLite, PostgreSQL, or memory; its tables are made, or brought up to date.

`sqlite:///ABSOLUTE/PATH`, `postgresql+psycopg://USER:PASSWORD@HOST/NAME`, `memory://`. No error names a password.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tidings.service.store.base import Store, StoreError
from tidings.service.store.memory import MemoryStore

if TYPE_CHECKING:
    from sqlalchemy import URL

    from tidings.service.store.sql.postgres import PostgresBackend
    from tidings.service.store.sql.sqlite import SqliteBackend

FORMS = "`sqlite:///path/to/store.db` or `postgresql+psycopg://user:password@host/database`"


def open_store(url: str) -> Store:
    """Open a store, whose tables are made where it is new; what is in the way is a `StoreError`."""
    if url == "memory://":
        return MemoryStore()
    _require_sqlalchemy()
    from tidings.service.store.migrations.upgrading import upgrade_store
    from tidings.service.store.sql import SqlStore

    backend = _make_backend(_parse_url(url))
    upgrade_store(backend)
    return SqlStore(backend)


def _require_sqlalchemy() -> None:
    try:
        import sqlalchemy as _  # noqa: F401
    except ImportError as error:
        msg = "a store needs SQLAlchemy; run: pip install 'tidings[service]'"
        raise StoreError(msg) from error


def _parse_url(url: str) -> URL:
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url)
    except (ArgumentError, ValueError):  # their message may hold the URL, and so a password
        msg = f"the URL of the store is not well formed; it looks like {FORMS}"
        raise StoreError(msg) from None


def _read_timeout(url: URL) -> float:
    """Return how many seconds writers of SQLite wait for each other, by `?timeout=`."""
    from tidings.service.store.sql.sqlite import WAIT_S

    try:
        return float(str(url.query.get("timeout", WAIT_S)))
    except ValueError:
        msg = "`timeout` in the URL of the store is a number of seconds"
        raise StoreError(msg) from None


def _make_backend(url: URL) -> SqliteBackend | PostgresBackend:
    match url.drivername:
        case "sqlite" | "sqlite+pysqlite" if url.database and url.database != ":memory:":
            from tidings.service.store.sql.sqlite import SqliteBackend, create_file

            create_file(path := Path(url.database))
            return SqliteBackend(path, wait_s=_read_timeout(url))
        case "postgresql" | "postgresql+psycopg":
            from tidings.service.store.sql.postgres import PostgresBackend

            return PostgresBackend(url)
        case _:
            msg = f"`{url.drivername}` is no kind of store; it looks like {FORMS}"
            raise StoreError(msg)
