"""Where the service keeps subscriptions, changes, keys and matches: in memory, in SQLite, or in PostgreSQL."""
