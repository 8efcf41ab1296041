"""Peers, which a Python user could take instead: mokaccino, a join in DuckDB, a scan of columns in NumPy.

Each takes the subscriptions it can express (none has polygons), on one thread, and counts the matches of each event;
the counts are checked. Packages are imported when a peer is made; one that is not installed is left out.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from tidings.bench.harness.conjunction_columns import encode_conjunctions
from tidings.bench.workloads import rows_of
from tidings.bench.workloads.workload_columns import SIGNS, group_by_attribute

if TYPE_CHECKING:
    from collections.abc import Callable

    import mokaccino

    from tidings.bench.harness.baselines import MatchCounter
    from tidings.kernels.array_types import BoolArray, FloatArray, IntArray
    from tidings.model.values import EventValue


def select_expressible(columns: pa.Table) -> pa.Table:
    """Return the subscriptions that peers can express: those without an area."""
    for operators in group_by_attribute(columns.column_names).values():
        if area := operators.get("within"):
            columns = columns.filter(pc.is_null(columns.column(area))).drop_columns(area)
    return columns


class NumpyPeer:
    """Two arrays of bounds for every attribute; an event is compared with all of them, a column at a time."""

    def __init__(self, columns: pa.Table) -> None:
        """Lay the bounds out by attribute; where a subscription has no range, it is unbounded."""
        self._conjunctions = table = encode_conjunctions(columns)
        shape = (len(table.names), len(table))
        self._lows, self._highs = np.full(shape, -np.inf), np.full(shape, np.inf)
        rows = np.repeat(np.arange(len(table)), np.diff(table.starts))
        self._lows[table.columns, rows], self._highs[table.columns, rows] = table.lows, table.highs

    def prepare_events(self, events: pa.Table) -> FloatArray:
        """Return the events as a matrix."""
        return self._conjunctions.encode_events(events)

    def count_matches(self, prepared: FloatArray) -> IntArray:
        """Compare event by event."""
        return np.array([np.count_nonzero(self._match(event)) for event in prepared], np.int64)

    def _match(self, event: FloatArray) -> BoolArray:
        alive = np.ones(self._lows.shape[1], np.bool_)
        for value, low, high in zip(event, self._lows, self._highs, strict=True):
            alive &= (low <= value) & (value <= high)
        return alive


class DuckdbPeer:
    """One SQL join of events and subscriptions, on one thread."""

    def __init__(self, columns: pa.Table) -> None:
        """Copy the subscriptions into a database in memory."""
        import duckdb

        self._base = duckdb.connect()
        self._base.execute("SET threads = 1")
        self._copy_table("CREATE TABLE subs", columns)
        tests = [
            f'(s."{column}" IS NULL OR {_build_test(columns, name, operator, column)})'
            for name, operators in group_by_attribute(columns.column_names).items()
            for operator, column in operators.items()
        ]
        self._query = f"SELECT e._event, count(*) FROM events e JOIN subs s ON {' AND '.join(tests)} GROUP BY 1"  # noqa: S608 - our own names

    def _copy_table(self, create: str, table: pa.Table) -> None:
        self._base.register("arrow_table", table)
        self._base.execute(f"{create} AS SELECT * FROM arrow_table")  # noqa: S608 - our own names
        self._base.unregister("arrow_table")

    def prepare_events(self, events: pa.Table) -> int:
        """Copy the events into the database, and return how many there are."""
        numbers = pa.array(np.arange(events.num_rows))
        self._copy_table("CREATE OR REPLACE TABLE events", events.append_column("_event", numbers))
        return int(events.num_rows)

    def count_matches(self, prepared: int) -> IntArray:
        """Run the join."""
        counts = np.zeros(prepared, np.int64)
        for event, count in self._base.execute(self._query).fetchall():
            counts[event] = count
        return counts


def _build_test(columns: pa.Table, name: str, operator: str, column: str) -> str:
    if operator == "is" and t.is_list(columns.schema.field(column).type):
        return f'list_contains(s."{column}", e."{name}")'
    return f'e."{name}" {SIGNS.get(operator, "=")} s."{column}"'


class MokaccinoPeer:
    """The percolator of that package: values are text, ranges are comparisons of integers."""

    def __init__(self, columns: pa.Table) -> None:
        """Add a query for each subscription."""
        import mokaccino

        self._percolator = mokaccino.Percolator()
        attributes = group_by_attribute(columns.column_names)
        for batch in columns.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                parts = [
                    self._build_query(mokaccino.Query, name, operator, row[column])
                    for name, operators in attributes.items()
                    for operator, column in operators.items()
                    if row[column] is not None
                ]
                self._percolator.add_query(parts[0] if len(parts) == 1 else mokaccino.Query.from_and(parts))

    @staticmethod
    def _build_query(query: type[mokaccino.Query], attribute: str, operator: str, value: EventValue) -> mokaccino.Query:
        makers = {"from": query.from_kge, "above": query.from_kgt, "to": query.from_kle, "below": query.from_klt}
        if operator in makers:
            return makers[operator](attribute, value)
        if not isinstance(value, list):
            return query.from_kv(attribute, str(value))
        several = [query.from_kv(attribute, str(item)) for item in value]
        return several[0] if len(several) == 1 else query.from_or(several)

    def prepare_events(self, events: pa.Table) -> list[mokaccino.Document]:
        """Return the events as documents."""
        import mokaccino

        documents = []
        for row in rows_of(events):
            document = mokaccino.Document()
            for name, value in row.items():
                if not isinstance(value, dict):  # a place, which no query asks for
                    document.add_value(name, str(value))
            documents.append(document)
        return documents

    def count_matches(self, prepared: list[mokaccino.Document]) -> IntArray:
        """Percolate document by document."""
        return np.array([len(self._percolator.percolate_list(document)) for document in prepared], np.int64)


PEERS: dict[str, Callable[[pa.Table], MatchCounter]] = {
    "numpy": NumpyPeer,
    "duckdb": DuckdbPeer,
    "mokaccino": MokaccinoPeer,
}
"""Peers by the name of their package."""

LINEAR = ("numpy", "duckdb")
"""These visit every subscription, so the time of fewer subscriptions may be scaled."""


def is_installed(name: str) -> bool:
    """Tell whether a peer's package is installed."""
    return find_spec(name) is not None
