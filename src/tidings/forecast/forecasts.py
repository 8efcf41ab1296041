"""Forecasts: one number on demand, or rows beside the detections of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.forecast.predicting.following import ForecastRows
from tidings.forecast.predicting.probability_table import ProbabilityTable
from tidings.kernels.array_types import FloatArray, IntArray
from tidings.patterns.run.event_archive import EventRecords
from tidings.patterns.run.event_times import to_datetime
from tidings.patterns.run.portions import format_key


@dataclass(frozen=True, slots=True)
class Forecast:
    """How likely a pattern is to complete within the horizon, for a key or for none that has begun anything.

    `estimator` says which one gave the number (`chain`, `direct`, `both` or `printed`), and whether the pattern's
    states are approximate. `waiting` gives quantiles of the time until the match in the horizon's own measure, such as
    `{0.5: 7}`; `None` for a quantile beyond the longest wait that is counted.
    """

    pattern: str
    key: Any
    probability: float
    horizon: int | str | timedelta
    estimator: str
    waiting: Mapping[float, int | timedelta | None] | None = None


@dataclass(frozen=True, slots=True)
class EventForecast:
    """A forecast with the event at which it was emitted."""

    event: Any
    at: datetime
    forecast: Forecast


@dataclass(frozen=True, slots=True, eq=False)
class ForecastBatch:
    """Forecasts of one group from one piece of the events, with the tables and names to read them by."""

    rows: ForecastRows
    names: tuple[str, ...]
    tables: tuple[ProbabilityTable | None, ...]
    keyed: bool
    records: EventRecords
    times: IntArray
    values: list[Any]
    base: int = 0  # the number that the detector gave the first event


class Forecasts:
    """The forecasts of a batch, in the order of the events; objects are built when they are read."""

    __slots__ = ("_batches",)

    def __init__(self, batches: Sequence[ForecastBatch] = ()) -> None:
        self._batches = tuple(batches)

    def __len__(self) -> int:
        return sum(len(batch.rows) for batch in self._batches)

    def __iter__(self) -> Iterator[EventForecast]:
        # Each batch is in order; those of several groups of patterns are of the same events.
        return (forecast for _, forecast in merge(*map(_iterate_batch, self._batches), key=itemgetter(0)))

    def _sort_rows(self) -> IntArray:
        """Return where each row lies among those of all batches, by its event."""
        numbers = [batch.base + batch.rows.event for batch in self._batches]
        return np.argsort(np.concatenate(numbers), kind="stable")

    def __repr__(self) -> str:
        return f"<Forecasts: {len(self):,}>"

    @property
    def probabilities(self) -> FloatArray:
        """Return the probabilities alone, in the order of the rows."""
        chances = [batch.rows.probability for batch in self._batches]
        return np.concatenate(chances)[self._sort_rows()] if chances else np.empty(0)

    def to_arrow(self) -> pa.Table:
        """Return a table `pattern, key, at, event, probability, horizon, estimator`; keys and horizons are text."""
        types = {"pattern": pa.string(), "key": pa.string(), "at": pa.timestamp("us", "UTC"), "event": pa.null()}
        types |= {"probability": pa.float64(), "horizon": pa.string(), "estimator": pa.string()}
        tables = [pa.table(_list_columns(batch), names=list(types)) for batch in self._batches]
        if tables:
            return pa.concat_tables(tables, promote_options="permissive").take(self._sort_rows())
        return pa.table({name: pa.array([], column_type) for name, column_type in types.items()})


def _iterate_batch(batch: ForecastBatch) -> Iterator[tuple[int, EventForecast]]:
    """Yield forecasts with the numbers of their events."""
    rows, records = batch.rows, batch.records.select(batch.rows.event).to_lists()
    numbers = zip(rows.member.tolist(), rows.event.tolist(), rows.key.tolist(), rows.cell.tolist(), strict=True)
    for place, (member, event, key, cell) in enumerate(numbers):
        table, value = batch.tables[member], batch.values[key] if batch.keyed else None
        assert table is not None
        chance, at = float(rows.probability[place]), to_datetime(int(batch.times[event]))
        forecast = Forecast(batch.names[member], value, chance, table.horizon.value, table.name_estimator(cell))
        yield batch.base + event, EventForecast(records.ids[place], at, forecast)


def _list_columns(batch: ForecastBatch) -> list[Any]:
    rows, ids = batch.rows, batch.records.select(batch.rows.event).ids
    horizons = pa.array([None if table is None else str(table.horizon) for table in batch.tables], pa.string())
    pairs, places = np.unique(np.column_stack([rows.member, rows.cell]), axis=0, return_inverse=True)
    tables = [(batch.tables[member], cell) for member, cell in pairs.tolist()]
    estimators = [table.name_estimator(cell) for table, cell in tables if table is not None]
    keys = [format_key(batch.values[key]) if batch.keyed else None for key in rows.key.tolist()]
    return [
        pa.array(batch.names, pa.string()).take(rows.member),
        pa.array(keys, pa.string()),
        pa.array(batch.times[rows.event]).cast(pa.timestamp("us", "UTC")),
        pa.array(ids) if isinstance(ids, list) else ids,
        pa.array(rows.probability),
        horizons.take(rows.member),
        pa.array(estimators, pa.string()).take(places.reshape(-1)),
    ]
