"""A workload: subscriptions and events as functions of a size and a seed, and the expected number of matches.

Both are made in bulk. Where every filter is a conjunction, subscriptions are an Arrow table of columns: `id`,
and for each attribute `make` (equality; a list is a set), `price_from`, `price_to` (closed ends), `price_above`,
`price_below` (open ends), `spot_within` (an area as WKT); null is no condition. Elsewhere they are pairs of an
id and a filter, made lazily.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from tidings.bench.workloads.ads import NOW
from tidings.bench.workloads.workload_columns import WorkloadColumn, make_ids, render_filters
from tidings.concepts import Ontology
from tidings.errors import TidingsError
from tidings.model import Filter, Schema

if TYPE_CHECKING:
    from tidings.matcher import Matcher
    from tidings.model.values import EventValue

Pair: TypeAlias = tuple[str, str | Filter]
"""A subscription: its id, and its filter as text or as a tree."""

MakeColumns: TypeAlias = Callable[[int, np.random.Generator], Mapping[str, WorkloadColumn]]
"""Makes so many rows as columns by name, each an Arrow or a NumPy array."""

CHUNK = 10_000
"""Pairs are made so many at a time."""


class Baseline(StrEnum):
    """The baseline that a matcher is compared with on a workload, apart from the peers."""

    SCAN = "scan"
    """A compiled early-exit scan of the same conjunctions."""
    EXPRESSIONS = "expressions"
    """Testing every text expression in turn."""
    BRUTE = "brute"
    """The law itself, `evaluate`, on a sample of the filters."""


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Subscriptions and events to measure with; `workload(key)` makes one.

    `expected` gives the mean number of matches of an event among `n` subscriptions; a test checks it within
    `tolerance`, a share of it. Subscriptions come from `make_columns`, without their ids, or from `make_filters`.
    `schema` is an argument of `td.Schema`.
    """

    key: str
    description: str
    expected: Callable[[int], float]
    tolerance: float
    make_events: MakeColumns
    make_columns: MakeColumns | None = None
    make_filters: Callable[[int, np.random.Generator], Iterator[str | Filter]] | None = None
    schema: Mapping[str, str] | None = None
    make_ontology: Callable[[], Ontology] | None = None
    baseline: Baseline = Baseline.SCAN
    writes: bool = False
    """Whether there are so many matches that writing them is a baseline of its own."""
    peers: Mapping[str, int] = field(default_factory=dict)
    """The peers that can run this, each with the most subscriptions that it gets."""

    def subscriptions(self, n: int, seed: int) -> pa.Table | Iterator[Pair]:
        """Return `n` subscriptions in the fastest form there is: a table of columns, else pairs."""
        return self.columns(n, seed) if self.make_columns else self.pairs(n, seed)

    def columns(self, n: int, seed: int) -> pa.Table:
        """Return `n` subscriptions as a table of columns, where every filter is a conjunction."""
        if self.make_columns is None:
            msg = f"the workload `{self.key}` has filters that columns cannot say; take its pairs"
            raise TidingsError(msg)
        return pa.table({"id": make_ids(n), **self.make_columns(n, _make_rng(seed, 1))})

    def texts(self, n: int, seed: int) -> pa.Table:
        """Return `n` subscriptions as a table of `id` and `filter`, in text notation."""
        from tidings.lang import render

        if self.make_columns is not None:
            return render_filters(self.columns(n, seed))
        filters = [filter if isinstance(filter, str) else render(filter) for _, filter in self.pairs(n, seed)]
        return pa.table({"id": make_ids(n), "filter": filters})

    def pairs(self, n: int, seed: int) -> Iterator[Pair]:
        """Yield `n` subscriptions one by one."""
        if self.make_filters is not None:
            for row, filter in enumerate(self.make_filters(n, _make_rng(seed, 1))):
                yield f"s{row}", filter
            return
        for batch in self.texts(n, seed).to_batches(max_chunksize=CHUNK):
            yield from zip(batch.column("id").to_pylist(), batch.column("filter").to_pylist(), strict=True)

    def events(self, count: int, seed: int) -> pa.Table:
        """Return `count` events as columns."""
        return pa.table(dict(self.make_events(count, _make_rng(seed, 2))))

    def event_rows(self, count: int, seed: int) -> list[dict[str, EventValue]]:
        """Return the events of `events` as mappings, without nulls."""
        return rows_of(self.events(count, seed))

    def matcher(self, kind: str | None = None) -> Matcher:
        """Return an empty matcher of this kind, or of the default one, with the schema and ontology of the workload."""
        from tidings.matcher import Matcher
        from tidings.matcher.registry import ENGINE

        schema = Schema(dict(self.schema)) if self.schema else None
        ontology = self.make_ontology() if self.make_ontology else None
        return Matcher(kind or ENGINE, schema=schema, ontology=ontology, now=NOW)


def rows_of(events: pa.Table) -> list[dict[str, EventValue]]:
    """Return events as mappings, without their nulls."""
    return [{name: value for name, value in row.items() if value is not None} for row in events.to_pylist()]


def split_in_chunks(n: int) -> list[int]:
    """Return numbers of rows, `CHUNK` at most, that add up to `n`."""
    return [min(CHUNK, n - begin) for begin in range(0, n, CHUNK)]


def _make_rng(seed: int, purpose: int) -> np.random.Generator:
    """Return a generator of its own for events and for subscriptions: those of one seed must be independent."""
    return np.random.default_rng([seed, purpose])
