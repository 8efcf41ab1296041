"""Every matcher keeps the contract."""

from functools import partial

import pytest

import tidings as td
from tidings.testing.checks import CHECKS, check_matcher


@pytest.mark.parametrize("kind", td.matchers())
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_every_matcher_keeps_the_contract(kind, check):
    check(partial(td.Matcher, kind=kind))


class Forgetful(td.Matcher):
    """Loses an answer whenever there are two."""

    def match(self, event, **keywords):
        found = super().match(event, **keywords)
        return found[:1]


def test_the_checks_catch_a_matcher_that_forgets():
    with pytest.raises(AssertionError):
        check_matcher(Forgetful)


def test_the_checks_have_names_of_their_own():
    assert len({check.__name__ for check in CHECKS}) == len(CHECKS) > 20
    assert all(check.__doc__ for check in CHECKS)
