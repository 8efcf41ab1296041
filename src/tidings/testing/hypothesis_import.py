"""Hypothesis, or one clear line when it is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence

try:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
except ModuleNotFoundError as problem:
    msg = "tidings.testing.strategies and .checks need hypothesis; install it with `pip install hypothesis`"
    raise MissingExtra(msg) from problem

__all__ = ["HealthCheck", "Phase", "evenly", "given", "settings", "st"]


@st.composite
def evenly(draw: st.DrawFn, strategies: Sequence[st.SearchStrategy[Any]]) -> Any:
    """Draw from one of the strategies, each as likely as the others.

    `st.one_of` would look inside them and give each branch the same chance: a choice of ten numbers
    would then drown a choice of one range.
    """
    return draw(strategies[draw(st.integers(0, len(strategies) - 1))])
