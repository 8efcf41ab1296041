"""A model's pattern as a picture: the probability of each arrow, and from each state that of a match."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.errors import TidingsError
from tidings.forecast.horizon import Horizon
from tidings.forecast.model_text import compute_state_chances
from tidings.forecast.predicting.probability_table import build_table
from tidings.patterns.drawing import Arrow, DrawnState, Picture

if TYPE_CHECKING:
    from tidings.forecast.courses.course import Course
    from tidings.forecast.learning.counts import CountedPattern
    from tidings.forecast.model import Model
    from tidings.kernels.array_types import FloatArray

DEFAULT_HORIZON = 10
"""Events looked ahead where `--horizon` says nothing."""

LEAST_PROBABILITY = 0.0005
"""Arrows that are less likely are not drawn: they would be labelled 0.000."""

FINAL_NOTE = "match"
"""The note of the state that a pattern without an automaton ends in."""


def read_horizon(model: Model, horizon: str | None) -> Horizon | None:
    """Return the horizon of a model's pictures; with keys, in the key's own events.

    How many of those lie in a span of time, or among all events, differs from key to key, and a state is that of any
    key: so a span is refused for patterns with a key.
    """
    if horizon is None:
        return None
    ahead = Horizon.of(horizon)
    keyed = [counted.name for counted in model.patterns.values() if counted.pattern.key_variables()]
    if keyed and ahead.unit == "time":
        msg = f"`{keyed[0]}` has a key, and keys differ in how often they come; give --horizon '10 own events'"
        raise TidingsError(msg)
    return Horizon(ahead.amount, "own") if keyed and ahead.unit == "events" else ahead


def build_model_picture(model: Model, counted: CountedPattern, *, horizon: Horizon | None = None) -> Picture:
    """Return the picture of a pattern with the probabilities of a model.

    Arrows carry P(event | state), averaged over what came before the state. The note of a state has the shortest way to
    it; p, the probability of a match within the horizon, averaged over the times the state was left; and their number.
    """
    keyed = bool(counted.pattern.key_variables())
    ahead = horizon or Horizon(DEFAULT_HORIZON, "own" if keyed else "events")
    notes = _format_notes(model, counted, ahead, keyed=keyed)
    within = f"{ahead} events" if ahead.unit == "events" else str(ahead)
    title = f"{counted.name} ({counted.mode}), p within {within}"
    chances = compute_state_chances(counted, model.estimates(counted))
    if counted.course.tracker is not None:
        return _draw_approximate(counted.course, chances, notes, title)
    return _draw_exact(counted.course, chances, notes, title)


def _format_notes(model: Model, counted: CountedPattern, ahead: Horizon, *, keyed: bool) -> list[str]:
    course, times = counted.course, counted.counts.waits.sum(axis=1)
    p = build_table(model.estimates(counted), ahead, keyed=keyed, traffic=model.traffic).probabilities[:, 0]
    size, weight = len(course.states), times + 1e-9  # cells without counts weigh the same
    mean = np.bincount(course.groups[0], p * weight, size) / np.bincount(course.groups[0], weight, size)
    seen = np.bincount(course.groups[0], times, size)
    parts = zip(course.states, mean.tolist(), seen.tolist(), strict=True)
    return [f"{path}\np = {chance:.4f}\n{count:,.0f} times" for path, chance, count in parts]


def _draw_exact(course: Course, chances: FloatArray, notes: list[str], title: str) -> Picture:
    """Return the picture of an automaton: a state is a group of cells, which differ in the events before."""
    state = course.groups[0]
    cells = np.unique(state, return_index=True)[1]  # one cell of each state: all lead to the same states
    initial = int(state[course.start])
    ends = set(state[course.table[course.hits]].tolist())
    states = [
        DrawnState(f"N{number}", note, final=number in ends, initial=number == initial)
        for number, note in enumerate(notes)
    ]
    arrows = []
    for source, row in enumerate(state[course.table[cells]].tolist()):
        for target in dict.fromkeys(row):
            labels = [label for label, successor in enumerate(row) if successor == target]
            arrows.append(Arrow(f"N{source}", f"N{target}", _format_labels(course.labels, chances[source], labels)))
    return Picture(title, tuple(states), tuple(arrows))


def _draw_approximate(course: Course, chances: FloatArray, notes: list[str], title: str) -> Picture:
    """Return the picture of a pattern without an automaton: its tracked states, and the match as the last one."""
    initial, last = int(course.chain_state_of[course.start]), len(course.states)
    states = [DrawnState(f"N{number}", note, initial=number == initial) for number, note in enumerate(notes)]
    arrows = [
        Arrow(f"N{source}", f"N{target}", f"{chance:.3f}")
        for source, row in enumerate(chances.tolist())
        for target, chance in enumerate(row)
        if chance >= LEAST_PROBABILITY
    ]
    return Picture(f"{title}, approximate", (*states, DrawnState(f"N{last}", FINAL_NOTE, final=True)), tuple(arrows))


def _format_labels(names: tuple[str, ...], chances: FloatArray, labels: list[int]) -> str:
    """Return the labels of one arrow with their probabilities: those that are not negligible, and the likeliest."""
    likeliest = max(labels, key=lambda label: float(chances[label]))
    drawn = [label for label in labels if label == likeliest or chances[label] >= LEAST_PROBABILITY]
    return "\n".join(f"{names[label]} {chances[label]:.3f}" for label in drawn)
