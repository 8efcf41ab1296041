"""Sizes that forecasting and learning work with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForecastTuning:
    """How much is kept of keys and of waits; more memory, and better numbers where a bound is reached."""

    idle_keys: int = 1 << 16
    """Keys without a partial match that are kept: their last events and their gaps still enter later forecasts."""

    counted_at_once: int = 1 << 17
    """Events that a learner gathers before it counts them."""

    pending_waits: int = 1 << 20
    """Entries whose waits are not known yet: of more, the oldest are taken as cut off."""
