"""Hypothesis, or one clear line when it is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tidings.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence

try:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
except ModuleNotFoundError as problem:
    msg = "tidings.testing.strategies and .checks need hypothesis; install it with `pip install hypothesis`"
    raise MissingExtra(msg) from problem

T = TypeVar("T")

__all__ = ["HealthCheck", "Phase", "evenly", "given", "settings", "st"]


@st.composite
def evenly(draw: st.DrawFn, strategies: Sequence[st.SearchStrategy[T]]) -> T:
    """Draw from one of the strategies, each with the same probability.

    `st.one_of` flattens nested choices and gives each branch the same probability: a choice of ten numbers would
    then crowd out a single range.
    """
    return draw(strategies[draw(st.integers(0, len(strategies) - 1))])
