"""Bringing a store up to date when it is opened: one process does it, others wait, and none goes back.

A store at the newest revision costs one SELECT. Otherwise all is done in one transaction that nobody else can be in:
SQLite's writer lock, or an advisory lock of PostgreSQL. A store whose revision this program does not know was written
by a newer one, and is refused.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from tidings.service.store.base import StoreError
from tidings.service.store.migrations import HEAD, VERSION_TABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from alembic.config import Config
    from sqlalchemy import Connection

    from tidings.service.store.sql.backend import DatabaseBackend

FOLDER = Path(__file__).parent
SELECT_VERSION = f"SELECT version_num FROM {VERSION_TABLE}"  # noqa: S608 - our own constant


class StoreTooNew(StoreError):
    """The store was written by a newer Tidings."""


def upgrade_store(backend: DatabaseBackend, *, to: str = HEAD) -> None:
    """Make the tables of a store, or bring them up to a revision."""
    try:
        with closing(backend.connect()) as connection:
            backend.prepare(connection)
            version = read_version(backend, connection)
            if version != to:
                _check_version(version)
                _upgrade(backend, connection, to)
    except backend.driver_error as error:
        raise backend.translate(error) from error


def read_version(backend: DatabaseBackend, connection: Any) -> str | None:
    """Return the revision of a database; None where there are no tables of ours."""
    if connection.execute(backend.find_version_table).fetchone()[0] is None:
        return None
    row = connection.execute(SELECT_VERSION).fetchone()
    return None if row is None else str(row[0])


def make_config() -> Config:
    """Return Alembic's settings for our revisions."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return config


def list_revisions() -> Collection[str]:
    """Return the revisions that this program knows."""
    from alembic.script import ScriptDirectory

    return [script.revision for script in ScriptDirectory.from_config(make_config()).walk_revisions()]


def _check_version(version: str | None) -> None:
    if version is not None and version not in list_revisions():
        msg = f"the store is at revision `{version}`, and this Tidings knows up to `{HEAD}`: install a newer one"
        raise StoreTooNew(msg)


def _upgrade(backend: DatabaseBackend, connection: Any, to: str) -> None:
    """Run what is missing, in one transaction on a driver's connection, unless somebody else was quicker."""
    from alembic import command
    from sqlalchemy.exc import DBAPIError

    config = make_config()
    try:
        with _wrap(backend, connection) as wrapped:
            connection.execute(backend.begin_writing)
            backend.lock_structure(connection)
            version = read_version(backend, connection)
            _check_version(version)
            if version != to:
                config.attributes["connection"] = wrapped
                command.upgrade(config, to)
    except DBAPIError as error:
        raise (error.orig if isinstance(error.orig, Exception) else error) from error


@contextmanager
def _wrap(backend: DatabaseBackend, connection: Any) -> Iterator[Connection]:
    """Yield SQLAlchemy's face of a driver's connection; what it asks of a new one, it has asked by then."""
    name = f"{backend.dialect.name}+{backend.dialect.driver}://"
    engine = create_engine(name, creator=lambda: connection, poolclass=StaticPool, pool_reset_on_return=None)
    with engine.connect() as wrapped, wrapped.begin():  # its end is a COMMIT of the driver's
        yield wrapped
