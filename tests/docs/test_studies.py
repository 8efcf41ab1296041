"""Every study of a paper: it can be listed, its claims can be read, and a reader finds its page."""

from pathlib import Path

import pytest

from tidings.testing.bench.checkout import studies
from tidings.testing.bench.claims import read_claims

ROOT = Path(__file__).parents[2]
PLACES = studies(ROOT)
FOLDERS = sorted(path for path in (ROOT / "benchmarks" / "papers").iterdir() if (path / "__init__.py").exists())


def test_every_package_is_a_study():
    assert [folder.name for folder in FOLDERS] == [place.key for place in PLACES]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.key)
def test_its_claims_can_be_read(place):
    claims = read_claims(place.claims)  # which refuses keys that are there twice
    assert claims.claims


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.key)
def test_it_has_a_title_and_a_page_that_says_how_to_run_it(place):
    assert place.title
    assert f"tidings bench run papers/{place.key}" in (place.folder / "README.md").read_text(encoding="utf-8")
