"""Horizons are read as they are written, and refused with the way out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidings as td
from tidings.forecast.horizon import MOST_EVENTS, Horizon

READ = [
    (10, 10, "events"),
    ("10", 10, "events"),
    (" 10 events ", 10, "events"),
    ("1 event", 1, "events"),
    ("3 own events", 3, "own"),
    ("1 own event", 1, "own"),
    ("5 min", 300_000_000, "time"),
    (timedelta(seconds=2), 2_000_000, "time"),
    (Horizon(7, "own"), 7, "own"),
]


@pytest.mark.parametrize(("horizon", "amount", "unit"), READ)
def test_a_horizon_is_events_own_events_or_a_span(horizon, amount, unit):
    assert Horizon.of(horizon) == Horizon(amount, unit)


@given(st.integers(1, MOST_EVENTS), st.sampled_from(("events", "own", "time")))
def test_what_is_shown_is_read_as_the_same(amount, unit):
    horizon = Horizon(amount, unit)
    assert Horizon.of(str(horizon)) == horizon
    assert Horizon.of(horizon.value) == horizon


@pytest.mark.parametrize(
    "horizon",
    [0, -1, MOST_EVENTS + 1, 1.5, True, None, "", "ten", "5 parsecs", "-5 min", "0 s", timedelta(0), [], "1e3"],
)
def test_anything_else_is_refused_by_name(horizon):
    with pytest.raises(td.TidingsError, match="a horizon is a number of events") as caught:
        Horizon.of(horizon)
    assert f"`{horizon}`" in str(caught.value)
    assert "`5 min`" in str(caught.value)
