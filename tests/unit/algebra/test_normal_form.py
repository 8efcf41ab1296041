"""`normal_form`: an `or` of `and`s, in one order, and never larger than allowed."""

import pytest

import tidings as td
from tidings.errors import TooLarge
from tidings.model import FALSE, TRUE, And, Is, Not, Or, Test, all_of, any_of


def normal(text):
    return td.render(td.normal_form(td.parse(text)))


def name(at):
    return Test(f"a{at}", Is(at))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", "a = 1"),
        ("b = 1 and a = 1", "a = 1 and b = 1"),
        ("a = 1 and (b = 2 or c = 3)", "a = 1 and b = 2 or a = 1 and c = 3"),
        ("not (a = 1 and b = 2)", "not a = 1 or not b = 2"),
        ("not (a = 1 or not b = 2)", "not a = 1 and b = 2"),
        ("not not a = 1", "a = 1"),
        ("a in (2, 1) and b = 1", "a in (2, 1) and b = 1"),
        ("none(a) = 1 or not all(a) = 2", "none(a) = 1 or not all(a) = 2"),
    ],
)
def test_and_is_distributed_over_or_and_not_goes_down_to_the_tests(text, expected):
    assert normal(text) == td.render(td.parse(expected))


def test_repetitions_contradictions_and_weaker_twins_are_dropped():
    assert normal("a = 1 and a = 1.0") == "a = 1"
    assert normal("a = 1 or (a = 1 and b = 2)") == "a = 1"
    assert normal("(a = 1 or b = 2) and not a = 1") == "not a = 1 and b = 2"
    assert td.normal_form(td.parse("a = 1 and not a = 1")) == FALSE
    assert td.normal_form(td.parse("(a = 1 or b = 2) and not a = 1 and not b = 2")) == FALSE


def test_constants_dissolve():
    assert td.normal_form(And((name(1), TRUE))) == name(1)
    assert td.normal_form(And((name(1), FALSE))) == FALSE
    assert td.normal_form(Or((name(1), TRUE))) == TRUE
    assert td.normal_form(Not(And((TRUE, TRUE)))) == FALSE
    assert td.normal_form(TRUE) == TRUE
    assert td.normal_form(FALSE) == FALSE


def test_the_order_does_not_depend_on_how_the_filter_was_written():
    first = td.parse("(x = 1 or y < 2) and z contains 'q' and (k = 'b' or k = 'a')")
    two = td.parse("(k = 'a' or k = 'b') and (y < 2 or x = 1) and z contains 'q'")
    assert td.normal_form(first) == td.normal_form(two)


def test_beyond_the_limit_it_says_so_before_building_anything():
    wide = all_of(any_of([name(2 * at), name(2 * at + 1)]) for at in range(10))
    assert len(td.normal_form(wide).parts) == 1024
    wider = And((wide, any_of([name(20), name(21)])))
    with pytest.raises(TooLarge, match=r"2,048 conjunctions, and the limit is 1,024; keep the filter") as caught:
        td.normal_form(wider)
    assert (caught.value.limit, caught.value.number) == (1024, 2048)
    assert len(td.normal_form(wider, limit=2048).parts) == 2048


def test_a_number_of_conjunctions_beyond_all_counting_is_refused_as_fast():
    huge = all_of(any_of([name(2 * at), name(2 * at + 1)]) for at in range(20_000))
    with pytest.raises(TooLarge, match="over 1,000,000,000,000,000 conjunctions"):
        td.normal_form(huge)


def test_few_conjunctions_of_very_many_tests_are_refused_too():
    long = all_of(name(at) for at in range(2000))
    wide = all_of(any_of([name(5000 + 2 * at), name(5001 + 2 * at)]) for at in range(9))
    assert td.normal_form(long) is not None
    with pytest.raises(TooLarge, match="tests"):
        td.normal_form(And((long, wide)))


def test_repeated_alternatives_do_not_count():
    once = any_of([name(1), name(2)])
    assert td.normal_form(And((once,) * 30)) == once
