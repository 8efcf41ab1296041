"""Every literal of a text in one pass: an Aho-Corasick automaton over bytes, and wildcards decided on the spot.

Texts are UTF-8, so the bytes 0xF8 to 0xFF are free to mean something else. In a literal, `BEGIN` and `END`
stand for the ends of the text. In a wildcard program, `ONE` is any character and `MANY` any run of them.

There are two tries with one numbering: state 0 is the root for plain text, state 1 for case-folded text.
States are numbered level by level, so the children of a state follow one another, and `nodes[s]` is (first
child, failure state, longest literal that ends here or -1, byte that leads here); its last child is before
`nodes[s + 1, 0]`. The four lie together because a step into a large automaton costs what it fetches. The
roots and their children, which most bytes of a text pass through, have complete rows in `dense`.
Cost of a scan: the bytes, the literals that occur, the programs tried.

    literals he, she, hers     nodes   0 root   1 root (folded)   2 h   3 s   4 he*   5 sh   6 her   7 she*   8 hers*
                               fail of 7 (she) is 4 (he): both literals end here; * marks a hit
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.growth import grow
from tidings.kernels.jit import jit, jit_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, Int, Int32Array, IntArray

BEGIN, END = 0xFF, 0xFE
"""The bytes for the beginning and the end of a text, in literals."""

ONE, MANY = 0xF8, 0xF9
"""The bytes for any character and for any number of them, in programs."""

_CHILD, _FAIL, _HIT, _BYTE = 0, 1, 2, 3


@jit
def _find_child(nodes: Int32Array, state: Int, byte: Int) -> Int:
    low, high = np.int64(nodes[state, _CHILD]), np.int64(nodes[state + 1, _CHILD])
    while high - low > 4:  # the last few lie side by side in a line of the cache or two
        middle = (low + high) >> 1
        if nodes[middle, _BYTE] <= byte:
            low = middle
        else:
            high = middle
    for at in range(low, high):
        if nodes[at, _BYTE] == byte:
            return at
    return np.int64(-1)


@jit
def build_tries(data: ByteArray, starts: IntArray, middle: Int) -> Int32Array:
    """Return `nodes` without failures: the tries of sorted, distinct literals.

    Literal `i` is `data[starts[i]:starts[i + 1]]`; those before `middle` are for plain text. A state is the
    range of literals that share its prefix, so each level is read off the level above.
    """
    most = len(data) + 2
    nodes = np.full((most + 1, 4), -1, np.int32)
    low, high = np.empty(most, np.int32), np.empty(most, np.int32)
    low[0], high[0], low[1], high[1] = 0, middle, middle, len(starts) - 1
    at, count, depth, level_end = 0, 2, 0, 2
    while at < count:
        if at == level_end:
            depth += 1
            level_end = count
        nodes[at, _CHILD] = count
        literal, last = np.int64(low[at]), np.int64(high[at])
        if literal < last and starts[literal + 1] - starts[literal] == depth:
            nodes[at, _HIT] = literal
            literal += 1
        while literal < last:
            byte = data[starts[literal] + depth]
            nodes[count, _BYTE], low[count] = byte, literal
            while literal < last and data[starts[literal] + depth] == byte:
                literal += 1
            high[count] = literal
            count += 1
        at += 1
    nodes[count, _CHILD] = count
    return nodes[: count + 1].copy()


@jit
def link_failures(nodes: Int32Array, shorter: Int32Array) -> Int32Array:
    """Fill in the failure states and the literals that end with them; return the complete rows.

    `shorter[i]` becomes the longest literal that literal `i` ends with, or -1.
    """
    # Level by level, as states are numbered: a failure state is shorter than its state, so it is complete before it.
    nodes[0, _FAIL], nodes[1, _FAIL] = 0, 1
    for state in range(len(nodes) - 1):
        for to in range(nodes[state, _CHILD], nodes[state + 1, _CHILD]):
            fail = np.int64(state)
            child = np.int64(-1)
            while fail >= 2 and child < 0:
                fail = np.int64(nodes[fail, _FAIL])
                child = _find_child(nodes, fail, nodes[to, _BYTE])
            nodes[to, _FAIL] = child if child >= 0 else fail
            longest = nodes[nodes[to, _FAIL], _HIT]
            if nodes[to, _HIT] < 0:
                nodes[to, _HIT] = longest
            else:
                shorter[nodes[to, _HIT]] = longest
    dense = np.empty((nodes[2, _CHILD], 256), np.int32)
    for state in range(len(dense)):
        for byte in range(256):
            dense[state, byte] = state if state < 2 else dense[nodes[state, _FAIL], byte]
        for to in range(nodes[state, _CHILD], nodes[state + 1, _CHILD]):
            dense[state, nodes[to, _BYTE]] = to
    return dense


@jit_inline
def _skip_character(data: ByteArray, at: Int, end: Int) -> Int:
    at += 1
    while at < end and data[at] & 0xC0 == 0x80:
        at += 1
    return at


@jit_inline
def _find_byte(data: ByteArray, at: Int, end: Int, byte: Int) -> Int:
    while byte < ONE and at < end and data[at] != byte:
        at += 1
    return at


@jit
def fits(program: ByteArray, step: Int, stop: Int, data: ByteArray, at: Int, end: Int) -> bool:
    """Tell whether `program[step:stop]` accepts the whole of `data[at:end]`.

    Only the last `MANY` is ever tried again: what an earlier one could give, a later one can take.
    """
    many_step, many_at = np.int64(-1), np.int64(0)
    while True:
        if step < stop and program[step] == MANY:
            step += 1
            if step == stop:
                return True
            at = _find_byte(data, at, end, program[step])
            many_step, many_at = step, at
        elif at == end:
            # Nothing is left for `MANY` to give: an earlier start only leaves more to accept.
            return step == stop
        elif step < stop and program[step] == ONE:
            step += 1
            at = _skip_character(data, at, end)
        elif step < stop and program[step] == data[at]:
            step += 1
            at += 1
        elif many_step >= 0:
            many_at = _find_byte(data, _skip_character(data, many_at, end), end, program[many_step])
            step, at = many_step, many_at
        else:
            return False


class ScanTables(NamedTuple):
    """What a scan reads of an automaton; `scan` takes a plain tuple in this order, which Numba unpacks for nothing."""

    nodes: Int32Array
    dense: Int32Array
    literals: Int32Array
    members: Int32Array
    owners: Int32Array
    doubtful: ByteArray
    program_starts: IntArray
    programs: ByteArray


@jit
def scan(
    data: ByteArray, bounds: IntArray, stamps: Int32Array, stamp: Int, tables: ScanTables
) -> tuple[IntArray, Int32Array, Int32Array, Int32Array]:
    """Return the tests of each text: `starts`, `ids`, and the texts and ids of those that need another check.

    Text `t` is plain in `data[bounds[2 * t]:bounds[2 * t + 1]]` and case-folded from there up to
    `bounds[2 * t + 2]`. Literal `i` is needed by the patterns `members[literals[i, 0]:literals[i + 1, 0]]`, each
    of which needs one literal only, and ends with literal `literals[i, 1]`. Its `stamps[i]` is the text in which
    it occurred last, counted from `stamp`: whatever it ends with occurred then too. A pattern's program, if it has
    one, must fit as well; where it is `doubtful`, that does not decide. It is one way to satisfy the test
    `owners[pattern]`. In each text `ids` ascend; those that need another check may repeat.
    """
    nodes, dense, literals, members, owners, doubtful, program_starts, programs = tables
    texts = len(bounds) // 2
    starts = np.zeros(texts + 1, np.int64)
    ids, count = np.empty(16 + texts, np.int32), 0
    maybe_texts, maybe_ids, maybes = np.empty(16, np.int32), np.empty(16, np.int32), 0
    for text in range(texts):
        for side in range(2):
            begin, end = bounds[2 * text + side], bounds[2 * text + side + 1]
            state = np.int64(side)
            for at in range(begin - 2, end + 1):
                # Two steps before the first byte: the empty literal at the root, and `BEGIN`.
                if at > begin - 2:
                    byte = np.int64(BEGIN) if at < begin else np.int64(END) if at == end else np.int64(data[at])
                    to = np.int64(-1)
                    while state >= len(dense):
                        to = _find_child(nodes, state, byte)
                        if to >= 0:
                            break
                        state = np.int64(nodes[state, _FAIL])
                    state = to if to >= 0 else np.int64(dense[state, byte])
                literal = np.int64(nodes[state, _HIT])
                while literal >= 0 and stamps[literal] != stamp + text:
                    stamps[literal] = stamp + text
                    for place in range(literals[literal, 0], literals[literal + 1, 0]):
                        pattern = members[place]
                        step, stop = program_starts[pattern], program_starts[pattern + 1]
                        if step < stop and not fits(programs, step, stop, data, begin, end):
                            continue
                        if doubtful[pattern]:
                            if maybes == len(maybe_ids):
                                maybe_texts, maybe_ids = grow(maybe_texts, 0), grow(maybe_ids, 0)
                            maybe_texts[maybes], maybe_ids[maybes] = text, owners[pattern]
                            maybes += 1
                        else:
                            if count == len(ids):
                                ids = grow(ids, 0)
                            ids[count] = owners[pattern]
                            count += 1
                    literal = np.int64(literals[literal, 1])
        first = starts[text]
        if count > first + 1:
            ids[first:count].sort()
            last, first = count, first + 1
            count = first
            for at in range(first, last):
                if ids[at] != ids[count - 1]:
                    ids[count] = ids[at]
                    count += 1
        starts[text + 1] = count
    return starts, ids[:count], maybe_texts[:maybes], maybe_ids[:maybes]
