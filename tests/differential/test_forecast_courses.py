"""Exact courses report exactly where the detector does; and counts of courses are those of the definition."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import numpy as np
import pytest
from forecast_worlds import (
    EDGES,
    SILENCES,
    S,
    build_events,
    build_pattern,
    compute_kaplan_meier,
    compute_own_gaps,
    count_by_definition,
    count_known_waits,
    encode_wait,
    find_labels,
    split_streams,
    to_dense,
    train_model,
    watch_pattern,
    weigh_evenly,
)
from hypothesis import given
from hypothesis import strategies as st
from pattern_worlds import to_micros

import tidings as td
from tidings.forecast.courses.exact_course import build_course
from tidings.forecast.learning import counts
from tidings.forecast.predicting import estimates
from tidings.kernels.forecast import forecasts as kernels
from tidings.model.patterns import Mode
from tidings.testing.strategies.patterns import patterns, streams

PLAIN = {"conditions": False, "absence": False}
MODES = st.sampled_from(("restart", "overlap", "any"))


# Hits -------------------------------------------------------------------------------------------------


def walk_course(course, pattern, events):
    """Return where a course is matched, whatever the key."""
    labels, hit_places = find_labels(course, pattern, events), set()
    for places in split_streams(pattern, events).values():
        cell = course.start
        for place in places:
            if course.hits[cell, labels[place]]:
                hit_places.add(place)
            cell = int(course.table[cell, labels[place]])
    return hit_places


def find_reports(pattern, mode, events):
    """Return the events at which a detector reports: the last of each match."""
    return {max(detection.events) for detection in watch_pattern(pattern, mode).detect_many(events)}


@given(patterns(overlapping=True, **PLAIN), streams(most=12), MODES, st.integers(0, 3))
def test_a_course_is_matched_exactly_where_the_detector_reports(pattern, events, mode, context):
    course = build_course(pattern, Mode(mode), context=context)
    assert not course.approximate
    assert walk_course(course, pattern, events) == find_reports(pattern, mode, events)


@given(patterns(overlapping=True, variables=True, **PLAIN), streams(most=14), MODES, st.integers(0, 2))
def test_and_so_it_is_of_each_key(pattern, events, mode, context):
    course = build_course(pattern, Mode(mode), context=context)
    assert not course.approximate
    assert walk_course(course, pattern, events) == find_reports(pattern, mode, events)


@given(patterns(variables=True, **PLAIN), streams(most=14), MODES)
def test_a_detector_that_forecasts_stands_where_its_course_does(pattern, events, mode):
    """An episode ends where the detector reports: so the kernel's own walk is held to the same."""
    model = td.Model(context=1)
    watch = watch_pattern(pattern, mode, model=model, horizon=3, tell="every")
    watch.detect_many(events)
    following, number = watch.prepare_forecasting().forecaster.find_member("p")
    course = following.group.members[number].course
    assert not course.approximate
    labels = find_labels(course, pattern, events)
    wanted = []
    for places in split_streams(pattern, events).values():
        cell = course.start
        for place in places:
            cell = int(course.table[cell, labels[place]])
        wanted.append(cell)
    keys = np.flatnonzero(following.key_gaps.count)
    assert sorted(following.cells[number, keys].tolist()) == sorted(wanted)
    live = len(watch.forecast("p")) - (1 if pattern.key_variables() else 0)
    assert live == (sum(not course.idle[cell] for cell in wanted) if pattern.key_variables() else 1)


def test_an_event_with_several_values_counts_as_the_nearest_kind():
    """The documented exception: courses take attributes to have one value."""
    pattern = build_pattern("a , b")
    watch = watch_pattern(pattern, model=td.Model(), horizon=1, tell="every")
    assert len(watch.detect_many([{"kind": ["a", "b"]}, {"kind": ["a", "b"]}])) == 1
    assert len(watch.forecast("p")) == 1


# Counts -----------------------------------------------------------------------------------------------


def find_pattern_model(model):
    [pattern_model] = model.patterns.values()
    return pattern_model


def check(pattern, events, mode="restart", *, weight=weigh_evenly, within=0.0, spans=(), **settings):
    model = train_model(pattern, events, mode, horizons=[timedelta(microseconds=span) for span in spans], **settings)
    pattern_model = find_pattern_model(model)
    assert not pattern_model.course.approximate
    wanted, counts = (
        count_by_definition(pattern_model.course, pattern, events, weight=weight, spans=spans),
        pattern_model.counts,
    )
    for name in ("moves", "waits", "later"):
        of = getattr(counts, name)
        np.testing.assert_allclose(of, to_dense(getattr(wanted, name), of.shape), rtol=within, err_msg=name)
    assert set(counts.spans) == set(spans)
    for span in spans:
        of = counts.spans[span]
        np.testing.assert_allclose(of, to_dense(wanted.spans[span], of.shape), rtol=within, err_msg=str(span))
    if pattern.key_variables():
        own = [model.traffic.own[f"(('key',),) {name}"] for name in ("gaps", "events", "time")]
        np.testing.assert_allclose(own, compute_own_gaps(pattern, events, weight), rtol=within, atol=within)


@given(patterns(overlapping=True, **PLAIN), streams(most=12), MODES, st.integers(0, 3))
def test_moves_and_waits_are_counted_as_they_are_defined(pattern, events, mode, context):
    check(pattern, events, mode, context=context, spans=(S, 3 * S))


@given(patterns(variables=True, **PLAIN), streams(most=14), MODES, st.integers(0, 2))
def test_so_are_those_of_keys(pattern, events, mode, context):
    check(pattern, events, mode, context=context, spans=(2 * S,))


@given(patterns(**PLAIN), streams(most=12), st.integers(1, 5))
def test_with_a_half_life_in_events_an_event_weighs_half_as_much_so_many_events_later(pattern, events, half):
    size = len(events)
    check(pattern, events, half_life=half, weight=lambda at: 0.5 ** ((size - at) / half), within=1e-12, spans=(S,))


@given(patterns(variables=True, **PLAIN), streams(most=12), st.integers(1, 5))
def test_with_a_half_life_in_time_it_is_so_much_later(pattern, events, half):
    def weight(place):
        return 0.5 ** ((to_micros(events[-1]["time"]) - to_micros(events[place]["time"])) / (half * S))

    check(pattern, events, half_life=timedelta(seconds=half), weight=weight, within=1e-12, spans=(S,))


@pytest.mark.parametrize("keys", [None, 3])
def test_long_waits_are_counted_in_their_bins_and_cut_off_at_the_last(keys):
    rng = np.random.default_rng(5)
    word = ["b" if draw < 0.002 else "a" if draw < 0.1 else "c" for draw in rng.random(6000)]
    word[200:1700] = "c" * 1500
    events = build_events(word, None if keys is None else rng.integers(0, keys, len(word)).tolist())
    pattern = build_pattern("a ; b", key="" if keys is None else " and key = $x")
    check(pattern, events, context=1)


@pytest.mark.parametrize("cut", [1, 4, 30])
@pytest.mark.parametrize("seed", range(5))
def test_an_absence_is_waited_for_until_its_deadline_although_the_key_never_comes_back(seed, cut):
    """In the stream's events and in time, a wait ends with the deadline: at the first event that is not before it."""
    rng, span = np.random.default_rng(seed), 8 * S
    events = build_events(rng.choice(list("abc"), 30).tolist(), rng.integers(0, 9, 30).tolist())
    pattern = build_pattern("a ; not b for 2500 ms" if seed % 2 else "a ; not b for 3 s", key=" and key = $x")
    due = defaultdict(list)
    for detection in watch_pattern(pattern).detect_many(events):
        due[detection.bindings["x"]].append(to_micros(detection.at))
    later, within = count_deadlines(events, due, span)
    pieces = iter([events[at : at + cut] for at in range(0, 30, cut)])
    learned = find_pattern_model(train_model(pattern, pieces, horizons=[timedelta(microseconds=span)])).counts
    assert sum(map(len, due.values())) > 3
    assert learned.later.reshape(-1, SILENCES, counts.CODES).sum(axis=(0, 1)).tolist() == later.tolist()
    assert learned.spans[span].sum(axis=0).tolist() == within.tolist()


def count_deadlines(events, due, span):
    """Count waits for the next deadline of each key after an event, and whether it comes within a span."""
    times = [to_micros(event["time"]) for event in events]
    later, within = np.zeros(counts.CODES), np.zeros(3)
    for place, event in enumerate(events):
        when = min((at for at in due[event["key"]] if at > times[place]), default=None)
        wait = None if when is None else sum(time < when for time in times) - place
        later[encode_wait(wait, len(events) - 1 - place)] += 1
        ended = when is not None and when - times[place] <= span
        within[0 if ended else 2 if times[-1] - times[place] >= span else 1] += 1
    return later, within


def test_the_bins_of_silences_are_those_that_are_written_down():
    assert kernels.SILENCES == SILENCES


def test_the_bins_are_those_that_are_written_down():
    assert counts.EDGES.tolist() == list(EDGES)
    for wait in range(1, EDGES[-1] + 1):
        assert counts.BINS[wait] == sum(edge < wait for edge in EDGES)


# Kaplan and Meier ---------------------------------------------------------------------------------------


ROWS = st.lists(st.integers(0, 4), min_size=counts.CODES, max_size=counts.CODES)


@given(ROWS)
def test_waits_that_were_cut_off_leave_when_they_are_cut(row):
    share, known_share = estimates.fit_kaplan_meier(np.array([row], float))
    assert share[0] == pytest.approx(compute_kaplan_meier(row), abs=1e-12)
    assert known_share[0].tolist() == [count_known_waits(row, edge) for edge in EDGES]


@given(st.lists(st.integers(0, 4), min_size=len(EDGES), max_size=len(EDGES)), st.integers(0, 9))
def test_where_nothing_was_cut_off_it_is_the_share_that_ended(ended, never):
    row = np.zeros((1, counts.CODES))
    row[0, : len(EDGES)], row[0, -1] = ended, never
    total = max(1, sum(ended) + never)
    wanted = [sum(ended[: at + 1]) / total for at in range(len(EDGES))]
    assert estimates.fit_kaplan_meier(row)[0][0] == pytest.approx(wanted, abs=1e-12)


@given(patterns(**PLAIN), streams(most=12), MODES, st.integers(1, 6))
def test_without_smoothing_the_direct_share_is_that_of_the_waits(pattern, events, mode, count):
    model = train_model(pattern, events, mode, estimator="direct", smoothing=0, context=0)
    pattern_model = find_pattern_model(model)
    assert not pattern_model.course.approximate
    curve, part = model.estimates(pattern_model).compute_curve(count)
    rows = to_dense(count_by_definition(pattern_model.course, pattern, events).waits, pattern_model.counts.waits.shape)
    for cell in range(pattern_model.course.cells):
        if count_known_waits(rows[cell], count):
            assert curve[count, cell] == pytest.approx(compute_kaplan_meier(rows[cell])[count - 1], abs=1e-12)
            assert part[count, cell] == 1


@given(patterns(**PLAIN), streams(most=12), st.integers(1, 10), st.sampled_from((0.1, 0.5, 2.0)))
def test_both_is_the_direct_share_drawn_towards_the_chain(pattern, events, count, smoothing):
    model = train_model(pattern, events, smoothing=smoothing, context=0)
    pattern_model = find_pattern_model(model)
    assert not pattern_model.course.approximate
    chain = model.using(estimator="chain").estimates(pattern_model).compute_curve(count)[0]
    rows = pattern_model.counts.waits
    curve = np.zeros(pattern_model.course.cells)
    for at in range(1, count + 1):
        for cell in range(pattern_model.course.cells):
            seen = count_known_waits(rows[cell], at)
            part = seen / (seen + 40 * smoothing)
            expected = part * compute_kaplan_meier(rows[cell])[at - 1] + (1 - part) * chain[at, cell]
            curve[cell] = max(curve[cell], expected)  # never less likely than a shorter horizon
    assert model.estimates(pattern_model).compute_curve(count)[0][count] == pytest.approx(curve, abs=1e-12)
