"""Hypothesis, or one clear line when it is not installed."""

from __future__ import annotations

from tidings.errors import MissingExtra

try:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
except ModuleNotFoundError as problem:
    msg = "tidings.testing.strategies and .checks need hypothesis; install it with `pip install hypothesis`"
    raise MissingExtra(msg) from problem

__all__ = ["HealthCheck", "Phase", "given", "settings", "st"]
