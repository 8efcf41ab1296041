"""Rows of terms against an event's pairs: the second stage of `g-topss`, the search of `ops`, the counting of `mic`.

A row is a conjunction of terms, `sizes[row]` of them from `starts[row]` on; a term requires a label and a concept (a
code from 0 on) or an interval (below 0: the scales it is on). An event is a list of pairs of a name and a value; a pair
has a chain of labels and a chain of concepts, from its own upwards, each the share of a flat array between two `ends`.

    terms    labels  [ make  size | make | ... ]      row 0 has two terms, row 1 one: starts [ 0 2 ], sizes [ 2 1 ]
             codes   [ ford   -1  | bmw  | ... ]      -1: an interval on the scale of numbers, whose ends are in `ends`
    pairs    codes   [ fiesta  ford  car | ... ]      an event's value, and all above it: so `ford` is found by one scan

Cost: the terms of the candidates times the event's pairs, each a scan of a chain as long as the tree is high.
The groups are handed on without counting references (`jit_lean`): counted, they cost more than a term's comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidings.kernels.jit import jit_inline, jit_lean, jit_lean_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import BoolArray, FloatArray, Int, Int32Array, IntArray
    from tidings.kernels.papers.ctps import TieArray


class TermEnds(NamedTuple):
    """The intervals of terms."""

    low: FloatArray
    high: FloatArray
    low_tie: TieArray
    high_tie: TieArray


class TermArrays(NamedTuple):
    """Of each row its first term and their number; of each term its label, code and interval; of labels their root."""

    starts: Int32Array
    sizes: Int32Array
    labels: Int32Array
    codes: Int32Array
    ends: TermEnds
    roots: Int32Array


class PairArrays(NamedTuple):
    """Of each pair: its root, labels with their ends, concepts with their ends, interval with its ties, its scales."""

    roots: Int32Array
    labels: Int32Array
    label_ends: Int32Array
    codes: Int32Array
    code_ends: Int32Array
    spans: FloatArray
    ties: Int32Array
    scales: Int32Array


class TermCounters(NamedTuple):
    """Which terms were counted; of each row how many were and how many are wanted; the row of each term."""

    counted: BoolArray
    counts: Int32Array
    row_of: Int32Array
    wanted: Int32Array


@jit_inline
def is_among(wanted: Int, things: Int32Array, begin: Int, end: Int) -> bool:
    """Tell whether `things[begin:end]`, a chain of labels or concepts from the event's own upwards, has `wanted`."""
    hit = False
    while begin < end and not hit:
        hit = things[begin] == wanted
        begin += 1
    return hit


@jit_inline
def meets(ends: TermEnds, term: Int, spans: FloatArray, ties: Int32Array, at: Int) -> bool:
    """Tell whether a term's interval shares a point with the event's, whose ends are the items `at` and `at + 1`."""
    reaches = ends.low[term] < spans[at + 1] or (ends.low[term] == spans[at + 1] and ends.low_tie[term] <= ties[at + 1])
    return reaches and (
        ends.high[term] > spans[at] or (ends.high[term] == spans[at] and ends.high_tie[term] >= ties[at])
    )


@jit_lean_inline
def is_satisfied(term: Int, terms: TermArrays, pairs: PairArrays) -> bool:
    """Tell whether one of the event's pairs satisfies a term."""
    hit = False
    pair = 0
    code, label = terms.codes[term], terms.labels[term]
    while pair < len(pairs.scales) and not hit:
        if pairs.roots[pair] == terms.roots[label] and is_among(
            label, pairs.labels, pairs.label_ends[pair], pairs.label_ends[pair + 1]
        ):
            if code >= 0:
                hit = is_among(code, pairs.codes, pairs.code_ends[pair], pairs.code_ends[pair + 1])
            elif pairs.scales[pair] & (-code):
                hit = meets(terms.ends, term, pairs.spans, pairs.ties, 2 * pair)
        pair += 1
    return hit


@jit_lean
def check_candidates(
    candidates: Int32Array, seen: BoolArray, terms: TermArrays, pairs: PairArrays, out: Int32Array
) -> Int:
    """Check each row of the processing set once; write those all of whose terms are satisfied, return how many."""
    count = 0
    for place in range(len(candidates)):
        row = candidates[place]
        if seen[row]:
            continue
        seen[row] = True
        term, stop = terms.starts[row], terms.starts[row] + terms.sizes[row]
        while term < stop and is_satisfied(term, terms, pairs):
            term += 1
        if term == stop:
            out[count] = row
            count += 1
    return count


@jit_lean
def search_graphs(
    terms: TermArrays, edges: Int32Array, pairs: PairArrays, implied: Int32Array, implied_ends: IntArray,
    out: Int32Array,
) -> Int:  # fmt: skip
    """Map every row's edges into the event's, row by row: each of its edges tries each of the event's.

    An edge with a concept may go where the index of possible edges says so; any other is compared. `sizes` below zero
    are free rows. Edges share the event's node as their start and nothing else, so no choice is ever undone.
    """
    count = 0
    for row in range(len(terms.starts)):
        term, stop = terms.starts[row], terms.starts[row] + terms.sizes[row]
        mapped = stop >= term
        while mapped and term < stop:
            if edges[term] >= 0:
                mapped = False
                for edge in range(len(implied_ends) - 1):
                    if is_among(edges[term], implied, implied_ends[edge], implied_ends[edge + 1]):
                        mapped = True
                        break
            else:
                mapped = is_satisfied(term, terms, pairs)
            term += 1
        if mapped:
            out[count] = row
            count += 1
    return count


@jit_inline
def count_term(term: Int, counters: TermCounters, out: Int32Array, count: Int) -> Int:
    """Count a satisfied term, once; write its row if that was the last one wanted. Return how many are written."""
    if not counters.counted[term]:
        row = counters.row_of[term]
        counters.counted[term] = True
        counters.counts[row] += 1
        if counters.counts[row] == counters.wanted[row]:
            out[count] = row
            count += 1
    return count


@jit_lean
def count_terms(
    sure: Int32Array, compared: Int32Array, groups: IntArray, spans: FloatArray, ties: Int32Array, ends: TermEnds,
    counters: TermCounters, out: Int32Array,
) -> Int:  # fmt: skip
    """Count the satisfied terms of each row; write the rows that have all, and reset the counters.

    `sure` are terms already known to hold; `compared[groups[q - 1]:groups[q]]` are compared with interval `q` of the
    event, whose ends are the items `2 * q` and `2 * q + 1` of `spans`.
    """
    count = 0
    for place in range(len(sure)):
        count = count_term(sure[place], counters, out, count)
    begin = 0
    for query in range(len(groups)):
        for place in range(begin, groups[query]):
            if meets(ends, compared[place], spans, ties, 2 * query):
                count = count_term(compared[place], counters, out, count)
        begin = groups[query]
    counted, counts, row_of = counters.counted, counters.counts, counters.row_of
    if 8 * (len(sure) + len(compared)) > len(counted):  # many: a sweep is cheaper than as many scattered writes
        counted[:] = False
        counts[:] = 0
        return count
    for touched in (sure, compared):
        for place in range(len(touched)):
            counted[touched[place]] = False
            counts[row_of[touched[place]]] = 0
    return count
