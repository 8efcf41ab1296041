"""The paper's workload: counts, spreads and quotas as its section 6 says."""

import numpy as np
import pytest

from tidings.bench.workloads.composites import SECOND, composites, name_of, publications, uniform_stream
from tidings.model.patterns import Gap
from tidings.papers.p_topss.paper_machine import PaperMachine


def list_types(patterns):
    return np.array([[int(step.filter[1:]) for step in pattern.steps()] for pattern in patterns])


def is_same(first, second):
    return np.array_equal(first.types, second.types) and np.array_equal(first.times, second.times)


def test_a_seed_gives_the_same_workload_every_time():
    patterns = composites(20, seed=1)
    assert composites(20, seed=1) == patterns
    assert composites(20, seed=2) != patterns
    assert is_same(publications(patterns, seed=3), publications(patterns, seed=3))
    assert not is_same(publications(patterns, seed=3), publications(patterns, seed=4))
    assert is_same(uniform_stream(50, 5, seed=1), uniform_stream(50, 5, seed=1))


@pytest.mark.parametrize("later", [0, 2, 9])
def test_subscriptions_have_the_length_and_the_operators_asked_for(later):
    patterns = composites(100, later=later, seed=1)
    assert {len(pattern.steps()) for pattern in patterns} == {10}
    assert {sum(joint.gap is Gap.LATER for joint in pattern.root.joints) for pattern in patterns} == {later}


def test_operators_are_placed_uniformly():
    patterns = composites(3000, seed=1)
    places = np.sum([[joint.gap is Gap.LATER for joint in pattern.root.joints] for pattern in patterns], axis=0)
    assert np.allclose(places / 3000, 2 / 9, atol=0.03)


def test_uniform_types_cover_the_pool_evenly_and_gaussian_ones_its_middle():
    even = np.bincount(list_types(composites(1000, seed=1)).ravel(), minlength=50)
    middle = np.bincount(list_types(composites(1000, shape="gaussian", seed=1)).ravel(), minlength=50)
    assert len(even) == len(middle) == 50
    assert even.min() > 140
    assert even.max() < 260
    assert middle[20:30].sum() > 3 * middle[:10].sum()
    assert middle[20:30].sum() > 2 * even[20:30].sum()


def test_a_single_step_is_a_pattern_too_and_has_no_partial_match():
    patterns = composites(3, length=1, later=0, seed=1)
    stream = publications(patterns, irrelevant=(1, 1), pool=50, seed=1)
    assert (stream.types < 50).sum() == 3 * 20


def test_full_matches_alone_give_each_subscription_its_quota_of_events():
    patterns = composites(30, seed=1)
    stream = publications(patterns, partial=0, full=4, pool=50, seed=2)
    relevant = stream.types[stream.types < 50]
    assert sorted(map(tuple, relevant.reshape(-1, 10))) == sorted(map(tuple, list_types(patterns).repeat(4, axis=0)))


@pytest.mark.parametrize(("shape", "mean"), [("uniform", 5.0), ("gaussian", 3.0)])
def test_partial_matches_are_beginnings_and_gaussian_ones_are_shorter(shape, mean):
    patterns = composites(300, seed=1)
    stream = publications(patterns, partial=20, full=0, shape=shape, pool=50, seed=2)
    assert abs((stream.types < 50).sum() / 6000 - mean) < 0.15


def test_every_subscription_is_matched_as_often_as_its_quota_at_least():
    patterns = composites(25, seed=1)
    stream = publications(patterns, partial=3, full=3, seed=2)
    machine, counts = PaperMachine(), dict.fromkeys(range(25), 0)
    for number, pattern in enumerate(patterns):
        machine.add(str(number), pattern)
    for name, time in zip(stream.names(), stream.times.tolist(), strict=True):
        for match in machine.on_event({name}, time):
            counts[int(match.subscription)] += 1
    assert min(counts.values()) >= 3


def test_the_default_workload_has_about_two_million_events_of_which_one_in_eight_is_relevant():
    stream = publications(composites(seed=1), pool=50, seed=2)
    assert 2_250_000 < len(stream) < 2_400_000
    assert 0.12 < (stream.types < 50).mean() < 0.14
    assert stream.types.max() == 59


def test_events_are_one_second_apart():
    stream = uniform_stream(1000, 7, seed=1)
    assert set(np.diff(stream.times).tolist()) == {SECOND}
    assert set(stream.types.tolist()) == set(range(7))


def test_a_stream_becomes_columns():
    stream = uniform_stream(20, 4, seed=1)
    table = stream.table()
    assert table.column_names == ["id", "time", "type"]
    assert table["type"].to_pylist() == stream.names() == [name_of(number) for number in stream.types]
    assert uniform_stream(0, 4, seed=1).table().num_rows == 0
