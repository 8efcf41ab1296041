"""Automata report exactly where the definition does, and are as small as they can be."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential.pattern_worlds import number_symbol, walk_automaton
from tests.examples import examples

from tidings import Schema, lang
from tidings.algebra import evaluate
from tidings.concepts import Vocabulary
from tidings.errors import TooLarge
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
)
from tidings.patterns.compile.minterms import Minterms, build_minterms
from tidings.patterns.compile.pattern_automaton import NotDeterministic, PatternAutomaton, _find_classes, determinise
from tidings.patterns.definition import SeenEvent, judge_events, list_reports
from tidings.testing.strategies.patterns import patterns, words

ONE_KIND = Schema({"kind": "text"})
NEXT, LATER = Joint(Gap.NEXT), Joint(Gap.LATER)
A, B, C = Step("a"), Step("b"), Step("c")
MODES = pytest.mark.parametrize("mode", [Mode.RESTART, Mode.OVERLAP])


def name_filter(name: str, text: str | None = None, *variables: tuple[str, str]) -> NamedFilter:
    return NamedFilter(name, lang.parse(text or f"kind = '{name}'"), variables)


def pattern(root, names="abc") -> Pattern:
    return Pattern(tuple(name_filter(name) for name in names), root)


def chain(*parts, gaps=";"):
    """Join parts by the signs of `gaps`, the last sign again and again."""
    signs = [gaps[min(place, len(gaps) - 1)] for place in range(len(parts) - 1)]
    return Sequence(parts, tuple(Joint(Gap(sign)) for sign in signs))


def without(guard: str, *parts):
    return Sequence(parts, (Joint(Gap.LATER, (guard,)),) * (len(parts) - 1))


def automaton_of(*args, **options) -> PatternAutomaton:
    automaton = determinise(*args, **options)
    assert isinstance(automaton, PatternAutomaton), automaton
    return automaton


def list_reports_of(automaton: PatternAutomaton, word) -> list[int]:
    return [place for place, reported in enumerate(walk_automaton(automaton, word)) if reported]


def list_defined_reports(wanted: Pattern, word, mode: Mode) -> list[int]:
    stream = [SeenEvent(place, frozenset(names), {}) for place, names in enumerate(word)]
    return [report.after for report in list_reports(wanted, stream, mode)]


ROOTS = {
    "a": A,
    "a;b;c": chain(A, B, C),
    "a,b;c": chain(A, B, C, gaps=",;"),
    "a,b,c": chain(A, B, C, gaps=","),
    "a,a,b": chain(A, Step("a", "again"), B, gaps=","),
    "a,b;a,b": chain(A, B, Step("a", "again"), Step("b", "more"), gaps=",;,"),
    "a;not b;c": without("b", A, C),
    "a;not a;b": without("a", A, B),
    "a and b": Conjunction((A, B)),
    "(a,b) and c": Conjunction((chain(A, B, gaps=","), C)),
    "((a;not c;b) and c),a": chain(Conjunction((without("c", A, B), C)), Step("a", "again"), gaps=","),
    "a,(b and c)": chain(A, Conjunction((B, C)), gaps=","),
    "a or (b;c)": Disjunction((A, chain(B, C))),
    "(a or b);not c;(a and b)": without("c", Disjunction((A, B)), Conjunction((Step("a", "more"), Step("b", "again")))),
    "a{2,3}": Repeat(A, 2, 3),
    "a{2,},b": chain(Repeat(A, 2), B, gaps=","),
    "a{1,2};not c;b": without("c", Repeat(A, 1, 2), B),
}


@MODES
@pytest.mark.parametrize("root", ROOTS.values(), ids=ROOTS)
def test_an_automaton_reports_where_the_definition_does_on_all_short_words(root, mode):
    wanted = pattern(root)
    automaton = automaton_of(wanted, mode, Vocabulary(ONE_KIND))
    # What is reported at an event depends on the events before it alone: words of six hold all shorter ones.
    for word in product("abc", repeat=6):
        assert list_reports_of(automaton, word) == list_defined_reports(wanted, word, mode), word


untimed = patterns(conditions=False, absence=False)
modes = st.sampled_from([Mode.RESTART, Mode.OVERLAP])


@examples(100)
@given(untimed, st.lists(st.frozensets(st.sampled_from("abc"), max_size=2), max_size=7), modes)
def test_an_automaton_reports_where_the_definition_does_when_events_serve_several_names(wanted, word, mode):
    assert list_reports_of(automaton_of(wanted, mode), word) == list_defined_reports(wanted, word, mode)


@examples(100)
@given(patterns(conditions=False, absence=False, overlapping=True), words(most=7), modes)
def test_an_automaton_reports_where_the_definition_does_when_filters_overlap(wanted, word, mode):
    stream = judge_events(wanted, [{"kind": symbol, "time": time} for symbol, time in word])
    expected = [report.after for report in list_reports(wanted, stream, mode)]
    assert (
        list_reports_of(automaton_of(wanted, mode, Vocabulary(ONE_KIND)), [event.names for event in stream]) == expected
    )


def by_moore(table, final) -> list[int]:
    """Part the states round by round: the plain twin of Hopcroft's algorithm."""
    classes = final.astype(int)
    for _ in table:
        rows = np.column_stack([classes, classes[table]])
        classes = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    return classes.tolist()


@examples(150)
@given(st.data(), st.integers(1, 9), st.integers(1, 3))
def test_states_are_parted_as_by_the_plain_algorithm(data, states, symbols):
    cells = data.draw(st.lists(st.integers(0, states - 1), min_size=states * symbols, max_size=states * symbols))
    final = np.array(data.draw(st.lists(st.booleans(), min_size=states, max_size=states)))
    table = np.array(cells, dtype=np.int32).reshape(states, symbols)
    first, second = _find_classes(table, final), by_moore(table, final)
    assert len(set(first)) == len(set(second)) == len(set(zip(first, second, strict=True)))


@examples(100)
@given(untimed, modes)
def test_no_two_states_are_equal_and_all_are_reached(wanted, mode):
    automaton = automaton_of(wanted, mode)
    classes = by_moore(automaton.table, automaton.mark_final_states())
    assert len(set(classes)) == len(automaton.states) == len(automaton.list_shortest_words())
    assert (automaton.reports == automaton.mark_final_states()[automaton.table]).all()


@examples(60)
@given(st.data(), modes)
def test_a_sequence_over_exclusive_filters_has_a_state_for_each_step_and_one_more(data, mode):
    names = data.draw(st.lists(st.sampled_from("abcd"), min_size=2, max_size=9))
    gaps = data.draw(st.lists(st.sampled_from([NEXT, LATER]), min_size=len(names) - 1, max_size=len(names) - 1))
    wanted = pattern(Sequence(tuple(Step(name) for name in names), tuple(gaps)), "abcd")
    assert len(automaton_of(wanted, mode, Vocabulary(ONE_KIND)).states) == len(names) + 1


def test_a_hundred_steps_have_a_hundred_and_one_states():
    names = [f"e{number}" for number in range(25)]
    wanted = pattern(chain(*(Step(name) for name in names * 4), gaps=",;,"), names)
    assert len(automaton_of(wanted, vocabulary=Vocabulary(ONE_KIND)).states) == 101


def test_figure_8_is_reported_twice_in_restart_and_in_overlap():
    word = ["a", "b", "a", "b", "c", "e", "f", "a", "b", "c", "d", "d", "g", "a"]
    wanted = pattern(ROOTS["a,b;c"], "abcdefg")
    assert list_reports_of(automaton_of(wanted, Mode.RESTART), word) == [4, 9]
    assert list_reports_of(automaton_of(wanted, Mode.OVERLAP), word) == [4, 9]
    assert list_reports_of(automaton_of(wanted, Mode.RESTART), "abcc") == [2]
    assert list_reports_of(automaton_of(wanted, Mode.OVERLAP), "abcc") == [2, 3]


@MODES
def test_a_keyed_automaton_reads_the_events_of_one_key(mode):
    wanted = Pattern(
        (name_filter("a", None, ("from", "x")), name_filter("b", None, ("to", "x"))), chain(A, B, gaps=",")
    )
    automaton = automaton_of(wanted, mode, Vocabulary(ONE_KIND))
    stream = [("a", "from", 1), ("a", "from", 2), ("b", "from", 1), ("b", "to", 2), ("b", "to", 1), ("a", "from", 1)]
    stream += [("b", "to", 1)]
    of_one = [place for place, (_, _, key) in enumerate(stream) if key == 1]
    carried = {"a": "from", "b": "to"}
    word = [{name} if carried[name] == attribute else set() for name, attribute, key in stream if key == 1]
    events = [SeenEvent(i, frozenset({name}), {attribute: key}) for i, (name, attribute, key) in enumerate(stream)]
    expected = [report.after for report in list_reports(wanted, events, mode) if report.key == (1,)]
    assert [of_one[place] for place in list_reports_of(automaton, word)] == expected == [6]


# What has no automaton -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (pattern(Timed(chain(A, B), within=5)), "it has time conditions"),
        (pattern(chain(A, Timed(B, (Elapsed(Moment("b"), Moment("a"), high=5),)))), "it has time conditions"),
        (
            Pattern((name_filter("a"), name_filter("b")), A, Absence(("b",), 5)),
            "it ends with an absence, which time alone completes",
        ),
        (
            Pattern((name_filter("a", None, ("ip", "x")), name_filter("b")), chain(A, B)),
            "variable `x` is not given by every operand",
        ),
    ],
)
def test_what_asks_for_more_than_a_state_is_refused_with_its_reason(wanted, reason):
    assert determinise(wanted) == NotDeterministic(reason)


@pytest.mark.parametrize("mode", [Mode.NEXT, Mode.ANY])
def test_modes_that_tell_beginnings_apart_have_no_automaton(mode):
    assert determinise(pattern(A), mode) == NotDeterministic(
        f"mode `{mode}` tells beginnings apart, of which there is no end"
    )


def test_a_pattern_over_the_budget_is_refused_with_its_reason():
    several = [f"e{number}" for number in range(11)]
    wide = pattern(Conjunction(tuple(Step(name) for name in several[:7])), several)
    assert determinise(wide, vocabulary=Vocabulary(ONE_KIND), budget=100).reason.startswith(
        "the pattern has more than 100 configurations"
    )
    assert len(automaton_of(wide, vocabulary=Vocabulary(ONE_KIND), budget=128).states) == 128
    many = determinise(pattern(chain(*(Step(name) for name in several)), several))
    assert many.reason.startswith("more than 1,024 combinations of filters; give a schema")


def test_a_pattern_of_many_sets_is_refused_though_its_configurations_are_few():
    steps = [Step("b"), *(Step("any", f"s{number}") for number in range(9))]
    wanted = Pattern((name_filter("b"), name_filter("any", "true")), chain(*steps, gaps=","))
    assert determinise(wanted, Mode.OVERLAP, Vocabulary(ONE_KIND), budget=500) == NotDeterministic(
        "more than 500 states"
    )
    assert len(automaton_of(wanted, Mode.OVERLAP, Vocabulary(ONE_KIND)).states) == 1024


# Minterms -------------------------------------------------------------------------------------------


def test_exclusive_filters_give_a_minterm_each_and_anything_else():
    minterms = build_minterms([name_filter(name) for name in "abc"], Vocabulary(ONE_KIND))
    assert minterms.symbols == (frozenset(), frozenset("a"), frozenset("b"), frozenset("c"))


def test_without_a_schema_an_attribute_may_carry_several_values():
    assert len(build_minterms([name_filter(name) for name in "abc"])) == 8


def test_a_filter_inside_another_is_never_satisfied_alone():
    minterms = build_minterms(
        [name_filter("low", "x < 5"), name_filter("lower", "x < 3")], Vocabulary(Schema({"x": "number"}))
    )
    assert minterms.symbols == (frozenset(), frozenset({"low"}), frozenset({"low", "lower"}))


def test_names_of_one_filter_are_satisfied_together():
    assert build_minterms([name_filter(name, "x < 5") for name in ("s1", "s2", "s3")]).symbols == (
        frozenset(),
        frozenset({"s1", "s2", "s3"}),
    )


def test_one_filter_with_other_variables_may_fail_alone():
    minterms = build_minterms([name_filter("out", "x < 5", ("from", "k")), name_filter("in", "x < 5", ("to", "k"))])
    assert len(minterms) == 4


def test_a_filter_with_a_variable_of_its_own_may_fail_whatever_the_others_imply():
    near = [name_filter("a", "x in (1, 2)", ("from", "k")), name_filter("b", "x in (2, 3)", ("from", "k"))]
    schema = Schema({"x": "number"})
    assert (
        frozenset("ab") in build_minterms([*near, name_filter("c", "x = 2", ("to", "k"))], Vocabulary(schema)).symbols
    )
    assert (
        frozenset("ab")
        not in build_minterms([*near, name_filter("c", "x = 2", ("from", "k"))], Vocabulary(schema)).symbols
    )


def test_three_filters_that_meet_by_pairs_only_are_judged_together():
    texts = {"a": "x in (1, 2)", "b": "x in (2, 3)", "c": "x in (1, 3)"}
    minterms = build_minterms(
        [name_filter(name, text) for name, text in texts.items()], Vocabulary(Schema({"x": "number"}))
    )
    assert set(minterms.symbols) == {frozenset(), frozenset("ab"), frozenset("bc"), frozenset("ac")}


def test_filters_that_cannot_be_compared_may_overlap():
    assert len(build_minterms([name_filter("a", "x = 'red'"), name_filter("b", "x > 3")])) == 4


def test_a_combination_that_cannot_be_is_not_there():
    assert frozenset("ab") not in build_minterms([name_filter("a"), name_filter("b")], Vocabulary(ONE_KIND)).symbols


def test_too_many_combinations_are_refused():
    with pytest.raises(TooLarge, match="more than 7 combinations"):
        build_minterms([name_filter(name) for name in "abc"], budget=7)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([1], "a and not b"), ([1, 3], "a"), ([1, 2], "a and not b or not a and b"), ([2, 3], "b"), ([1, 2, 3], "b or a")],
)
def test_minterms_are_told_in_few_words(numbers, expected):
    assert set(
        Minterms(("a", "b"), tuple(map(frozenset, ["", "a", "b", "ab"]))).describe(numbers).split(" or ")
    ) == set(expected.split(" or "))


TEXTS = ["x < 5", "x > 3", "x in (1, 4)", "not x = 4", "x between 2 and 4", "kind = 'a'", "kind in ('a', 'b')", "true"]
TEXTS += ["kind = 'b' and x > 2", "kind = 'a' or x = 1", "not (kind = 'a' and x < 4)", "x exists"]


@examples(100)
@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=5, unique=True),
    st.fixed_dictionaries({}, optional={"x": st.integers(0, 6), "kind": st.sampled_from("abc")}),
)
def test_what_an_event_satisfies_is_always_a_minterm(texts, event):
    schema = Schema({"x": "number", "kind": "text"})
    filters = [name_filter(f"f{place}", text) for place, text in enumerate(texts)]
    satisfied = {filter.name for filter in filters if evaluate(filter.filter, event, schema=schema)}
    assert number_symbol(build_minterms(filters, Vocabulary(schema)), satisfied) >= 0
    assert number_symbol(build_minterms(filters), satisfied) >= 0
