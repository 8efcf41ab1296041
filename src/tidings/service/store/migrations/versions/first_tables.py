"""The first tables of the store."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Number = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the tables, and the heads of the log and of the matches."""
    _make_subscriptions()
    _make_log_and_owners()
    _make_matches_and_records()
    mark = secrets.token_hex(8)
    op.execute(sa.text("INSERT INTO log_head VALUES (1, 0, :mark, 0)").bindparams(mark=mark))
    op.execute(sa.text("INSERT INTO changes VALUES (0, :mark, 0, '', '', NULL)").bindparams(mark=mark))
    op.execute("INSERT INTO match_head VALUES (1, 0)")


def _make_subscriptions() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("number", Number, primary_key=True),
        sa.Column("owner", Name, nullable=False),
        sa.Column("id", Name, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("notation", sa.Text, nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("mode", sa.Text),
        sa.Column("horizon", sa.Text),
        sa.Column("threshold", sa.Double),
        sa.Column("delivery", sa.Text),
        sa.Column("labels", sa.Text),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("token", sa.SmallInteger, nullable=False),
        sa.Column("import_number", sa.BigInteger),
        sqlite_autoincrement=True,
    )
    op.create_index("subscriptions_by_id", "subscriptions", ["owner", "id"], unique=True)
    op.create_index("subscriptions_by_status", "subscriptions", ["status", "owner", "id"])
    op.create_index(
        "subscriptions_by_expiry",
        "subscriptions",
        ["expires_at"],
        sqlite_where=sa.text("expires_at IS NOT NULL AND status <> 'expired'"),
        postgresql_where=sa.text("expires_at IS NOT NULL AND status <> 'expired'"),
    )
    op.create_index(
        "subscriptions_by_import",
        "subscriptions",
        ["import_number"],
        sqlite_where=sa.text("import_number IS NOT NULL"),
        postgresql_where=sa.text("import_number IS NOT NULL"),
    )
    op.create_table(
        "subscription_labels",
        sa.Column("label", Name),
        sa.Column("owner", Name),
        sa.Column("id", Name),
        sa.PrimaryKeyConstraint("label", "owner", "id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "subscription_counts",
        sa.Column("owner", Name),
        sa.Column("status", sa.Text),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("owner", "status"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "removed_subscriptions",
        sa.Column("number", Number, primary_key=True, autoincrement=False),
    )


def _make_log_and_owners() -> None:
    op.create_table(
        "changes",
        sa.Column("sequence", Number, primary_key=True, autoincrement=False),
        sa.Column("mark", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("owner", Name, nullable=False),
        sa.Column("id", Name),
        sa.Column("import_number", sa.BigInteger),
    )
    op.create_table(
        "log_head",
        sa.Column("one", Number, primary_key=True, autoincrement=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("mark", sa.Text, nullable=False),
        sa.Column("audit_number", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "answers",
        sa.Column("owner", Name),
        sa.Column("key", Name),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("owner", "key"),
    )
    op.create_index("answers_by_time", "answers", ["at"])
    op.create_table(
        "api_keys",
        sa.Column("id", Name, primary_key=True),
        sa.Column("owner", Name, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("digest", Name, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.create_index("api_keys_by_digest", "api_keys", ["digest"], unique=True)
    op.create_index("api_keys_by_owner", "api_keys", ["owner", "created_at", "id"])
    op.create_table(
        "owner_rules",
        sa.Column("owner", Name, primary_key=True),
        sa.Column("only_filter", sa.Text),
        sa.Column("subscriptions", sa.BigInteger),
        sa.Column("filter_bytes", sa.BigInteger),
        sa.Column("requests_per_second", sa.Double),
        sa.Column("events_per_second", sa.Double),
    )


def _make_matches_and_records() -> None:
    op.create_table(
        "matches",
        sa.Column("number", Number, primary_key=True, autoincrement=False),
        sa.Column("subscription", sa.BigInteger, nullable=False),
        sa.Column("place", sa.BigInteger, nullable=False),
        sa.Column("owner_key", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("content", sa.BigInteger, nullable=False),
        sa.Column("events", sa.Text),
        sa.Column("probability", sa.Double),
    )
    op.create_index("matches_by_subscription", "matches", ["subscription", "place"])
    op.create_index("matches_by_owner", "matches", ["owner_key", "number"])
    op.create_table(
        "match_contents",
        sa.Column("number", Number, primary_key=True, autoincrement=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("uses", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "match_batches",
        sa.Column("query", Name),
        sa.Column("batch", sa.BigInteger),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("query", "batch"),
    )
    op.create_index("match_batches_by_time", "match_batches", ["at"])
    op.create_table(
        "match_head",
        sa.Column("one", Number, primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("number", Number, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("owner", Name, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("revision", sa.BigInteger),
    )
    op.create_index("audit_by_owner", "audit", ["owner", "number"])
    op.create_table(
        "reports",
        sa.Column("name", Name, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("facts", sa.Text, nullable=False),
    )
