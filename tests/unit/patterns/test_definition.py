"""The law of patterns, case by case: the paper's examples, every operator, both sides of every bound."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from tidings import lang
from tidings.errors import BadEvent, PatternError
from tidings.model.filters import TRUE
from tidings.model.patterns import (
    Absence,
    Conjunction,
    Disjunction,
    Elapsed,
    Gap,
    Joint,
    Mode,
    Moment,
    NamedFilter,
    Pattern,
    Repeat,
    Sequence,
    Step,
    Timed,
    Which,
)
from tidings.patterns.definition import Report, SeenEvent, judge_events, list_embeddings, list_reports

S = 1_000_000
MIN = 60 * S
NEXT, LATER = Joint(Gap.NEXT), Joint(Gap.LATER)
A, B, C, D = (Step(name) for name in "abcd")
MODES = list(Mode)


def without(*names):
    return Joint(Gap.LATER, names)


def then(*parts):
    """Put parts in sequence; `;` where no joint stands between two of them."""
    nodes, joints = [parts[0]], []
    for part in parts[1:]:
        if isinstance(part, Joint):
            joints.append(part)
        else:
            joints += [LATER] * (len(nodes) - len(joints))
            nodes.append(part)
    return Sequence(tuple(nodes), tuple(joints[: len(nodes) - 1]))


def apart(late, early, **bounds):
    return Elapsed(Moment(late), Moment(early), **bounds)


def over(root, *, absence=None, **variables):
    """Name the filters that are used; `a=(("ip", "x"),)` gives one of them variables."""
    used = Pattern(tuple(NamedFilter(name, TRUE) for name in "abcd"), root, absence).list_filters()
    filters = (NamedFilter(name, td.parse(f"kind = '{name}'"), variables.get(name, ())) for name in used)
    return Pattern(tuple(filters), root, absence)


def word(text, times=None, values=None):
    """Make a stream of letters, one second apart; several letters together are one event that satisfies both."""
    letters = text.split()
    times = range(len(letters)) if times is None else times
    values = values or [{}] * len(letters)
    return [
        SeenEvent(round(at * S), frozenset(names), value)
        for names, at, value in zip(letters, times, values, strict=True)
    ]


def events(pattern, stream, **options):
    return [embedding.events for embedding in list_embeddings(pattern, stream, **options)]


def counts(pattern, stream, **options):
    return [len(list_reports(pattern, stream, mode, **options)) for mode in MODES]


def list_points(pattern, stream, mode, **options):
    return [(report.at, report.after, set(report.choices)) for report in list_reports(pattern, stream, mode, **options)]


# --- the paper --------------------------------------------------------------------------------------


def test_figure_7_gives_exactly_one_match():
    s1, s2, s3 = Step("a", "s1"), Step("b", "s2"), Step("c", "s3")
    second = Timed(s2, (apart("s2", "s1", high=3 * S, high_open=True),))
    third = Timed(s3, (apart("s3", "s1", high=6 * S, high_open=True),))
    third = Timed(third, (apart("s3", "s2", low=3 * S, low_open=True),))
    pattern, times = over(then(s1, second, third)), [1, 2, 3, 4, 5, 6, 7, 8]
    stream = word("a a a b b b c c", times)
    assert [tuple(times[i] for i in event) for event in events(pattern, stream)] == [(3, 4, 8)]
    assert counts(pattern, stream) == [1, 1, 1, 1]


@pytest.mark.parametrize(("text", "wanted"), [("a b a b c e f a b c d d g a", [2, 2, 3, 5]), ("a b c c", [1, 2, 1, 2])])
def test_figure_8_tells_the_four_modes_apart(text, wanted):
    assert counts(over(then(A, NEXT, B, LATER, C)), word(text)) == wanted


def test_figure_8_shows_the_match_that_begins_last():
    pattern, stream = over(then(A, NEXT, B, LATER, C)), word("a b a b c e f a b c d d g a")
    assert list_points(pattern, stream, "restart") == [(4 * S, 4, {(2, 3, 4)}), (9 * S, 9, {(7, 8, 9)})]
    assert list_points(pattern, stream, "overlap") == list_points(pattern, stream, "restart")
    assert [choices for *_, choices in list_points(pattern, stream, "next")] == [{(0, 1, 4)}, {(2, 3, 4)}, {(7, 8, 9)}]
    assert [choices for *_, choices in list_points(pattern, stream, "any")] == [
        {(0, 1, 4)},
        {(2, 3, 4)},
        {(0, 1, 9)},
        {(2, 3, 9)},
        {(7, 8, 9)},
    ]


TABLE_1 = [
    {"time": datetime(2007, 2, 14, 12, minute, second, tzinfo=UTC), "status": status, "ip": ip}
    for minute, second, status, ip in [
        (38, 10, "denied", "128.100.2.15"),
        (42, 10, "denied", "128.100.2.15"),
        (42, 10, "denied", "128.100.2.15"),
        (43, 28, "success", "128.100.2.15"),
        (43, 56, "logoff", "128.100.2.15"),
        (45, 28, "success", "128.100.5.10"),
    ]
]


def logins(root, **statuses):
    named = (NamedFilter(name, td.parse(f"status = '{s}'"), (("ip", "x"),)) for name, s in statuses.items())
    return Pattern(tuple(named), root)


@pytest.mark.parametrize(("minutes", "wanted"), [(5, [(0, 1, 2, 3)]), (4, [])])
def test_table_1_holds_one_intrusion_within_five_minutes(minutes, wanted):
    third = Timed(Step("s3"), (apart("s3", "s1", high=minutes * MIN, high_open=True),))
    denied = dict.fromkeys(("s1", "s2", "s3"), "denied")
    intrusion = logins(then(Step("s1"), Step("s2"), third, Step("s4")), **denied, s4="success")
    stream = judge_events(intrusion, TABLE_1)
    assert events(intrusion, stream) == wanted
    assert counts(intrusion, stream) == [len(wanted)] * 4
    assert all(embedding.bindings == (("x", "128.100.2.15"),) for embedding in list_embeddings(intrusion, stream))
    assert all(report.key == ("128.100.2.15",) for report in list_reports(intrusion, stream, "restart"))


@pytest.mark.parametrize(("minutes", "wanted"), [(5, [(1, 2, 3, 4)]), (6, [(0, 1, 3, 4), (0, 2, 3, 4), (1, 2, 3, 4)])])
def test_table_1_holds_a_compromise(minutes, wanted):
    s1, s2, s3, s4, s5, s6 = (Step(f"s{i}") for i in range(1, 7))
    third = Timed(s3, (apart("s3", "s1", high=minutes * MIN, high_open=True),))
    root = then(s1, Disjunction((then(s2, third), then(s4, NEXT, s5))), s6)
    statuses = dict(zip(("s1", "s2", "s3", "s4"), ("denied", "denied", "success", "success"), strict=True))
    pattern = logins(root, **statuses, s5="passwd", s6="logoff")
    assert events(pattern, judge_events(pattern, TABLE_1)) == wanted


# --- sequences --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "text", "wanted"),
    [
        (then(A, NEXT, B), "a b", [(0, 1)]),
        (then(A, NEXT, B), "a c b", []),
        (then(A, B), "a c b", [(0, 2)]),
        (then(A, B), "b a", []),
        (then(A, A), "a", []),
        (then(A, A), "a a a", [(0, 1), (0, 2), (1, 2)]),
        (then(A, B), "ab", []),
        (then(A, B), "ab ab", [(0, 1)]),
        (then(then(A, NEXT, B), NEXT, C), "a b c", [(0, 1, 2)]),
        (then(A, NEXT, then(B, C)), "a b d c", [(0, 1, 3)]),
        (then(A, NEXT, then(B, C)), "a d b c", []),
    ],
)
def test_sequences_take_one_event_for_each_step(root, text, wanted):
    assert events(over(root), word(text)) == wanted


def test_equal_times_keep_the_order_of_the_stream():
    assert events(over(then(A, NEXT, B)), word("b a b a", [1, 1, 1, 1])) == [(1, 2)]
    timed = Timed(then(A, B), (apart("b", "a", low=0),), within=0)
    assert events(over(timed), word("b a b a", [1, 1, 1, 1])) == [(1, 2)]
    later = Timed(then(A, B), (apart("b", "a", low=0, low_open=True),))
    assert events(over(later), word("a b b", [1, 1, 2])) == [(0, 2)]


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        ({"high": 3 * S, "high_open": True}, [2]),
        ({"high": 3 * S}, [2, 3]),
        ({"low": 3 * S, "low_open": True}, [4]),
        ({"low": 3 * S}, [3, 4]),
        ({"low": 2 * S, "high": 4 * S, "low_open": True, "high_open": True}, [3]),
        ({"low": 2 * S, "high": 4 * S, "low_open": True}, [3, 4]),
        ({"low": 2 * S, "high": 4 * S, "high_open": True}, [2, 3]),
        ({"low": 2 * S, "high": 4 * S}, [2, 3, 4]),
        ({"high": 3 * S - 1}, [2]),
    ],
)
def test_conditions_mean_both_sides_of_their_bounds(bounds, wanted):
    pattern = over(then(A, Timed(B, (apart("b", "a", **bounds),))))
    stream = word("a b b b", [0, 2, 3, 4])
    assert [stream[last].time // S for _, last in events(pattern, stream)] == wanted


def test_conditions_may_ask_for_a_negative_difference():
    pattern = over(Timed(Conjunction((A, B)), (apart("b", "a", low=-2 * S, high=0, high_open=True),)))
    assert events(pattern, word("b b a b", [0, 1, 3, 4])) == [(2, 1)]


@pytest.mark.parametrize(("high_open", "wanted"), [(True, [(2, 1), (2, 3)]), (False, [(2, 0), (2, 1), (2, 3), (2, 4)])])
def test_an_absolute_difference_looks_both_ways(high_open, wanted):
    near = apart("a", "b", high=3 * S, high_open=high_open, absolute=True)
    pattern = over(Timed(Conjunction((A, B)), (near,)))
    assert sorted(events(pattern, word("b b a b b", [0, 1, 3, 5, 6]))) == wanted


def test_within_bounds_its_part_and_includes_its_end():
    stream = word("a b c", [0, 10, 20])
    assert events(over(Timed(then(A, B, C), within=20 * S)), stream) == [(0, 1, 2)]
    assert events(over(Timed(then(A, B, C), within=20 * S - 1)), stream) == []
    assert events(over(then(A, Timed(then(B, C), within=10 * S))), stream) == [(0, 1, 2)]
    assert events(over(then(A, Timed(then(B, C), within=10 * S - 1))), stream) == []
    assert events(over(Timed(Conjunction((C, A)), within=20 * S)), stream) == [(2, 0)]


# --- and, or ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "text", "wanted"),
    [
        (Conjunction((A, B)), "b a", [(1, 0)]),
        (Conjunction((A, A)), "a a", [(0, 1), (1, 0)]),
        (Conjunction((A, B)), "ab", []),
        (Conjunction((A, B)), "ab ab", [(0, 1), (1, 0)]),
        (Conjunction((then(A, B), then(C, D))), "a c b d", [(0, 2, 1, 3)]),
        (Conjunction((then(A, NEXT, B), C)), "a c b", []),
        (Conjunction((then(A, NEXT, B), C)), "a b c", [(0, 1, 2)]),
        (Disjunction((A, B)), "a b", [(0,), (1,)]),
        (Disjunction((A, then(B, C))), "b c", [(0, 1)]),
        (Disjunction((A, B)), "ab", [(0,), (0,)]),
    ],
)
def test_and_takes_all_of_its_parts_and_or_takes_one(root, text, wanted):
    assert events(over(root), word(text)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("d c b a", [(0, 2, 1, 3)]), ("d e b c a", []), ("d b e c a", [(0, 1, 3, 4)]), ("d b c e a", []), ("b d c a", [])],
)
def test_a_comma_counts_to_the_first_event_of_an_and_and_from_its_last(text, wanted):
    root = then(D, NEXT, Conjunction((B, C)), NEXT, A)
    assert events(over(root), word(text)) == wanted


@pytest.mark.parametrize(("text", "wanted"), [("d c a", [(0, 1, 2)]), ("d e c a", []), ("d b a", [(0, 1, 2)])])
def test_a_comma_before_an_or_counts_to_the_branch_taken(text, wanted):
    assert events(over(then(D, NEXT, Disjunction((B, C)), NEXT, A)), word(text)) == wanted


def test_a_condition_on_a_branch_not_taken_is_false():
    root = then(Disjunction((A, B)), Timed(C, (apart("c", "a", high=9 * S),)))
    assert events(over(root), word("a b c")) == [(0, 2)]
    inside = then(Disjunction((Timed(A, (apart("c", "a", high=1 * S),)), B)), C)
    assert events(over(inside), word("a b c")) == [(1, 2)]  # the other branch does not bind its condition


def test_a_condition_may_reach_across_the_parts_of_an_and():
    root = Conjunction((then(A, B), then(C, Timed(D, (apart("d", "a", high=1 * S),)))))
    assert events(over(root), word("c a d b d")) == [(1, 3, 0, 2)]


@pytest.mark.parametrize(
    "root",
    [
        Timed(then(A, A, B), (apart("b", "a", high=1),)),
        Timed(then(A, Step("b", "a")), (Elapsed(Moment("a"), Moment("a", Which.FIRST), high=1),)),
        Timed(then(A, B), (apart("z", "a", high=1),)),
    ],
)
def test_a_condition_must_mean_one_step(root):
    with pytest.raises(PatternError, match="exactly one step"):
        list_embeddings(over(root), word("a b"))


# --- not, repetition --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("a c", [(0, 1)]), ("a d c", [(0, 2)]), ("a b c", []), ("b a c b", [(1, 2)]), ("a b a c", [(2, 3)])],
)
def test_not_forbids_what_lies_strictly_between(text, wanted):
    assert events(over(then(A, without("b"), C)), word(text)) == wanted


def test_not_does_not_see_the_events_beside_it():
    assert events(over(then(A, without("b"), C)), word("ab bc")) == [(0, 1)]
    assert events(over(then(A, without("b", "d"), C)), word("a d c")) == []


def test_not_counts_to_the_first_event_of_an_and_and_from_its_last():
    ahead, behind = then(A, without("d"), Conjunction((B, C))), then(Conjunction((B, C)), without("d"), A)
    assert events(over(ahead), word("a c d b")) == [(0, 3, 1)]
    assert events(over(ahead), word("a d c b")) == []
    assert events(over(behind), word("c d b a")) == [(2, 0, 3)]
    assert events(over(behind), word("c b d a")) == []


def test_not_forbids_an_event_that_serves_another_part():
    assert events(over(Conjunction((then(A, without("b"), C), B))), word("a b c b")) == []
    assert events(over(Conjunction((then(A, without("b"), C), B))), word("b a c")) == [(1, 2, 0)]


@pytest.mark.parametrize(
    ("least", "most", "wanted"),
    [
        (1, 1, [(0, 3), (1, 3), (2, 3)]),
        (2, 2, [(0, 1, 3), (0, 2, 3), (1, 2, 3)]),
        (2, None, [(0, 1, 2, 3), (0, 1, 3), (0, 2, 3), (1, 2, 3)]),
        (3, 7, [(0, 1, 2, 3)]),
        (4, None, []),
    ],
)
def test_repetition_takes_any_choice_of_so_many_events(least, most, wanted):
    assert sorted(events(over(then(Repeat(A, least, most), B)), word("a a a b"))) == wanted


def test_repetition_is_joined_by_later_even_after_a_comma():
    root = then(C, NEXT, Repeat(A, 2, 2), NEXT, B)
    assert events(over(root), word("c a d a b")) == [(0, 1, 3, 4)]
    assert events(over(root), word("c d a a b")) == []


def test_a_moment_of_a_repetition_is_its_last_event_or_its_first():
    stream = word("a a a b", [0, 1, 2, 3])
    last = Elapsed(Moment("b"), Moment("a"), high=1 * S)
    first = Elapsed(Moment("b"), Moment("a", Which.FIRST), high=2 * S)
    spread = Elapsed(Moment("a"), Moment("a", Which.FIRST), high=1 * S)
    root = then(Repeat(A, 2, None), B)
    assert sorted(events(over(Timed(root, (last,))), stream)) == [(0, 1, 2, 3), (0, 2, 3), (1, 2, 3)]
    assert events(over(Timed(root, (first,))), stream) == [(1, 2, 3)]
    assert sorted(events(over(Timed(root, (spread,))), stream)) == [(0, 1, 3), (1, 2, 3)]


def test_two_repetitions_that_part_the_same_events_differently_are_two_matches():
    pattern = over(then(Repeat(A, 1, 2), Repeat(A, 1, 2)))
    assert events(pattern, word("a a a")).count((0, 1, 2)) == 2


# --- absence ----------------------------------------------------------------------------------------

QUIET = over(then(A, C), absence=Absence(("b",), 5 * S))


@pytest.mark.parametrize(("at", "wanted"), [(1, []), (6 - 1e-6, []), (6, [(0, 1)])])
def test_an_absence_ends_just_before_its_span(at, wanted):
    assert events(QUIET, word("a c b", [0, 1, at]), until=6 * S) == wanted


def test_an_absence_begins_after_the_last_event():
    assert events(QUIET, word("a b c", [0, 1, 1]), until=6 * S) == [(0, 2)]
    assert events(QUIET, word("a bc", [0, 1]), until=6 * S) == [(0, 1)]


def test_an_absence_is_reported_when_time_reaches_its_deadline():
    stream = word("a c d", [0, 1, 5.999999])
    assert events(QUIET, stream) == []
    assert events(QUIET, stream, until=6 * S - 1) == []
    (embedding,) = list_embeddings(QUIET, stream, until=6 * S)
    assert (embedding.first, embedding.last, embedding.at) == (0, 1, 6 * S)
    for mode in MODES:
        assert list_reports(QUIET, stream, mode, until=6 * S) == [Report(6 * S, 2, (), frozenset({(0, 1)}))]


def test_a_deadline_is_handled_before_the_events_of_its_time():
    assert list_points(QUIET, word("a c b", [0, 1, 6]), "restart") == [(6 * S, 1, {(0, 1)})]


def test_an_absence_has_one_report_for_each_last_event():
    stream = word("a a c c d", [0, 1, 2, 3, 9])
    assert list_points(QUIET, stream, "overlap") == [(7 * S, 3, {(1, 2)}), (8 * S, 3, {(1, 3)})]
    assert list_points(QUIET, stream, "next") == [(7 * S, 3, {(0, 2)}), (7 * S, 3, {(1, 2)})]
    assert len(list_points(QUIET, stream, "any")) == 4


def test_restart_spends_at_a_deadline_all_that_was_processed():
    stream = word("a c a c a c d", [0, 1, 2, 7, 7, 8, 20])
    wanted = [(6 * S, 2, {(0, 1)}), (13 * S, 5, {(4, 5)})]
    assert list_points(QUIET, stream, "restart") == wanted  # the second `a` was spent, so event 3 completes nothing new


def test_deadlines_of_equal_times_come_in_the_order_of_their_last_events():
    stream = word("a c c d", [0, 1, 1, 9])
    assert list_points(QUIET, stream, "overlap") == [(6 * S, 2, {(0, 1)}), (6 * S, 2, {(0, 2)})]
    assert list_points(QUIET, stream, "restart") == [(6 * S, 2, {(0, 1)})]
    both = list_points(QUIET, word("a a c c d", [1, 1, 1, 1, 9]), "any")
    assert [choices for *_, choices in both] == [{(0, 2)}, {(1, 2)}, {(0, 3)}, {(1, 3)}]


# --- variables --------------------------------------------------------------------------------------

IP, SRC, DST = (("ip", "x"),), (("src", "x"),), (("dst", "x"),)


def of(attribute, *values):
    return [{} if value is None else {attribute: value} for value in values]


def test_each_key_has_a_stream_of_its_own():
    pattern = over(then(A, NEXT, B), a=IP, b=IP)
    stream = word("a a b b", values=of("ip", 1, 2, 2, 1))
    assert [(embedding.events, embedding.key) for embedding in list_embeddings(pattern, stream)] == [
        ((1, 2), (2,)),
        ((0, 3), (1,)),
    ]
    assert [report.key for report in list_reports(pattern, stream, "restart")] == [(2,), (1,)]


def test_events_of_the_key_count_for_a_comma_whatever_they_are():
    pattern = over(then(A, NEXT, B), a=IP, b=IP)
    assert events(pattern, word("a d b", values=of("ip", 1, 2, 1))) == [(0, 2)]
    assert events(pattern, word("a d b", values=of("ip", 1, None, 1))) == [(0, 2)]
    assert events(pattern, word("a d b", values=of("ip", 1, 1, 1))) == []


def test_restart_spends_the_events_of_its_own_key_alone():
    pattern = over(then(A, B), a=IP, b=IP)
    stream = word("a a b b b", values=of("ip", 1, 2, 1, 2, 1))
    assert list_points(pattern, stream, "restart") == [(2 * S, 2, {(0, 2)}), (3 * S, 3, {(1, 3)})]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [(1, 1.0, True), (1, "1", False), (True, 1, False), (0, False, False), (True, True, True), ("a", "A", False)],
)
def test_values_agree_as_numbers_as_text_or_as_truth(first, second, same):
    keyed, joined = over(then(A, B), a=IP, b=IP), over(then(A, C, B), a=IP, b=IP)
    assert bool(events(keyed, word("a b", values=of("ip", first, second)))) is same
    assert bool(events(joined, word("a c b", values=of("ip", first, None, second)))) is same


def test_an_event_without_the_attribute_does_not_satisfy_the_filter():
    for pattern in (over(A, a=IP), over(then(Repeat(A, 1, 1), C), a=IP)):
        assert events(pattern, word("a c", values=of("ip", None, None))) == []
        assert events(pattern, [SeenEvent(0, frozenset("a"), {"ip": None}), *word("c", [1])]) == []


def test_a_key_may_stand_under_different_attributes():
    pattern = over(then(A, NEXT, B), a=SRC, b=DST)
    flows = [{"src": 1, "dst": 9}, {"src": 7, "dst": 1}, {"src": 1, "dst": 5}, {"src": 3, "dst": 3}]
    assert events(pattern, word("a b", values=flows[:2])) == [(0, 1)]
    assert events(pattern, word("a d b", values=[flows[0], flows[2], flows[1]])) == []  # key 1 through `src`
    assert events(pattern, word("a d b", values=[flows[0], flows[3], flows[1]])) == [(0, 2)]
    assert events(pattern, word("a b", values=[{"src": 1}, {"src": 1, "dst": 2}])) == []  # not through its own


def test_one_event_may_belong_to_two_keys():
    pattern = over(Disjunction((A, B)), a=SRC, b=DST)
    reports = list_reports(pattern, word("ab", values=[{"src": 1, "dst": 2}]), "restart")
    assert [(report.key, report.choices) for report in reports] == [((1,), {(0,)}), ((2,), {(0,)})]


def test_not_and_absence_look_at_the_key_alone():
    guarded = over(then(A, without("b"), C), a=IP, b=IP, c=IP)
    assert events(guarded, word("a b c", values=of("ip", 1, 2, 1))) == [(0, 2)]
    assert events(guarded, word("a b c", values=of("ip", 1, 1, 1))) == []
    quiet = over(A, absence=Absence(("b",), 5 * S), a=IP, b=IP)
    assert events(quiet, word("a b d", [0, 1, 5], values=of("ip", 1, 2, None))) == [(0,)]
    assert events(quiet, word("a b d", [0, 1, 5], values=of("ip", 1, 1, None))) == []


def test_a_not_without_the_variable_leaves_no_key():
    pattern = over(then(A, without("b"), C), a=IP, c=IP)
    assert pattern.key_variables() == ()
    assert events(pattern, word("a b c", values=of("ip", 1, None, 1))) == []
    assert events(pattern, word("a d c", values=of("ip", 1, None, 1))) == [(0, 2)]


def test_a_not_forbids_what_agrees_with_a_variable_that_is_no_key():
    pattern = over(then(A, without("b"), C), a=IP, b=IP)
    assert events(pattern, word("a b c", values=of("ip", 1, 2, None))) == [(0, 2)]
    assert events(pattern, word("a b c", values=of("ip", 1, 1.0, None))) == []
    assert events(pattern, word("a b c", values=of("ip", 1, None, None))) == [(0, 2)]
    quiet = over(then(A, C), absence=Absence(("b",), 5 * S), a=IP, b=IP)
    embeddings = list_embeddings(quiet, word("a a c b", [0, 0, 1, 2], values=of("ip", 1, 2, None, 1)), until=6 * S)
    assert [(embedding.events, embedding.bindings) for embedding in embeddings] == [((1, 2), (("x", 2),))]


def test_several_variables_must_all_agree():
    both = (("ip", "x"), ("user", "y"))
    pattern = over(then(A, B), a=both, b=both)
    assert pattern.key_variables() == ("x", "y")
    stream = word("a b b", values=[{"ip": 1, "user": "u"}, {"ip": 1, "user": "v"}, {"ip": 1, "user": "u"}])
    (embedding,) = list_embeddings(pattern, stream)
    assert (embedding.events, embedding.key, embedding.bindings) == ((0, 2), (1, "u"), (("x", 1), ("y", "u")))


def test_a_key_and_a_join_stand_side_by_side():
    pattern = over(then(A, B, C), a=(("ip", "x"), ("user", "y")), b=IP, c=(("ip", "x"), ("user", "y")))
    assert pattern.key_variables() == ("x",)
    values = [{"ip": 1, "user": "u"}, {"ip": 1, "user": "w"}, {"ip": 1, "user": "v"}, {"ip": 1, "user": "u"}]
    (embedding,) = list_embeddings(pattern, word("a b c c", values=values))
    assert (embedding.events, embedding.key, embedding.bindings) == ((0, 1, 3), (1,), (("x", 1), ("y", "u")))


def test_a_join_of_some_steps_sees_the_whole_stream():
    pattern = over(then(A, NEXT, C, LATER, B), a=IP, b=IP)
    stream = word("a c b b", values=of("ip", 1, None, 2, 1))
    assert events(pattern, stream) == [(0, 1, 3)]
    assert events(pattern, word("a b c b", values=of("ip", 1, 2, None, 1))) == []


def test_each_branch_of_an_or_binds_its_own_variables():
    pattern = over(then(Disjunction((A, B)), C), a=(("ip", "x"),), b=(("ip", "y"),), c=(("ip", "x"),))
    embeddings = list_embeddings(pattern, word("a b c", values=of("ip", 1, 2, 3)))
    assert [(embedding.events, embedding.bindings) for embedding in embeddings] == [((1, 2), (("x", 3), ("y", 2)))]


def test_repeated_events_agree_with_each_other():
    pattern = over(then(Repeat(A, 2, 2), C), a=IP)
    assert events(pattern, word("a a a c", values=of("ip", 1, 2, 1, None))) == [(0, 2, 3)]


# --- reading events ---------------------------------------------------------------------------------


def test_events_are_judged_by_the_named_filters():
    pattern = Pattern(
        (NamedFilter("hot", td.parse("t > 20"), (("at.place", "p"),)), NamedFilter("any", TRUE)), Step("hot")
    )
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    read = judge_events(
        pattern,
        [
            {"time": noon, "t": 30, "at": {"place": "x"}},
            td.Event(time=noon + timedelta(microseconds=1), values={"t": 10, "at": [{"place": 1}, {"place": 2}]}),
        ],
    )
    start = int(noon.timestamp()) * S
    assert read == [
        SeenEvent(start, frozenset({"hot", "any"}), {"at.place": "x"}),
        SeenEvent(start + 1, frozenset({"any"}), {}),
    ]
    assert judge_events(pattern, [{"when": 7, "t": 1}], time="when")[0].time == 7


@pytest.mark.parametrize("event", [{"t": 1}, {"time": "noon"}, {"time": True}, td.Event(values={"t": 1})])
def test_an_event_without_a_time_stands_where_it_came(event):
    read = judge_events(over(A), [event, {"time": 5}, event, {"time": 3}, event], until=1)
    assert [(event.time, event.timed) for event in read] == [(1, False), (5, True), (5, False), (3, True), (5, False)]


def test_an_event_without_a_time_is_not_there_for_a_pattern_that_asks_for_times():
    stream = [*word("a", [0]), replace(word("b", [0])[0], timed=False), *word("b", [1])]
    plain, timed = (lang.parse_pattern(f"a = kind = 'a'\nb = kind = 'b'\na , b{end}") for end in ("", " within 5 s"))
    assert [embedding.events for embedding in list_embeddings(plain, stream)] == [(0, 1)]
    assert [embedding.events for embedding in list_embeddings(timed, stream)] == [(0, 2)]


ODD = [[1, 2], {"of": 1}, [{"of": 1}], None, [], {}, float("nan"), float("inf"), b"1", object()]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_what_no_variable_takes_gives_it_nothing(value):
    pattern = lang.parse_pattern("a = k = $x\na")
    assert judge_events(pattern, [{"time": 0, "k": value}])[0].values == {}
    assert judge_events(pattern, [{"time": 0, "k": [None, "1"]}])[0].values == {"k": "1"}
    assert judge_events(pattern, [{"time": 0, "k": "1"}], schema=td.Schema({"k": "number"}, closed=False))[
        0
    ].values == {"k": 1}


def test_a_stream_is_in_the_order_of_time():
    with pytest.raises(BadEvent, match="sort the stream"):
        list_embeddings(over(A), word("a a", [1, 0]))


def test_nothing_comes_of_an_empty_stream():
    assert all(list_reports(pattern, [], mode) == [] for pattern in (over(A), QUIET) for mode in MODES)


# --- against another reading of the same ------------------------------------------------------------

EXPRESSIONS = [
    (then(A, NEXT, B, LATER, C), "ab.*c"),
    (then(A, B, NEXT, A), "a.*ba"),
    (then(A, A, NEXT, A), "a.*aa"),
    (Disjunction((then(A, NEXT, B), then(C, A))), "ab|c.*a"),
    (then(A, NEXT, Disjunction((B, then(C, C)))), "a(b|c.*c)"),
    (then(A, NEXT, Conjunction((B, C)), NEXT, A), "a(b.*c|c.*b)a"),
    (Conjunction((then(A, NEXT, B), C)), "ab.*c|c.*ab"),
    (Conjunction((A, A)), "a.*a"),
    (then(A, without("b"), C), "a[^b]*c"),
    (then(A, without("b", "c"), A, NEXT, B), "aa*ab"),
    (then(Repeat(A, 2, None), NEXT, B), "a(.*a)+b"),
    (then(C, NEXT, Repeat(A, 1, 2), without("a"), B), "ca(.*a)?[^a]*b"),
    (Conjunction((then(A, without("b"), C), B)), "b.*a[^b]*c|a[^b]*c.*b"),
]


@pytest.mark.parametrize(("root", "expression"), EXPRESSIONS)
def test_overlap_reports_where_a_regular_expression_ends(root, expression):
    pattern, expected = over(root), re.compile(f".*({expression})")
    for length in range(1, 7):
        for letters in product("abc", repeat=length):
            ends = {report.after for report in list_reports(pattern, word(" ".join(letters)), "overlap")}
            text = "".join(letters)
            assert ends == {end for end in range(length) if expected.fullmatch(text[: end + 1])}, text


WORDS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "ab"]), st.integers(0, 2)), max_size=7)
SHAPES = [
    over(then(A, NEXT, B, LATER, C)),
    over(Timed(then(A, Conjunction((B, C))), (apart("c", "a", high=3 * S),))),
    over(then(A, without("b"), Repeat(C, 1, 2))),
    over(then(A, C), absence=Absence(("b",), 2 * S)),
    over(then(A, Disjunction((B, C))), absence=Absence(("a",), 2 * S)),
]


def time_letters(letters):
    at, times = 0, []
    for _, wait in letters:
        at += wait
        times.append(at)
    return word(" ".join(names for names, _ in letters), times)


@given(st.sampled_from(SHAPES), WORDS)
def test_the_modes_report_true_matches_and_fewer_of_them(pattern, letters):
    stream = time_letters(letters)
    every = set(events(pattern, stream))
    by_mode = {mode: list_reports(pattern, stream, mode) for mode in MODES}
    assert all(report.choices and report.choices <= every for reports in by_mode.values() for report in reports)
    restart, overlap, following, everything = (len(by_mode[mode]) for mode in MODES)
    assert restart <= overlap <= everything
    assert restart <= following <= everything
    assert (restart > 0) == (everything > 0)


@given(st.sampled_from(SHAPES), WORDS)
def test_no_event_serves_two_reports_of_restart(pattern, letters):
    reports = list_reports(pattern, time_letters(letters), "restart")
    for before, after in pairwise(reports):
        assert all(min(events) > before.after for events in after.choices)


@given(st.sampled_from(SHAPES), WORDS, st.integers(0, 7))
def test_what_was_reported_stays_reported_when_more_events_come(pattern, letters, cut):
    stream = time_letters(letters)
    for mode in MODES:
        sooner, whole = list_reports(pattern, stream[:cut], mode), list_reports(pattern, stream, mode)
        assert whole[: len(sooner)] == sooner
