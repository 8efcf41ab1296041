"""A store in SQLite or PostgreSQL: one code, whose few differences are in `sqlite` and `postgres`."""

from tidings.service.store.sql.store import SqlStore

__all__ = ["SqlStore"]
