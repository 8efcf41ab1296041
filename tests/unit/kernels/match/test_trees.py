"""Leaves and trees decided for blocks of events, against one literal and one tree at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tidings.kernels.match import tree_code, trees, vector_words
from tidings.kernels.match.layout import EventCells, ForestCode, LeafArrays
from tidings.kernels.match.literals import ABSENT, SEVERAL, UNION, accepts

TOP = 12  # codes go up to here; a few far ones make the table of ranks too long
FAR = 2_000_000_000


@dataclass(frozen=True)
class Block:
    """Cells of a block and leaves by column, as the kernel wants them."""

    cells: np.ndarray
    many: tuple[np.ndarray, np.ndarray, np.ndarray]
    starts: np.ndarray
    column: np.ndarray
    op: np.ndarray
    low: np.ndarray
    high: np.ndarray
    union: tuple[np.ndarray, np.ndarray, np.ndarray]

    @property
    def event_cells(self):
        return EventCells(self.cells, np.ones(len(self.cells), np.uint8), *self.many)

    @property
    def leaves(self):
        return LeafArrays(self.column, self.op, self.low, self.high, *self.union)

    def truth(self, event, leaf):
        cell = self.cells[event, self.column[leaf]]
        return bool(accepts(cell, self.op[leaf], self.low[leaf], self.high[leaf], *self.many, *self.union))


def draw_block(rng, events, columns=4, leaves=24, several=0.2, far=0.0):
    def codes(count):
        return np.where(rng.random(count) < far, FAR + rng.integers(0, 9, count), rng.integers(0, TOP, count))

    cells = codes(events * columns).reshape(events, columns).astype(np.uint32)
    cells[rng.random(cells.shape) < 0.3] = ABSENT
    many_start, many_low, many_high = [0], [], []
    for place in np.argwhere(rng.random(cells.shape) < several):
        cells[tuple(place)] = SEVERAL | np.uint32(len(many_start) - 1)
        for low in codes(rng.integers(1, 4)):
            many_low.append(low)
            many_high.append(low + rng.integers(0, 3))
        many_start.append(len(many_low))
    column = np.sort(rng.integers(0, columns, leaves))
    op = rng.integers(0, 6, leaves).astype(np.uint8)
    low = codes(leaves)
    high = low + rng.integers(-1, 6, leaves)  # some accept nothing
    union_start, union_low, union_high = [0], [], []
    for leaf in np.flatnonzero(rng.random(leaves) < 0.3):
        for begin in codes(rng.integers(0, 4)):
            union_low.append(begin)
            union_high.append(begin + rng.integers(0, 4))
        op[leaf] |= UNION
        low[leaf] = len(union_start) - 1
        union_start.append(len(union_low))
    return Block(
        cells=cells,
        many=(np.array(many_start, np.int64), np.array(many_low, np.uint32), np.array(many_high, np.uint32)),
        starts=np.searchsorted(column, np.arange(columns + 1)).astype(np.int64),
        column=column.astype(np.uint32),
        op=op,
        low=low.astype(np.uint32),
        high=np.maximum(high, 0).astype(np.uint32),
        union=(np.array(union_start, np.int64), np.array(union_low, np.uint32), np.array(union_high, np.uint32)),
    )


def decide_block(block):
    truths = np.full(len(block.op) * vector_words.WORDS, 0xDEAD, np.uint64)
    trees.decide_leaves(block.event_cells, block.leaves, block.starts, truths)
    return (
        np.unpackbits(truths.view(np.uint8), bitorder="little").reshape(len(block.op), vector_words.EVENTS).astype(bool)
    )


def expect_block(block):
    rows = np.zeros((len(block.op), vector_words.EVENTS), bool)
    for leaf in range(len(block.op)):
        for event in range(len(block.cells)):
            rows[leaf, event] = block.truth(event, leaf)
    return rows


@given(st.integers(0, 2**32), st.integers(0, 80), st.sampled_from([0.0, 0.2, 1.0]), st.sampled_from([0.0, 0.3]))
@examples(60)
def test_leaves_of_a_block_are_the_literals_one_by_one(seed, events, several, far):
    block = draw_block(np.random.default_rng(seed), events, several=several, far=far)
    assert (decide_block(block) == expect_block(block)).all()


@pytest.mark.parametrize("events", [1, 63, 64, 65, 512])
@pytest.mark.parametrize("far", [0.0, 0.5])
def test_leaves_are_decided_for_every_size_of_block(events, far):
    block = draw_block(np.random.default_rng(events), events, leaves=12, several=0.05, far=far)
    assert (decide_block(block) == expect_block(block)).all()


def test_a_column_that_no_event_has_gives_only_weak_negations():
    block = draw_block(np.random.default_rng(1), 70, several=0.0)
    block.cells[:] = ABSENT
    assert (decide_block(block)[:, :70].all(axis=1) == ((block.op & 7) >= 3)).all()


def leaf_trees(rng, leaves, count):
    """Tokens of random trees and a function that says what each is worth, given the leaves' truths."""
    tokens, starts, naive = [], [0], []

    def grow(depth):
        kind = rng.integers(0, 4) if depth else 3
        if kind == 3:
            leaf = int(rng.integers(0, leaves))
            tokens.append(leaf)
            return lambda truth: truth[leaf]
        if kind == 2:
            tokens.append(-1 - (4 + tree_code.NEGATION))
            part = grow(depth - 1)
            return lambda truth: not part(truth)
        width = int(rng.integers(0, 4))
        tokens.append(-1 - (4 * width + int(kind)))
        parts = [grow(depth - 1) for _ in range(width)]
        fold = any if kind else all
        return lambda truth: fold(part(truth) for part in parts)

    for _ in range(count):
        naive.append(grow(4))
        starts.append(len(tokens))
    return np.array(tokens, np.int32), np.array(starts, np.int64), naive


@given(st.integers(0, 2**32), st.integers(1, 30))
@examples(60)
def test_trees_of_one_event_are_decided_as_written(seed, count):
    rng = np.random.default_rng(seed)
    block = draw_block(rng, 3, leaves=8)
    tokens, starts, naive = leaf_trees(rng, 8, count)
    roots, node_starts, pool = tree_code.share_nodes(tokens, starts, 8)
    code, starts, shared = tree_code.assemble(roots, node_starts, pool, 8)
    memo = np.zeros(8 + shared, np.int64)
    for event in range(len(block.cells)):
        out = np.empty(count, bool)
        forest = ForestCode(code, starts, (roots & 1).astype(np.uint8))
        trees.run_for_event(forest, block.leaves, block.event_cells, event, np.arange(count), memo, event + 1, out)
        truth = [block.truth(event, leaf) for leaf in range(8)]
        assert out.tolist() == [bool(tree(truth)) for tree in naive]


def test_shared_sub_trees_of_one_event_may_wait_for_each_other():
    block = draw_block(np.random.default_rng(5), 4, leaves=24, several=0.0)
    both, either = -1 - 8, -1 - (8 + tree_code.DISJUNCTION)
    tokens, starts = [], [0]
    for level in range(1, 11):
        for _ in range(4):
            for i in range(level):
                tokens += [either if i % 2 else both, i]
            tokens += [11]
            starts.append(len(tokens))
    roots, node_starts, pool = tree_code.share_nodes(np.array(tokens, np.int32), np.array(starts, np.int64), 24)
    code, program_starts, shared = tree_code.assemble(roots, node_starts, pool, 24)
    assert shared > 0
    for event in range(len(block.cells)):
        out = np.empty(40, bool)
        forest, memo = ForestCode(code, program_starts, (roots & 1).astype(np.uint8)), np.zeros(24 + shared, np.int64)
        trees.run_for_event(forest, block.leaves, block.event_cells, event, np.arange(40), memo, 1, out)
        for tree, truth in enumerate(out):
            value = block.truth(event, 11)
            for i in reversed(range(tree // 4 + 1)):
                value = (block.truth(event, i) or value) if i % 2 else (block.truth(event, i) and value)
            assert truth == value


@given(st.integers(0, 2**32), st.integers(0, 300), st.integers(0, vector_words.EVENTS))
@examples(40)
def test_slots_come_by_event_and_none_is_lost(seed, count, events):
    rng = np.random.default_rng(seed)
    bits = rng.random((count, vector_words.EVENTS)) < rng.random((count, 1)) ** 3
    bits[:, events:] = False
    rows = np.packbits(bits, axis=1, bitorder="little").reshape(-1).view(np.uint64)
    words = rng.integers(0, 2**32, count).astype(np.uint32)
    by_bit = np.empty((count + 63) // 64 * 64 * vector_words.WORDS, np.uint64)
    starts = trees.transpose_matches(rows, count, events, by_bit)
    slots = np.empty(starts[-1], np.uint32)
    trees.write_by_event(by_bit, words, count, starts, slots)
    for event in range(events):
        assert slots[starts[event] : starts[event + 1]].tolist() == words[bits[:, event]].tolist()
    assert starts[-1] == len(slots) == bits.sum()
