"""Settings every test shares: hypothesis profiles and the folder of sample data."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.service.postgres import postgres, postgres_url  # noqa: F401 - fixtures
from tests.spark import class_archive

ROOT = Path(__file__).resolve().parents[1]

# No deadline anywhere: two shared cores make the time of one example noise.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=100, **_COMMON)
settings.register_profile("ci", max_examples=25, derandomize=True, print_blob=True, **_COMMON)
settings.register_profile("quick", max_examples=15, **_COMMON)
settings.register_profile("thorough", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# For every Spark that a test starts, in this process or in another.
os.environ.setdefault("SPARK_SUBMIT_OPTS", class_archive.options())


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """The sample data that may lie beside the checkout; a test that asks for it skips without it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no sample data: ../shared/data is not there")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make `notyet` and `never` strict expected failures: a gap that closes must lose its mark."""
    for item in items:
        for name in ("notyet", "never"):
            for mark in item.iter_markers(name):
                reason = f"{name}: {mark.args[0] if mark.args else 'no reason given'}"
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def pytest_collection_finish() -> None:
    keep_for_good()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if nextitem is None or nextitem.path != item.path:
        keep_for_good()


def keep_for_good() -> None:
    """Take what lives now out of garbage collection: 8,000 tests, compiled kernels and grammars are a long way to walk.

    Half of the time of a small measurement was a collection before it.
    """
    gc.collect()
    gc.freeze()
