"""The law against a second opinion, on every kind of condition and on all of them together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import evaluate_naively
from naive_values import Bad, TooClose
from tests.examples import examples

import tidings as td
from tidings.testing.strategies import cases
from tidings.testing.strategies.cases import RECIPES, SPECIAL


def evaluate_or_none(tree, event, world):
    try:
        return td.evaluate(tree, event, **world.keywords)
    except td.BadEvent:
        return Bad


def ask_second_opinion(tree, event, world):
    try:
        return evaluate_naively(tree, event, world)
    except Bad:
        return Bad


def assert_they_agree(case):
    for tree in case.filters:
        for event in case.events:
            try:
                opinion = ask_second_opinion(tree, event, case.world)
            except TooClose:
                continue
            assert evaluate_or_none(tree, event, case.world) is opinion, (td.render(tree), event)


@pytest.mark.parametrize("recipe", sorted({*RECIPES, *SPECIAL}))
@given(st.data())
@examples(100)
def test_the_law_agrees_with_a_naive_reading_of_each_kind(recipe, data):
    assert_they_agree(data.draw(cases(recipes=(recipe,), filters=4, events=4, depth=1)))


@given(cases(depth=3))
@examples(400)
def test_the_law_agrees_with_a_naive_reading_of_everything_together(case):
    assert_they_agree(case)


@given(cases(mixed=False, depth=3))
@examples(200)
def test_they_agree_where_every_attribute_holds_one_kind(case):
    assert_they_agree(case)


@given(cases(bad=True, events=4))
@examples(200)
def test_they_agree_which_events_are_bad(case):
    assert_they_agree(case)
