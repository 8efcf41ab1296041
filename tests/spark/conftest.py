"""One Spark session for the whole run, made when the first test asks for it."""

from pathlib import Path

import pytest
from tests.kafka.fixture import find_connector_jars, kafka  # noqa: F401 - a fixture
from tests.spark.pipeline.piping import Pipe

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",  # as many as there are cores; the default makes 200 tiny tasks
    "spark.sql.codegen.wholeStage": "false",  # to compile Java for a few rows takes longer than to interpret the plan
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",  # small frames still cross in several batches
}


def pytest_collection_modifyitems(items):
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark():
    from tidings import spark as ts

    jars = find_connector_jars()
    session = ts.session("tidings tests", master="local[2]", kafka=jars is not None, jars=jars, config=SETTINGS)
    yield session
    session.stop()


@pytest.fixture
def pipe(spark, tmp_path):
    """A pipeline in a folder of its own, run in the session of the tests."""
    return Pipe(tmp_path)
