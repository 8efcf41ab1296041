"""The tables of the store, as the newest migration leaves them.

Times are microseconds since 1970 in UTC, so that both databases keep them exactly and compare them fast; JSON is text.
Owners and ids sort by code point everywhere (`C` in PostgreSQL), as Python's strings do, so that cursors mean the same.

A change of the log names one subscription; or, without an id, all that came with one import (`import_number`), or all
of the owner. A match points to its subscription's number, which is never given twice, and to the content of its event,
which counts how many matches use it. `place` counts a subscription's matches, so that the oldest are found by index.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)

METADATA = MetaData()
"""All tables."""

Name = Text().with_variant(Text(collation="C"), "postgresql")
Number = BigInteger().with_variant(Integer, "sqlite")

SUBSCRIPTIONS = Table(
    "subscriptions",
    METADATA,
    Column("number", Number, primary_key=True),
    Column("owner", Name, nullable=False),
    Column("id", Name, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("notation", Text, nullable=False),
    Column("name", Text),
    Column("mode", Text),
    Column("horizon", Text),
    Column("threshold", Double),
    Column("delivery", Text),
    Column("labels", Text),
    Column("expires_at", BigInteger),
    Column("status", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("token", SmallInteger, nullable=False),
    Column("import_number", BigInteger),
    Index("subscriptions_by_id", "owner", "id", unique=True),
    Index("subscriptions_by_status", "status", "owner", "id"),
    Index(
        "subscriptions_by_expiry",
        "expires_at",
        sqlite_where=text("expires_at IS NOT NULL AND status <> 'expired'"),
        postgresql_where=text("expires_at IS NOT NULL AND status <> 'expired'"),
    ),
    Index(
        "subscriptions_by_import",
        "import_number",
        sqlite_where=text("import_number IS NOT NULL"),
        postgresql_where=text("import_number IS NOT NULL"),
    ),
    sqlite_autoincrement=True,
)
LABELS = Table(
    "subscription_labels",
    METADATA,
    Column("label", Name),
    Column("owner", Name),
    Column("id", Name),
    PrimaryKeyConstraint("label", "owner", "id"),
    sqlite_with_rowid=False,
)
COUNTS = Table(
    "subscription_counts",
    METADATA,
    Column("owner", Name),
    Column("status", Text),
    Column("count", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner", "status"),
    sqlite_with_rowid=False,
)
REMOVED = Table(
    "removed_subscriptions",
    METADATA,
    Column("number", Number, primary_key=True, autoincrement=False),
)
CHANGES = Table(
    "changes",
    METADATA,
    Column("sequence", Number, primary_key=True, autoincrement=False),
    Column("mark", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("owner", Name, nullable=False),
    Column("id", Name),
    Column("import_number", BigInteger),
)
LOG_HEAD = Table(
    "log_head",
    METADATA,
    Column("one", Number, primary_key=True, autoincrement=False),
    Column("sequence", BigInteger, nullable=False),
    Column("mark", Text, nullable=False),
    Column("audit_number", BigInteger, nullable=False),
)
ANSWERS = Table(
    "answers",
    METADATA,
    Column("owner", Name),
    Column("key", Name),
    Column("digest", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("answer", Text, nullable=False),
    PrimaryKeyConstraint("owner", "key"),
    Index("answers_by_time", "at"),
)
KEYS = Table(
    "api_keys",
    METADATA,
    Column("id", Name, primary_key=True),
    Column("owner", Name, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("digest", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("note", Text, nullable=False),
    Index("api_keys_by_digest", "digest", unique=True),
    Index("api_keys_by_owner", "owner", "created_at", "id"),
)
RULES = Table(
    "owner_rules",
    METADATA,
    Column("owner", Name, primary_key=True),
    Column("only_filter", Text),
    Column("subscriptions", BigInteger),
    Column("filter_bytes", BigInteger),
    Column("requests_per_second", Double),
    Column("events_per_second", Double),
)
MATCHES = Table(
    "matches",
    METADATA,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("subscription", BigInteger, nullable=False),
    Column("place", BigInteger, nullable=False),
    Column("owner_key", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("content", BigInteger, nullable=False),
    Column("events", Text),
    Column("probability", Double),
    Index("matches_by_subscription", "subscription", "place"),
    Index("matches_by_owner", "owner_key", "number"),
)
CONTENTS = Table(
    "match_contents",
    METADATA,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("content", Text, nullable=False),
    Column("uses", BigInteger, nullable=False),
)
BATCHES = Table(
    "match_batches",
    METADATA,
    Column("query", Name),
    Column("batch", BigInteger),
    Column("at", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    PrimaryKeyConstraint("query", "batch"),
    Index("match_batches_by_time", "at"),
)
MATCH_HEAD = Table(
    "match_head",
    METADATA,
    Column("one", Number, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
)
AUDIT = Table(
    "audit",
    METADATA,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("owner", Name, nullable=False),
    Column("action", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("revision", BigInteger),
    Index("audit_by_owner", "owner", "number"),
)
REPORTS = Table(
    "reports",
    METADATA,
    Column("name", Name, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("facts", Text, nullable=False),
)
