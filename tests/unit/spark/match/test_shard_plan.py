"""Where the matches of one event come together, for every wish and any number of shards."""

import pytest

pytest.importorskip("pyspark", reason="needs tidings[spark]")

from pyspark.sql.types import ArrayType, LongType

from tidings.spark.match.shard_plan import ShardPlan
from tidings.spark.match.worker_matcher import build_lists, build_pairs


@pytest.mark.parametrize(("grouped", "limit"), [(False, None), (True, None), (False, 5), (True, 5)])
def test_with_one_shard_a_worker_lists_and_limits_by_itself(grouped, limit):
    plan = ShardPlan(1, grouped=grouped, limit=limit)
    assert not plan.needs_gathering
    assert plan.worker_limit == limit
    assert plan.row_builder is (build_lists if grouped else build_pairs)
    assert isinstance(plan.build_id_field("s", LongType()).dataType, ArrayType) is grouped


@pytest.mark.parametrize(("grouped", "limit"), [(True, None), (False, 5), (True, 5)])
def test_with_several_shards_what_is_about_a_whole_event_is_gathered_after_the_workers(grouped, limit):
    plan = ShardPlan(3, grouped=grouped, limit=limit)
    assert plan.needs_gathering
    assert plan.worker_limit is None
    assert plan.row_builder is build_pairs
    assert plan.build_id_field("s", LongType()).dataType == LongType()


def test_pairs_of_several_shards_need_no_gathering():
    assert not ShardPlan(3).needs_gathering


def test_every_shard_refuses_the_same_events_so_one_is_asked():
    assert ShardPlan(3).copies == 3
    assert ShardPlan(3, judge=True).copies == 1
