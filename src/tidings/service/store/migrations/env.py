"""Run by Alembic: migrations go over the connection, and in the transaction, of `upgrading.upgrade_store`."""

from alembic import context

from tidings.service.store.migrations import VERSION_TABLE
from tidings.service.store.sql.tables import METADATA


def run_migrations() -> None:
    """Run the revisions that are missing."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=METADATA, version_table=VERSION_TABLE)
    context.run_migrations()


if hasattr(context, "config"):  # Alembic's own; whoever imports this module otherwise runs nothing
    run_migrations()
