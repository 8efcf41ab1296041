"""Detectors against the definition: generated patterns, all short words, all modes; and against themselves."""

from __future__ import annotations

import pickle
from collections import Counter
from datetime import timedelta
from itertools import pairwise, product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pattern_worlds import (
    PLENTY,
    S,
    build_detector,
    build_stream,
    check_reports,
    find_end,
    is_same,
    to_micros,
    to_moment,
    to_tuples,
    walk_automaton,
)
from tests.examples import examples

import tidings as td
from tidings import lang
from tidings.concepts import Vocabulary
from tidings.model.patterns import Mode
from tidings.patterns.compile.pattern_automaton import PatternAutomaton, determinise
from tidings.patterns.definition import SeenEvent, judge_events
from tidings.patterns.state.run_bytes import run_from_bytes, run_to_bytes
from tidings.testing.strategies.patterns import patterns, streams, words

ALL = tuple(Mode)


FILTERS = "a = kind = 'a'\nb = kind = 'b'\nc = kind = 'c'\n"


def parse_with_filters(text, filters=FILTERS):
    """Read a pattern over those of the filters that it uses."""
    names = set("".join(sign if sign.isalpha() else " " for sign in text).split())
    lines = [line for line in filters.splitlines(keepends=True) if line[0] in names]
    return lang.parse_pattern("".join(lines) + text)


# The definition ---------------------------------------------------------------------------------------


def check(pattern, events, more):
    detector, until = build_detector(pattern, *ALL), find_end(events, more)
    detections = [*detector.detect_many(events), *detector.on_time(to_moment(until))]
    check_reports(
        pattern,
        events,
        {mode: [detection for detection in detections if detection.pattern == mode] for mode in ALL},
        until=until,
    )


more = st.integers(0, 4).map(lambda seconds: seconds * S)


@given(patterns(), streams(), more)
def test_what_is_reported_is_what_the_definition_says(pattern, events, more):
    check(pattern, events, more)


@given(patterns(variables=True), streams(), more)
def test_each_key_sees_its_own_stream(pattern, events, more):
    check(pattern, events, more)


@given(patterns(variables="joins"), streams(), more)
def test_events_agree_on_the_variables_they_share(pattern, events, more):
    check(pattern, events, more)


@given(patterns(variables="joins", overlapping=True, most_steps=4), streams(most=7), more)
def test_one_event_may_satisfy_several_filters(pattern, events, more):
    check(pattern, events, more)


ODD = streams(most=7, odd=True)


@given(patterns(mixed=True), ODD, more)
def test_what_cannot_be_read_and_what_has_no_time_passes_by_each_pattern_as_the_definition_says(pattern, events, more):
    check(pattern, events, more)


@given(patterns(mixed=True, variables=True, most_steps=4), ODD, more)
def test_what_no_variable_takes_is_of_no_key(pattern, events, more):
    check(pattern, events, more)


@given(patterns(mixed=True, variables="joins", overlapping=True, most_steps=4), ODD, more)
def test_what_no_variable_takes_joins_nothing(pattern, events, more):
    check(pattern, events, more)


DECLARED = td.Schema({"key": "number", "other": "text"}, closed=False)
KEYS = st.sampled_from([1, 1.0, "1", " 1.0", "1e0", 2, "2", None])


@given(patterns(variables="joins", most_steps=4), streams(most=7), st.lists(KEYS, min_size=7, max_size=7))
def test_a_declared_attribute_gives_its_declared_reading(pattern, events, keys):
    rows = [event | {"key": key, "other": str(event.get("other"))} for event, key in zip(events, keys, strict=False)]
    table = pa.table({name: [row[name] for row in rows] for name in ("id", "time", "kind", "other")})
    table = table.append_column("key", pa.array([None if row["key"] is None else str(row["key"]) for row in rows]))
    until, stream = find_end(rows), judge_events(pattern, rows, schema=DECLARED)
    for form in (rows, table.cast(table.schema)) if rows else (rows,):
        detector = build_detector(pattern, *ALL, schema=DECLARED)
        detections = [*detector.detect_many(form), *detector.on_time(to_moment(until))]
        by_mode = {mode: [detection for detection in detections if detection.pattern == mode] for mode in ALL}
        check_reports(pattern, rows, by_mode, until=until, stream=stream)


@given(patterns(overlapping=True, absence=False, guards=False), streams(most=7), st.just(0))
def test_filters_that_overlap_serve_any_step(pattern, events, more):
    check(pattern, events, more)


UNKEYED_NOT = [
    "a ; not b ; c",
    "a ; not b ; c within 2 s",
    "(a and c) ; not b ; s:a",
    "a ; ((s:a ; not b ; c) and t:c)",
    "a ; c ; not b for 2 s",
    "a{1,2} ; not b ; c",
]


@pytest.mark.parametrize("text", UNKEYED_NOT)
@examples(33)
@given(streams(("a", "b", "c"), most=7))
def test_a_not_forbids_what_agrees_with_the_match_on_a_variable_bound_before(text, events):
    filters = "a = kind = 'a' and key = $y\nb = kind = 'b' and key = $y\nc = kind = 'c'\n"
    check(parse_with_filters(text, filters), events, 2 * S)


JOINS = [
    "a ; b ; c",
    "a , b ; c",
    "(a and b) ; c",
    "a{1,2} ; b ; c",
    "a ; not b ; c",
    "a ; (b or s:a) ; c within 3 s",
    "(a ; b ; c) @ t(b) - t(a) < 3 s",
]


@pytest.mark.parametrize("text", JOINS)
@examples(33)
@given(streams(("a", "b", "c"), most=8), st.booleans())
def test_steps_that_share_a_variable_agree_whatever_lies_between(text, events, two):
    filters = "a = kind = 'a' and key = $x\nb = kind = 'b'\nc = kind = 'c' and other = $x\n"
    if two:
        filters = filters.replace("'b'", "'b' and other = $z").replace("$x\nb", "$x and other = $z\nb")
    check(parse_with_filters(text, filters), events, 2 * S)


ACROSS = ["a ; not b ; c", "a , b ; c", "a ; c ; not b for 2 s", "(a ; not b ; c) and s:b", "b{2,} , a", "a or (b , c)"]


@pytest.mark.parametrize("text", ACROSS)
@examples(50)
@given(streams(("a", "b", "c"), most=8))
def test_a_key_may_be_given_through_other_attributes(text, events):
    filters = "a = kind = 'a' and key = $x\nb = kind = 'b' and other = $x\nc = kind = 'c' and key = $x\n"
    check(parse_with_filters(text, filters), events, 2 * S)


CONDITIONS = [
    "(a and b) ; c @ |t(a) - t(b)| <= 1 s",
    "(a and b) ; c @ |t(a) - t(b)| > 1 s",
    "(a and b) ; c @ t(a) - t(b) >= 1 s",
    "((a and b) ; c) @ (t(c) - t(a) < 3 s and t(c) - t(b) > 1 s)",
    "a ; b ; c @ (t(c) - t(a) <= 4 s and t(b) - t(a) > 1 s)",
    "(x:a{2,3} ; b) @ (t(b) - t(first x) >= 3 s and t(x) - t(first x) < 3 s)",
    "(a or b) ; c @ t(c) - t(a) < 2 s",
    "((a ; b) within 1 s) and c",
]


@pytest.mark.parametrize("text", CONDITIONS)
@examples(33)
@given(words(most=8))
def test_conditions_are_judged_when_their_part_is_taken(text, word):
    check(parse_with_filters(text), build_stream(word), 0)


ROOTS = [
    "a ; b ; c",
    "a , b ; c",
    "a , b , a",
    "a ; not b ; c",
    "a ; not a ; b",
    "(a , b) and c",
    "((a ; not c ; b) and s:c) , t:a",
    "a , (b and c)",
    "a ; (b or (s:b , c))",
    "a{2,} , b",
    "a{1,2} ; not c ; b",
    "(a ; b ; c) @ (t(b) - t(a) < 3 s and t(c) - t(b) > 1 s)",
    "((a ; b) within 2 s) ; c within 4 s",
    "(a and b) @ |t(a) - t(b)| <= 1 s",
    "a ; b ; not c for 2 s",
]


@pytest.fixture(scope="module")
def detector_of_all():
    detector = td.Detector()
    for text, mode in product(ROOTS, ALL):
        detector.add(f"{mode} {text}", parse_with_filters(text), mode=mode, limit=PLENTY if mode == "any" else None)
    return detector


def test_all_words_of_six_letters_are_reported_as_the_definition_says(detector_of_all):
    # What is reported at an event depends on those before it alone, so words of six hold all shorter ones.
    trees, until = {text: parse_with_filters(text) for text in ROOTS}, 7 * S
    for word in product("abc", repeat=6):
        events = build_stream([(kind, place * S) for place, kind in enumerate(word)])
        stream = [SeenEvent(place * S, frozenset(kind), {}) for place, kind in enumerate(word)]
        detector, reports = detector_of_all.fork(), {}
        for detection in [*detector.detect_many(events), *detector.on_time(to_moment(until))]:
            reports.setdefault(detection.pattern, []).append(detection)
        for text, tree in trees.items():
            of_modes = {mode: reports.get(f"{mode} {text}", []) for mode in ALL}
            check_reports(tree, events, of_modes, until=until, stream=stream)


@given(patterns(conditions=False, absence=False), words(most=8), st.sampled_from([Mode.RESTART, Mode.OVERLAP]))
def test_an_automaton_reports_where_the_detector_does(pattern, word, mode):
    automaton = determinise(pattern, mode, Vocabulary(td.Schema({"kind": "text"})))
    if isinstance(automaton, PatternAutomaton):
        events = build_stream(word)
        walked = walk_automaton(automaton, [event.names for event in judge_events(pattern, events)])
        ends = [max(detection.events) for detection in build_detector(pattern, mode).detect_many(events)]
        assert ends == [place for place, reported in enumerate(walked) if reported]


# One by one, in batches, merged -----------------------------------------------------------------------

SETS = st.lists(st.tuples(patterns(variables="joins", most_steps=4), st.sampled_from(ALL)), min_size=2, max_size=5)


def watch_pairs(pairs, **options):
    detector = td.Detector(**options)
    for place, (pattern, mode) in enumerate(pairs):
        detector.add(f"p{place}", pattern, mode=mode, limit=PLENTY if mode == "any" else None)
    return detector


@examples(50)
@given(SETS, streams(), more)
def test_many_patterns_at_once_report_as_each_alone(pairs, events, more):
    until = to_moment(find_end(events, more))
    together = watch_pairs(pairs)
    detections = [*together.detect_many(events), *together.on_time(until)]
    for place, (pattern, mode) in enumerate(pairs):
        alone = watch_pairs([(pattern, mode)])
        wanted = [*alone.detect_many(events), *alone.on_time(until)]
        mine = [detection for detection in detections if detection.pattern == f"p{place}"]
        assert [line[1:] for line in sorted(to_tuples(mine), key=repr)] == [
            line[1:] for line in sorted(to_tuples(wanted), key=repr)
        ]


def detect_in_pieces(detector, events, cuts, form=list):
    ends = [0, *sorted(cut for cut in cuts if cut <= len(events)), len(events)]
    return [detection for low, high in pairwise(ends) for detection in detector.detect_many(form(events[low:high]))]


@examples(50)
@given(SETS, streams(), st.sets(st.integers(0, 8)))
def test_batches_report_as_events_one_by_one(pairs, events, cuts):
    detector = watch_pairs(pairs)
    whole = list(detector.fork().detect_many(events))
    one_by_one = detector.fork()
    assert is_same(whole, [detection for event in events for detection in one_by_one.on_event(event)])
    assert is_same(whole, detect_in_pieces(detector.fork(), events, cuts))


def as_table(events, *, coded=False):
    """Put events into Arrow columns; a column has one kind of values, so those of text alone are taken."""
    columns = {name: [event.get(name) for event in events] for name in ("id", "time", "kind", "key", "other")}
    types = {"id": pa.int64(), "time": pa.timestamp("us", "UTC"), "kind": pa.string()}
    types |= {"key": pa.string(), "other": pa.string()}
    arrays = {name: pa.array(columns[name], types[name]) for name in columns}
    if coded:
        arrays |= {name: arrays[name].dictionary_encode() for name in ("kind", "key", "other")}
    return pa.table(arrays)


def to_texts(events):
    text_values = [{name: str(event[name]) for name in ("key", "other") if name in event} for event in events]
    return [event | values for event, values in zip(events, text_values, strict=True)]


@examples(50)
@given(SETS, streams().map(to_texts), st.sets(st.integers(0, 8)), st.booleans())
def test_arrow_tables_report_as_rows(pairs, events, cuts, coded):
    detector = watch_pairs(pairs)
    whole = list(detector.fork().detect_many(events))
    assert is_same(whole, detect_in_pieces(detector.fork(), events, cuts, lambda piece: as_table(piece, coded=coded)))
    assert is_same(
        whole, detect_in_pieces(detector.fork(), events, cuts, lambda piece: td.EventBatch.of(as_table(piece)))
    )


@examples(20)
@given(SETS, st.integers(0, 5), st.integers(2, 4))
def test_a_long_table_of_few_kinds_reports_as_rows(pairs, seed, size):
    rows = [
        {"id": n, "time": to_moment(n * S), "kind": "abcd"[n * n * (seed + 7) % 31 % 4], "key": str(n * 7 % 11 % size)}
        for n in range(300)
    ]
    pairs = [(pattern, mode) for pattern, mode in pairs if mode not in ("any", "next")]
    detector = watch_pairs(pairs)
    one_by_one = detector.fork()
    expected = [detection for event in rows for detection in one_by_one.on_event(event)]
    assert is_same(expected, list(detector.fork().detect_many(as_table(rows, coded=bool(seed % 2)))))


# Kept and gone on -------------------------------------------------------------------------------------


def continue_detector(detector, way):
    """Return a detector that goes on where this one stands."""
    if way == "snapshot":
        return td.Detector.resume(detector.snapshot())
    if way == "pickle":
        return pickle.loads(pickle.dumps(detector))
    forked = detector.fork()
    run_from_bytes(forked.run, run_to_bytes(detector.run))
    return forked


@pytest.mark.parametrize("way", ["snapshot", "pickle", "where"])
@given(pairs=SETS, events=streams(), more=more, lateness=st.sampled_from([None, "2 s"]))
@examples(33)
def test_a_run_that_is_resumed_anywhere_is_the_uninterrupted_one(way, pairs, events, more, lateness):
    until = to_moment(find_end(events, more))
    fresh = watch_pairs(pairs, lateness=lateness, keep=["kind"])
    whole = fresh.fork()
    wanted = [*whole.detect_many(events), *whole.on_time(until)]
    for split in range(len(events) + 1):
        first = fresh.fork()
        detections = list(first.detect_many(events[:split]))
        then = continue_detector(first, way)
        assert then.next_deadline() == first.next_deadline()
        for going_on in (then, first):  # taking a state leaves the run itself as it was
            rest = [*going_on.detect_many(events[split:]), *going_on.on_time(until)]
            assert is_same(wanted, detections + rest)
            assert [detection.fields for detection in wanted] == [detection.fields for detection in detections + rest]
            assert (going_on.transitions, going_on.late) == (whole.transitions, whole.late)


@examples(33)
@given(SETS, streams(most=6))
def test_a_run_may_be_resumed_after_every_event(pairs, events):
    detector = watch_pairs(pairs)
    wanted, detections = list(detector.fork().detect_many(events)), []
    for event in events:
        detector = continue_detector(detector, "snapshot")
        detections += detector.on_event(event)
    assert is_same(wanted, detections)


# Time -------------------------------------------------------------------------------------------------


@examples(50)
@given(SETS, streams(), st.randoms(use_true_random=False), st.integers(0, 8))
def test_events_that_come_within_the_lateness_are_put_in_order(pairs, events, rng, cut):
    jitter = sorted(
        range(len(events)), key=lambda place: (to_micros(events[place]["time"]) + rng.randint(0, 2 * S), place)
    )
    mixed = [events[place] for place in jitter]
    waiting = watch_pairs(pairs, lateness=timedelta(seconds=2))
    until = to_moment(find_end(events, 9 * S))
    detections = list(waiting.detect_many(mixed[:cut]))
    waiting = continue_detector(waiting, "snapshot")
    got = waiting.detect_many(mixed[cut:])
    detections += [*got, *waiting.on_time(until)]
    assert waiting.late == 0 == len(got.late)
    # Of equal times, the one that came first goes first.
    ordered = sorted(mixed, key=lambda event: event["time"])
    plain = watch_pairs(pairs)
    assert is_same([*plain.detect_many(ordered), *plain.on_time(until)], detections)


@given(SETS, streams(), st.permutations(range(8)))
def test_what_is_too_late_is_told_and_as_if_it_never_came(pairs, events, order):
    mixed = [events[place] for place in order if place < len(events)]
    detector, latest, accepted, late = watch_pairs(pairs), None, [], []
    for event in mixed:
        behind = latest is not None and event["time"] < latest
        (late if behind else accepted).append(event)
        latest = event["time"] if latest is None else max(latest, event["time"])
    plain = detector.fork()
    detections = detector.detect_many(mixed)
    assert is_same(list(plain.detect_many(accepted)), list(detections))
    assert [(letter.event, letter.time) for letter in detections.late] == [
        (event["id"], event["time"]) for event in late
    ]
    assert detector.late == len(late)


@examples(50)
@given(SETS, streams(), st.integers(0, 8), st.lists(st.integers(0, 3), max_size=3))
def test_time_that_passes_between_events_changes_nothing_but_when_reports_come(pairs, events, split, steps):
    quiet, ticking = watch_pairs(pairs), watch_pairs(pairs)
    until = to_moment(find_end(events, 9 * S))
    wanted = [*quiet.detect_many(events), *quiet.on_time(until)]
    now = to_micros(events[split]["time"]) if split < len(events) else find_end(events)
    detections = list(ticking.detect_many(events[:split]))
    start = find_end(events[:split])
    for step in sorted(steps):
        detections += ticking.on_time(to_moment(min(now, start + step * S)))
    detections += [*ticking.detect_many(events[split:]), *ticking.on_time(until)]
    assert Counter(to_tuples(wanted)) == Counter(to_tuples(detections))
    assert ticking.late == 0


@given(SETS, streams())
def test_the_next_deadline_is_when_the_next_absence_completes(pairs, events):
    detector = watch_pairs([(pattern, mode) for pattern, mode in pairs if mode != "restart"])
    detector.detect_many(events)
    while (deadline := detector.next_deadline()) is not None:
        before = detector.fork()
        run_from_bytes(before.run, run_to_bytes(detector.run))
        assert before.on_time(deadline - timedelta(microseconds=1)) == []
        detections = detector.on_time(deadline)
        assert all(detection.at == deadline for detection in detections)
        assert detector.next_deadline() is None or detector.next_deadline() > deadline
