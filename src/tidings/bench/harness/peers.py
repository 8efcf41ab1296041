"""What else a Python user could take: mokaccino, a join in DuckDB, a scan of columns in NumPy.

Each takes the subscriptions it can say (none has polygons), on one thread, and answers with the matches of each
event, which must be right. Packages are imported when a peer is made; one that is not installed is left out.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tidings.bench.harness.conjunction_columns import conjunctions_of
from tidings.bench.workloads import rows_of
from tidings.bench.workloads.parameter_forms import attributes_of, parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray


class Peer(Protocol):
    """A way to match: made from columns, prepared with events, then timed."""

    def prepared(self, events: pa.Table) -> Any:
        """Bring events into the peer's own form; not timed."""

    def counts(self, prepared: Any) -> NDArray[np.int64]:
        """Return how many subscriptions each event satisfies."""


def sayable(columns: pa.Table) -> pa.Table:
    """Return the subscriptions that peers can take: those without an area."""
    import pyarrow.compute as pc

    for given in parameters(columns.column_names):
        if given.says == "within":
            columns = columns.filter(pc.is_null(columns.column(given.column))).drop_columns(given.column)
    return columns


class Numpy:
    """For every attribute two arrays of ends; an event is compared with all of them, a column at a time."""

    def __init__(self, columns: pa.Table) -> None:
        """Lay the ends out by attribute; where a subscription has no range, it reaches from end to end."""
        self._held = held = conjunctions_of(columns)
        shape = (len(held.names), len(held))
        self._lows, self._highs = np.full(shape, -np.inf), np.full(shape, np.inf)
        rows = np.repeat(np.arange(len(held)), np.diff(held.starts))
        self._lows[held.columns, rows], self._highs[held.columns, rows] = held.lows, held.highs

    def prepared(self, events: pa.Table) -> Any:
        """Return the events as a matrix."""
        return self._held.cells(events)

    def counts(self, prepared: Any) -> NDArray[np.int64]:
        """Compare event by event."""
        return np.array([np.count_nonzero(self._alive(event)) for event in prepared], np.int64)

    def _alive(self, event: NDArray[np.float64]) -> NDArray[np.bool_]:
        alive = np.ones(self._lows.shape[1], np.bool_)
        for value, low, high in zip(event, self._lows, self._highs, strict=True):
            alive &= (low <= value) & (value <= high)
        return alive


class Duckdb:
    """One SQL join of events and subscriptions, on one thread."""

    def __init__(self, columns: pa.Table) -> None:
        """Copy the subscriptions into a database in memory."""
        import duckdb

        self._base = duckdb.connect()
        self._base.execute("SET threads = 1")
        self._base.register("given", columns)
        self._base.execute("CREATE TABLE subs AS SELECT * FROM given")
        self._base.unregister("given")
        tests = [
            test for name, said in attributes_of(columns.column_names).items() for test in _sql(columns, name, said)
        ]
        self._query = f"SELECT e._event, count(*) FROM events e JOIN subs s ON {' AND '.join(tests)} GROUP BY 1"  # noqa: S608 - our own names

    def prepared(self, events: pa.Table) -> Any:
        """Copy the events into the database."""
        import pyarrow as pa

        self._base.register("given", events.append_column("_event", pa.array(np.arange(events.num_rows))))
        self._base.execute("CREATE OR REPLACE TABLE events AS SELECT * FROM given")
        self._base.unregister("given")
        return events.num_rows

    def counts(self, prepared: Any) -> NDArray[np.int64]:
        """Run the join."""
        counts = np.zeros(prepared, np.int64)
        for event, count in self._base.execute(self._query).fetchall():
            counts[event] = count
        return counts


_SIGNS = {"from": ">=", "above": ">", "to": "<=", "below": "<"}


def _sql(columns: pa.Table, name: str, said: dict[str, str]) -> list[str]:
    import pyarrow.types as t

    tests = []
    for says, column in said.items():
        if says == "is" and t.is_list(columns.schema.field(column).type):
            test = f'list_contains(s."{column}", e."{name}")'
        else:
            test = f'e."{name}" {_SIGNS.get(says, "=")} s."{column}"'
        tests.append(f'(s."{column}" IS NULL OR {test})')
    return tests


class Mokaccino:
    """The percolator of that package: values are text, ranges are comparisons of integers."""

    def __init__(self, columns: pa.Table) -> None:
        """Add a query for each subscription."""
        import mokaccino

        self._percolator = mokaccino.Percolator()
        given = [(one.attribute, one.says, one.column) for one in parameters(columns.column_names)]
        for batch in columns.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                parts = [
                    self._query(mokaccino.Query, attribute, says, row[column])
                    for attribute, says, column in given
                    if row[column] is not None
                ]
                self._percolator.add_query(parts[0] if len(parts) == 1 else mokaccino.Query.from_and(parts))

    @staticmethod
    def _query(query: Any, attribute: str, says: str, value: Any) -> Any:
        makers = {"from": query.from_kge, "above": query.from_kgt, "to": query.from_kle, "below": query.from_klt}
        if says in makers:
            return makers[says](attribute, value)
        if not isinstance(value, list):
            return query.from_kv(attribute, str(value))
        several = [query.from_kv(attribute, str(one)) for one in value]
        return several[0] if len(several) == 1 else query.from_or(several)

    def prepared(self, events: pa.Table) -> Any:
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

    def counts(self, prepared: Any) -> NDArray[np.int64]:
        """Percolate document by document."""
        return np.array([len(self._percolator.percolate_list(document)) for document in prepared], np.int64)


PEERS: dict[str, Callable[[Any], Peer]] = {"numpy": Numpy, "duckdb": Duckdb, "mokaccino": Mokaccino}
"""Peers by the name of their package."""

LINEAR = ("numpy", "duckdb")
"""These visit every subscription, so what fewer of them take may be scaled."""


def installed(name: str) -> bool:
    """Tell whether a peer's package is there."""
    return find_spec(name) is not None
