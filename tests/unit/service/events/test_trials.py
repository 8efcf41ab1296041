"""A trial says what a matcher and a detector say, within the bound of the owner."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

pytest.importorskip("orjson", reason="needs tidings[service]")

import tidings as td
from tidings.concepts import Vocabulary
from tidings.errors import BadEvent
from tidings.lang.filters.notations import parse_filter
from tidings.lang.patterns.notations import read_pattern
from tidings.service.events.cloud_events import EventFields
from tidings.service.events.trial_bounds import MOST_CHARACTERS, MOST_SEEN, TrialTooLarge, TrialTuning
from tidings.service.events.trials import DETECTED_PORTION, PORTION, SubscriptionTrial, describe_detection
from tidings.service.owner_bounds import parse_bound

NOW = datetime(2024, 7, 1, 12, tzinfo=UTC)
EMPTY = Vocabulary()
PATTERN = """
    fail  = status = 'denied'  and ip = $x
    enter = status = 'success' and ip = $x
    fail{2,} ; enter within 5 min
"""


def make_trial(text, *, only=None, vocabulary=EMPTY, **tuning):
    tree = text if not isinstance(text, str) else parse_filter(text, vocabulary, notation="text")
    return SubscriptionTrial(tree, parse_bound(only, vocabulary), vocabulary, tuning=TrialTuning(**tuning))


def make_pattern_trial(text=PATTERN, *, only=None, **tuning):
    pattern = read_pattern(text, EMPTY, notation="text", warnings=[])
    return SubscriptionTrial(pattern, parse_bound(only, EMPTY), EMPTY, tuning=TrialTuning(**tuning))


def make_attempts():
    rows = [("denied", "a"), ("denied", "b"), ("denied", "a"), ("success", "b"), ("success", "a")]
    return [{"id": f"e{n}", "time": n * 10, "status": status, "ip": ip} for n, (status, ip) in enumerate(rows)]


FILTERS = st.sampled_from(["a = 1", "a < 2 or b = 'x'", "not (a = 1)", "b in ('x', 'y') and a >= 1", "b = 'y'"])
ROWS = st.fixed_dictionaries({}, optional={"a": st.integers(0, 3), "b": st.sampled_from(["x", "y", 1, None])})


@given(FILTERS, FILTERS, st.lists(ROWS, max_size=4))
@examples(60)
def test_a_trial_agrees_with_a_matcher_that_has_both_filters(text, only, rows):
    matcher = td.Matcher(now=NOW)
    matcher.add("own", text)
    matcher.add("only", only)
    trial = make_trial(text, only=only)
    expected = []
    for index, row in enumerate(rows):
        ids = set(matcher.match(row))
        verdict = trial.judge(row, NOW)
        assert (verdict.matches, verdict.is_beyond) == (ids == {"own", "only"}, "only" not in ids)
        assert verdict.tests[0].explanation.matched == ("own" in ids)
        expected += [index] * (ids == {"own", "only"})
    assert sorted(trial.select(rows, NOW)) == expected


def test_a_verdict_says_why_in_words_and_fields():
    verdict = make_trial("make = 'ford' and price < 9000").judge({"make": "ford", "price": 9500}, NOW).to_dict()
    reason = {"test": "price < 9000", "holds": False, "seen": [9500]}
    assert (verdict["matches"], verdict["reasons"]) == (False, [reason])
    assert "no   price < 9000   (saw 9500)" in verdict["text"]
    matched = make_trial("make = 'ford'").judge({"make": "ford", "data_base64": "AA=="}, NOW).to_dict()
    assert (matched["matches"], "beyond" in matched) == (True, False)


def test_an_event_beyond_the_bound_does_not_match_and_the_bound_is_not_shown():
    trial = make_trial("make = 'ford'", only="secret_region = 'zh'")
    verdict = trial.judge({"make": "ford", "secret_region": "be"}, NOW).to_dict()
    assert (verdict["matches"], verdict["beyond"]) == (False, True)
    assert "secret" not in str(verdict)
    assert trial.may_see({"secret_region": "zh"}, NOW)
    assert trial.select([{"make": "ford", "secret_region": region} for region in ("be", "zh")], NOW) == [1]


def test_a_bad_event_is_told_and_matches_nothing():
    vocabulary = Vocabulary.of(td.Schema({"price": "number"}))
    trial = make_trial("price < 9", only="price > 1", vocabulary=vocabulary)
    with pytest.raises(BadEvent, match="price"):
        trial.judge({"price": "cheap"}, NOW)
    assert not trial.may_see({"price": "cheap"}, NOW)
    assert trial.select([{"price": "cheap"}, {"price": 3}], NOW) == [1]


def test_a_pattern_detects_in_the_order_of_time_and_says_which_steps_an_event_is():
    trial, fields = make_pattern_trial(), EventFields()
    detector = td.Detector()
    detector.add("subscription", PATTERN)
    expected = list(detector.detect_many(make_attempts()))
    detections = trial.detect([*make_attempts()[::-1], {"id": "late", "time": "never"}], "restart", fields)
    assert [(d.events, d.at, d.bindings) for d in detections] == [(d.events, d.at, d.bindings) for d in expected]
    assert describe_detection(detections[0]) == {
        "events": ["e0", "e2", "e4"],
        "at": datetime(1970, 1, 1, 0, 0, 40, tzinfo=UTC),
        "bindings": {"x": "a"},
    }
    steps = trial.judge(make_attempts()[0], NOW).to_dict()["steps"]
    assert [(step["name"], step["matches"]) for step in steps] == [("fail", True), ("enter", False)]


def test_the_bound_of_an_owner_holds_for_every_event_of_a_pattern():
    trial = make_pattern_trial(only="ip != 'a'")
    assert trial.detect(make_attempts(), "restart", EventFields()) == []
    assert trial.judge(make_attempts()[0], NOW).to_dict()["beyond"]


# What a trial may take ------------------------------------------------------------------------------------


def make_tests(count):
    return " or ".join(f"a = {number}" for number in range(count))


def test_of_many_reasons_the_first_are_shown_and_the_others_counted():
    verdict = make_trial(make_tests(1_000)).judge({"a": -1}, NOW).to_dict()
    assert (len(verdict["reasons"]), verdict["more"]) == (50, 950)
    assert verdict["text"].endswith("\n  and 950 more")
    assert "more" not in make_trial(make_tests(50)).judge({"a": -1}, NOW).to_dict()


def test_events_share_the_reasons_of_an_answer():
    verdicts = list(make_trial(make_tests(20), all_reasons=10).judge_many([{"a": -1}] * 5, NOW))
    assert [len(verdict.to_dict()["reasons"]) for verdict in verdicts] == [2] * 5
    verdicts = list(make_trial(make_tests(20), all_reasons=10).judge_many([{"a": -1}] * 50, NOW))
    assert [len(verdict.to_dict()["reasons"]) for verdict in verdicts] == [1] * 50


def test_long_tests_and_values_are_shown_by_their_beginnings():
    trial = make_trial(f"a = '{'x' * 5_000}' or b = 1")
    verdict = trial.judge({"a": ["y" * 90_000] * 40, "b": [*range(50)][2:]}, NOW).to_dict()
    assert not verdict["matches"]
    first, second = verdict["reasons"]
    assert len(first["test"]) < MOST_CHARACTERS + 50
    assert len(first["seen"]) == len(second["seen"]) == MOST_SEEN + 1
    assert (first["seen"][-1], second["seen"][-1]) == ("… and 30 more", "… and 38 more")
    assert first["seen"][0].endswith("y… (89,700 more letters)")
    assert len(str(verdict)) < 20_000


def test_more_tests_than_a_trial_takes_are_refused_with_how_many_events_they_allow():
    trial = make_trial(f"{make_tests(7)} or a in (7, 8, 9)", tests=45)
    assert len(list(trial.judge_many([{"a": 1}] * 4, NOW))) == 4
    with pytest.raises(TrialTooLarge, match="a filter of 10 tests is tried on 4 events at once, not on 5: send fewer"):
        list(trial.judge_many([{"a": 1}] * 5, NOW))
    assert len(list(make_trial(make_tests(50), tests=45).judge_many([{"a": 1}], NOW))) == 1


def make_clock(step):
    """A clock that goes on by itself, each time it is looked at."""
    seconds = iter(range(0, 10**9, step))
    return lambda: next(seconds)


def test_a_trial_that_takes_too_long_ends_and_says_how_far_it_came():
    clock = {"clock": make_clock(2), "seconds": 5}
    rows = [{"a": 1}] * (4 * PORTION)
    with pytest.raises(TrialTooLarge, match="it got through 2,000 of 4,000 events in 5 s"):
        make_trial("a = 1", **clock).select(rows, NOW)
    with pytest.raises(TrialTooLarge, match="2 of 4 events"):
        list(make_trial("a = 1", **clock).judge_many(rows[:4], NOW))
    timed = [{"id": n, "time": n, "ip": "a"} for n in range(4 * DETECTED_PORTION)]
    with pytest.raises(TrialTooLarge, match="give a pattern a `within`"):
        make_pattern_trial(**clock).detect(timed, "restart", EventFields())
    assert len(make_trial("a = 1", **clock).select(rows[: 2 * PORTION], NOW)) == 2 * PORTION


def test_a_pattern_that_matches_without_end_is_not_counted_to_its_end():
    trial = make_pattern_trial("x = a = 1\nx ; x ; x", detections=2_000)
    rows = [{"id": n, "time": n, "a": 1} for n in range(2_000)]
    with pytest.raises(TrialTooLarge, match="more than 2,000 times in 2,000 events"):
        trial.detect(rows, "any", EventFields())
    assert len(trial.detect(rows, "restart", EventFields())) == 666


def test_who_is_bounded_looks_at_what_is_within():
    rows = [{"a": n, "region": "zh" if n % 2 else "be"} for n in range(6)]
    assert [row["a"] for row in make_trial("a = 1", only="region = 'zh'").list_seen(rows, NOW)] == [1, 3, 5]
    assert make_trial("a = 1").list_seen(rows, NOW) == rows
