"""Patterns come, change and go while a detector runs: each reports what the definition says of what it saw."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from pattern_worlds import PLENTY, S, check_reports, to_moment, to_tuples

import tidings as td
from tidings.model.patterns import Mode
from tidings.patterns.definition import judge_events
from tidings.patterns.state.run_bytes import run_from_bytes, run_to_bytes
from tidings.testing.strategies.patterns import patterns

NAMES = st.sampled_from(["p", "q", "r"])
VALUES = st.sampled_from([1, 1, 2, 2, [1, 2], {"of": 1}])
GIVEN = st.one_of(patterns(most_steps=3), patterns(most_steps=3, variables=True))
HAPPENED = st.tuples(st.sampled_from("abcd"), st.sampled_from([0, 1, 1, 2, None]), VALUES)


class Sets(RuleBasedStateMachine):
    """The model keeps, for each pattern, what came since it was added and what was reported of it since."""

    def __init__(self):
        super().__init__()
        self.detector, self.now, self.count = td.Detector(), 0, 0
        self.detector.on_time(to_moment(0))
        self.histories = {}

    @precondition(lambda self: self.count < 10)
    @rule(name=NAMES, pattern=GIVEN, mode=st.sampled_from(list(Mode)))
    def add(self, name, pattern, mode):
        history = self.histories.get(name)
        self.detector.add(name, pattern, mode=mode, limit=PLENTY if mode == "any" else None)
        if history is None or history[:2] != (pattern, mode):  # one that is there, unchanged, goes on
            self.histories[name] = (pattern, mode, [], [])

    @precondition(lambda self: self.histories)
    @rule(data=st.data(), mode=st.sampled_from(list(Mode)))
    def add_what_is_there_under_another_name(self, data, mode):
        pattern = self.histories[data.draw(st.sampled_from(sorted(self.histories)))][0]
        self.add(data.draw(NAMES), pattern, mode)

    @precondition(lambda self: self.histories)
    @rule(data=st.data())
    def remove(self, data):
        name = data.draw(st.sampled_from(sorted(self.histories)))
        self.detector.remove(name)
        del self.histories[name]
        with pytest.raises(td.UnknownPattern):
            self.detector.remove(name)

    @precondition(lambda self: self.count < 14)
    @rule(happened=st.lists(HAPPENED, min_size=1, max_size=3))
    def events(self, happened):
        batch = []
        for kind, gap, key in happened:
            self.now += (gap or 0) * S
            when = {} if gap is None else {"time": to_moment(self.now)}
            batch.append({"id": self.count, "stands": self.now, "kind": kind, "key": key} | when)
            self.count += 1
        for *_, events, _ in self.histories.values():
            events.extend(batch)
        self.record_reports(self.detector.detect_many(batch))

    @rule(seconds=st.integers(0, 3))
    def time_passes(self, seconds):
        self.now += seconds * S
        self.record_reports(self.detector.on_time(to_moment(self.now)))

    @rule()
    def go_on_from_a_snapshot(self):
        self.detector = td.Detector.resume(self.detector.snapshot())
        assert list(self.detector) == [pattern.name for pattern in self.detector.patterns]

    @rule()
    def go_on_from_where_it_stands(self):
        if all(pattern.born == 0 for pattern in self.detector.patterns):
            forked = self.detector.fork()
            run_from_bytes(forked.run, run_to_bytes(self.detector.run))
            self.detector = forked

    @rule(pattern=GIVEN)
    def another_fork_changes_nothing(self, pattern):
        forked = self.detector.fork()
        forked.add("another", pattern)
        for name in list(self.histories)[:1]:
            forked.remove(name)
        forked.detect_many([{"id": -1, "time": to_moment(0), "kind": "a", "key": 1}])
        assert set(self.detector) == set(self.histories)

    def record_reports(self, detections):
        for detection in detections:
            self.histories[detection.pattern][3].append(detection)
        for pattern, mode, events, reported in self.histories.values():
            if events:
                first = events[0]["id"]
                mine = [
                    replace(detection, events=tuple(id_ - first for id_ in detection.events)) for detection in reported
                ]
                stream = [replace(judge_events(pattern, [event])[0], time=event["stands"]) for event in events]
                check_reports(pattern, events, {mode: mine}, until=self.now, stream=stream)
            else:
                assert not reported


TestSets = Sets.TestCase
TestSets.settings = settings(stateful_step_count=14)

AB = "a = kind = 'a'\nb = kind = 'b'\na ; b"


def build_letters(text, first=0):
    return [{"id": first + n, "time": first + n, "kind": kind} for n, kind in enumerate(text)]


def test_a_pattern_that_is_added_sees_nothing_from_before_though_it_shares_places():
    detector = td.Detector()
    detector.add("old", AB)
    detector.on_event(build_letters("a")[0])
    detector.add("new", AB)
    assert [(detection.pattern, detection.events) for detection in detector.detect_many(build_letters("b", 1))] == [
        ("old", (0, 1))
    ]


def test_a_pattern_that_is_replaced_forgets_and_keeps_filters_it_shares():
    detector = td.Detector()
    detector.add("one", AB)
    detector.on_event(build_letters("a")[0])
    detector.add("one", AB.replace("a ; b", "a , b"))
    assert not list(detector.detect_many(build_letters("b", 1)))
    assert [detection.events for detection in detector.detect_many(build_letters("ab", 2))] == [(2, 3)]


def test_a_pattern_that_is_added_again_unchanged_goes_on():
    detector = td.Detector()
    detector.add("one", AB)
    detector.on_event(build_letters("a")[0])
    detector.add("one", AB)
    assert [detection.events for detection in detector.detect_many(build_letters("b", 1))] == [(0, 1)]


# While events wait ------------------------------------------------------------------------------------


def build_waiting(*texts):
    detector = td.Detector(lateness="5 s")
    for place, text in enumerate(texts):
        detector.add(f"p{place}", text)
    return detector


def finish(detector):
    return [(detection.pattern, detection.events) for detection in detector.on_time(1000)]


def test_a_pattern_that_is_removed_while_events_wait_leaves_the_others():
    detector = build_waiting(AB, "c = kind = 'c'\nb = kind = 'b'\nc ; b")
    detector.detect_many(build_letters("acb"))
    detector.remove("p0")
    assert finish(td.Detector.resume(detector.snapshot())) == finish(detector) == [("p1", (1, 2))]


@pytest.mark.parametrize("mode", list(Mode))
def test_a_pattern_that_is_added_while_events_wait_sees_what_is_later_than_they(mode):
    detector = build_waiting(AB)
    detector.detect_many(build_letters("azz"))
    detector.add("known", AB, mode=mode)
    detector.add("fresh", "a = kind = 'a' and key = $x\nc = kind = 'c' and key = $x\na ; c", mode=mode)
    more = [{"id": 9, "time": 1, "kind": "b"}, {"id": 10, "time": 2, "kind": "a", "key": 1}]
    more += [{"id": 11, "time": 3, "kind": "a", "key": 1}, {"id": 12, "time": 4, "kind": "b"}]
    more += [{"id": 13, "time": 4, "kind": "c", "key": 1}]
    detector.detect_many(more)
    resumed = td.Detector.resume(detector.snapshot())
    assert (
        finish(resumed)
        == finish(detector)
        == [
            ("p0", (0, 9)),
            ("p0", (11, 12)),
            ("known", (11, 12)),
            ("fresh", (11, 13)),
        ]
    )


def test_events_that_wait_may_be_handed_to_other_patterns():
    detector = build_waiting(AB, "c = kind = 'c'\nc")
    detector.detect_many(build_letters("acb"))
    other = build_waiting("c = kind = 'c'\nz = kind = 'z'\nz ; c", AB).fork()
    run_from_bytes(other.run, run_to_bytes(detector.run))
    assert [events for _, events in finish(other)] == [(0, 2)]


# Forks ------------------------------------------------------------------------------------------------


def test_a_fork_begins_anew_and_changes_by_itself():
    detector = td.Detector()
    detector.detect_many(build_letters("zz"))
    detector.add("one", AB)
    detector.detect_many(build_letters("a", 2))
    forked = detector.fork()
    forked.add("two", "c = kind = 'c'\nc")
    detector.add("three", "d = kind = 'd'\nd")
    assert [detection.pattern for detection in forked.detect_many(build_letters("abcd"))] == ["one", "two"]
    assert [(detection.pattern, detection.events) for detection in detector.detect_many(build_letters("bcd", 3))] == [
        ("one", (2, 3)),
        ("three", (5,)),
    ]


def test_a_fork_sees_all_though_events_waited_when_its_pattern_came():
    detector = build_waiting("z = kind = 'z'\nz")
    detector.detect_many(build_letters("y", 50))
    detector.add("one", AB)
    forked = detector.fork()
    forked.detect_many(build_letters("ab"))
    assert finish(forked) == [("one", (0, 1))]


def test_what_was_compiled_is_shared_with_a_fork():
    detector = td.Detector()
    detector.add("one", AB)
    detector.detect_many(build_letters("a"))
    forked = detector.fork()
    assert forked.run.prepare_graph_runs()[0][0] is detector.run.prepare_graph_runs()[0][0]
    assert to_tuples(forked.detect_many(build_letters("ab"))) == [("one", S, (0, 1), ())]
