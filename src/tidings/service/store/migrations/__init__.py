"""How the store's tables came to be: Alembic's revisions, each tried with rows in the tables."""

HEAD = "0001"
"""The newest revision; stores that are at it are opened without Alembic."""

VERSION_TABLE = "tidings_store_version"
"""Where a database says at which revision it is."""
