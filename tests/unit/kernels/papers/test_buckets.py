"""Growable lists in one pool, against lists of Python."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tidings.kernels.jit import jit
from tidings.kernels.papers.buckets import BucketLists, push, repack, tally
from tidings.papers.common.row_lists import RowLists

ROWS = 40
STEPS = st.lists(
    st.tuples(st.booleans(), st.lists(st.tuples(st.integers(-1, 5), st.integers(0, ROWS - 1)), max_size=20)),
    max_size=12,
)


def check(lists, twin, places):
    """Compare with the naive twin, and hold the layout to what it promises."""
    for number, items in enumerate(twin):
        assert sorted(lists.get(number).tolist()) == sorted(items)
        for item in items:
            assert lists.get(number)[places[0, item]] == item
    blocks = sorted((int(s), int(s + r)) for s, r in zip(lists.starts, lists.capacities, strict=True) if r)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(blocks))
    assert all(end <= lists.used[0] <= len(lists.pool) for _, end in blocks)
    assert len(lists) == sum(map(len, twin))


@examples(60)
@given(STEPS)
def test_lists_hold_what_was_pushed_and_not_taken(steps):
    lists, twin, places = RowLists(3), [[] for _ in range(6)], np.zeros((1, ROWS), np.int32)
    lists.extend(6)
    where = {}
    for adding, pairs in steps:
        # An item is in one list at most: that is what one place for each item means.
        pairs = {item: number for number, item in pairs if (item in where) != adding}
        items = np.array(list(pairs), np.int32)
        numbers = np.array([pairs[item] if adding else where[item] for item in pairs], np.int32)
        if adding:
            lists.push(numbers[None], items, places)
            where.update(pairs)
        else:
            lists.remove(numbers[None], items, places)
        for item, number in zip(items.tolist(), numbers.tolist(), strict=True):
            if not adding:
                del where[item]
            if number >= 0:
                (twin[number].append if adding else twin[number].remove)(item)
        check(lists, twin, places)


@jit
def push_one(lists, number, item):
    """Call `push`, which is always part of another kernel."""
    return push(lists, number, item)


def test_a_pool_that_is_too_small_is_left_as_it_was():
    starts, sizes, rooms = np.zeros(2, np.int64), np.zeros(2, np.int32), np.zeros(2, np.int32)
    pool, used = np.zeros(6, np.int32), np.zeros(1, np.int64)
    lists = BucketLists(starts, sizes, rooms, pool, used)
    assert [push_one(lists, 0, item) for item in range(10, 14)] == [0, 1, 2, 3]
    assert push_one(lists, 0, 14) == -1
    assert push_one(lists, 1, 15) == -1
    assert (sizes.tolist(), rooms.tolist(), used.tolist()) == ([4, 0], [4, 0], [4])
    assert pool[:4].tolist() == [10, 11, 12, 13]


def test_repacking_keeps_the_items_and_gives_each_list_its_room():
    lists, places = RowLists(3), np.zeros((1, 9), np.int32)
    lists.push(np.array([[0, 2, 0, 2, 2]], np.int32), np.arange(5, dtype=np.int32), places)
    larger = np.full(20, -1, np.int32)
    extra = np.array([1, 2, 3], np.int32)
    free = repack(lists.arrays, extra, larger)
    assert lists.starts.tolist() == [0, 3, 5]
    assert lists.capacities.tolist() == [3, 2, 6]
    assert (free, larger[:2].tolist(), larger[5:8].tolist()) == (11, [0, 2], [1, 3, 4])


@given(st.lists(st.integers(-1, 4)))
def test_a_tally_counts_what_has_a_list(numbers):
    counts = np.zeros(5, np.int32)
    tally(np.array(numbers, np.int32), counts)
    assert counts.tolist() == [numbers.count(number) for number in range(5)]


def test_pushing_one_at_a_time_moves_lists_now_and_then():
    lists, places = RowLists(2), np.zeros((1, 5_000), np.int32)
    for item in range(5_000):
        lists.push(np.array([[item % 2]], np.int32), np.array([item], np.int32), places)
    assert lists.get(0).tolist() == list(range(0, 5_000, 2))
    assert lists.get(1)[places[0, 4_999]] == 4_999
    assert len(lists.pool) < 4 * 5_000
