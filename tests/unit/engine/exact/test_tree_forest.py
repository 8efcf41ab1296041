"""Forests against a recursive evaluator that knows nothing of sharing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tidings.engine.exact.tree_forest import TreeForest
from tidings.kernels.match.vector_words import EVENTS, WORDS

LEAVES = 10


def holds(node, truth):
    if isinstance(node, int):
        return truth[node]
    op, parts = node
    if op == "not":
        return ~holds(parts, truth)
    result = np.full(truth.shape[1], op == "and")
    for part in parts:
        result = result & holds(part, truth) if op == "and" else result | holds(part, truth)
    return result


def nodes(leaves=LEAVES):
    return st.recursive(
        st.integers(0, leaves - 1),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, max_size=4).map(tuple)),
            st.tuples(st.just("not"), inner),
        ),
        max_leaves=20,
    )


def draw_truth(seed, events, leaves=LEAVES):
    rng = np.random.default_rng(seed)
    return rng.random((leaves, events)) < rng.random((leaves, 1))


def fill_table(forest, truth):
    """Return a table with these truths, and noise at the bits of events that are not there."""
    bits = np.random.default_rng(0).random((len(truth), EVENTS)) < 0.5
    bits[:, : truth.shape[1]] = truth
    table = forest.make_truth_table()
    table[: len(truth) * WORDS] = np.packbits(bits, axis=1, bitorder="little").reshape(-1).view(np.uint64)
    return table


def find_slots(forest, truth):
    starts, slots = forest.match_block(fill_table(forest, truth), truth.shape[1])
    return [sorted(slots[a:b].tolist()) for a, b in pairwise(starts)]


def expect_slots(trees, truth):
    rows = [(slot, holds(node, truth)) for slot, node in trees]
    return [sorted(slot for slot, row in rows if row[event]) for event in range(truth.shape[1])]


@given(st.lists(nodes(), max_size=12), st.integers(0, 2**32), st.integers(0, 130))
@examples(150)
def test_a_forest_decides_what_its_trees_say(roots, seed, events):
    trees = [(3 * i + 1, root) for i, root in enumerate(roots)]
    truth = draw_truth(seed, events)
    assert find_slots(TreeForest.build(trees, leaves=LEAVES), truth) == expect_slots(trees, truth)


@given(st.lists(nodes(4), min_size=1, max_size=3), st.integers(0, 2**32))
@examples(80)
def test_sharing_changes_nothing(parts, seed):
    trees = [(i, ("or" if i % 3 else "and", (*parts, i % 10, ("not", (i * 7) % 10)))) for i in range(40)]
    truth = draw_truth(seed, 70)
    assert find_slots(TreeForest.build(trees, leaves=LEAVES), truth) == expect_slots(trees, truth)


@pytest.mark.parametrize("events", [0, 1, 63, 64, 65, 511, 512])
def test_every_size_of_block_is_decided(events):
    trees = [(0, ("not", ("and", (0, 1)))), (1, ("or", (2, ("and", (3, ("not", 4)))))), (2, 5), (3, ("not", 6))]
    truth = draw_truth(events, events)
    assert find_slots(TreeForest.build(trees, leaves=LEAVES), truth) == expect_slots(trees, truth)


def test_more_trees_than_a_group_of_slots_are_decided():
    trees = [(slot, ("or", (slot % 10, (slot + 3) % 10))) for slot in range(130)]
    truth = draw_truth(1, 100)
    assert find_slots(TreeForest.build(trees, leaves=LEAVES), truth) == expect_slots(trees, truth)


def test_nothing_and_everything_are_trees_too():
    trees = [(1, ("and", ())), (2, ("or", ())), (3, ("and", (0, ("not", 0)))), (4, ("or", (0, ("not", 0))))]
    forest = TreeForest.build(trees, leaves=1)
    assert find_slots(forest, draw_truth(2, 5, 1)) == [[1, 4]] * 5
    assert forest.summarize()["instructions"] == 0


def test_an_empty_forest_finds_nothing():
    forest = TreeForest.build([], leaves=0)
    assert find_slots(forest, np.zeros((0, 3), bool)) == [[], [], []]
    assert forest.summarize()["trees"] == 0


def test_trees_written_differently_may_be_one():
    ways = [
        ("and", (0, 1, ("or", (2, 3)))),
        ("and", (("or", (3, 2)), ("and", (1, 0, 1)))),
        ("not", ("or", (("not", 1), ("not", 0), ("and", (("not", 2), ("not", 3)))))),
    ]
    forest = TreeForest.build([(slot, ways[slot % 3]) for slot in range(30)], leaves=4)
    summary = forest.summarize()
    assert (summary["trees"], summary["leaves"], summary["shared"]) == (30, 4, 1)
    assert summary["instructions"] < 30 + 6


def test_a_forest_comes_back_from_arrays_that_cannot_be_written():
    trees = [(slot, ("and", (slot % 7, ("not", (slot + 1) % 7), ("or", (8, 9))))) for slot in range(50)]
    forest, truth = TreeForest.build(trees, leaves=LEAVES), draw_truth(3, 200)
    arrays = forest.to_arrays()
    for array in arrays.values():
        array.flags.writeable = False
    assert find_slots(TreeForest.from_arrays(arrays), truth) == expect_slots(trees, truth)


def test_deep_and_wide_trees_are_built_without_recursion():
    deep = 0
    for i in range(3000):
        deep = ("or" if i % 2 else "and", (deep, i % 10))
    trees = [(0, deep), (1, ("or", tuple(range(10)) * 50)), (2, ("not", ("and", (deep, 3))))]
    truth = draw_truth(4, 20)
    values = truth[0]
    for i in range(3000):
        values = values | truth[i % 10] if i % 2 else values & truth[i % 10]
    rows = [values, truth.any(axis=0), ~(values & truth[3])]
    wanted = [[slot for slot, row in enumerate(rows) if row[event]] for event in range(20)]
    assert find_slots(TreeForest.build(trees, leaves=LEAVES), truth) == wanted


def test_balanced_trees_keep_few_values():
    def full(depth, first):
        op = "and" if depth % 2 else "or"
        return ("not", first % LEAVES) if depth == 0 else (op, (full(depth - 1, first), full(depth - 1, 3 * first + 1)))

    trees = [(0, full(10, 1))]
    truth = draw_truth(6, 64)
    assert find_slots(TreeForest.build(trees, leaves=LEAVES), truth) == expect_slots(trees, truth)


def test_a_leaf_outside_the_table_is_refused():
    with pytest.raises(ValueError, match="leaf `4` is not in the table of 4 leaves"):
        TreeForest.build([(0, ("and", (1, 4)))], leaves=4)


def test_a_block_of_too_many_events_is_refused():
    forest = TreeForest.build([(0, 0)], leaves=1)
    with pytest.raises(ValueError, match="at most 512 events, not `513`"):
        forest.match_block(forest.make_truth_table(), 513)


def test_rows_of_a_table_start_at_lines_of_the_cache():
    assert TreeForest.build([(0, 0)], leaves=1).make_truth_table().ctypes.data % 64 == 0
