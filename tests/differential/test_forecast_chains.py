"""Chains against enumeration, against the automaton counted by hand, and against what `or` and `and` must add up to."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from forecast_worlds import (
    EDGES,
    ONE_KIND,
    SILENCES,
    Chain,
    build_events,
    build_pattern,
    compute_kaplan_meier,
    count_known_waits,
    list_forecasts,
    remove_labels,
    thin_curve,
    train_model,
    watch_pattern,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from pattern_worlds import walk_automaton
from tests.examples import examples

import tidings as td
from tidings.concepts import Vocabulary
from tidings.forecast.courses.exact_course import build_course
from tidings.forecast.horizon import Horizon
from tidings.forecast.learning.counts import Traffic
from tidings.forecast.predicting.estimates import Estimates
from tidings.forecast.predicting.probability_table import build_table
from tidings.kernels.forecast.forecasts import sum_first_passages
from tidings.model.patterns import Conjunction, Disjunction, Mode, Pattern
from tidings.testing.strategies.patterns import patterns, streams

PLAIN = {"conditions": False, "absence": False}
"""Patterns that have an automaton."""


# First passage ----------------------------------------------------------------------------------------


@st.composite
def machines(draw):
    """Return a table, hits, and chances that are fractions, of one to four states and two or three symbols."""
    states, symbols = draw(st.integers(1, 4)), draw(st.integers(2, 3))
    cells = st.lists(st.integers(0, states - 1), min_size=symbols, max_size=symbols)
    hits = st.lists(st.booleans(), min_size=symbols, max_size=symbols)
    weights = st.lists(st.integers(0, 5), min_size=symbols, max_size=symbols).filter(any)
    rows = [draw(weights) for _ in range(states)]
    chances = [[Fraction(weight, sum(row)) for weight in row] for row in rows]
    return [draw(cells) for _ in range(states)], [draw(hits) for _ in range(states)], chances


def enumerate_words(machine, state, count):
    """Add up the probabilities of all words that have a match in them."""
    following, hits, chances = machine
    total = Fraction(0)
    for word in product(range(len(following[0])), repeat=count):
        at, chance, matched = state, Fraction(1), False
        for symbol in word:
            chance *= chances[at][symbol]
            matched |= hits[at][symbol]
            at = following[at][symbol]
        total += chance * matched
    return total


@given(machines())
def test_first_passage_is_the_probability_of_all_words_with_a_match(machine):
    following, hits, chances = machine
    passages = sum_first_passages(np.array(chances, float), np.array(following, np.int32), np.array(hits), 5)
    assert passages.shape == (6, len(following))
    for state, count in product(range(len(following)), range(6)):
        assert abs(passages[count, state] - enumerate_words(machine, state, count)) < 1e-12


def test_first_passage_runs_as_plain_python_too():
    args = np.array([[0.5, 0.5]]), np.zeros((1, 2), np.int32), np.array([[True, False]]), 3
    assert (
        sum_first_passages(*args)[:, 0].tolist()
        == sum_first_passages.py_func(*args)[:, 0].tolist()
        == [0, 0.5, 0.75, 0.875]
    )


# Every probability ------------------------------------------------------------------------------------

SETTINGS = st.fixed_dictionaries(
    {
        "context": st.integers(0, 3),
        "smoothing": st.sampled_from((0, 0.5, 3.0)),
        "half_life": st.sampled_from((None, None, 4, "2 s")),
        "estimator": st.sampled_from(("both", "chain", "direct")),
    }
)


@given(patterns(overlapping=True), streams(), st.sampled_from(("restart", "overlap", "any", "next")), SETTINGS)
def test_every_probability_is_one_and_a_longer_horizon_is_no_less_likely(pattern, history, mode, settings):
    model = train_model(pattern, history, mode, **settings)
    curve, part = model.estimates(model["p"]).compute_curve(1100)
    assert np.isfinite(curve).all()
    assert curve.min() >= 0
    assert curve.max() <= 1
    assert (curve[0] == 0).all()
    assert (np.diff(curve, axis=0) >= 0).all()
    assert (part >= 0).all()
    assert (part <= 1).all()


@examples(50)
@given(patterns(variables=True), streams(), SETTINGS, st.sampled_from(("events", "own", "time")))
def test_of_keys_too(pattern, history, settings, unit):
    """In own events, and by the chain in all measures; shares that were counted may cross as less is known of them."""
    model = train_model(pattern, history, **settings)
    assume(unit != "time" or model.traffic.rate is not None)
    estimates, before = model.estimates(model["p"]), 0
    for amount in (1, 2, 5, 40):
        horizon = Horizon(amount * (1_000_000 if unit == "time" else 1), unit)
        table = build_table(estimates, horizon, keyed=True, traffic=model.traffic).probabilities
        assert table.min() >= 0
        assert table.max() <= 1 + 1e-12
        assert (np.diff(table, axis=1) <= 1e-12).all()  # a smaller share of the stream, a smaller probability
        # A span is laid on its grid by an offset: columns of two spans are of different keys.
        if unit == "own" or (unit == "events" and settings["estimator"] == "chain"):
            assert (table >= before - 1e-12).all()
        before = table


@examples(33)
@given(patterns(variables=True), streams(), st.sampled_from((0.1, 0.5)), st.sampled_from((1, 2, 5, 40)))
def test_of_keys_it_is_the_share_of_waits_in_the_stream_drawn_towards_the_thinned_chances(pattern, history, by, count):
    model = train_model(pattern, history, smoothing=by)
    estimates, later = model.estimates(model["p"]), model["p"].counts.later
    table = build_table(estimates, Horizon(count), keyed=True, traffic=model.traffic).probabilities
    curve, place = estimates.compute_curve(count)[0], sum(edge < count for edge in EDGES)
    for line in {0, *np.flatnonzero(later.any(axis=1)).tolist()}:
        seen, counted = count_known_waits(later[line], count), compute_kaplan_meier(later[line])[place]
        for column in (0, 1, 4):
            thin = thin_curve(curve[:, line // SILENCES], count, 2 ** (-column / 2))
            assert table[line, column] == pytest.approx((seen * counted + 40 * by * thin) / (seen + 40 * by), abs=1e-9)


@given(patterns(overlapping=True, **PLAIN), streams(), SETTINGS)
def test_rows_of_the_chain_sum_to_one(pattern, history, settings):
    model = train_model(pattern, history, **settings)
    chances = model.estimates(model["p"]).compute_label_probabilities()
    assert chances.min() >= 0
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-12)


# The counted chain ------------------------------------------------------------------------------------

WORDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=14)
MODES = st.sampled_from(("restart", "overlap"))
COUNTED = {"context": 0, "smoothing": 0, "estimator": "chain"}


@given(patterns(**PLAIN), WORDS, MODES, st.integers(1, 6))
def test_without_context_and_smoothing_it_is_the_counted_chain_of_the_automaton(pattern, word, mode, count):
    chain = Chain(pattern, mode, word)
    model = train_model(pattern, build_events(word), mode, **COUNTED)
    watch = watch_pattern(pattern, mode, model=model, horizon=count, tell="every")
    [before] = watch.forecast("p")
    assert before.probability == pytest.approx(float(chain.within(0, count)), abs=1e-12)
    forecasts = watch.detect_many(build_events(word)).forecasts
    wanted = [float(chain.within(chain.after(word[: place + 1]), count)) for place in range(len(word))]
    assert [p for *_, p in list_forecasts(forecasts)] == pytest.approx(wanted, abs=1e-12)


@given(patterns(**PLAIN), WORDS, WORDS, MODES)
def test_what_was_counted_on_one_history_is_told_on_another(pattern, word, other, mode):
    chain = Chain(pattern, mode, word)
    model = train_model(pattern, build_events(word), mode, **COUNTED)
    watch = watch_pattern(pattern, mode, model=model)
    watch.detect_many(build_events(other))
    [forecast] = watch.forecast("p", horizon=3)
    assert forecast.probability == pytest.approx(float(chain.within(chain.after(other), 3)), abs=1e-12)


def list_probabilities(pattern, history, *counts, seen="", mode="restart", **settings):
    watch = watch_pattern(
        pattern, mode, model=train_model(pattern, build_events(history), mode, **(COUNTED | settings))
    )
    watch.detect_many(build_events(seen))
    return [watch.forecast("p", horizon=count)[0].probability for count in counts]


def test_two_steps_worked_by_hand():
    # Nothing begun was left once, by `a`; after `a` came `b` both times; after the match came `a`.
    pair = build_pattern("a , b")
    assert list_probabilities(pair, "abab", 1, 2, 3) == [0, 1, 1]
    assert list_probabilities(pair, "abab", 1, 2, seen="a") == [1, 1]
    assert list_probabilities(pair, "abab", 1, 2, 3, seen="ab") == [0, 1, 1]
    # The start was left by `b` and `a`, `a` by `b`: 1/2 in two events, 1/2 + 1/4 in three.
    assert list_probabilities(pair, "bab", 1, 2, 3) == [0, 0.5, 0.75]


FIGURE_8 = "ababcefabcddga"


def test_the_stream_of_figure_8_worked_by_hand():
    # Left: the start by a, a, a and three others; `a` twice by b; `a b` by a, b, c, c; the final state by others.
    steps = build_pattern("a , b ; c")
    assert list_probabilities(steps, FIGURE_8, 1, 2, 3, 4, seen=FIGURE_8) == [0, 1 / 2, 3 / 4, 7 / 8]
    assert list_probabilities(steps, FIGURE_8, 1, 2, 3, 4) == [0, 0, 1 / 4, 1 / 2]
    assert list_probabilities(steps, FIGURE_8, 1, 2, 3, seen="ab") == [1 / 2, 3 / 4, 7 / 8]
    assert list_probabilities(steps, FIGURE_8, 3, 4, seen="abc") == [0, 1 / 4]


def test_smoothing_worked_by_hand():
    # Three labels, so that a half each is one and a half observations; `a` and `b` were a half of all events each.
    [probability] = list_probabilities(build_pattern("a , b"), "abab", 1, seen="a", smoothing=0.5)
    assert probability == pytest.approx((2 + 1.5 * 0.5) / (2 + 1.5), abs=1e-15)


def test_context_worked_by_hand():
    # After `c a` always b, after `b a` never: the state alone says six of eleven.
    word, pair = "caba" * 6, build_pattern("a , b")
    assert list_probabilities(pair, word, 1, seen="ca") == [6 / 11]
    assert list_probabilities(pair, word, 1, seen="ca", context=2) == [1]
    assert list_probabilities(pair, word, 1, seen="ba", context=2) == [0]


@pytest.mark.parametrize("context", range(4))
def test_a_context_that_was_never_seen_says_what_a_shorter_one_does(context):
    assert list_probabilities(build_pattern("a , b"), "caba" * 3, 1, seen="aa", context=context) == [3 / 5]


# Or and and -------------------------------------------------------------------------------------------


def join_patterns(kind, left, right):
    return Pattern((*left.filters, *right.filters), kind((remove_labels(left.root), remove_labels(right.root))))


@examples(25)
@given(
    patterns(("a", "b"), most_steps=3, **PLAIN),
    patterns(("c", "d"), most_steps=3, **PLAIN),
    st.lists(st.sampled_from("abcde"), min_size=1, max_size=20),
    MODES,
)
def test_or_and_and_add_up_to_the_sum_of_their_parts(left, right, word, mode):
    """Within n events of the stream's start, for children that no event can serve both.

    Then `or` is matched first at the earlier of the children's first matches, and `and` at the later one, whatever
    comes: so the probabilities add up under any law that all four share. They share one exactly where nothing is
    counted of the four themselves, and only how often events satisfy each filter is known: here from training another
    pattern. Counted chains of the four know different states, so that theirs differ by what they cannot see. (Once
    something was seen the two modes differ: a match of `or` in `restart` takes away what the other child had begun.)
    """
    shares = td.train(
        watch_pattern(build_pattern("a or b or c or d")), build_events(word), estimator="chain", smoothing=0
    )
    watch = td.Detector(model=shares)
    by_name = {
        "one": left,
        "other": right,
        "or": join_patterns(Disjunction, left, right),
        "and": join_patterns(Conjunction, left, right),
    }
    for name, pattern in by_name.items():
        watch.add(name, pattern, mode=mode)
        assert not build_course(watch[name], Mode(mode), context=3).approximate
    for count in range(1, 9):
        p = {name: watch.forecast(name, horizon=count)[0].probability for name in by_name}
        assert p["or"] + p["and"] == pytest.approx(p["one"] + p["other"], abs=1e-12)
        assert p["or"] >= max(p["one"], p["other"]) - 1e-12
        assert p["and"] <= min(p["one"], p["other"]) + 1e-12


@examples(50)
@given(
    patterns(("a", "b"), most_steps=2, **PLAIN),
    patterns(("c", "d"), most_steps=2, **PLAIN),
    st.lists(st.integers(1, 5), min_size=5, max_size=5),
)
def test_or_and_and_are_those_of_all_words(left, right, weights):
    """The same by enumeration: words of four events over five symbols of unequal weight."""
    law = {kind: Fraction(weight, sum(weights)) for kind, weight in zip("abcde", weights, strict=True)}
    traffic = Traffic(sum(weights), {f"kind = '{kind}'": float(weights["abcde".index(kind)]) for kind in "abcd"})
    for kind in (Disjunction, Conjunction):
        pattern = join_patterns(kind, left, right)
        model = td.Model(estimator="chain", smoothing=0)
        model.traffic = traffic
        watch = watch_pattern(pattern, "overlap", model=model)
        chain = Chain(pattern, "overlap", "a")
        total = Fraction(0)
        for word in product("abcde", repeat=4):
            symbols = [{name} & chain.names for name in word]
            if any(walk_automaton(chain.automaton, symbols)):
                total += law[word[0]] * law[word[1]] * law[word[2]] * law[word[3]]
        assert watch.forecast("p", horizon=4)[0].probability == pytest.approx(float(total), abs=1e-12)


# Contexts ---------------------------------------------------------------------------------------------


@given(patterns(overlapping=True, **PLAIN), MODES, st.integers(0, 3))
def test_a_context_changes_where_a_course_stands_but_not_where_it_reports(pattern, mode, context):
    plain = build_course(pattern, Mode(mode), Vocabulary(ONE_KIND), context=0)
    course = build_course(pattern, Mode(mode), Vocabulary(ONE_KIND), context=context)
    assert course.depth <= context
    state = course.groups[0]
    assert (plain.table[state] == state[course.table]).all()
    assert (plain.hits[state] == course.hits).all()
    assert plain.states == course.states
    for above, below in zip(course.groups, course.groups[1:], strict=False):  # each group lies in one of the row above
        assert len(np.unique(np.stack([above, below]), axis=1).T) == below.max() + 1
    assert sorted(course.groups[-1].tolist()) == list(range(course.cells))


def test_an_estimate_says_what_it_is_made_of():
    course = build_course(build_pattern("a , b"), Mode.RESTART, context=1)
    model = td.Model()
    estimates_made = Estimates(
        course, model.recall_pattern(watch_pattern(build_pattern("a , b")).patterns[0]).counts, np.full(3, 1 / 3), 0.5
    )
    assert estimates_made.estimator == "both"
    assert estimates_made.shrinking == 20
