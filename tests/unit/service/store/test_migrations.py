"""Each revision of the store, with rows in the tables as that revision left them, is brought up to date."""

from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, make_url
from tests.unit.service.store.writing import NOW, SECOND, create, read_ids

from tidings.service.store.base import Idempotency, SubscriptionQuery
from tidings.service.store.migrations import HEAD, VERSION_TABLE
from tidings.service.store.migrations.upgrading import list_revisions, read_version, upgrade_store
from tidings.service.store.opening import open_store
from tidings.service.store.sql.postgres import PostgresBackend
from tidings.service.store.sql.sqlite import SqliteBackend, create_file
from tidings.service.store.sql.tables import METADATA

STORES = Path(__file__).resolve().parents[3] / "older" / "stores"

REVISIONS = sorted(list_revisions())


@pytest.fixture(params=["sqlite", "postgres"])
def new_url(request, tmp_path):
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:///{tmp_path}/new.db"


def make_backend(url):
    if url.startswith("postgresql"):
        return PostgresBackend(make_url(url))
    create_file(path := Path(make_url(url).database))
    return SqliteBackend(path)


def fill(backend, revision):
    """Make the tables of a revision, and put its rows in."""
    upgrade_store(backend, to=revision)
    statements = (STORES / f"revision_{revision}.sql").read_text(encoding="utf-8").split(";\n")
    with closing(backend.connect()) as connection:
        for statement in filter(str.strip, statements):
            connection.execute(statement)
        if isinstance(backend, PostgresBackend):
            connection.execute("SELECT setval('subscriptions_number_seq', 6)")


def test_every_revision_has_rows_to_be_tried_with():
    assert {path.stem.removeprefix("revision_") for path in STORES.iterdir()} == set(REVISIONS)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_store_of_a_revision_is_brought_up_to_date_with_all_its_rows(new_url, revision):
    fill(make_backend(new_url), revision)
    store = open_store(new_url)
    rows = {row.engine_id: row for row in store.subscriptions.list(SubscriptionQuery(owner=None))}
    assert list(rows) == ["ann/a", "ann/b", "ann/i1", "ann/i2", "bob/c"]
    assert rows["ann/a"].name == 'It\'s "mine"'
    assert rows["ann/a"].delivery == {"transport": "webhook", "url": "https://example.org", "secret": "whsec_x"}
    assert rows["ann/a"].expires_at == NOW + 3600 * SECOND
    assert (rows["bob/c"].threshold, rows["bob/c"].horizon) == (0.6, "10 own events")
    assert [row.id for row in store.subscriptions.list(SubscriptionQuery(owner="ann", label="cars"))] == ["a", "i2"]
    assert store.subscriptions.count() == {"active": 3, "paused": 1, "learning": 1}
    assert store.keys.find("d" * 64).revoked_at == NOW + SECOND
    assert store.owners.get("bob").only == "price > 1"
    assert [row.event for row in store.matches.list_since("ann", 0)] == ["e1", "e1"]
    assert [row.action for row in store.audit.list()][-1] == "revoke key"
    assert store.statuses.list()[0].facts == {"batch": 3}
    store.close()


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_reader_and_a_client_go_on_where_they_were_before_an_upgrade(new_url, revision):
    backend = make_backend(new_url)
    fill(backend, revision)
    with closing(backend.connect()) as connection:
        sequence, mark = connection.execute("SELECT sequence, mark FROM changes WHERE sequence = 6").fetchone()
    store = open_store(new_url)
    position = type(store.log.read_head())(sequence, mark)
    running, removed, _ = read_ids(store, position)
    assert (running, removed) == (["ann/i1", "ann/i2", "bob/c"], [])  # an import, and new rules of bob
    (again,) = store.subscriptions.write([create("a", idempotency=Idempotency("k", "d"))])
    assert again.repeated
    assert store.subscriptions.write([create("new")])[0].created
    store.close()


def test_the_migrations_make_the_tables_that_the_program_uses(new_url):
    backend = make_backend(new_url)
    upgrade_store(backend)
    with closing(backend.connect()) as connection:
        assert read_version(backend, connection) == HEAD
    engine = create_engine(new_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


def test_an_upgrade_that_fails_leaves_the_store_as_it_was(new_url, monkeypatch):
    backend = make_backend(new_url)

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("alembic.command.upgrade", fail)
    with pytest.raises(KeyboardInterrupt):
        upgrade_store(backend)
    monkeypatch.undo()
    upgrade_store(backend)
    with closing(backend.connect()) as connection:
        assert read_version(backend, connection) == HEAD


def test_the_wheel_has_the_migrations():
    """Hatch takes the whole package; what Alembic reads from the folder must be Python or its template."""
    from tidings.service.store.migrations.upgrading import FOLDER

    names = {path.name for path in FOLDER.iterdir()} - {"__pycache__"}
    assert names == {"__init__.py", "env.py", "script.py.mako", "upgrading.py", "versions"}
    assert {path.suffix for path in (FOLDER / "versions").glob("*.*")} == {".py"}
