"""Every matcher keeps the contract, in what it can express; what it cannot is refused, and listed here."""

from functools import partial

import pytest

import tidings as td
from tidings.errors import Unsupported
from tidings.testing.checks import CHECKS, check_matcher
from tidings.testing.checks.base import FULL, NUMBERS, choose_vocabulary

COMPLETE = {"engine", "brute", "counting", "forest", "poset", "candidates-tree"}
"""Kinds that take every filter; the others say what they have in numbers."""

GAPS = {"check_now_is_an_argument", "check_unlike_values_do_not_compare"}
"""Checks of ages and of two attributes compared, which no index of a paper knows; a tree tests what it is given."""


def pairs():
    for kind in td.matchers():
        for check in CHECKS:
            gap = kind not in {*COMPLETE, "filter-tree"} and check.__name__ in GAPS
            marks = [pytest.mark.never, pytest.mark.xfail(raises=Unsupported, strict=True)] if gap else []
            yield pytest.param(kind, check, id=f"{check.__name__.removeprefix('check_')}-{kind}", marks=marks)


@pytest.mark.parametrize(("kind", "check"), list(pairs()))
def test_every_matcher_keeps_the_contract(kind, check):
    check(partial(td.Matcher, kind=kind))


@pytest.mark.parametrize("kind", td.matchers())
def test_a_matcher_takes_every_filter_or_says_what_it_has_in_numbers(kind):
    assert choose_vocabulary(partial(td.Matcher, kind=kind)) is (FULL if kind in COMPLETE else NUMBERS)


class Forgetful(td.Matcher):
    """Loses an answer whenever there are two."""

    def match(self, event, **keywords):
        matches = super().match(event, **keywords)
        return matches[:1]


def test_the_checks_catch_a_matcher_that_forgets():
    with pytest.raises(AssertionError):
        check_matcher(Forgetful)


def test_the_checks_have_names_of_their_own():
    assert len({check.__name__ for check in CHECKS}) == len(CHECKS) > 20
    assert all(check.__doc__ for check in CHECKS)
