"""Our own models in the study: trained by `td.train`, then asked for the forecast in each of their cells.

A forecast depends on the cell a pattern stands in (its state and the last events), and on nothing else while nothing is
learned. So it is enough to ask once for each cell, and to follow the cells through the streams; a test holds this to
the detector's own forecasts, event by event.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import tidings as td
from benchmarks.papers.p_topss.chains import StateSpace
from benchmarks.papers.p_topss.folds import GROUPS, Walked, find_hot_days, validate_model, walk_cities
from tidings.lang import WrittenPattern, parse_pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from benchmarks.papers.p_topss.folds import FoldResult, Part
    from benchmarks.papers.p_topss.heat import CityTemperatures
    from tidings.model.patterns import Mode, Pattern

OURS = "ours"
"""The defaults of `td.train`."""

ENTRANTS: dict[str, tuple[int, str]] = {
    OURS: (3, "both"),
    "ours, chain": (3, "chain"),
    "ours, direct": (3, "direct"),
    "ours, states alone": (0, "chain"),
    "ours, six days back": (6, "both"),
}
"""How many events each looks back beside the pattern's state, and its estimator."""

HEAT = "hot = temp > 30 and city = $c\nhot, hot, hot, hot, hot"
"""The paper's subscription for all cities in one stream; `,` is then the next day of the same city."""


def train_model(patterns: Sequence[Pattern], events: pa.Table, mode: Mode, **options: Any) -> td.Model:
    """Return a model of patterns, which are called by their numbers."""
    watch = td.Detector()
    watch.add_many([WrittenPattern(str(number), pattern, mode, None) for number, pattern in enumerate(patterns)])
    return td.train(watch, events, **options)


def build_cells(model: td.Model, name: str) -> StateSpace:
    """Return a pattern's cells as a machine."""
    course = model[name].course
    final = np.zeros(course.cells, np.bool_)
    final[course.table[course.hits]] = True
    return StateSpace(course.table, final, course.start, {label: at for at, label in enumerate(course.labels)})


def compute_chances(model: td.Model, name: str, most: int) -> NDArray[np.float64]:
    """Return `p[n - 1, cell]` for n from 1 to `most` of the key's own events."""
    return model.estimates(model[name]).compute_curve(most)[0][1:]


# Figure 11 -------------------------------------------------------------------------------------


@cache
def _parse_heat() -> Pattern:
    return parse_pattern(HEAT)


def stream_of(cities: Sequence[CityTemperatures]) -> pa.Table:
    """Return the days of several cities as one stream, in the order of their dates."""
    whole = pa.concat_tables([city.table() for city in cities]).unify_dictionaries().combine_chunks()
    ordered = whole.take(np.argsort(whole["time"].to_numpy(), kind="stable"))
    return ordered.set_column(0, "id", pa.array(np.arange(ordered.num_rows)))


def follow_cities(parts: dict[Part, list[CityTemperatures]], mode: Mode) -> dict[tuple[str, str], list[FoldResult]]:
    """Train on each part once for every context, follow the cells through the cities, and validate by folds."""
    results = {}
    streams = {part: stream_of(cities) for part, cities in parts.items()}
    for context in sorted({looks for looks, _ in ENTRANTS.values()}):
        counts = {part: train_model([_parse_heat()], events, mode, context=context) for part, events in streams.items()}
        cells = build_cells(next(iter(counts.values())), "0")
        model = Walked(cells, counts, walk_cities(cells, find_hot_days, parts).seen)
        for name, (looks, estimator) in ENTRANTS.items():
            if looks == context:
                results |= {(name, group): validate_model(model, _estimate(estimator), group) for group in GROUPS}
    return results


def _estimate(estimator: str) -> Any:
    return lambda _, model, most: compute_chances(model.using(estimator=estimator), "0", most)
