"""Values to codes: the place of a value among the end points of a column's predicates.

A value equal to end point `r` has the code `2r + 1`; one between two has the even code between theirs. A value that
is present but cannot be compared, an infinity here, has an even code above all of these, which no interval reaches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit, jit_inline
from tidings.kernels.match.literals import ABSENT

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, CodeArray, Float, FloatArray, Int, IntArray


@jit
def rank_numbers(values: FloatArray, ends: FloatArray, out: CodeArray) -> None:
    """Write the codes of numbers among sorted end points; NaN is absent, an infinity unreadable."""
    for at in range(len(values)):
        value = values[at]
        if value != value:  # noqa: PLR0124 - NaN
            out[at] = ABSENT
            continue
        if value == np.inf:
            out[at] = 2 * len(ends) + 2
            continue
        # Binary search for the first end point that is not below the value.
        low, high = 0, len(ends)
        while low < high:
            middle = (low + high) >> 1
            if ends[middle] < value:
                low = middle + 1
            else:
                high = middle
        out[at] = 2 * low + 1 if low < len(ends) and ends[low] == value else 2 * low


@jit
def rank_integers(values: FloatArray, base: Float, count: Int, out: CodeArray) -> None:
    """Write the codes of numbers among the integers from `base` on, `count` of them; NaN is absent."""
    for at in range(len(values)):
        value = values[at]
        if value != value:  # noqa: PLR0124 - NaN
            out[at] = ABSENT
        elif value == np.inf:
            out[at] = 2 * count + 2
        elif value < base:
            out[at] = 0
        elif value > base + (count - 1):
            out[at] = 2 * count
        else:
            whole = np.floor(value)
            rank = np.int64(whole - base)
            out[at] = 2 * rank + 1 if whole == value else 2 * rank + 2


@jit_inline
def compare_bytes(blob: ByteArray, begin: Int, end: Int, text: ByteArray, text_begin: Int, text_end: Int) -> Int:
    """Compare two byte strings: below, equal or above zero."""
    shorter = min(end - begin, text_end - text_begin)
    result = np.int64(0)
    for at in range(shorter):
        result = np.int64(blob[begin + at]) - np.int64(text[text_begin + at])
        if result != 0:
            break
    return result if result != 0 else (end - begin) - (text_end - text_begin)


@jit
def rank_bytes(text: ByteArray, text_start: IntArray, blob: ByteArray, start: IntArray) -> CodeArray:
    """Return the codes of byte strings among sorted byte strings; both are given as bytes and offsets."""
    out = np.empty(len(text_start) - 1, np.uint32)
    for at in range(len(text_start) - 1):
        low, high = np.int64(0), np.int64(len(start) - 1)
        code = np.int64(-1)
        while low < high:
            middle = (low + high) >> 1
            sign = compare_bytes(blob, start[middle], start[middle + 1], text, text_start[at], text_start[at + 1])
            if sign == 0:
                code = 2 * middle + 1
                break
            if sign < 0:
                low = middle + 1
            else:
                high = middle
        out[at] = code if code >= 0 else 2 * low
    return out
