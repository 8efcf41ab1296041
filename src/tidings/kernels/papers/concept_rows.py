"""Rows of terms against an event's pairs: the second stage of `g-topss`, the search of `ops`, the counting of `mic`."""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import jit, jit_inline


@jit_inline
def is_among(wanted, things, begin, end):  # type: ignore[no-untyped-def]
    """Walk a chain of labels or concepts, upwards from the event's own, until the wanted one."""
    hit = False
    while begin < end and not hit:
        hit = things[begin] == wanted
        begin += 1
    return hit


@jit_inline
def meets(low, low_tie, high, high_tie, span_low, span_low_tie, span_high, span_high_tie):  # type: ignore[no-untyped-def]
    """Tell whether two intervals share a point."""
    reaches = low < span_high or (low == span_high and low_tie <= span_high_tie)
    return reaches and (high > span_low or (high == span_low and high_tie >= span_low_tie))


@jit_inline
def is_satisfied(  # type: ignore[no-untyped-def]
    term,
    term_label,
    term_code,
    low,
    high,
    low_tie,
    high_tie,
    root_of,
    roots,
    labels,
    label_ends,
    codes,
    code_ends,
    spans,
    ties,
    scales,
):
    """Tell whether one of the event's pairs satisfies a term."""
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


@jit
def check_candidates(  # type: ignore[no-untyped-def]
    candidates,
    seen,
    starts,
    sizes,
    term_label,
    term_code,
    low,
    high,
    low_tie,
    high_tie,
    root_of,
    roots,
    labels,
    label_ends,
    codes,
    code_ends,
    spans,
    ties,
    scales,
    out,
):
    """Check each row of the processing set once; write those all of whose terms are satisfied, return how many."""
    count = 0
    for place in range(len(candidates)):
        row = candidates[place]
        if seen[row]:
            continue
        seen[row] = True
        holds = True
        for term in range(starts[row], starts[row] + sizes[row]):
            if not is_satisfied(
                term, term_label, term_code, low, high, low_tie, high_tie,
                root_of, roots, labels, label_ends, codes, code_ends, spans, ties, scales,
            ):  # fmt: skip
                holds = False
                break
        if holds:
            out[count] = row
            count += 1
    return count


@jit
def search_graphs(  # type: ignore[no-untyped-def]
    starts,
    sizes,
    term_label,
    term_code,
    low,
    high,
    low_tie,
    high_tie,
    root_of,
    edges,
    roots,
    labels,
    label_ends,
    codes,
    code_ends,
    spans,
    ties,
    scales,
    implied,
    implied_ends,
    out,
):
    """Map every row's edges into the event's, row by row: each of its edges tries each of the event's.

    An edge with a concept may go where the index of possible edges says so; any other is compared. `sizes` below
    zero are empty places. Edges share the event's node as their start and nothing else, so no choice is ever undone.
    """
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
                mapped = is_satisfied(
                    term, term_label, term_code, low, high, low_tie, high_tie,
                    root_of, roots, labels, label_ends, codes, code_ends, spans, ties, scales,
                )  # fmt: skip
            if not mapped:
                holds = False
                break
        if holds:
            out[count] = row
            count += 1
    return count


@jit_inline
def count_term(term, counted, counts, row_of, wanted):  # type: ignore[no-untyped-def]
    """Count a satisfied term, once; return its row if that was the last one wanted, else -1."""
    row = -1
    if not counted[term]:
        counted[term] = True
        counts[row_of[term]] += 1
        if counts[row_of[term]] == wanted[row_of[term]]:
            row = row_of[term]
    return row


@jit
def count_terms(sure, doubtful, ends, spans, ties, low, high, low_tie, high_tie, counted, counts, row_of, wanted, out):  # type: ignore[no-untyped-def]
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
                low[term], low_tie[term], high[term], high_tie[term],
                spans[query, 0], ties[query, 0], spans[query, 1], ties[query, 1],
            ):  # fmt: skip
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
