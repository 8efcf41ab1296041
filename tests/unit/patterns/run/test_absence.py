"""Absences: what a review with its own judge found wrong, case by case."""

import pytest

import tidings as td

JOINED = "a = kind = 'a' and m = $j\nc = kind = 'c'\na ; c ; not a for 5 s"
BRANCHES = """
a = kind = 'a' and m = $j
b = kind = 'b' and m = $j
c = kind = 'c'
z = kind = 'z' and m = $j
((a ; c) or (b ; y:c)) ; not z for 5 s
"""
LETTERS = "a = kind = 'a'\nb = kind = 'b'\nc = kind = 'c'\n"


def detect_until(text, events, *, mode, limit=None, until=20, resume=False):
    detector = td.Detector()
    detector.add("p", text, mode=mode, limit=limit)
    rows = [{"id": n, "time": time, "kind": kind, "m": m} for n, (time, kind, m) in enumerate(events)]
    assert not len(detector.detect_many(rows))
    if resume:
        detector = td.Detector.resume(detector.snapshot())
    return sorted(detection.events for detection in detector.on_time(until)), detector.cut


@pytest.mark.parametrize("mode", ["restart", "overlap", "next", "any"])
def test_a_variable_that_only_the_absence_asks_for_keeps_matches_apart(mode):
    events = [(0, "a", 2), (1, "a", 1), (2, "c", 0), (3, "a", 1)]
    assert detect_until(JOINED, events, mode=mode) == ([(0, 2)], 0)


@pytest.mark.parametrize(
    ("mode", "want"),
    [("restart", [(1, 2)]), ("overlap", [(1, 2)]), ("next", [(0, 2), (1, 2)]), ("any", [(0, 2), (1, 2)])],
)
def test_one_last_event_reports_once_with_the_latest_beginning(mode, want):
    assert detect_until(BRANCHES, [(0, "a", 1), (1, "b", 2), (2, "c", 0)], mode=mode) == (want, 0)


@pytest.mark.parametrize("resume", [False, True])
def test_within_counts_to_the_last_event_and_not_to_the_deadline(resume):
    events = [(0, "a", 0), (1, "a", 0), (5, "b", 0), (50, "x", 0)]
    text = LETTERS + "((a ; b) within 10 s) ; not c for 100 s"
    assert detect_until(text, events, mode="any", until=200, resume=resume) == ([(0, 2), (1, 2)], 0)


def test_a_limit_holds_at_a_deadline_too():
    text = LETTERS + "(a ; b @ t(b) - t(a) < 100 s) ; not c for 5 s"
    events, cut = detect_until(text, [(0, "a", 0), (1, "a", 0), (2, "a", 0), (3, "b", 0)], mode="any", limit=1)
    assert (len(events), cut) == (1, 1)


def test_a_deadline_beyond_the_calendar_is_the_last_moment_there_is():
    detector = td.Detector()
    detector.add("p", LETTERS.rpartition("c =")[0] + "a ; not b for 3000000 days")
    detector.on_event({"time": "9000-01-01", "kind": "a"})
    assert detector.next_deadline().year == 9999


@pytest.mark.parametrize("limit", [{"limit": "x", "mode": "any"}, {"limit": 1.5, "mode": "any"}])
def test_a_limit_is_a_whole_number(limit):
    with pytest.raises(td.PatternError, match="a limit is a whole number"):
        td.Detector().add("p", LETTERS.rpartition("c =")[0] + "a ; b", **limit)
