"""Filters that cover each other as much as one asks for: ranges, and at times a kind; some narrowed from others.

`nested` is the share of filters that are made from an earlier one, by narrowing its ranges or adding one; so each of
them is covered by it and by all that cover that. The others are drawn afresh. The text prints no workload; this is
ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.model import Is, Range, Test, all_of

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from tidings.model import Filter

ATTRIBUTES = 6
"""Numbers that every event has; a fresh filter asks for two of them."""

KINDS = 10
"""Every event also is of one of so many kinds; half of the fresh filters ask for one, as a last attribute."""

DOMAIN = 1000
"""Values lie from 0 up to this."""

EVENTS = 64
"""Events of one measurement."""


def draw_spans(n: int, nested: float, rng: Generator) -> NDArray[np.float64]:
    """Return for each filter and attribute the low and the high end; infinite where it asks nothing."""
    ends = np.empty((n, ATTRIBUTES + 1, 2))
    ends[:, :, 0], ends[:, :, 1] = -np.inf, np.inf
    for at in range(n):
        if at and rng.random() < nested:
            ends[at] = _narrow_span(ends[rng.integers(at)], rng)
        else:
            for attribute in rng.choice(ATTRIBUTES, 2, replace=False):
                ends[at, attribute] = _draw_span(0, DOMAIN, rng)
            if rng.random() < 0.5:
                ends[at, -1] = rng.integers(KINDS)
    return ends


def _draw_span(low: float, high: float, rng: Generator) -> tuple[float, float]:
    """Return a part of a span, three to nine tenths as wide."""
    width = (high - low) * rng.uniform(0.3, 0.9)
    start = rng.uniform(low, high - width)
    return start, start + width


def _narrow_span(parent: NDArray[np.float64], rng: Generator) -> NDArray[np.float64]:
    child = parent.copy()
    attribute = rng.integers(ATTRIBUTES)
    low, high = max(0.0, parent[attribute, 0]), min(float(DOMAIN), parent[attribute, 1])
    child[attribute] = _draw_span(low, high, rng)
    return child


def build_filters(ends: NDArray[np.float64]) -> list[Filter]:
    """Return the filters of these ends."""
    return [
        all_of(_test(at, *span) for at, span in enumerate(spans_of_filter.tolist()) if np.isfinite(span[0]))
        for spans_of_filter in ends
    ]


def _test(at: int, low: float, high: float) -> Test:
    return Test("kind", Is(int(low))) if at == ATTRIBUTES else Test(f"a{at}", Range(low, high))


def count_covering_pairs(ends: NDArray[np.float64]) -> int:
    """Count the pairs of two filters of which the first covers the second."""
    total = 0
    for spans_of_filter in ends:
        total += (
            int(((ends[:, :, 0] >= spans_of_filter[:, 0]) & (ends[:, :, 1] <= spans_of_filter[:, 1])).all(axis=1).sum())
            - 1
        )
    return total


def draw_events(rng: Generator, count: int = EVENTS) -> list[dict[str, Any]]:
    """Return events with a number for each attribute, and a kind."""
    numbers, kinds = rng.uniform(0, DOMAIN, (count, ATTRIBUTES)).tolist(), rng.integers(KINDS, size=count).tolist()
    return [
        {"kind": kind, **{f"a{at}": value for at, value in enumerate(row)}}
        for row, kind in zip(numbers, kinds, strict=True)
    ]
