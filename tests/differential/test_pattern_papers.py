"""The paper's worked examples, told by a detector: Figures 6, 7 and 8, and Tables 1 and 3."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pattern_worlds import S, build_detector, build_stream, check_reports, find_end, to_moment
from tests.examples import examples

import tidings as td
from tidings import lang
from tidings.model.patterns import Mode

ALL = tuple(Mode)


def name_filters(*names, of=None):
    return "".join(f"{name} = kind = '{(of or {}).get(name, name)}'\n" for name in names)


def build_letters(text, times=None):
    times = times or range(len(text))
    return [{"id": at, "time": at, "kind": kind} for at, kind in zip(times, text, strict=True)]


def count_matches(text, events):
    detector = build_detector(lang.parse_pattern(text), *ALL)
    detections = detector.detect_many(events).by_pattern()
    return [detections.get(mode, 0) for mode in ALL]


def test_figure_6_merges_ten_states_into_six():
    detector = td.Detector()
    for name, text in {"cs1": "a ; b ; c", "cs2": "a ; b ; d", "cs3": "a"}.items():
        detector.add(name, name_filters(*text.split(" ; ")) + text)
    [(machine, _)] = detector.run.prepare_graph_runs()
    ends = [key for key in machine.merged.edges if key.target < 0]
    assert len(machine.merged.nodes) == 3, "the start, M1 and M2"
    assert len(ends) == 3, "M3, M4 and M5: the last step of a pattern is an edge"
    alone = [td.Detector() for _ in range(3)]
    for single, (name, text) in zip(alone, {"cs1": "a ; b ; c", "cs2": "a ; b ; d", "cs3": "a"}.items(), strict=True):
        single.add(name, name_filters(*text.split(" ; ")) + text)
    assert sum(len(detector.run.prepare_graph_runs()[0][0].merged.nodes) + 1 for detector in alone) == 10


def test_figure_7_gives_exactly_one_match():
    text = name_filters("s1", "s2", "s3", of={"s1": "a", "s2": "b", "s3": "c"})
    text += "s1 ; s2 @ t(s2) - t(s1) < 3 s ; s3 @ (t(s3) - t(s1) < 6 s and t(s3) - t(s2) > 3 s)"
    events = build_letters("aaabbbcc", range(1, 9))
    for mode in ALL:
        assert [
            detection.events for detection in build_detector(lang.parse_pattern(text), mode).detect_many(events)
        ] == [(3, 4, 8)]


@pytest.mark.parametrize(("word", "wanted"), [("ababcefabcddga", [2, 2, 3, 5]), ("abcc", [1, 2, 1, 2])])
def test_figure_8_tells_the_four_modes_apart(word, wanted):
    assert count_matches(name_filters("a", "b", "c") + "a , b ; c", build_letters(word)) == wanted


TABLE_1 = [
    {"id": f"e{place}", "time": datetime(2007, 2, 14, 12, minute, second, tzinfo=UTC), "status": status, "ip": ip}
    for place, (minute, second, status, ip) in enumerate(
        [
            (38, 10, "denied", "128.100.2.15"),
            (42, 10, "denied", "128.100.2.15"),
            (42, 10, "denied", "128.100.2.15"),
            (43, 28, "success", "128.100.2.15"),
            (43, 56, "logoff", "128.100.2.15"),
            (45, 28, "success", "128.100.5.10"),
        ]
    )
]
INTRUSION = """
s1, s2, s3 = status = 'denied' and ip = $x
s4 = status = 'success' and ip = $x
s1 ; s2 ; s3 @ t(s3) - t(s1) < MINUTES min ; s4
"""
COMPROMISED = """
s1, s2 = status = 'denied' and ip = $x
s3, s4 = status = 'success' and ip = $x
s5 = status = 'passwd' and ip = $x
s6 = status = 'logoff' and ip = $x
s1 ; ((s2 ; s3 @ t(s3) - t(s1) < MINUTES min) or (s4 , s5)) ; s6
"""


@pytest.mark.parametrize("mode", ALL)
@pytest.mark.parametrize(("minutes", "wanted"), [(5, [("e0", "e1", "e2", "e3")]), (4, [])])
def test_table_1_holds_one_intrusion_within_five_minutes(minutes, wanted, mode):
    detector = td.Detector()
    detector.add("CS_intrusion", INTRUSION.replace("MINUTES", str(minutes)), mode=mode)
    detections = list(detector.detect_many(TABLE_1))
    assert [detection.events for detection in detections] == wanted
    assert all(
        (detection.bindings, detection.at) == ({"x": "128.100.2.15"}, TABLE_1[3]["time"]) for detection in detections
    )


@pytest.mark.parametrize(("minutes", "wanted"), [(5, [1, 1, 1, 1]), (6, [1, 1, 2, 3]), (1, [0, 0, 0, 0])])
def test_table_1_holds_a_compromise(minutes, wanted):
    text = COMPROMISED.replace("MINUTES", str(minutes))
    assert count_matches(text, TABLE_1) == wanted


# Table 3: where the two steps of a time condition may lie ---------------------------------------------

CASES = {
    1: ("s3", "s2"),
    2: ("s2", "s1"),
    3: ("s6", "s4"),
    4: ("s4", "s3"),
    5: ("s7", "s3"),
}
KINDS = {"s1": "a", "s2": "b", "s3": "c", "s4": "d", "s5": "b", "s6": "a", "s7": "c", "s8": "d"}
WAYS = ["abcdbac", "adbbcad", "abdbcac", "abbdcbcaad", "aabcdbbcaac", "adbcbcacd", "abcbdbbcaacd"]
BOUNDS = ["< 3 s", "<= 2 s", "> 2 s", ">= 3 s", "> -2 s", "< 0 s"]


@pytest.mark.parametrize("case", CASES)
@examples(33)
@given(
    st.sampled_from(WAYS), st.lists(st.sampled_from([0, 1, 1, 2]), min_size=12, max_size=12), st.sampled_from(BOUNDS)
)
def test_time_conditions_of_all_five_cases_of_table_3_are_judged(case, way, gaps, bound):
    late, early = CASES[case]
    if case != 4 and bound in ("> -2 s", "< 0 s"):  # these two have an order
        bound = "<= 2 s"
    root = f"(s1 ; ((s2 ; s3) and (s4 , s5)) ; s6 ; (s7 or s8)) @ t({late}) - t({early}) {bound}"
    pattern = lang.parse_pattern(name_filters(*KINDS, of=KINDS) + root)
    times = [sum(gaps[: place + 1]) * S for place in range(len(way))]
    events = build_stream(list(zip(way, times, strict=True)))
    detector, until = build_detector(pattern, *ALL), find_end(events)
    detections = [*detector.detect_many(events), *detector.on_time(to_moment(until))]
    check_reports(
        pattern,
        events,
        {mode: [detection for detection in detections if detection.pattern == mode] for mode in ALL},
        until=until,
    )


@pytest.mark.parametrize("case", CASES)
def test_both_sides_of_a_bound_are_seen_in_all_five_cases(case):
    late, early = CASES[case]
    wanted = {}
    for bound in ("< 100 s", "> 100 s"):
        root = f"(s1 ; ((s2 ; s3) and (s4 , s5)) ; s6 ; (s7 or s8)) @ t({late}) - t({early}) {bound}"
        wanted[bound] = count_matches(name_filters(*KINDS, of=KINDS) + root, build_letters("abcdbac"))
    assert wanted == {"< 100 s": [1, 1, 1, 1], "> 100 s": [0, 0, 0, 0]}
