"""The paper's machine: its figures and tables, equality with the definition where it holds, and where it does not."""

import random
from collections import Counter
from itertools import product

import pytest

from tidings.errors import PatternError, Unsupported
from tidings.model import Is, Test
from tidings.model.patterns import (
    Absence,
    Conjunction,
    Disjunction,
    Elapsed,
    Gap,
    Joint,
    Moment,
    NamedFilter,
    Pattern,
    Repeat,
    Sequence,
    Step,
    Timed,
    walk_steps,
)
from tidings.papers.p_topss.paper_machine import PaperMachine
from tidings.papers.p_topss.step_layout import StepLayout
from tidings.patterns.definition import SeenEvent, list_reports


def pattern(root, *, variables=()):
    names = dict.fromkeys(step.filter for step in walk_steps(root))
    return Pattern(tuple(NamedFilter(name, Test("kind", Is(name)), variables) for name in names), root)


def seq(*parts):
    """Alternate operands and joints: seq("a", ",", "b", ";", Conjunction(...))."""
    operands = tuple(Step(part) if isinstance(part, str) else part for part in parts[::2])
    return Sequence(operands, tuple(Joint(Gap(joint)) for joint in parts[1::2]))


def at(name, *conditions):
    return Timed(Step(name), conditions)


def apart(late, early, **bounds):
    return Elapsed(Moment(late), Moment(early), **bounds)


def less(late, early, most):
    return apart(late, early, high=most, high_open=True)


def more(late, early, least):
    return apart(late, early, low=least, low_open=True)


def machine_of(*roots):
    machine = PaperMachine()
    for number, root in enumerate(roots):
        machine.add(f"cs{number + 1}", pattern(root))
    return machine


def run(machine, events):
    return [machine.on_event(frozenset(names), time) for names, time in events]


def count_instances(machine):
    return sum(1 for _ in machine.iterate_instances())


def list_times(machine):
    """Return the time lists of the instances alive, each by the primitive filters that lead to its states."""
    names = {number: name for name, number in reversed(machine.symbols.items())}
    return [
        {
            names[state.symbol]: tuple(sorted(times))
            for state, times in instance.lists.items()
            if state.symbol is not None
        }
        for instance in machine.iterate_instances()
    ]


def word(text):
    return [({name} if name != "-" else set(), time) for time, name in enumerate(text.split())]


def list_completions(root, events):
    """Return the indexes at which the machine, and at which the definition, tells of a match."""
    ours = {number for number, is_matched in enumerate(run(machine_of(root), events)) if is_matched}
    stream = [SeenEvent(time, frozenset(names), {}) for names, time in events]
    return ours, {report.after for report in list_reports(pattern(root), stream, "overlap")}


# What the paper shows --------------------------------------------------------------------------

FIGURE_7 = seq("s1", ";", at("s2", less("s2", "s1", 3)), ";", at("s3", less("s3", "s1", 6), more("s3", "s2", 3)))
TIMELINE = [({"s1"}, 1), ({"s1"}, 2), ({"s1"}, 3), ({"s2"}, 4), ({"s2"}, 5), ({"s2"}, 6), ({"s3"}, 7), ({"s3"}, 8)]


def test_figure_7_matches_at_time_8_with_the_lists_the_text_gives():
    steps = run(machine_of(FIGURE_7), TIMELINE)
    assert [len(matches) for matches in steps] == [0, 0, 0, 0, 0, 0, 0, 1]
    assert steps[-1][0].times == (("s1", (3,)), ("s2", (4,)), ("s3", (8,)))


@pytest.mark.parametrize(
    ("events", "furthest"),
    [
        (3, {"s1": (1, 2, 3)}),
        (4, {"s1": (2, 3), "s2": (4,)}),
        (5, {"s1": (2, 3), "s2": (4, 5)}),
        (6, {"s1": (2, 3), "s2": (4, 5)}),
        (7, {"s1": (2, 3), "s2": (4, 5)}),
    ],
)
def test_figure_7_keeps_the_time_lists_that_the_text_tells_step_by_step(events, furthest):
    machine = machine_of(FIGURE_7)
    run(machine, TIMELINE[:events])
    assert max(list_times(machine), key=len) == furthest


def test_table_2_has_an_instance_for_each_beginning():
    machine = machine_of(seq("F", ",", "F", ",", Step("F", "f3"), ",", "S"))
    counts = []
    for event in word("F F F"):
        run(machine, [event])
        counts.append(count_instances(machine))
    assert counts == [1, 2, 3]
    run(machine, [({"other"}, 3)])
    assert count_instances(machine) == 0


def test_an_instance_of_table_2_has_transition_times_of_its_own():
    first, third = Step("F", "n1"), Timed(Step("F", "n3"), (less("n3", "n1", 5),))
    root = seq(first, ",", Step("F", "n2"), ",", third, ",", "S")
    assert list_completions(root, [({"F"}, 0), ({"F"}, 4), ({"F"}, 6), ({"S"}, 7)]) == (set(), set())
    assert list_completions(root, [({"F"}, 0), ({"F"}, 2), ({"F"}, 4), ({"S"}, 7)]) == ({3}, {3})


def test_figure_6_merges_three_subscriptions_into_five_states():
    machine = machine_of(seq("a", ";", "b", ";", "c"), seq("a", ";", "b", ";", "d"), Step("a"))
    assert (machine.tally.states, machine.tally.states_unmerged, machine.tally.states_shared) == (5, 7, 2)


def test_states_merge_only_with_the_same_operator_and_condition():
    assert machine_of(seq("a", ",", "b"), seq("a", ";", "b")).tally.states == 4
    assert (
        machine_of(seq("a", ";", at("b", less("b", "a", 3))), seq("a", ";", at("b", less("b", "a", 4)))).tally.states
        == 3
    )
    labelled = seq(Step("a", "x"), ";", Timed(Step("b", "y"), (less("y", "x", 3),)))
    assert machine_of(seq("a", ";", at("b", less("b", "a", 3))), labelled).tally.states == 2


def test_primary_and_secondary_links_are_counted_and_self_links_are_not():
    machine = machine_of(seq("a", ";", "b"))
    run(machine, word("a - a b"))
    # The initial state is tried at each a: primary, then primary and secondary; b is primary.
    assert machine.tally.transitions == 4
    assert count_instances(machine) == 1


@pytest.mark.parametrize(("text", "count"), [("a b a b c e f a b c d d g a", 2), ("a b c c", 2)])
def test_figure_8_is_matched_as_often_as_in_mode_overlap(text, count):
    assert sum(map(len, run(machine_of(seq("a", ",", "b", ";", "c")), word(text)))) == count


TABLE_3 = {1: ("s3", "s2"), 2: ("s2", "s1"), 3: ("s6", "s4"), 4: ("s4", "s3"), 5: ("s7", "s3")}


def table_3(late, early):
    def step(name):
        return at(name, less(late, early, 5)) if name == late else Step(name)

    both = Conjunction((seq(step("s2"), ";", step("s3")), seq(step("s4"), ",", step("s5"))))
    return seq(step("s1"), ";", both, ";", step("s6"), ";", Disjunction((step("s7"), step("s8"))))


@pytest.mark.parametrize("case", TABLE_3)
def test_table_3_tells_five_cases_of_conditions_apart(case):
    assert [placed.case for placed in StepLayout(pattern(table_3(*TABLE_3[case]))).conditions] == [case]


@pytest.mark.parametrize("case", TABLE_3)
def test_each_case_of_table_3_lets_a_near_pair_pass_and_stops_a_far_one(case):
    names = ["s1", "s2", "s3", "s4", "s5", "s6", "s7"]
    near = [({name}, number // 4) for number, name in enumerate(names)]
    far = [({name}, number * 10) for number, name in enumerate(names)]
    assert list_completions(table_3(*TABLE_3[case]), near) == ({6}, {6})
    assert list_completions(table_3(*TABLE_3[case]), far) == (set(), set())


def test_children_stay_active_after_their_first_match():
    root = seq("a", ";", Conjunction((Step("b"), Step("c"))), ";", at("d", less("d", "b", 2)))
    assert list_completions(root, [({"a"}, 0), ({"b"}, 1), ({"c"}, 2), ({"b"}, 8), ({"d"}, 9)]) == ({4}, {4})


# Equal to the definition -----------------------------------------------------------------------

UNTIMED = [
    seq("a", ",", "b", ";", "c"),
    seq("a", ";", "a", ",", "b"),
    seq("a", ",", "a", ";", "b", ",", "a"),
    seq("a", ";", Disjunction((Step("b"), Step("c"))), ",", "a"),
    seq("a", ",", Disjunction((Step("b"), Step("c")))),
    seq("a", ";", Conjunction((Step("b"), Step("c")))),
    Conjunction((seq("a", ",", "b"), Step("c"))),
]


@pytest.mark.parametrize("root", UNTIMED)
def test_sequences_equal_the_definition_on_all_words_up_to_length_six(root):
    for length in range(1, 7):
        for letters in product("abc", repeat=length):
            ours, theirs = list_completions(root, [({name}, time) for time, name in enumerate(letters)])
            assert ours == theirs, letters


def bounds(rng):
    most, open_end = rng.randint(1, 5), rng.random() < 0.5
    upper, lower = {"high": most, "high_open": open_end}, {"low": most, "low_open": open_end}
    return rng.choice([upper, lower, {"low": 1, "high": most}])


def with_conditions(node, conditions):
    match node:
        case Step():
            mine = tuple(condition for condition in conditions if condition.late.label == node.name)
            return Timed(node, mine) if mine else node
        case Sequence(parts, joints):
            return Sequence(tuple(with_conditions(part, conditions) for part in parts), joints)
        case Conjunction(parts):
            return Conjunction(tuple(with_conditions(part, conditions) for part in parts))
        case Disjunction(parts):
            return Disjunction(tuple(with_conditions(part, conditions) for part in parts))


def draw_timed_word(rng, names):
    """Return events that tend to come in the order of the steps, often at equal times."""
    time, events = 0, []
    for number in range(rng.randint(5, 11)):
        time += rng.choice([0, 1, 1, 2])
        middle = number * len(names) // 12
        events.append(({rng.choice(names[max(0, middle - 2) : middle + 4])}, time))
    return events


SHAPES = [
    seq("a", ";", "b", ";", "c"),
    seq("a", ",", "b", ",", "c"),
    seq("a", ";", Conjunction((seq("b", ";", "c"), seq("d", ",", "e"))), ";", "f"),
    seq("a", ";", Conjunction((Step("b"), Step("c"))), ";", "f"),
    seq("a", ";", Disjunction((seq("b", ";", "c"), seq("d", ",", "e"))), ";", "f"),
    seq(Conjunction((Step("a"), Step("b"))), ";", Disjunction((Step("c"), Step("d")))),
    seq(Conjunction((Step("a"), Step("b"))), ";", Conjunction((Step("c"), Step("d")))),
    seq("a", ";", Conjunction((Disjunction((Step("b"), Step("c"))), Step("d"))), ";", "f"),
    seq("a", ";", Conjunction((Step("b"), seq("c", ";", Disjunction((Step("d"), Step("e")))))), ";", "f"),
]


def test_time_conditions_in_cases_1_2_3_and_5_equal_the_definition():
    rng, mattered = random.Random(4), Counter()
    for _ in range(6000):
        root = rng.choice(SHAPES)
        names = [step.name for step in walk_steps(root)]
        events = draw_timed_word(rng, names)
        if not any(run(machine_of(root), events)):  # then no condition can matter
            continue
        pairs = [sorted(rng.sample(range(len(names)), 2)) for _ in range(rng.choice([1, 1, 2, 3]))]
        conditions = [apart(names[late], names[early], **bounds(rng)) for early, late in pairs]
        timed = with_conditions(root, conditions)
        try:
            cases = {placed.case for placed in StepLayout(pattern(timed)).conditions}
        except Unsupported:
            continue
        if 4 not in cases:
            ours, theirs = list_completions(timed, events)
            assert ours == theirs, (timed, events)
            mattered.update(cases if theirs != list_completions(root, events)[1] else ())
    # A test of conditions that never decide anything would pass as well.
    assert all(mattered[case] > 30 for case in (1, 2, 3, 5)), mattered


def test_case_4_with_a_closed_absolute_bound_equals_the_definition():
    rng, mattered = random.Random(5), 0
    for _ in range(600):
        condition = apart("c", "b", high=rng.randint(0, 3), absolute=True)
        plain = seq("a", ";", Conjunction((seq("b", ";", "d"), Step("c"))))
        root = with_conditions(plain, [condition])
        events = draw_timed_word(rng, ["a", "b", "c", "d"])
        ours, theirs = list_completions(root, events)
        assert ours == theirs, (condition, events)
        mattered += theirs != list_completions(plain, events)[1]
    assert mattered > 30


def test_merged_machines_tell_what_single_ones_tell():
    rng = random.Random(6)
    timed = [with_conditions(root, [apart("b", "a", high=2)]) for root in SHAPES[:2]]
    roots = [*UNTIMED, *SHAPES[:4], *timed, FIGURE_7]
    for _ in range(40):
        events = draw_timed_word(rng, ["a", "b", "c", "d", "e", "f"])
        together = run(machine_of(*roots), events)
        for number, root in enumerate(roots):
            alone = [bool(is_matched) for is_matched in run(machine_of(root), events)]
            assert [
                any(detection.subscription == f"cs{number + 1}" for detection in is_matched) for is_matched in together
            ] == alone


def test_a_key_variable_gives_each_value_a_machine_of_its_own():
    root = seq("a", ",", "b")
    keyed = pattern(root, variables=(("ip", "x"),))
    machine = PaperMachine()
    machine.add("cs", keyed)
    stream = [("a", 1), ("a", 2), ("b", 1), ("b", True), ("b", 2.0), ("b", None)]
    steps = [machine.on_event({name}, time, values={"ip": ip}) for time, (name, ip) in enumerate(stream)]
    assert [[match.key for match in matches] for matches in steps] == [[], [], [(1,)], [], [(2.0,)], []]
    seen = [
        SeenEvent(t, frozenset({name}), {"ip": ip} if ip is not None else {}) for t, (name, ip) in enumerate(stream)
    ]
    assert [report.after for report in list_reports(keyed, seen, "overlap")] == [2, 4]


def test_a_key_may_come_from_different_attributes():
    filters = (
        NamedFilter("a", Test("kind", Is("a")), (("src", "x"),)),
        NamedFilter("b", Test("kind", Is("b")), (("dst", "x"),)),
    )
    machine = PaperMachine()
    machine.add("cs", Pattern(filters, seq("a", ";", "b")))
    assert not machine.on_event({"a"}, 0, values={"src": "h1", "dst": "h9"})
    assert not machine.on_event({"b"}, 1, values={"src": "h1", "dst": "h2"})
    assert [match.key for match in machine.on_event({"b"}, 2, values={"src": "h3", "dst": "h1"})] == [("h1",)]


def test_expired_times_are_forgotten_and_their_matches_with_them():
    root = seq("a", ";", at("b", more("b", "a", 3)))
    events = [({"a"}, 0), ({"b"}, 9)]
    assert [len(is_matched) for is_matched in run(machine_of(root), events)] == [0, 1]
    machine = PaperMachine(expire=5)
    machine.add("cs", pattern(root))
    assert [len(is_matched) for is_matched in run(machine, events)] == [0, 0]


# Known differences: the machine as printed, against the definition ------------------------------


def test_known_difference_a_secondary_link_renews_a_time_without_the_steps_before_it():
    root = seq("a", ",", "b", ";", at("c", less("c", "b", 3)))
    assert list_completions(root, [({"a"}, 0), ({"b"}, 1), ({"b"}, 8), ({"c"}, 9)]) == ({3}, set())


def test_known_difference_one_event_serves_two_children_of_and():
    assert list_completions(Conjunction((Step("a"), Step("a", "again"))), word("a")) == ({0}, set())
    assert list_completions(Conjunction((Step("a"), Step("b"))), [({"a", "b"}, 0)]) == ({0}, set())


def test_known_difference_an_operand_of_several_events_right_after_a_comma_never_matches():
    assert list_completions(seq("x", ",", Conjunction((Step("b"), Step("c")))), word("x b c")) == (set(), {2})
    assert list_completions(seq("x", ",", Disjunction((seq("b", ",", "c"), Step("d")))), word("x b c")) == (set(), {2})


def test_known_difference_case_4_takes_a_signed_condition_for_an_absolute_one():
    root = Conjunction((Step("a"), at("b", less("b", "a", 3))))
    assert list_completions(root, [({"b"}, 0), ({"a"}, 9)]) == (set(), {1})


def test_known_difference_case_4_includes_its_lower_end():
    root = Conjunction((Step("a"), at("b", apart("b", "a", high=3, high_open=True, absolute=True))))
    assert list_completions(root, [({"a"}, 0), ({"b"}, 3)]) == ({1}, set())
    assert list_completions(root, [({"b"}, 0), ({"a"}, 3)]) == (set(), set())


def test_not_as_printed_pruning_also_goes_out_from_the_state_entered():
    # Prune of the state left alone (Algorithm Match) tells of a match here: c needs the second a, d the first.
    first, last = at("c", less("c", "a", 3)), at("d", more("d", "a", 5))
    root = seq("a", ";", "b", ";", first, ";", "x", ";", last)
    events = [({"a"}, 1), ({"a"}, 4), ({"b"}, 4), ({"c"}, 5), ({"x"}, 6), ({"d"}, 7)]
    assert list_completions(root, events) == (set(), set())


# Refusals --------------------------------------------------------------------------------------

BEYOND = {
    "not": Sequence((Step("a"), Step("c")), (Joint(Gap.LATER, ("a",)),)),
    "repetition": Repeat(Step("a"), 3),
    "within": Timed(seq("a", ";", "b"), within=5),
    "a condition outside its branch": Timed(seq("a", ";", Disjunction((Step("b"), Step("c")))), (less("b", "a", 5),)),
    "a lower bound without an order": Conjunction((Step("a"), at("b", more("b", "a", 5)))),
}


@pytest.mark.parametrize("text", BEYOND)
def test_what_the_paper_has_not_is_refused_and_leaves_nothing_behind(text):
    machine = PaperMachine()
    with pytest.raises(Unsupported, match="p-topss"):
        machine.add("cs", pattern(BEYOND[text]))
    assert machine.tally.states == 0
    machine.add("cs", pattern(Step("a")))


def test_absence_and_variables_of_some_steps_are_refused():
    plain = pattern(seq("a", ";", "b"))
    with pytest.raises(Unsupported, match="absence"):
        PaperMachine().add("cs", Pattern(plain.filters, plain.root, Absence(("b",), 5)))
    joined = (NamedFilter("a", Test("kind", Is("a")), (("ip", "x"),)), plain["b"])
    with pytest.raises(Unsupported, match="only some steps"):
        PaperMachine().add("cs", Pattern(joined, plain.root))


def test_a_name_means_one_filter_and_one_subscription():
    machine = machine_of(Step("a"))
    with pytest.raises(PatternError, match="another filter"):
        machine.add("other", Pattern((NamedFilter("a", Test("kind", Is("z"))),), Step("a")))
    with pytest.raises(PatternError, match="already"):
        machine.add("cs1", pattern(Step("b")))
    run(machine, word("a"))
    with pytest.raises(Unsupported, match="after the first event"):
        machine.add("late", pattern(Step("b")))
