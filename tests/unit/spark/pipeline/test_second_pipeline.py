"""A service has one pipeline: a second one is told so, and not to take another folder, where it would match twice."""

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("sqlalchemy", reason="needs tidings[service]")

from tidings.service.settings import ServiceSettings
from tidings.spark.pipeline.run.checkpoint import Checkpoint, CheckpointInUse
from tidings.spark.pipeline.service_pipeline import build_service_pipeline, run_service_pipeline


def test_a_second_pipeline_of_a_service_is_to_wait_for_the_end_of_the_first(tmp_path):
    settings = ServiceSettings(data=tmp_path)
    first = Checkpoint.open(build_service_pipeline(settings).checkpoint)
    with first.lock(), pytest.raises(CheckpointInUse) as caught:
        run_service_pipeline(settings)
    words = f"another pipeline serves `{tmp_path}` already; there is one of a service: stop that one first"
    assert str(caught.value) == words
