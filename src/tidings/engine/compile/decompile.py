"""Decompiling: a filter read back from its row, as it was written; so most filters need not be kept beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.engine.compile.columns import View
from tidings.engine.compile.encoders.time import to_datetime
from tidings.engine.exact.exact_checks import quantify
from tidings.kernels.match.layout import OP_BITS
from tidings.kernels.match.literals import UNION
from tidings.model import Exists, In, Is, IsNull, Kind, Range, all_of

if TYPE_CHECKING:
    from tidings.engine.segment import Segment
    from tidings.model import Condition, Filter


def decompile_filter(segment: Segment, slot: int) -> Filter:
    """Return the filter of a slot, which must have been compiled without loss (`FilterDraft.add`)."""
    row = int(segment.row_of[slot])
    rows = segment.index.rows
    literals = rows.literal.reshape(-1, 3)[int(rows.start[row]) : int(rows.start[row + 1])].tolist()
    return all_of(_decode_test(segment, *literal) for literal in literals)


def _decode_test(segment: Segment, head: int, low: int, high: int) -> Filter:
    number, op = head >> OP_BITS, head & 7
    condition = _decode_condition(segment, number, low, high, union=bool(head & UNION))
    return quantify(segment.columns[number].attribute, condition, op)


def _decode_condition(segment: Segment, number: int, low: int, high: int, *, union: bool) -> Condition:
    column, rows = segment.columns[number], segment.index.rows
    match column.view:
        case View.EXISTS:
            return Exists()
        case View.NULL:
            return IsNull()
        case View.PATTERNS:
            return segment.automata[column.attribute].tests[int(_decode_values(segment, number, [low])[0])]
    if union:
        codes = rows.union_low[int(rows.union_start[low]) : int(rows.union_start[low + 1])].tolist()
        return In(tuple(_decode_values(segment, number, codes)))
    if low == high and low % 2:
        return Is(_decode_values(segment, number, [low])[0])
    first = None if low == 0 else _decode_values(segment, number, [low - 1 + low % 2])[0]
    size = 2 * len(segment.spaces[number])
    last = None if high == size else _decode_values(segment, number, [high + 1 - high % 2])[0]
    return Range(first, last, low_open=low > 0 and low % 2 == 0, high_open=high < size and high % 2 == 0)


def _decode_values(segment: Segment, number: int, codes: list[int]) -> list[Any]:
    """Return the end points of odd codes as values of the column's kind."""
    values = segment.spaces[number].decode(np.array(codes, np.int64) >> 1)
    match segment.kinds[number]:
        case Kind.TIME:
            return [to_datetime(value) for value in values]
        case Kind.BOOL:
            return [bool(value) for value in values]
        case Kind.TEXT if segment.columns[number].view is View.TEXT:
            return [value.decode() for value in values]
    return values
