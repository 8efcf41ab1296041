"""Pairs of events and symbols, in the order of the events: the lists that runs read."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.jit import jit


@jit
def group_by_event(events: Any, symbols: Any, count: Any) -> Any:
    """Return where each event's symbols begin, and the symbols, from pairs in any order."""
    ends = np.zeros(count + 1, np.int64)
    for at in range(len(events)):
        ends[events[at] + 1] += 1
    for event in range(count):
        ends[event + 1] += ends[event]
    places, ordered = ends[:-1].copy(), np.empty(len(symbols), np.int64)
    for at in range(len(events)):
        ordered[places[events[at]]] = symbols[at]
        places[events[at]] += 1
    return ends, ordered


@jit
def expand_kinds(ends: Any, symbols: Any, kinds: Any) -> Any:
    """Return each event's symbols from those of its kind."""
    out = np.zeros(len(kinds) + 1, np.int64)
    for event in range(len(kinds)):
        out[event + 1] = out[event] + ends[kinds[event] + 1] - ends[kinds[event]]
    given, at = np.empty(out[-1], np.int64), 0
    for event in range(len(kinds)):
        for place in range(ends[kinds[event]], ends[kinds[event] + 1]):
            given[at] = symbols[place]
            at += 1
    return out, given


@jit
def taken(ends: Any, symbols: Any, events: Any) -> Any:
    """Return the symbols of some events, in their order."""
    return expand_kinds(ends, symbols, events)


@jit
def rename_symbols(ends: Any, symbols: Any, names: Any) -> Any:
    """Return the symbols by other names; those whose name is -1 are left out."""
    out, given, at = np.zeros(len(ends), np.int64), np.empty(len(symbols), np.int64), 0
    for event in range(len(ends) - 1):
        for place in range(ends[event], ends[event + 1]):
            if names[symbols[place]] >= 0:
                given[at] = names[symbols[place]]
                at += 1
        out[event + 1] = at
    return out, given[:at].copy()
