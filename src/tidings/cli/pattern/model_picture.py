"""A model's pattern as a picture: how likely each arrow is, and from each state how likely the match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import TidingsError
from tidings.forecast.horizon import Horizon
from tidings.forecast.model_text import state_chances
from tidings.forecast.predicting.probability_table import build_table
from tidings.patterns.drawing import Arrow, Picture, DrawnState

if TYPE_CHECKING:
    from tidings.forecast.courses.course import Course
    from tidings.forecast.model import CountedPattern, Model

AHEAD = 10
"""Events looked ahead, unless told otherwise."""

LEAST = 0.0005
"""Arrows that are less likely are not drawn: they would be told as 0.000."""

DONE = "match"
"""What the state is called that a pattern without an automaton ends in."""


def ahead_of(model: Model, given: Any) -> Horizon | None:
    """Return how far a model's patterns are looked ahead: of a key, in its own events.

    How many of them lie in a span of time, or among others, differs from key to key: a state alone does not say.
    """
    if given is None:
        return None
    ahead = Horizon.of(given)
    keyed = [one.name for one in model.patterns.values() if one.pattern.key_variables()]
    if keyed and ahead.unit == "time":
        msg = f"`{keyed[0]}` has a key, and keys differ in how often they come; give --horizon '10 own events'"
        raise TidingsError(msg)
    return Horizon(ahead.amount, "own") if keyed and ahead.unit == "events" else ahead


def picture(model: Model, known: CountedPattern, *, horizon: Horizon | None = None) -> Picture:
    """Describe a pattern with what a model knows of it.

    Arrows carry P(event | state), whatever came before that state. Under a state stand the shortest way to it, p, the
    probability of a match within the horizon in the mean over the times it was left, and how many those were.
    """
    keyed = bool(known.pattern.key_variables())
    ahead = horizon or Horizon(AHEAD, "own" if keyed else "events")
    notes = _notes(model, known, ahead, keyed=keyed)
    told = f"{ahead} events" if ahead.unit == "events" else str(ahead)
    title = f"{known.name} ({known.mode}), p within {told}"
    chances = state_chances(known, model.estimates(known))
    if known.course.tracker is not None:
        return _tracked(known.course, chances, notes, title)
    return _exact(known.course, chances, notes, title)


def _notes(model: Model, known: CountedPattern, ahead: Horizon, *, keyed: bool) -> list[str]:
    course, times = known.course, known.counts.waits.sum(axis=1)
    p = build_table(model.estimates(known), ahead, keyed=keyed, traffic=model.traffic).chances[:, 0]
    size, weight = len(course.states), times + 1e-9  # cells that nothing was counted of are all alike
    mean = np.bincount(course.groups[0], p * weight, size) / np.bincount(course.groups[0], weight, size)
    seen = np.bincount(course.groups[0], times, size)
    parts = zip(course.states, mean.tolist(), seen.tolist(), strict=True)
    return [f"{called}\np = {chance:.4f}\n{count:,.0f} times" for called, chance, count in parts]


def _exact(course: Course, chances: np.ndarray, notes: list[str], title: str) -> Picture:
    """Describe an automaton: its states are the cells without what came before."""
    state = course.groups[0]
    cells = np.unique(state, return_index=True)[1]  # one of each state: all lead to the same states
    begin = int(state[course.start])
    ends = set(state[course.table[course.hits]].tolist())
    states = [DrawnState(f"N{at}", note, final=at in ends, initial=at == begin) for at, note in enumerate(notes)]
    arrows = []
    for source, row in enumerate(state[course.table[cells]].tolist()):
        for target in dict.fromkeys(row):
            led = [label for label, to in enumerate(row) if to == target]
            arrows.append(Arrow(f"N{source}", f"N{target}", _likely(course.labels, chances[source], led)))
    return Picture(title, tuple(states), tuple(arrows))


def _tracked(course: Course, chances: np.ndarray, notes: list[str], title: str) -> Picture:
    """Describe where a pattern without an automaton may stand, and where it goes from there; the match comes last."""
    begin, last = int(course.chain[course.start]), len(course.states)
    states = [DrawnState(f"N{at}", note, initial=at == begin) for at, note in enumerate(notes)]
    arrows = [
        Arrow(f"N{source}", f"N{target}", f"{chance:.3f}")
        for source, row in enumerate(chances.tolist())
        for target, chance in enumerate(row)
        if chance >= LEAST
    ]
    return Picture(f"{title}, approximate", (*states, DrawnState(f"N{last}", DONE, final=True)), tuple(arrows))


def _likely(labels: tuple[str, ...], chances: np.ndarray, led: list[int]) -> str:
    """Return the labels of one arrow, each with its probability, and at least the likeliest."""
    first = max(led, key=lambda label: float(chances[label]))
    told = [label for label in led if label == first or chances[label] >= LEAST]
    return "\n".join(f"{labels[label]} {chances[label]:.3f}" for label in told)
