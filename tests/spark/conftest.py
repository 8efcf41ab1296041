"""One Spark session for the whole run, made when the first test asks for it."""

from pathlib import Path

import pytest

SETTINGS = {
    "spark.sql.shuffle.partitions": "2",  # as many as there are cores; the default makes 200 tiny tasks
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # the second compiler does not pay in minutes
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",  # small frames still cross in several batches
}


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark():
    from tidings import spark as ts

    session = ts.session("tidings tests", master="local[2]", config=SETTINGS)
    yield session
    session.stop()
