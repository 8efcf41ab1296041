"""How selective each literal is: the share of sampled codes that it accepts.

Codes come from a sample of events where there is one; else the end points that literals name stand for values:

    codes of `price`, sorted   [ 1 1 3 4 5 5 7 9 ]      price in codes 3 .. 5: 4 of 8, rate (4 + 0.5) / (8 + 1)

The half that is added keeps a rate from being 0. Cost: two binary searches for each interval of each literal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import ANY, KIND_MASK, UNION

if TYPE_CHECKING:
    from tidings.kernels.array_types import CodeArray, Float32Array, Int, IntArray


@jit
def sample_ends(
    head: CodeArray, low: CodeArray, high: CodeArray, union_start: CodeArray, union_low: CodeArray,
    union_high: CodeArray, top: IntArray, most: Int,
) -> tuple[CodeArray, IntArray]:  # fmt: skip
    """Return about `most` ends that the literals of each column name, and their number; `top[c]` is the last code."""
    columns = len(top)
    total = np.zeros(columns, np.int64)
    for at in range(len(head)):
        total[head[at] >> OP_BITS] += 1
    ends = np.empty((columns, 2 * most + 2), np.uint32)
    count = np.zeros(columns, np.int64)
    seen = np.zeros(columns, np.int64)
    for at in range(len(head)):
        column = np.int64(head[at] >> OP_BITS)
        seen[column] += 1
        # Every n-th literal of a column: no random numbers, so the same rows always give the same plan.
        if seen[column] % (1 + total[column] // most) != 0 or head[at] & KIND_MASK != ANY:
            continue
        first, last = np.int64(low[at]), np.int64(high[at])
        if head[at] & UNION:
            if union_start[first] == union_start[first + 1]:
                continue
            parts = np.int64(union_start[first + 1]) - np.int64(union_start[first])
            part = np.int64(union_start[first]) + seen[column] % parts  # one of them, each time another
            first, last = np.int64(union_low[part]), np.int64(union_high[part])
        if first > last:
            continue
        for end in (first, last):
            if 0 < end < top[column] and count[column] < ends.shape[1]:
                ends[column, count[column]] = end
                count[column] += 1
    return ends, count


@jit
def estimate_rates(
    head: CodeArray, low: CodeArray, high: CodeArray, union_start: CodeArray, union_low: CodeArray,
    union_high: CodeArray, sample_start: IntArray, sample: CodeArray,
) -> tuple[Float32Array, Float32Array]:  # fmt: skip
    """Return the share of sampled codes that each literal accepts, and the share that lies between its ends.

    The two differ for unions: a key finds what is accepted, a hull what lies between. `sample` is sorted within each
    column. Half a code is added, so that a literal which no sampled event meets is rare and not impossible: otherwise
    all such literals would look equally good, and their product with another literal free.
    """
    result = np.empty(len(head), np.float32)
    spanned = np.empty(len(head), np.float32)
    for at in range(len(head)):
        column = np.int64(head[at] >> OP_BITS)
        codes = sample[sample_start[column] : sample_start[column + 1]]
        if len(codes) == 0:
            result[at] = spanned[at] = 1.0
            continue
        inside, between = 0, 0
        if head[at] & UNION:
            least, most = np.int64(1) << 40, np.int64(0)
            for part in range(union_start[low[at]], union_start[low[at] + 1]):
                inside += np.searchsorted(codes, union_high[part], "right") - np.searchsorted(codes, union_low[part])
                least, most = min(least, np.int64(union_low[part])), max(most, np.int64(union_high[part]))
            if least <= most:
                between = np.searchsorted(codes, most, "right") - np.searchsorted(codes, least)
        elif low[at] <= high[at]:
            inside = np.searchsorted(codes, high[at], "right") - np.searchsorted(codes, low[at])
            between = inside
        result[at] = min(1.0, (inside + 0.5) / (len(codes) + 1))
        spanned[at] = min(1.0, (between + 0.5) / (len(codes) + 1))
    return result, spanned
