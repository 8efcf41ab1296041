"""Probabilities from counts: the chain of first passages, the share of waits that ended in time, and both.

Chain: P(label | state, last j labels) is its count, drawn towards that of j - 1 labels, down to how often events
satisfy filters at all; then the first passage over the cells. Direct: of the times a cell was left, in how many a match
came within n events; waits that were cut off leave when they are cut (Kaplan and Meier). Both: the direct share, drawn
towards the chain as if that were so many observations more. Printed: the formulas of the paper as they stand there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.forecast.courses.course import Course
from tidings.forecast.learning.counts import EDGES, LONGEST_WAIT, Counts
from tidings.kernels.array_types import BoolArray, FloatArray, Int32Array, IntArray
from tidings.kernels.forecast.forecasts import sum_first_passages

ESTIMATORS = ("both", "chain", "direct", "printed")

SHRINKING = 40
"""Observations that the chain is worth for each unit of smoothing, where the direct share is drawn towards it."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """A pattern's course and counts; `prior` is how likely each label is where there are no counts."""

    course: Course
    counts: Counts
    prior: FloatArray
    smoothing: float
    estimator: str = "both"

    @property
    def shrinking(self) -> float:
        """How many observations the chain is worth."""
        return SHRINKING * self.smoothing

    def compute_label_probabilities(self) -> FloatArray:
        """Return P(label | chain state), rows that sum to 1."""
        course, moves = self.course, self.counts.moves
        if course.tracker is not None:
            return _blend(moves, self.prior, self.smoothing * (self.prior > 0).sum(axis=1))
        probabilities = np.broadcast_to(self.prior, (1, len(course.labels)))
        above = np.zeros(course.cells, np.int32)
        weight = np.array(self.smoothing * len(course.labels))
        for group in course.groups:
            before = probabilities[_find_parents(above, group)]
            probabilities = _blend(_sum_groups(moves, group), before, weight)
            above = group
        return probabilities[above]

    def compute_chain(self, max_events: int) -> FloatArray:
        """Return, for n from 0 to `max_events`, the probability of a match within n events, of every cell."""
        course = self.course
        passages = sum_first_passages(self.compute_label_probabilities(), course.table, course.hits, max_events)
        return np.asarray(passages[:, course.chain_state_of])

    def compute_direct(self, max_events: int) -> tuple[FloatArray, FloatArray]:
        """Return that probability by Kaplan and Meier, and the observations behind each value.

        Each cell's curve is drawn towards that of the cells which share a shorter context. No observations are counted
        beyond the longest wait.
        """
        course = self.course
        groups = [np.zeros(course.cells, np.int32), *course.groups]
        match_share: FloatArray = np.zeros((1, len(EDGES)))
        seen: FloatArray = match_share
        above = groups[0]
        for group in groups:
            ended, observed = fit_kaplan_meier(_sum_groups(self.counts.waits, group))
            weight = np.where(seen[_find_parents(above, group)] > 0, self.shrinking, 0.0)
            before = match_share[_find_parents(above, group)]
            mixed = _divide(observed * ended + weight * before, observed + weight)
            match_share = np.where(observed + weight > 0, mixed, before)
            seen, above = observed, group
        return interpolate_shares(match_share[above], max_events), _expand_bins(seen[above], max_events)

    def compute_curve(self, max_events: int) -> tuple[FloatArray, FloatArray]:
        """Return p(match within n events) for n up to `max_events` of every cell, and what share is direct."""
        chain = self.sum_visits(max_events) if self.estimator == "printed" else self.compute_chain(max_events)
        if self.estimator in ("printed", "chain"):
            return chain, np.zeros_like(chain)
        if self.estimator == "direct":
            match_share, seen = self.compute_direct(max_events)
            pooled = fit_kaplan_meier(self.counts.waits.sum(axis=0, keepdims=True))[1]
            is_counted = (_expand_bins(pooled, max_events) > 0) | (seen > 0)
            return _make_monotone(np.where(is_counted, match_share, chain)), is_counted.astype(float)
        assert self.estimator == "both", f"no formula for the estimator `{self.estimator}`"
        # A tracked chain knows no context: shares of its state come between it and those of a cell.
        groups = self.course.groups if self.course.tracker is not None else self.course.groups[-1:]
        blend, part = chain, np.zeros_like(chain)
        for group in groups:
            ended, watched = fit_kaplan_meier(_sum_groups(self.counts.waits, group))
            match_share = interpolate_shares(ended, max_events)[:, group]
            seen = _expand_bins(watched, max_events)[:, group]
            part = _divide(seen, seen + self.shrinking)
            blend = part * match_share + (1 - part) * blend
        return _make_monotone(blend), part

    def sum_visits(self, max_events: int) -> FloatArray:
        """Return the paper's sum: visits of the final state within n events.

        As printed, a row of the matrix is divided by how often its state was entered, not left.
        """
        counted, finals = self._count_state_changes()
        came, course = counted.sum(axis=0), self.course
        matrix = _divide(counted, came[:, None])
        into, total = finals.astype(float), np.zeros((max_events + 1, len(came)))
        for step in range(1, max_events + 1):
            into = matrix @ into
            total[step] = total[step - 1] + into
        return np.asarray(total[:, course.chain_state_of if course.tracker is not None else course.groups[0]])

    def _count_state_changes(self) -> tuple[FloatArray, BoolArray]:
        """Return how often each state followed each other one, and which are final."""
        course, moves = self.course, self.counts.moves
        if course.tracker is not None:  # the match is a state of its own, which goes on as the start does
            size = len(course.states)
            counted = np.zeros((size + 1, size + 1))
            counted[:size, : size + 1] = moves
            counted[size] = counted[course.chain_state_of[course.start]]
            return counted, np.arange(size + 1) == size
        state = course.groups[0]
        counted = np.zeros((len(course.states), len(course.states)))
        np.add.at(counted, (state[:, None].repeat(len(course.labels), 1), state[course.table]), moves)
        finals = np.zeros(len(course.states), bool)
        finals[state[course.table[course.hits]]] = True
        return counted, finals

    def estimate_within_events(self, event_count_probabilities: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return P(match within N events of the stream) for each row of `counts.later`, and the observations behind it.

        Both are averages over N: `event_count_probabilities` has the probabilities of 0, 1, 2, ... events. `None` where
        none were counted, or N may exceed the longest wait.
        """
        if not len(self.counts.later) or len(event_count_probabilities) > LONGEST_WAIT + 1:
            return None
        match_share, observed = fit_kaplan_meier(self.counts.later)
        max_events = len(event_count_probabilities) - 1
        by_count = interpolate_shares(match_share, max_events), _expand_bins(observed, max_events)
        return event_count_probabilities @ by_count[0], event_count_probabilities @ by_count[1]

    def estimate_within_span(self, span: int) -> tuple[FloatArray, FloatArray] | None:
        """Return P(match within a span of time) for each row of its counts, and the observations behind it.

        `None` for a span that was not counted.
        """
        counted = self.counts.spans.get(span)
        if counted is None:
            return None
        observed = counted[:, 0] + counted[:, 2]
        return _divide(counted[:, 0], observed), observed


def fit_kaplan_meier(waits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of waits that ended by each edge, and the number of waits it is known of.

    >>> waits = np.zeros((1, 2 * len(EDGES) + 1)); waits[0, [0, 1, -1]] = 1, 1, 2
    >>> fit_kaplan_meier(waits)[0][0, :3].tolist()
    [0.25, 0.5, 0.5]
    """
    size = len(EDGES)
    ended, left = waits[:, :size], waits[:, size:]
    # At risk in a bin: what ended in it or later, and what was watched through it.
    watched = np.cumsum((ended + left[:, 1:])[:, ::-1], axis=1)[:, ::-1]
    share = 1 - np.cumprod(1 - _divide(ended, watched), axis=1)
    # Of a wait that has ended it is known ever after: where all end soon, a longer horizon is no less sure.
    observed = watched + np.cumsum(ended, axis=1) - ended
    return np.clip(share, 0, 1), np.maximum(observed, 0)


def interpolate_shares(by_edge: FloatArray, max_events: int) -> FloatArray:
    """Return shares by edge as shares for n from 0 to `max_events`; between edges they rise evenly."""
    steps = np.minimum(np.arange(max_events + 1), LONGEST_WAIT)
    high = np.searchsorted(EDGES, steps)
    low_edge = np.append(0, EDGES)[high]
    part = np.where(steps > 0, (steps - low_edge) / (EDGES[high] - low_edge), 0)[:, None]
    shares = np.concatenate([np.zeros((1, len(by_edge))), by_edge.T])
    return np.asarray(shares[high] * (1 - part) + shares[high + 1] * part)


def _expand_bins(by_edge: FloatArray, max_events: int) -> FloatArray:
    """Return the value of each n's bin; 0 beyond the last bin."""
    steps = np.arange(max_events + 1)
    by_step = by_edge.T[np.searchsorted(EDGES, np.minimum(steps, LONGEST_WAIT))]
    by_step[steps > LONGEST_WAIT] = 0
    return np.asarray(by_step)


def _make_monotone(curve: FloatArray) -> FloatArray:
    """Make the curve monotone in the horizon: shares of different weights may cross."""
    return np.asarray(np.clip(np.maximum.accumulate(curve, axis=0), 0, 1))


def _blend(counts: FloatArray, towards: FloatArray, weight: FloatArray) -> FloatArray:
    """Return shares shrunk towards `towards` with a weight; `towards` itself where there are no counts."""
    total = counts.sum(axis=1, keepdims=True)
    weight = np.broadcast_to(weight.reshape(-1, 1), total.shape)
    return np.where(total + weight > 0, _divide(counts + weight * towards, total + weight), towards)


def _sum_groups(counts: FloatArray, group: Int32Array) -> FloatArray:
    total = np.zeros((int(group.max(initial=-1)) + 1, counts.shape[1]))
    if len(total) == len(group):  # each by itself
        total[group] = counts
    else:
        np.add.at(total, group, counts)
    return total


def _find_parents(above: Int32Array, group: Int32Array) -> IntArray:
    """Return the coarser group that each group is part of."""
    parents = np.zeros(int(group.max(initial=-1)) + 1, np.int64)
    parents[group] = above
    return parents


def _divide(part: FloatArray, whole: FloatArray) -> FloatArray:
    shape = np.broadcast(part, whole).shape
    return np.divide(part, whole, out=np.zeros(shape), where=np.broadcast_to(whole, shape) > 0)
