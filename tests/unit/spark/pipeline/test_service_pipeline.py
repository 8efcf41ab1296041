"""The pipeline of a service as its settings have it."""

from datetime import timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings.service.settings import EventSettings, PatternServiceSettings, ServiceSettings
from tidings.spark.pipeline.service_pipeline import MOST_RECORDS, build_service_pipeline


@pytest.mark.parametrize("to", ["folder", "kafka"])
def test_a_batch_is_bounded_wherever_events_wait(tmp_path, to):
    places = {"servers": "localhost:9092", "topic": "events"} if to == "kafka" else {}
    source = build_service_pipeline(ServiceSettings(data=tmp_path, events=EventSettings(to=to, **places))).source
    bound = source.options["maxOffsetsPerTrigger"] if to == "kafka" else source.files
    assert 0 < int(bound) <= MOST_RECORDS


def test_the_bounds_of_time_reach_the_patterns(tmp_path):
    settings = PatternServiceSettings(lateness=timedelta(seconds=3), idle=None, ahead=timedelta(hours=2))
    patterns = build_service_pipeline(ServiceSettings(data=tmp_path, patterns=settings)).patterns
    assert (patterns.lateness, patterns.idle, patterns.ahead) == (timedelta(seconds=3), None, timedelta(hours=2))
