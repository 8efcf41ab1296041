"""The pipeline of a service as its settings have it."""

import os
from datetime import timedelta

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tests.kafka.broker import wait_for

from tidings.service.settings import EventSettings, HousekeepingSettings, PatternServiceSettings, ServiceSettings
from tidings.spark.pipeline.service_pipeline import MOST_RECORDS, build_service_pipeline, trim_by_the_clock


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


def test_old_dead_letters_go_while_the_pipeline_runs(tmp_path):
    keeping = HousekeepingSettings(every=timedelta(milliseconds=10), dead_letters=timedelta(days=1))
    settings = ServiceSettings(data=tmp_path, housekeeping=keeping)
    batches = [settings.letters_folder / f"batch={number:08}" for number in (1, 2)]
    for path in batches:
        path.mkdir(parents=True)
    os.utime(batches[0], (0, 0))
    with trim_by_the_clock(settings):
        assert wait_for(lambda: not batches[0].exists(), 10)
    assert [path.name for path in settings.letters_folder.iterdir()] == [batches[1].name]
