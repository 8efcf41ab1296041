"""Detectors with next to no room: everything grows, moves together and is numbered anew, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pattern_worlds import PLENTY, S, build_detector, check_reports, find_end, is_same, to_moment
from tests.examples import examples

import tidings as td
from tidings.model.patterns import Mode
from tidings.patterns.tuning import BufferSizes, DetectorTuning
from tidings.testing.strategies.patterns import patterns, streams

ALL = tuple(Mode)


CRAMPED = DetectorTuning(
    kept_values=0,
    archive_chunks=1,
    piece=3,
    buffers=BufferSizes(
        pool=4, cells=2, fresh=1, spent=2, spent_per_pattern=0, candidates=1, out=1, listed_events=1, path=4
    ),
)
"""Buffers begin with a row or two, and a detector tidies up after each batch of three events."""


@pytest.mark.parametrize("variables", [False, True, "joins"])
@given(st.data(), streams(), st.integers(0, 4))
@examples(50)
def test_little_room_changes_nothing(variables, data, events, more):
    pattern = data.draw(patterns(variables=variables, overlapping=data.draw(st.booleans()), most_steps=4))
    detector, until = build_detector(pattern, *ALL, tuning=CRAMPED), find_end(events, more * S)
    answers = [detector.detect_many(events[low : low + 4]) for low in range(0, len(events), 4)]
    detections = detector.on_time(to_moment(until))
    detections = [
        detection for answer in answers for detection in answer
    ] + detections  # read when the detector has moved on
    check_reports(
        pattern,
        events,
        {mode: [detection for detection in detections if detection.pattern == mode] for mode in ALL},
        until=until,
    )


def draw_crowd(size, seed):
    rng = np.random.default_rng(seed)
    kinds, keys = rng.choice(list("abcz"), size), rng.integers(0, size // 20, size)
    return [
        {"id": n, "time": n // 3, "kind": str(kind), "key": int(key)}
        for n, (kind, key) in enumerate(zip(kinds, keys, strict=True))
    ]


TEXTS = ["a ; b", "a , b ; c", "a ; not c ; b within 200 s", "a{2,} ; b", "(a and b) ; c", "a ; b ; not c for 100 s"]


@pytest.mark.parametrize("text", TEXTS)
def test_many_keys_report_as_the_stream_of_each_alone(text):
    events, whole = draw_crowd(2_000, 7), td.Detector(tuning=CRAMPED)
    names = [name for name in "abc" if name in "".join(sign if sign.isalpha() else " " for sign in text).split()]
    for mode in ALL:
        limit = PLENTY if mode == "any" else None
        keyed = "".join(f"{name} = kind = '{name}' and key = $x\n" for name in names)
        whole.add(mode, keyed + text, mode=mode, limit=limit)
    alone = td.Detector(tuning=CRAMPED)
    for mode in ALL:
        plain = "".join(f"{name} = kind = '{name}'\n" for name in names)
        alone.add(mode, plain + text, mode=mode, limit=PLENTY if mode == "any" else None)
    detections = [*whole.detect_many(events), *whole.on_time(10**6)]
    for key in {event["key"] for event in events}:
        single = alone.fork()
        mine = [event for event in events if event["key"] == key]
        wanted = [*single.detect_many(mine), *single.on_time(10**6)]
        got = [td.Detection(two.pattern, two.events, two.at) for two in detections if two.bindings == {"x": key}]
        assert is_same(wanted, got)
    assert len(detections) > 100


def test_one_event_may_complete_more_than_a_buffer_holds():
    detector = td.Detector(tuning=CRAMPED)
    detector.add("p", "a = kind = 'a'\na{2,}", mode="any", limit=10**6)
    detections = detector.detect_many([{"id": n, "time": n, "kind": "a"} for n in range(19)])
    assert len(detections) == 2**19 - 19 - 1


@pytest.mark.parametrize("text", ["a ; s:a", "(a ; s:a) @ t(s) - t(a) < 9 s"])
def test_cuts_are_counted_once_though_reports_need_more_room(text):
    detector = td.Detector(tuning=CRAMPED)
    for number in range(5):
        detector.add(f"p{number}", f"a = kind = 'a' and n != {number}\n{text}", mode="any", limit=1)
    detector.detect_many([{"id": n, "time": n, "kind": "a", "n": -1} for n in range(3)])
    assert detector.cut == 5
