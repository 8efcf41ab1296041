"""Pattern sets: what is compiled stays as it is when its catalog changes, and a change costs no copy."""

import pytest

import tidings as td
from tidings.lang import WrittenPattern, parse_pattern
from tidings.patterns import Run

AB = "a = kind = 'a'\nb = kind = 'b'\na ; b"
CD = "c = kind = 'c'\nd = kind = 'd'\nc ; d"
EVENTS = [{"id": place, "time": place, "kind": kind} for place, kind in enumerate("abcd")]


def list_matches(patterns):
    return [(detection.pattern, detection.events) for detection in Run(patterns).detect_many(EVENTS)]


def detector_of(**texts):
    made = td.Detector()
    for name, text in texts.items():
        made.add(name, text)
    return made


CHANGES = {
    "remove": lambda detector: detector.remove("ab"),
    "add": lambda detector: detector.add("dc", "d = kind = 'd'\na = kind = 'a'\na ; d"),
    "replace": lambda detector: detector.add("ab", "a = kind = 'x'\nb = kind = 'b'\na ; b"),
    "rename": lambda detector: (detector.rename_fields("other", "name"), detector.remove("cd")),
}


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_a_set_stays_as_it_is_when_its_catalog_changes(change, shares):
    detector = detector_of(ab=AB, cd=CD)
    patterns = detector.share_patterns() if shares else detector.compile()
    wanted = [("ab", (0, 1)), ("cd", (2, 3))]
    assert list_matches(patterns) == wanted
    CHANGES[change](detector)
    assert list_matches(patterns) == wanted
    assert patterns.matcher is not detector.compile().matcher


def test_a_fork_and_its_original_change_apart():
    detector = detector_of(ab=AB, cd=CD)
    forked = detector.fork()
    before = forked.compile()
    forked.remove("ab")
    detector.remove("cd")
    assert list_matches(forked.compile()) == [("cd", (2, 3))]
    assert list_matches(detector.compile()) == [("ab", (0, 1))]
    assert list_matches(before) == [("ab", (0, 1)), ("cd", (2, 3))]


def test_patterns_that_are_added_one_by_one_go_into_one_matcher():
    detector = detector_of(ab=AB)
    matcher = detector.compile().matcher
    for number in range(5):
        detector.detect_many(EVENTS)
        detector.add(f"cd{number}", CD)
        assert detector.compile().matcher is matcher


def test_patterns_that_change_places_in_one_step_keep_their_filters():
    watch = detector_of(first="a = kind = 'a'\na", second="b = kind = 'b'\nb")
    texts = {"first": "b = kind = 'b'\nb", "second": "a = kind = 'a'\na"}
    watch.add_many([WrittenPattern(name, parse_pattern(text)) for name, text in texts.items()])
    assert list_matches(watch.compile()) == [("second", (0,)), ("first", (1,))]
