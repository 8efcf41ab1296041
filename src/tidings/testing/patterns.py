"""A published name of `tidings.testing.strategies.patterns`, the strategies for patterns."""

from tidings.testing.strategies.patterns import *  # noqa: F403
