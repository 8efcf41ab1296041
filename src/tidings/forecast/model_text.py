"""A model as text: the states of its patterns, what was counted there, and how likely a match is from each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.forecast.courses.streams import bin_gaps
from tidings.forecast.horizon import Horizon, HorizonLike
from tidings.forecast.predicting.probability_table import build_table, locate_on_grids
from tidings.lang.patterns.durations import format_duration
from tidings.patterns.run.machine import find_ways, is_keyed

if TYPE_CHECKING:
    from tidings.forecast.learning.counts import CountedPattern
    from tidings.forecast.model import Model
    from tidings.forecast.predicting.estimates import Estimates
    from tidings.kernels.array_types import FloatArray

DEFAULT_HORIZONS = (1, 5, 10, 50)
"""In events."""

MOST_STATES = 40
"""The most states that are listed of one pattern."""


def format_model(model: Model, name: str | None = None, *, horizon: HorizonLike | None = None) -> str:
    """Return a model's patterns, or one of them, with states, counts and probabilities."""
    settings, half_life = model.settings, "none"
    if settings.half_life is not None:
        amount = settings.half_life.amount
        half_life = format_duration(amount) if settings.half_life.timed else f"{amount:,} events"
    head = (
        f"{len(model):,} pattern{'s' * (len(model) != 1)}, {model.now[0]:,} events; "
        f"context {settings.context}, smoothing {settings.smoothing:g}, half-life {half_life},"
        f" estimator {settings.estimator}"
    )
    patterns = list(model.patterns.values()) if name is None else [model[name]]
    return "\n\n".join([head, *(_format_pattern(model, counted, horizon) for counted in patterns)])


def _format_pattern(model: Model, counted: CountedPattern, horizon: HorizonLike | None) -> str:
    course, estimates = counted.course, model.estimates(counted)
    exact = "approximate: states by time and progress" if course.approximate else "exact"
    head = f"{counted.name} ({counted.mode}; {len(course.states):,} states, {course.cells:,} cells, {exact})"
    columns, chances = _compute_chances(model, counted, estimates, horizon)
    seen = _sum_by_state(counted.counts.waits.sum(axis=1), counted)
    moves = _describe_moves(counted, estimates)
    rows = [["state", "times", *columns, "next"]]
    for state, called in list(enumerate(course.states))[:MOST_STATES]:
        times = f"{seen[state]:,.{0 if seen[state].is_integer() else 1}f}"
        rows.append([called, times, *(f"{p:.4f}" for p in chances[:, state]), moves[state]])
    if len(course.states) > MOST_STATES:
        rows.append([f"and {len(course.states) - MOST_STATES:,} more", *[""] * (len(rows[0]) - 1)])
    return "\n".join([head, *_align_rows(rows)])


def _compute_chances(
    model: Model, counted: CountedPattern, estimates: Estimates, horizon: HorizonLike | None
) -> tuple[list[str], FloatArray]:
    """Return p by state, of an average key; each cell of a state has the weight of its visits."""
    keyed = is_keyed(counted.pattern)
    defaults = [Horizon(n, "own" if keyed else "events") for n in DEFAULT_HORIZONS]
    horizons = defaults if horizon is None else [Horizon.of(horizon)]
    unknown, pace = np.full((3, 1), np.nan), model.traffic.estimate_pace(find_ways(counted.pattern))
    average, silence = locate_on_grids(unknown, pace=pace)[:, 0], bin_gaps(unknown)[:, 0]
    weight = counted.counts.waits.sum(axis=1) + 1e-9
    columns = []
    for ahead in horizons:
        table = build_table(estimates, ahead, keyed=keyed, traffic=model.traffic)
        p = np.array([table.look_up(cell, average, silence) for cell in range(counted.course.cells)])
        columns.append(_sum_by_state(p * weight, counted) / np.maximum(_sum_by_state(weight, counted), 1e-300))
    return [f"p({ahead})" for ahead in horizons], np.array(columns)


def _describe_moves(counted: CountedPattern, estimates: Estimates) -> list[str]:
    lines = []
    for row in compute_state_chances(counted, estimates):
        likely = [label for label in np.argsort(-row)[:4].tolist() if row[label] > 0]
        lines.append(", ".join(f"{counted.course.labels[label]} {row[label]:.3f}" for label in likely))
    return lines


def compute_state_chances(counted: CountedPattern, estimates: Estimates) -> FloatArray:
    """Return P(label | state), whatever came before: what arrows of a picture carry."""
    course = counted.course
    chances = estimates.compute_label_probabilities()
    if course.tracker is not None:
        return chances
    weight = counted.counts.moves.sum(axis=1, keepdims=True) + 1e-9
    total = np.zeros((len(course.states), len(course.labels)))
    np.add.at(total, course.groups[0], chances * weight)
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def _sum_by_state(values: FloatArray, counted: CountedPattern) -> FloatArray:
    return np.asarray(np.bincount(counted.course.groups[0], values, len(counted.course.states)), np.float64)


def _align_rows(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:-1], widths[1:-1], strict=True))]
        lines.append("  " + "  ".join([*cells, row[-1]]).rstrip())
    return lines
