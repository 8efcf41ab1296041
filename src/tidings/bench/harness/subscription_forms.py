"""A workload's subscriptions in the form that a matcher loads fastest: columns if it takes them, else text or trees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from tidings.errors import TidingsError
from tidings.matcher.admission import pause_collector

if TYPE_CHECKING:
    import pyarrow as pa

    from tidings.bench.workloads import Workload
    from tidings.bench.workloads.seeded_workload import Pair
    from tidings.matcher import Matcher

SubscriptionSource: TypeAlias = "pa.Table | list[Pair]"
"""Anything of a workload that `add_many` takes: a table of columns or of text, or pairs of an id and a filter."""


@dataclass(frozen=True, slots=True)
class WorkloadSubscriptions:
    """Subscriptions to load, and their form: `columns`, `text` or `filters`.

    Where the matcher refused columns, which load fastest, `refusal` is its message.
    """

    form: str
    source: SubscriptionSource
    refusal: str = ""

    def slice(self, begin: int, end: int) -> WorkloadSubscriptions:
        """Return the subscriptions from `begin` up to `end`."""
        return replace(self, source=slice_source(self.source, begin, end))

    @property
    def ids(self) -> list[str]:
        """The ids of the subscriptions."""
        if isinstance(self.source, list):
            return [id for id, _ in self.source]
        ids: list[str] = self.source.column("id").to_pylist()
        return ids


def slice_source(source: SubscriptionSource, begin: int, end: int) -> SubscriptionSource:
    """Return the subscriptions from `begin` up to `end`, in the form they have."""
    return source[begin:end] if isinstance(source, list) else source.slice(begin, end - begin)


def count_spare(n: int) -> int:
    """Return how many subscriptions are made beyond `n`, to be inserted and deleted: one in twenty, 50,000 at most."""
    return max(10, min(n // 20, 50_000))


def make_subscriptions(workload: Workload, n: int, *, kind: str | None, seed: int) -> WorkloadSubscriptions:
    """Make `n` subscriptions of a workload in the fastest form that a matcher of this kind takes."""
    if workload.make_columns is None:
        with pause_collector():
            pairs = list(workload.pairs(n, seed))
        return WorkloadSubscriptions("text" if isinstance(pairs[0][1], str) else "filters", pairs)
    try:  # two rows tell whether it takes columns
        workload.matcher(kind).add_many(workload.columns(2, 0))
    except TidingsError as problem:
        return WorkloadSubscriptions("text", workload.texts(n, seed), refusal=str(problem).partition("\n")[0])
    return WorkloadSubscriptions("columns", workload.columns(n, seed))


def load_matcher(workload: Workload, source: SubscriptionSource, *, kind: str | None) -> Matcher:
    """Return a new matcher with these subscriptions."""
    matcher = workload.matcher(kind)
    matcher.add_many(source)
    return matcher
