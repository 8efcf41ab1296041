"""Boolean trees compiled into straight code: equal sub-trees are shared, `not` is pushed down, programs are sorted.

Two steps. `share_nodes` makes a graph of distinct nodes (hash consing). Every inner node is an `and` whose operands may
be negated (an `or` is a negated `and` of negated operands), so a node is a sorted set of signed references, and equal
nodes are equal sets, however they were written:

    a or (b and c)   =   not (not a and not (b and c))        leaves a b c = 0 1 2, references 2 * number + negated
    node 3: [2, 4]        b and c                             node 4: [1, 7]        not a and not node 3
    root: 9               not node 4                          pool [2 4 | 1 7], node_starts [0 2 4]

`assemble` then writes programs, bottom up, by copying those of the operands. A sub-tree that several trees use gets a
row of its own if that saves instructions, and is decided once for a block of events; its users name the row.

An instruction is `row << ROW | TURN | FLIP | kind`: with `acc` all ones at the start,
`AND` does `acc = turn(acc) & flip(row)`; `PUSH` keeps `turn(acc)` and does `acc = flip(row)`;
`POP` does `acc = turn(acc) & kept`. The operand that keeps most values comes first and needs no `PUSH`, so the
stack gets deeper only where two operands are equally deep (Sethi and Ullman): 32 kept values always do.

    a and b                       AND a, AND b
    a and (b or c)                AND a [STOP], PUSH not b, AND not c, POP [TURN]

Invariant: an operand has a lesser number than every node that refers to it, so one ascending pass writes all programs.
Cost: each token once, and a program for every distinct node; a million trees of ten leaves take some seconds. It is
paid when a segment is built, and each block of events saves the nodes that trees share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.growth import ensure_room
from tidings.kernels.jit import jit

if TYPE_CHECKING:
    from tidings.kernels.array_types import CodeArray, FloatArray, Int, Int32Array, IntArray

AND, PUSH, POP = 0, 1, 2
"""The kind of an instruction: its two lowest bits."""

FLIP, TURN, STOP, ROW = 4, 8, 16, 5
"""Bits: negate the row; negate `acc` first; end the program if no bit of `acc` is left. Shift of the row's number."""

TRUE, FALSE = -2, -1
"""The references that are not nodes; each is the other's negation, as `reference ^ 1` says."""

CONJUNCTION, DISJUNCTION, NEGATION = 0, 1, 2
"""Tokens of a tree in prefix order: `-1 - (4 * operands + this)` for a node, its own number for a leaf."""

LEAF_RATE = 0.1
"""How often a leaf is taken to be true; only the order of rates matters, and a negated leaf is true more often."""

WORTH = 3
"""A row of its own is taken to cost as much as this many instructions: a store, a program, 64 bytes of cache.

With random trees 0, 3 and 12 could not be told apart; filters that people copy share larger parts.
"""


@jit
def _normalise(operands: IntArray, base: Int, top: Int) -> Int:
    """Sort the operands of an `and` in place and drop what is true or there twice; return the new top, -1 for false.

    `x and not x` is false; the two are neighbours once sorted, as their references differ in the last bit.
    """
    if top - base > 24:
        operands[base:top].sort()
    else:
        for i in range(base + 1, top):
            value = operands[i]
            j = i
            while j > base and operands[j - 1] > value:
                operands[j] = operands[j - 1]
                j -= 1
            operands[j] = value
    end = base
    for i in range(base, top):
        value = operands[i]
        if value == TRUE or (end > base and operands[end - 1] == value):
            continue
        if value == FALSE or (end > base and operands[end - 1] == (value ^ 1)):
            return -1
        operands[end] = value
        end += 1
    return end


@jit
def _rehash(hashes: IntArray, count: Int, size: Int) -> Int32Array:
    """Return a hash table of `size` places (a power of two) with the nodes so far."""
    table = np.full(size, -1, np.int32)
    for node in range(count):
        at = hashes[node] & (size - 1)
        while table[at] >= 0:
            at = (at + 1) & (size - 1)
        table[at] = node
    return table


@jit
def share_nodes(tokens: IntArray, starts: IntArray, n_leaves: Int) -> tuple[IntArray, IntArray, IntArray]:
    """Read trees in prefix order; return the roots' references, and the operands of the distinct nodes (CSR).

    One pass with an explicit stack: `kind`, `flip`, `left`, `base` of the open nodes, and one shared stack of operands.
    A negation is not a node: it flips `pending`, which turns the next `and` into an `or` and back (De Morgan).
    Invariant: a node has a greater number than all nodes that it refers to.
    """
    n_trees = len(starts) - 1
    longest = 1
    for tree in range(n_trees):
        longest = max(longest, starts[tree + 1] - starts[tree])
    kind, flip, left = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    base, merged = np.empty(longest, np.int64), np.empty(longest, np.bool_)
    operands = np.empty(longest, np.int64)
    roots = np.empty(n_trees, np.int64)
    node_starts, hashes, pool = np.zeros(1025, np.int64), np.empty(1024, np.int64), np.empty(4096, np.int64)
    table = _rehash(hashes, 0, 4096)
    count = 0
    for tree in range(n_trees):
        depth, top, pending = 0, 0, 0
        for place in range(starts[tree], starts[tree + 1]):
            token = tokens[place]
            value = np.int64(0)
            if token >= 0:
                value = 2 * np.int64(token) + pending
            else:
                payload = -1 - np.int64(token)
                op, width = payload & 3, payload >> 2
                if op == NEGATION:
                    pending ^= 1
                    continue
                op ^= pending
                if width > 0:
                    kind[depth], flip[depth], left[depth] = op, pending, width
                    # An `and` in an `and` is the same `and`; only its own negation may differ.
                    merged[depth] = depth > 0 and kind[depth - 1] == op
                    base[depth] = base[depth - 1] if merged[depth] else top
                    depth += 1
                    continue
                value = np.int64(TRUE) ^ op
            while depth > 0:
                operands[top] = value ^ kind[depth - 1]
                top += 1
                left[depth - 1] -= 1
                while left[depth - 1] == 0 and merged[depth - 1]:
                    depth -= 1
                    left[depth - 1] -= 1
                if left[depth - 1] > 0:
                    pending = flip[depth - 1]
                    break
                depth -= 1
                first = base[depth]
                end = _normalise(operands, first, top)
                top = first
                width = end - first
                if end < 0:
                    value = np.int64(FALSE)
                elif width == 0:
                    value = np.int64(TRUE)
                elif width == 1:
                    value = operands[first]
                else:
                    hashed = np.int64(width)
                    for i in range(first, end):
                        hashed = ((hashed ^ (hashed >> 31) ^ operands[i]) & 0x7FFFFFFF) * 0x9E3779B1  # below 2**63
                    hashed >>= 20
                    at = hashed & (len(table) - 1)
                    node = np.int64(table[at])
                    while node >= 0:
                        begin = node_starts[node]
                        if hashes[node] == hashed and node_starts[node + 1] - begin == width:
                            same = True
                            for i in range(width):
                                if pool[begin + i] != operands[first + i]:
                                    same = False
                                    break
                            if same:
                                break
                        at = (at + 1) & (len(table) - 1)
                        node = np.int64(table[at])
                    if node < 0:
                        node = np.int64(count)
                        count += 1
                        begin = node_starts[node]
                        pool = ensure_room(pool, begin + width)
                        pool[begin : begin + width] = operands[first:end]
                        node_starts = ensure_room(node_starts, count + 1)
                        node_starts[count] = begin + width
                        hashes = ensure_room(hashes, count)
                        hashes[node] = hashed
                        table[at] = node
                        if 2 * count > len(table):
                            table = _rehash(hashes, count, 4 * len(table))
                    value = 2 * (n_leaves + node)
                value ^= kind[depth]
            if depth == 0:
                roots[tree] = value
    return roots, node_starts[: count + 1].copy(), pool[: node_starts[count]].copy()


# Flat, as it is called for each node: to hand a group of arrays on counts references of all of them (`layout`), and a
# forest may have a million nodes.
@jit
def _write_program(
    code: CodeArray, at: Int, node: Int, guarded: bool, node_starts: IntArray, pool: IntArray, n_leaves: Int,
    row: IntArray, starts: IntArray, need: IntArray, rates: FloatArray, order: FloatArray,
) -> tuple[Int, Int]:  # fmt: skip
    """Write a node's program from those of its operands; return where it ends and how many values it keeps.

    Operands are *simple* (a leaf or a row: one instruction) or *heavy* (code to copy). A `guarded` program, that of a
    whole tree, begins with the simple ones, the rarest first, and may stop after them. Any other begins with the heavy
    operand that keeps most values, and has no stops: it is copied into others, where the end is not the end.
    """
    simple, heavy, length = 0, 0, 1
    first, end = node_starts[node], node_starts[node + 1]
    for i in range(first, end):
        ref = pool[i]
        child = (ref >> 1) - n_leaves
        plain = child < 0 or row[child] >= 0
        simple += plain
        length += 1 if plain else starts[child + 1] - starts[child] + 1
        rate = rates[ref >> 1]
        # Simple operands first, by how often they are true; then the others, by what they keep.
        weight = (1.0 - rate if ref & 1 else rate) if plain or guarded else 64.0 - need[child]
        place = i - first
        keys, refs = order[0], order[1]
        key = weight if plain else weight + 100.0
        while place > 0 and keys[place - 1] > key:
            keys[place], refs[place] = keys[place - 1], refs[place - 1]
            place -= 1
        keys[place], refs[place] = key, ref
    refs = order[1]
    heavy = end - first - simple
    deepest, turn = 0, np.int64(0)
    guarded = guarded and simple > 0
    skip = 0 if guarded or heavy == 0 else 1
    if skip:
        ref = np.int64(refs[simple])
        child = (ref >> 1) - n_leaves
        for i in range(starts[child], starts[child + 1]):
            code[at] = code[i]
            at += 1
        turn = (ref & 1) * TURN
        deepest = need[child]
    for i in range(simple):
        ref = np.int64(refs[i])
        number = ref >> 1 if ref < 2 * n_leaves else row[(ref >> 1) - n_leaves]
        stop = STOP if guarded and i == simple - 1 and heavy > 0 else 0
        code[at] = number << ROW | (ref & 1) * FLIP | turn | stop | AND
        at += 1
        turn = np.int64(0)
    for i in range(simple + skip, simple + heavy):
        ref = np.int64(refs[i])
        child = (ref >> 1) - n_leaves
        code[at] = np.int64(code[starts[child]]) | turn | PUSH  # it began with a plain AND onto all ones
        at += 1
        turn = np.int64(0)
        for j in range(starts[child] + 1, starts[child + 1]):
            code[at] = code[j]
            at += 1
        code[at] = (ref & 1) * TURN | (STOP if guarded and i < simple + heavy - 1 else 0) | POP
        at += 1
        deepest = max(deepest, need[child] + 1)
    return at, deepest


@jit
def assemble(roots: IntArray, node_starts: IntArray, pool: IntArray, n_leaves: Int) -> tuple[CodeArray, IntArray, Int]:
    """Write a program for every shared node and every root, in that order; return code, starts and the shared count.

    Nodes are written in ascending order, so the code of an operand is there to be copied. The rate of a node is the
    product of its operands' rates: they are taken to be independent, as nothing better is known.
    """
    n_nodes = len(node_starts) - 1
    uses = np.zeros(n_nodes, np.int64)
    widest = 1
    for node in range(n_nodes):
        widest = max(widest, node_starts[node + 1] - node_starts[node])
    for ref in pool:
        if ref >= 2 * n_leaves:
            uses[(ref >> 1) - n_leaves] += 1
    for ref in roots:
        if ref >= 2 * n_leaves:
            uses[(ref >> 1) - n_leaves] += 1
    row = np.full(n_nodes, -1, np.int64)  # of nodes that have one of their own
    need = np.zeros(n_nodes, np.int64)
    rates = np.full(n_leaves + n_nodes, LEAF_RATE)
    order = np.empty((2, widest), np.float64)
    starts = np.zeros(n_nodes + 1, np.int64)
    code = np.empty(max(64, 2 * len(pool)), np.uint32)
    shared = 0
    for node in range(n_nodes):
        rate, length = 1.0, 0
        for i in range(node_starts[node], node_starts[node + 1]):
            ref = pool[i]
            rate *= 1.0 - rates[ref >> 1] if ref & 1 else rates[ref >> 1]
            child = (ref >> 1) - n_leaves
            length += 1 if child < 0 or row[child] >= 0 else starts[child + 1] - starts[child] + 1
        rates[n_leaves + node] = rate
        code = ensure_room(code, starts[node] + length)
        at, need[node] = _write_program(
            code, starts[node], node, False, node_starts, pool, n_leaves, row, starts, need, rates, order
        )
        starts[node + 1] = at
        size = at - starts[node]
        # Sharing replaces `size` instructions by one for each user, and costs the node's own program and its row.
        if uses[node] > 1 and uses[node] * (size - 1) > size + WORTH:
            row[node] = n_leaves + shared
            shared += 1
    # Copy what is kept behind the scratch code; the code of nodes that are not shared was only there to be copied.
    lengths = 0
    for node in range(n_nodes):
        if row[node] >= 0:
            lengths += starts[node + 1] - starts[node]
    for ref in roots:
        child = (ref >> 1) - n_leaves
        lengths += starts[child + 1] - starts[child] + 1 if child >= 0 and row[child] < 0 else 1
    last = starts[n_nodes]
    code = ensure_room(code, last + lengths)
    final_starts = np.zeros(shared + len(roots) + 1, np.int64)
    at, program = last, 0
    for node in range(n_nodes):
        if row[node] >= 0:
            for i in range(starts[node], starts[node + 1]):
                code[at] = code[i]
                at += 1
            program += 1
            final_starts[program] = at - last
    for ref in roots:
        child = (ref >> 1) - n_leaves
        if child >= 0 and row[child] < 0:
            at, _ = _write_program(
                code, at, child, ref & 1 == 0, node_starts, pool, n_leaves, row, starts, need, rates, order
            )
        elif ref >= 0:
            code[at] = ((ref >> 1) if child < 0 else row[child]) << ROW | AND
            at += 1
        program += 1
        final_starts[program] = at - last
    return code[last:at].copy(), final_starts, shared


@jit
def hash_shapes(code: CodeArray, starts: IntArray, first: Int) -> IntArray:
    """Return a key for each program from `first` on: its length, and a hash of when it pushes and pops.

    Trees are sorted by it, so that neighbours have the same sequence of branches and the processor predicts them.
    """
    keys = np.empty(len(starts) - 1 - first, np.int64)
    for i in range(len(keys)):
        begin, end = starts[first + i], starts[first + i + 1]
        key = np.int64(0)
        for at in range(begin, end):
            key = ((key ^ (key >> 31) ^ (np.int64(code[at]) & 3)) & 0x7FFFFFFF) * 0x9E3779B1  # below 2**63
        keys[i] = min(end - begin, 32767) << 48 | key >> 15
    return keys


@jit
def reorder(code: CodeArray, starts: IntArray, first: Int, order: FloatArray) -> tuple[CodeArray, IntArray]:
    """Return code and starts with the programs from `first` on in another order."""
    out, out_starts = np.empty_like(code), np.empty_like(starts)
    at = starts[first]
    out[:at] = code[:at]
    out_starts[: first + 1] = starts[: first + 1]
    for i in range(len(order)):
        begin, end = starts[first + order[i]], starts[first + order[i] + 1]
        for place in range(begin, end):
            out[at] = code[place]
            at += 1
        out_starts[first + i + 1] = at
    return out, out_starts
