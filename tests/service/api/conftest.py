"""An API for each test."""

import pytest
from tests.service.api.asking import Asker


@pytest.fixture
def make_api(tmp_path):
    """Makes APIs that are gone with the test."""
    made = []

    def make(**keywords):
        made.append(Asker(tmp_path, **keywords))
        return made[-1]

    yield make
    for api in made:
        api.close()


@pytest.fixture
def api(make_api):
    return make_api()
