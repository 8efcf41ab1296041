"""The pattern strategies of `tidings.testing.strategies.patterns`, under the name that tests and programs import."""

from tidings.testing.strategies.patterns import *  # noqa: F403
