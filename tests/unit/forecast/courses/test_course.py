"""Courses: states and contexts, and how contexts shorten until the cells are few enough."""

from __future__ import annotations

import numpy as np
import pytest

from tidings import lang
from tidings.forecast.courses.course import MOST_CELLS
from tidings.forecast.courses.exact_course import MOST_MOVES, build_course
from tidings.model.patterns import Mode


def pattern_of(body, names="ab", key=""):
    return lang.parse_pattern("".join(f"{name} = kind = '{name}'{key}\n" for name in names) + body)


def test_a_sequence_has_one_state_more_than_steps():
    course = build_course(pattern_of("a , b"), Mode.RESTART, context=0)
    assert course.states == ("start", "a", "a b")
    assert course.labels == ("*", "a", "b")
    assert course.cells == 3
    assert course.idle.tolist() == [True, False, True]
    assert course.hits.sum() == 1
    assert (course.start, course.depth, course.approximate) == (0, 0, False)


def test_a_cell_is_a_state_and_the_last_labels():
    course = build_course(pattern_of("a ; b"), Mode.RESTART, context=2)
    assert course.depth == 2
    assert course.groups.shape == (3, course.cells)
    assert course.groups[0].max() + 1 == 3
    assert course.cells == len(set(course.groups[-1].tolist()))


def test_one_state_may_have_several_minterms():
    text = "low = price < 5\nfew = count < 3\nlow ; few"
    course = build_course(lang.parse_pattern(text), Mode.RESTART, context=0)
    assert set(course.labels) == {"*", "low", "few", "few+low"}


def test_filters_for_two_values_exclude_each_other():
    assert build_course(pattern_of("a and b"), Mode.RESTART, context=0).labels == ("*", "a", "b")


def test_a_long_context_is_shortened_until_the_cells_are_few():
    names = "abcdefgh"
    course = build_course(pattern_of(" , ".join(names), names), Mode.RESTART, context=6)
    assert course.cells <= MOST_CELLS
    assert course.table.size <= MOST_MOVES
    assert 0 < course.depth < 6


def test_an_automaton_that_is_too_large_is_tracked():
    assert build_course(pattern_of("a , b"), Mode.RESTART, context=0, most_moves=8).approximate


@pytest.mark.parametrize(
    ("body", "mode", "approximate"),
    [
        ("a ; b", "restart", False),
        ("a ; b", "overlap", False),
        ("a ; b", "any", False),
        ("a ; b", "next", True),
        ("a ; b within 3 s", "restart", True),
        ("a ; not b for 3 s", "restart", True),
    ],
)
def test_what_an_automaton_cannot_hold_is_approximate(body, mode, approximate):
    course = build_course(pattern_of(body), Mode(mode), context=1)
    assert course.approximate == approximate
    assert (course.tracker is not None) == approximate


def test_keys_through_one_way_are_exact_and_through_two_approximate():
    pattern = "a = kind = 'a' and key = $x\nb = kind = 'b' and key = $x\na ; b"
    assert not build_course(lang.parse_pattern(pattern), Mode.RESTART, context=1).approximate
    two = pattern.replace("'b' and key", "'b' and other")
    assert build_course(lang.parse_pattern(two), Mode.RESTART, context=1).approximate


def test_the_start_has_seen_nothing_but_others():
    course = build_course(pattern_of("a ; b"), Mode.OVERLAP, context=3)
    cell = course.start
    assert course.idle[cell]
    assert course.table[cell, course.labels.index("*")] == cell
    assert not np.any(course.hits[cell])
