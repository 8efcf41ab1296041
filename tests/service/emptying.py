"""A store on PostgreSQL for many tests: emptied between them, in milliseconds; a new database takes longer."""

import secrets

from tidings.service.store.migrations import HEAD, VERSION_TABLE
from tidings.service.store.opening import open_store


def make_store(server):
    """Make a database whose tables are made, and return its URL."""
    url = server.make_database()
    open_store(url).close()
    return url


def empty_store(server, url):
    """Leave a store as it was when it was made."""
    from tidings.service.store.sql.tables import METADATA

    mark = secrets.token_hex(8)
    statements = [
        *(f"DELETE FROM {name}" for name in METADATA.tables),
        f"INSERT INTO log_head VALUES (1, 0, '{mark}', 0)",
        f"INSERT INTO changes VALUES (0, '{mark}', 0, '', '', NULL)",
        "INSERT INTO match_head VALUES (1, 0)",
        f"UPDATE {VERSION_TABLE} SET version_num = '{HEAD}'",
    ]
    with server.connect(server.name_database(url)) as connection:
        connection.execute(";".join(statements))
