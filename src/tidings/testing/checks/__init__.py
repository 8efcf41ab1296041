"""The contract of matchers: promises that every matcher keeps, checked through its public methods.

Each check takes a factory of fresh matchers and raises `AssertionError` when a promise is broken.
`CHECKS` lists them, for a test of your own::

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_matcher(check):
        check(functools.partial(td.Matcher, kind="mine"))
"""

from tidings.testing.checks import matching, subscriptions
from tidings.testing.checks.base import Check
from tidings.testing.checks.base import MatcherFactory as Factory

__all__ = ["CHECKS", "Check", "Factory", "check_matcher"]

CHECKS: tuple[Check, ...] = tuple(
    check for module in (subscriptions, matching) for name, check in vars(module).items() if name.startswith("check_")
)
"""Every check, the quick ones first."""


def check_matcher(factory: Factory) -> None:
    """Run every check; the first broken promise raises `AssertionError`."""
    for check in CHECKS:
        check(factory)
