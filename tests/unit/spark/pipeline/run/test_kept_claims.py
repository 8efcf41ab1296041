"""Claims stay for as many batches as Spark's checkpoint goes back to: one that it runs again needs its own."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")
pytest.importorskip("sqlalchemy", reason="needs tidings[service]")

from tidings.concepts import Vocabulary
from tidings.service.pattern_model import PatternModel
from tidings.service.settings import ServiceSettings
from tidings.service.store.memory import MemoryStore
from tidings.spark.detect.followed.pattern_versions import PatternVersions
from tidings.spark.pipeline.run.pattern_follower import PatternFollower
from tidings.spark.pipeline.run.pattern_reading import PatternReading
from tidings.spark.pipeline.run.subscription_follower import RETAINED, count_kept_claims
from tidings.spark.pipeline.service_pipeline import build_service_pipeline


@pytest.mark.parametrize(("retained", "count"), [("20", 100), ("5000", 5000)])
def test_as_many_claims_stay_as_spark_keeps_batches(retained, count):
    settings = replace(ServiceSettings(data=Path("data")), spark={RETAINED: retained})
    assert count_kept_claims(build_service_pipeline(settings), 100) == count


def test_a_follower_of_patterns_keeps_so_many_claims(tmp_path):
    model = PatternModel(None)
    follower = PatternFollower(
        MemoryStore(),
        PatternVersions(tmp_path),
        PatternReading(Vocabulary(), model),
        model,
        report=lambda *_: None,
        kept_claims=3,
    )
    for batch in range(5):
        follower.claim(batch, {}, newest=None)
    assert sorted(int(path.stem) for path in tmp_path.glob("claims/*/*.json")) == [2, 3, 4]
