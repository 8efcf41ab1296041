"""Stores to test with: in a file of SQLite, and in a database of PostgreSQL."""

import shutil

import pytest
from tests.service.emptying import empty_store, make_store

from tidings.service.store.opening import open_store


@pytest.fixture(scope="session")
def template_file(tmp_path_factory):
    """A store of SQLite whose tables are made: its copies open fast."""
    path = tmp_path_factory.mktemp("store") / "made.db"
    open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def sqlite_url(tmp_path, template_file):
    shutil.copy(template_file, tmp_path / "store.db")
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture(scope="session")
def reusable_url(postgres):
    return make_store(postgres)


@pytest.fixture
def clean_url(postgres, reusable_url):
    empty_store(postgres, reusable_url)
    return reusable_url


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request):
    return request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "clean_url")


@pytest.fixture
def store(store_url):
    store = open_store(store_url)
    yield store
    store.close()
