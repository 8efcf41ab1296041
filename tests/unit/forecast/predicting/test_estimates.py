"""Estimators on counts that are written down."""

from __future__ import annotations

import numpy as np
import pytest

from tidings import lang
from tidings.forecast.courses.exact_course import build_course
from tidings.forecast.learning.counts import CODES, EDGES, LONGEST_WAIT, Counts
from tidings.forecast.predicting.estimates import ESTIMATORS, Estimates, fit_kaplan_meier, interpolate_shares
from tidings.model.patterns import Mode

PAIR = build_course(lang.parse_pattern("a = kind = 'a'\nb = kind = 'b'\na , b"), Mode.RESTART, context=0)
STAR, A, B = range(3)
START, AFTER, DONE = range(3)


def estimates(estimator="chain", smoothing=0.0, prior=(0.2, 0.3, 0.5), moves=(), waits=()):
    counts = Counts.make_empty(PAIR)
    for cell, label, count in moves:
        counts.moves[cell, label] = count
    for cell, code, count in waits:
        counts.waits[cell, code] = count
    return Estimates(PAIR, counts, np.array(prior), smoothing, estimator)


def test_there_are_four():
    assert set(ESTIMATORS) == {"both", "chain", "direct", "printed"}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_each_has_a_formula(name):
    assert estimates(name).compute_curve(2)[0].shape == (3, 3)


def test_one_without_a_formula_is_refused():
    with pytest.raises(AssertionError, match="no formula"):
        estimates("median").compute_curve(2)


def test_where_nothing_was_counted_the_shares_of_events_are_left():
    assert estimates().compute_label_probabilities().tolist() == [[0.2, 0.3, 0.5]] * 3
    assert estimates().compute_curve(2)[0][:, START].tolist() == [0, 0, 0.15]


def test_counts_are_drawn_towards_them():
    estimator = estimates(smoothing=1, moves=[(AFTER, B, 7), (AFTER, STAR, 2)])
    assert estimator.compute_label_probabilities()[AFTER] == pytest.approx([(2 + 0.6) / 12, 0.9 / 12, (7 + 1.5) / 12])


def test_the_direct_share_is_that_of_waits():
    estimator = estimates("direct", waits=[(AFTER, 0, 3), (AFTER, 1, 1), (AFTER, CODES - 1, 4)])
    curve, part = estimator.compute_curve(3)
    assert curve[:, AFTER].tolist() == pytest.approx([0, 3 / 8, 1 / 2, 1 / 2])
    assert part[1:, AFTER].tolist() == [1, 1, 1]


def test_of_a_cell_without_waits_the_direct_share_is_that_of_all():
    estimator = estimates("direct", waits=[(AFTER, 0, 1), (DONE, 1, 1)])
    assert estimator.compute_curve(2)[0][:, START].tolist() == [0, 0.5, 1]


def test_without_any_waits_it_is_the_chain():
    curve, part = estimates("direct").compute_curve(4)
    assert curve.tolist() == estimates("chain").compute_curve(4)[0].tolist()
    assert not part.any()


def test_beyond_the_longest_wait_the_chain_goes_on():
    curve, part = estimates("both", smoothing=0.5, waits=[(START, CODES - 1, 1000)]).compute_curve(LONGEST_WAIT + 50)
    assert part[LONGEST_WAIT, START] > 0.9
    assert (part[LONGEST_WAIT + 1 :] == 0).all()
    assert curve[LONGEST_WAIT + 1, START] > 0.99


def test_printed_sums_visits_over_incoming_counts():
    # Into `a` came 4, of which from the start 4; into the final state 2, of 3 that left `a`.
    estimator = estimates("printed", moves=[(START, A, 4), (AFTER, B, 2), (AFTER, STAR, 1), (DONE, STAR, 2)])
    curve, part = estimator.compute_curve(2)
    assert curve[1].tolist() == [0, 2 / 4, 0]
    assert curve[2, START] == pytest.approx(4 / 3 * 2 / 4)
    assert not part.any()


def test_shares_between_two_edges_rise_evenly():
    waits = np.zeros((1, CODES))
    waits[0, 11], waits[0, -1] = 1, 1  # one after 13 to 15 events, one never
    shares = interpolate_shares(fit_kaplan_meier(waits)[0], 20)[:, 0]
    assert EDGES[10:12].tolist() == [12, 15]
    assert shares[12:16].tolist() == pytest.approx([0, 1 / 6, 2 / 6, 1 / 2])


def test_of_a_wait_that_has_ended_it_is_known_ever_after():
    waits = np.zeros((1, CODES))
    waits[0, [0, 2, len(EDGES) + 1, CODES - 1]] = 3, 2, 4, 1  # after one and three events; cut after one; never
    _, known_share = fit_kaplan_meier(waits)
    assert known_share[0, :4].tolist() == [10, 6, 6, 6]
    assert known_share[0, -1] == 6


def build_keyed_estimates(waits):
    pattern = lang.parse_pattern("a = kind = 'a' and k = $x\nb = kind = 'b' and k = $x\na , b")
    course = build_course(pattern, Mode.RESTART, context=0)
    counts = Counts.make_empty(course, keyed=True)
    for line, code, count in waits:
        counts.later[line, code] = count
    return Estimates(course, counts, np.full(3, 1 / 3), 0.5)


def test_waits_in_the_stream_are_judged_by_those_that_are_known():
    estimator = build_keyed_estimates([(7, 0, 3), (7, 2, 2), (7, len(EDGES) + 1, 4), (7, CODES - 1, 1)])
    sure = {amount: np.append(np.zeros(amount), 1.0) for amount in (1, 2, 3, LONGEST_WAIT, LONGEST_WAIT + 1)}
    for amount, share, known_count in (
        (1, 3 / 10, 10),
        (2, 3 / 10, 6),
        (3, 1 - 7 / 10 * 1 / 3, 6),
        (LONGEST_WAIT, 1 - 7 / 30, 6),
    ):
        share_found, seen = estimator.estimate_within_events(sure[amount])
        assert (share_found[7], seen[7]) == (pytest.approx(share), known_count)
    assert estimator.estimate_within_events(sure[LONGEST_WAIT + 1]) is None
    assert not estimator.estimate_within_events(sure[3])[1][[0, 6, 8]].any()


def test_about_so_many_events_is_a_mixture_of_those_waits():
    estimator = build_keyed_estimates([(7, 0, 3), (7, 2, 2), (7, len(EDGES) + 1, 4), (7, CODES - 1, 1)])
    share, known_count = estimator.estimate_within_events(np.array([0.2, 0.3, 0.1, 0.4]))
    assert share[7] == pytest.approx(0.3 * 0.3 + 0.1 * 0.3 + 0.4 * (1 - 7 / 30))
    assert known_count[7] == pytest.approx(0.2 * 10 + 0.3 * 10 + 0.1 * 6 + 0.4 * 6)
    assert estimator.estimate_within_events(np.ones(LONGEST_WAIT + 2)) is None
    assert estimates().estimate_within_events(np.ones(2)) is None
