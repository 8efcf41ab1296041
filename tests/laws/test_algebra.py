"""Normal forms and simplifying keep the meaning, covering and overlap never lie: whole filters in whole worlds.

Worlds, with schemas, concepts, units and regions, come from `tidings.testing.strategies`; beside them stand filters
over two attributes with few end points, so that boundaries meet and parts of a filter bear on each other.
"""

from contextlib import suppress
from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tidings.algebra import covers, evaluate, normal_form, overlaps, simplify
from tidings.errors import BadEvent
from tidings.model import (
    FALSE,
    TRUE,
    And,
    Compare,
    Comparison,
    Exists,
    Has,
    IsNull,
    Not,
    Or,
    Quantifier,
    Range,
    Schema,
    Test,
    all_of,
    any_of,
    one_of,
)
from tidings.testing.strategies import cases

# --- filters over few values ----------------------------------------------------------------------------

flags = st.booleans()
ends = [(None, 0), (None, 1), (0, None), (1, None), (0, 0), (0, 1), (0, 2), (1, 2)]
numbers = st.builds(lambda pair, *opened: Range(*pair, *opened), st.sampled_from(ends), flags, flags)
numbers |= st.lists(st.sampled_from([0, 1, 2, 0.5]), min_size=1, max_size=3).map(one_of)


def tests_of(name, conditions):
    return st.builds(Test, st.just(name), conditions, st.sampled_from(Quantifier))


tests_of.__test__ = False
presence = st.sampled_from([Test(name, condition) for name in "ab" for condition in (Exists(), IsNull())])
plain = tests_of("a", numbers) | tests_of("b", numbers) | presence
compared = tests_of("a", st.builds(Compare, st.sampled_from(Comparison), st.just("b")))


def trees(leaves):
    return st.recursive(
        leaves,
        lambda inner: (
            inner.map(Not) | st.lists(inner, max_size=4).map(all_of) | st.lists(inner, max_size=4).map(any_of)
        ),
        max_leaves=8,
    )


filters = trees(plain | compared | tests_of("r", trees(tests_of("x", numbers)).map(Has)))

VALUES = (-1, 0, 0.5, 1, 2)
SINGLE = Schema({"a": "number", "b": "number"}, closed=False)
single = st.sampled_from([None, *VALUES])
several = st.sampled_from([None, *VALUES, Range(0, 1), Range(0, 2, low_open=True, high_open=True)])
several |= st.lists(st.sampled_from([None, *VALUES, Range(-1, 0.5)]), max_size=3)
elements = st.lists(st.fixed_dictionaries({}, optional={"x": several}), max_size=2) | st.none()


def events(values):
    fields = st.fixed_dictionaries({}, optional={"a": values, "b": values, "r": elements})
    return st.lists(fields, min_size=1, max_size=8)


def judge(trees, some, **around):
    """What the filters say of each event that is good for all of them: with a unit unsaid, an amount may be bad."""
    for event in some:
        with suppress(BadEvent):
            yield tuple(evaluate(tree, event, **around) for tree in trees)


def is_same(first, second, some, **around):
    return all(left is right for left, right in judge((first, second), some, **around))


# --- normal forms -----------------------------------------------------------------------------------------


@given(filters, events(several))
def test_a_normal_form_keeps_the_meaning(tree, some):
    assert is_same(normal_form(tree), tree, some)


@given(cases())
def test_a_normal_form_keeps_the_meaning_in_any_world(case):
    for tree in case.filters:
        assert is_same(normal_form(tree), tree, case.events, **case.world.keywords)


@given(filters)
def test_a_normal_form_is_an_or_of_ands_of_literals_and_its_own_normal_form(tree):
    normal = normal_form(tree)
    for row in normal.parts if isinstance(normal, Or) else (normal,):
        for part in row.parts if isinstance(row, And) else (row,):
            assert isinstance(part.part if isinstance(part, Not) else part, Test)
    assert normal_form(normal) == normal


# --- simplifying --------------------------------------------------------------------------------------------


@given(filters, events(several))
@examples(200)
def test_simplifying_keeps_the_meaning_and_once_is_enough(tree, some):
    simple = simplify(tree)
    assert is_same(simple, tree, some)
    assert simplify(simple) == simple


@given(filters, events(single))
@examples(200)
def test_simplifying_keeps_the_meaning_where_a_schema_says_one_value(tree, some):
    simple = simplify(tree, schema=SINGLE)
    assert is_same(simple, tree, some, schema=SINGLE)
    assert simplify(simple, schema=SINGLE) == simple


@given(cases())
def test_simplifying_keeps_the_meaning_in_any_world(case):
    for tree in case.filters:
        simple = simplify(tree, **case.world.keywords)
        assert is_same(simple, tree, case.events, **case.world.keywords)
        assert simplify(simple, **case.world.keywords) == simple


# --- covering and overlap ---------------------------------------------------------------------------------


def check_sound(first, second, some, around, seen):
    verdicts = [*judge((first, second), some, **seen)]
    if covers(first, second, **around):
        assert all(wide for wide, narrow in verdicts if narrow)
    if not overlaps(first, second, **around):
        assert not any(wide and narrow for wide, narrow in verdicts)


@given(filters, filters, events(several))
def test_covers_and_overlaps_never_lie(first, second, some):
    check_sound(first, second, some, {}, {})


@given(filters, filters, events(single))
def test_covers_and_overlaps_never_lie_where_a_schema_says_one_value(first, second, some):
    check_sound(first, second, some, {"schema": SINGLE}, {"schema": SINGLE})


@given(cases(events=5))
@examples(200)
def test_covers_and_overlaps_never_lie_in_any_world(case):
    around = case.world.keywords
    for first, second in product(case.filters, repeat=2):
        check_sound(first, second, case.events, around, around)
        check_sound(first, second, case.events, {**around, "now": None}, around)


@given(filters, filters)
def test_what_is_said_of_two_filters_agrees(first, second):
    assert covers(first, first)
    assert covers(TRUE, first)
    assert covers(first, FALSE)
    assert overlaps(first, second) == overlaps(second, first)
    if covers(first, second) and overlaps(second, second):
        assert overlaps(first, second)


@given(filters, filters)
def test_a_filter_covers_its_parts_and_is_covered_by_its_wholes(first, second):
    assert covers(any_of([first, second]), first)
    assert covers(first, all_of([first, second]))
