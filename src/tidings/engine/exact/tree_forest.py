"""A forest of shared trees: many Boolean trees over numbered leaves, decided together.

A filter whose normal form is too large stays a tree. Its leaves are literals, numbered in a table that the segment
keeps; equal sub-trees of all trees are shared, and decided once for a block of events. The trees are compiled to
straight code over rows of 512 bits, one for each event: an instruction costs the same for one event as for 512. A
forest is immutable: a few flat arrays, which a snapshot may map from a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tidings.engine.arrays import freeze
from tidings.kernels.array_types import ByteArray, CodeArray, IntArray
from tidings.kernels.match import tree_code, trees
from tidings.kernels.match.layout import ForestCode
from tidings.kernels.match.vector_words import EVENTS, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from tidings.kernels.array_types import Int32Array, WordArray

TreeNode = int | tuple[Literal["and", "or"], tuple["TreeNode", ...]] | tuple[Literal["not"], "TreeNode"]
"""A tree: a leaf's number, `("and", parts)`, `("or", parts)` or `("not", part)`; no parts: true and false."""

MOST_ROWS = 1 << (32 - tree_code.ROW)
"""Leaves and shared sub-trees that the code of a forest can name."""

_AND, _OR = -1 - tree_code.CONJUNCTION, -1 - tree_code.DISJUNCTION
_NOT = -1 - (4 + tree_code.NEGATION)


@dataclass(frozen=True, slots=True, eq=False)
class TreeForest:
    """Trees as straight code; `slots[i]` is the slot of the i-th, whose program follows those of shared sub-trees.

    Trees of the same shape lie together, whatever order they came in, so that branches are predicted.

    >>> forest = TreeForest.build([(7, ("and", (0, ("not", 1))))], leaves=2)
    >>> truths = forest.make_truth_table()
    >>> truths[0], truths[8] = 0b011, 0b101  # leaf 0 holds for events 0 and 1, leaf 1 for 0 and 2
    >>> starts, slots = forest.match_block(truths, 3)
    >>> starts.tolist(), slots.tolist()
    ([0, 0, 1, 1], [7])
    """

    code: CodeArray
    starts: IntArray
    negated: ByteArray
    slots: CodeArray
    leaves: int

    def __post_init__(self) -> None:
        for name in ("code", "starts", "negated", "slots"):
            object.__setattr__(self, name, freeze(getattr(self, name)))

    @classmethod
    def build(cls, trees: Iterable[tuple[int, TreeNode]], *, leaves: int) -> TreeForest:
        """Build from slots and trees over leaves `0 .. leaves - 1`; a million trees of ten leaves take some seconds."""
        slots, tokens, token_starts = _write_tokens(trees)
        if len(tokens) and tokens.max() >= leaves:
            message = f"leaf `{tokens.max()}` is not in the table of {leaves} leaves; give `leaves` as its length"
            raise ValueError(message)
        roots, node_starts, pool = tree_code.share_nodes(tokens, token_starts, leaves)
        if leaves + len(node_starts) > MOST_ROWS:
            message = (
                f"`{leaves + len(node_starts)}` leaves and sub-trees are too many (`{MOST_ROWS}`); use more segments"
            )
            raise ValueError(message)
        code, starts, shared = tree_code.assemble(roots, node_starts, pool, leaves)
        order = np.argsort(tree_code.hash_shapes(code, starts, shared), kind="stable")
        code, starts = tree_code.reorder(code, starts, shared, order)
        negated = (roots[order] & 1).astype(np.uint8)
        return cls(code, starts, negated, slots[order], leaves)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> TreeForest:
        """Return the forest of these `to_arrays`; they may be read-only."""
        leaves = int(arrays["leaves"][0])
        return cls(arrays["code"], arrays["starts"], arrays["turned"], arrays["slots"], leaves)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays of a snapshot."""
        return {
            "code": self.code,
            "starts": self.starts,
            "turned": self.negated,
            "slots": self.slots,
            "leaves": np.array([self.leaves], np.int64),
        }

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def programs(self) -> ForestCode:
        """The code as kernels take it."""
        return ForestCode(self.code, self.starts, self.negated)

    @property
    def rows(self) -> int:
        """How many rows a table of truths, and a memo of `run_for_event`, must have: leaves, and shared sub-trees."""
        return self.leaves + len(self.starts) - 1 - len(self.slots)

    def make_truth_table(self) -> WordArray:
        """Return an empty table of truths: `decide_leaves` fills it for a block, `match_block` reads it and adds to it.

        Each row starts at a line of the processor's cache; one that lies across two costs twice.
        """
        raw = np.zeros((self.rows + 1) * WORDS, np.uint64)
        first = (-raw.ctypes.data // 8) % WORDS
        return raw[first : first + self.rows * WORDS]

    def match_block(self, truths: WordArray, events: int) -> tuple[IntArray, CodeArray]:
        """Decide all trees for a block of at most 512 events.

        Returns `starts` and `slots`: those of event `e` are `slots[starts[e]:starts[e + 1]]`, in no order. The rows of
        shared sub-trees in `truths` are written.
        """
        if not 0 <= events <= EVENTS:
            message = f"a block has at most {EVENTS} events, not `{events}`; split the batch"
            raise ValueError(message)
        rows, matching = np.empty(len(self) * WORDS, np.uint64), np.empty(len(self), np.uint32)
        count = trees.run_block(self.programs, self.slots, truths, self.leaves, events, rows, matching)
        # Allocated here: NumPy asks for large pages, the kernels' own arrays get small ones, and first touching
        # those cost more than all the rest of writing the slots.
        by_bit = np.empty((count + 63) // 64 * 64 * WORDS, np.uint64)
        starts = trees.transpose_matches(rows, count, events, by_bit)
        slots = np.empty(starts[-1], np.uint32)
        trees.write_by_event(by_bit, matching, count, starts, slots)
        return starts, slots

    def summarize(self) -> dict[str, int]:
        """Return how many trees, distinct leaves, shared sub-trees and instructions there are."""
        kinds, rows = self.code & np.uint32(3), self.code >> np.uint32(tree_code.ROW)
        is_named = np.zeros(self.rows + 1, bool)
        is_named[rows[kinds != tree_code.POP]] = True
        used = int(is_named[: self.leaves].sum())
        shared = self.rows - self.leaves
        return {"trees": len(self), "leaves": used, "shared": shared, "instructions": len(self.code)}


def _write_tokens(trees: Iterable[tuple[int, TreeNode]]) -> tuple[CodeArray, Int32Array, IntArray]:
    """Write trees as the tokens of `tree_code.share_nodes`: slots, tokens, and where each tree's tokens start."""
    slots: list[int] = []
    starts, tokens = [0], list[int]()
    emit = tokens.append
    for slot, root in trees:
        slots.append(slot)
        stack: list[Any] = [root]
        pop, push = stack.pop, stack.append
        # A node's leaves right after it, then its other parts: the order within a node does not matter.
        while stack:
            node = pop()
            if node.__class__ is int:
                emit(node)
                continue
            op, parts = node
            if op == "not":
                emit(_NOT)
                push(parts)
                continue
            emit((_AND if op == "and" else _OR) - 4 * len(parts))
            for part in parts:
                if part.__class__ is int:
                    emit(part)
                else:
                    push(part)
        starts.append(len(tokens))
    return np.array(slots, np.uint32), np.array(tokens, np.int32), np.array(starts, np.int64)
