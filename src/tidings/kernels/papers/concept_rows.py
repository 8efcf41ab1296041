"""Rows of terms against an event's pairs: the second stage of `g-topss`, the search of `ops`, the counting of `mic`.

A row is a conjunction of terms, `sizes[row]` of them from `starts[row]` on; a term asks for a label and a concept (a
code from 0 on) or an interval (below 0: the scales it is on). An event is a list of pairs of a name and a value; a pair
has a chain of labels and a chain of concepts, from its own upwards, each the share of a flat array between two `ends`.

The groups are handed on without counting references (`jit_lean`): counted, they cost more than a term's comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from tidings.kernels.array_types import FloatArray, Int32Array
from tidings.kernels.jit import jit, jit_inline, jit_lean, jit_lean_inline

TieArray: TypeAlias = npt.NDArray[np.int8]
"""Beside an end of an interval: -1 just below it, 0 at it, 1 just above it."""

TermColumns: TypeAlias = tuple[
    Int32Array, Int32Array, Int32Array, Int32Array, FloatArray, FloatArray, TieArray, TieArray, Int32Array
]
"""Starts and sizes of rows; labels, codes, low and high ends and their ties of terms; the root of each label."""

EventPairs: TypeAlias = tuple[
    Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, FloatArray, TieArray, Int32Array
]
"""Of each pair: its root, labels with their ends, concepts with their ends, intervals with their ties, its scales."""

if TYPE_CHECKING:
    from tidings.kernels.array_types import BoolArray, Float, Int


@jit_inline
def is_among(wanted: Int, things: Int32Array, begin: Int, end: Int) -> bool:
    """Walk a chain of labels or concepts, upwards from the event's own, until the wanted one."""
    hit = False
    while begin < end and not hit:
        hit = things[begin] == wanted
        begin += 1
    return hit


@jit_inline
def meets(
    low: Float, low_tie: Int, high: Float, high_tie: Int, span_low: Float, span_low_tie: Int, span_high: Float,
    span_high_tie: Int,
) -> bool:  # fmt: skip
    """Tell whether two intervals share a point."""
    reaches = low < span_high or (low == span_high and low_tie <= span_high_tie)
    return reaches and (high > span_low or (high == span_low and high_tie >= span_low_tie))


@jit_lean_inline
def is_satisfied(term: Int, terms: TermColumns, pairs: EventPairs) -> bool:
    """Tell whether one of the event's pairs satisfies a term."""
    _, _, term_label, term_code, low, high, low_tie, high_tie, root_of = terms
    roots, labels, label_ends, codes, code_ends, spans, ties, scales = pairs
    hit = False
    pair = 0
    code, label = term_code[term], term_label[term]
    while pair < len(scales) and not hit:
        if roots[pair] == root_of[label] and is_among(label, labels, label_ends[pair], label_ends[pair + 1]):
            if code >= 0:
                hit = is_among(code, codes, code_ends[pair], code_ends[pair + 1])
            elif scales[pair] & (-code):
                hit = meets(
                    low[term], low_tie[term], high[term], high_tie[term],
                    spans[2 * pair], ties[2 * pair], spans[2 * pair + 1], ties[2 * pair + 1],
                )  # fmt: skip
        pair += 1
    return hit


@jit_lean
def check_candidates(
    candidates: Int32Array, seen: BoolArray, terms: TermColumns, pairs: EventPairs, out: Int32Array
) -> Int:
    """Check each row of the processing set once; write those all of whose terms are satisfied, return how many."""
    starts, sizes = terms[0], terms[1]
    count = 0
    for place in range(len(candidates)):
        row = candidates[place]
        if seen[row]:
            continue
        seen[row] = True
        holds = True
        for term in range(starts[row], starts[row] + sizes[row]):
            if not is_satisfied(term, terms, pairs):
                holds = False
                break
        if holds:
            out[count] = row
            count += 1
    return count


@jit_lean
def search_graphs(
    terms: TermColumns,
    edges: Int32Array,
    pairs: EventPairs,
    implied: Int32Array,
    implied_ends: Int32Array,
    out: Int32Array,
) -> Int:
    """Map every row's edges into the event's, row by row: each of its edges tries each of the event's.

    An edge with a concept may go where the index of possible edges says so; any other is compared. `sizes` below
    zero are empty places. Edges share the event's node as their start and nothing else, so no choice is ever undone.
    """
    starts, sizes = terms[0], terms[1]
    count = 0
    for row in range(len(starts)):
        if sizes[row] < 0:
            continue
        holds = True
        for term in range(starts[row], starts[row] + sizes[row]):
            mapped = False
            if edges[term] >= 0:
                for edge in range(len(implied_ends) - 1):
                    if is_among(edges[term], implied, implied_ends[edge], implied_ends[edge + 1]):
                        mapped = True
                        break
            else:
                mapped = is_satisfied(term, terms, pairs)
            if not mapped:
                holds = False
                break
        if holds:
            out[count] = row
            count += 1
    return count


@jit_inline
def count_term(term: Int, counted: BoolArray, counts: Int32Array, row_of: Int32Array, wanted: Int32Array) -> Int:
    """Count a satisfied term, once; return its row if that was the last one wanted, else -1."""
    row = -1
    if not counted[term]:
        counted[term] = True
        counts[row_of[term]] += 1
        if counts[row_of[term]] == wanted[row_of[term]]:
            row = row_of[term]
    return row


@jit
def count_terms(
    sure: Int32Array, doubtful: Int32Array, ends: Int32Array, spans: FloatArray, ties: TieArray, low: FloatArray,
    high: FloatArray, low_tie: TieArray, high_tie: TieArray, counted: BoolArray, counts: Int32Array, row_of: Int32Array,
    wanted: Int32Array, out: Int32Array,
) -> Int:  # fmt: skip
    """Count the satisfied terms of each row; write the rows that have all, and forget the counts again.

    `sure` terms are satisfied; the `doubtful` ones up to each of `ends` are compared with one interval of the event.
    """
    count = 0
    for place in range(len(sure)):
        row = count_term(sure[place], counted, counts, row_of, wanted)
        if row >= 0:
            out[count] = row
            count += 1
    begin = 0
    for query in range(len(ends)):
        for place in range(begin, ends[query]):
            term = doubtful[place]
            if not meets(
                low[term],
                low_tie[term],
                high[term],
                high_tie[term],
                spans[query, 0],
                ties[query, 0],
                spans[query, 1],
                ties[query, 1],
            ):
                continue
            row = count_term(term, counted, counts, row_of, wanted)
            if row >= 0:
                out[count] = row
                count += 1
        begin = ends[query]
    if 8 * (len(sure) + len(doubtful)) > len(counted):  # many: all at once is cheaper than one here, one there
        counted[:] = False
        counts[:] = 0
        return count
    for place in range(len(sure)):
        counted[sure[place]] = False
        counts[row_of[sure[place]]] = 0
    for place in range(len(doubtful)):
        counted[doubtful[place]] = False
        counts[row_of[doubtful[place]]] = 0
    return count


NOTHING = np.zeros(0, np.int32)
"""No candidates."""
