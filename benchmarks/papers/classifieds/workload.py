"""The inputs of the study: saved searches by token, searches with an area, and the worst case of the filter tree."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.studies import Scale
from tidings.bench.workloads import workload

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.papers.classifieds.conjunction_tree import ConjunctionTree, PathNode

CARS = workload("classifieds")
"""Car ads against saved searches: the paper's own use."""

TOKENS = 1024
"""Pieces of responsibility; the paper has tens or hundreds."""


@dataclass(frozen=True, slots=True)
class ClassifiedsSizes:
    """How much is measured: subscriptions, seconds of each phase, and the smaller experiments."""

    subscriptions: int
    warm_s: float
    steady_s: int
    changing_s: int
    rising_s: int
    growth: tuple[int, ...]
    whole_tree: int
    """The most subscriptions of which the filter tree is fed a stream, and of which its growth is measured."""
    polygons: tuple[int, ...]
    names: tuple[int, ...]


_GROWTH = (10_000, 30_000, 100_000, 300_000)

SIZES = {
    Scale.QUICK: ClassifiedsSizes(
        subscriptions=60_000,
        warm_s=0.5,
        steady_s=3,
        changing_s=3,
        rising_s=6,
        growth=(3_000, 10_000, 30_000),
        whole_tree=30_000,
        polygons=(500, 2_000),
        names=(2, 4, 6, 8),
    ),
    Scale.USUAL: ClassifiedsSizes(
        subscriptions=300_000,
        warm_s=2.0,
        steady_s=10,
        changing_s=10,
        rising_s=20,
        growth=_GROWTH,
        whole_tree=300_000,
        polygons=(1_000, 5_000),
        names=(2, 4, 6, 8, 10, 12),
    ),
    Scale.FULL: ClassifiedsSizes(
        subscriptions=300_000,
        warm_s=5.0,
        steady_s=60,
        changing_s=60,
        rising_s=120,
        growth=_GROWTH,
        whole_tree=300_000,
        polygons=(1_000, 10_000),
        names=(2, 4, 6, 8, 10, 12, 14),
    ),
}
"""By scale; the paper says 300,000 subscriptions, and nothing of how long."""


# Tokens ----------------------------------------------------------------------------------------


def compute_token(id: str) -> int:
    """Return the token of a subscription: by a fixed 64-bit hash, the same on every machine and in every run."""
    return int.from_bytes(blake2b(id.encode(), digest_size=8).digest(), "big") % TOKENS


def shard_of(id: str, shards: int) -> int:
    """Return the shard of a subscription: tokens are spread evenly over the shards."""
    return compute_token(id) % shards


def share(table: pa.Table, shard: int, shards: int) -> pa.Table:
    """Return the subscriptions of a shard."""
    if shards == 1:
        return table
    mine = [at for at, id in enumerate(table.column("id").to_pylist()) if shard_of(id, shards) == shard]
    return table.take(np.array(mine, np.int64))


# Searches with an area -------------------------------------------------------------------------


def with_areas(n: int, seed: int) -> pa.Table:
    """Return `n` saved searches that all have an area: one in twenty of the workload has."""
    table = CARS.columns(24 * n + 1000, seed)
    return table.filter(table.column("spot_within").is_valid()).slice(0, n)


# The worst case --------------------------------------------------------------------------------


def list_subsets(names: int) -> dict[int, str]:
    """Return a filter for each set of names, so that an event with all of them goes both ways at every step."""
    all_names = [f"n{at}" for at in range(names)]
    chosen = [some for size in range(1, names + 1) for some in combinations(all_names, size)]
    return {at: " and ".join(f"{name} = 1" for name in some) for at, some in enumerate(chosen)}


def build_full_event(names: int) -> dict[str, Any]:
    """Return the event that satisfies all of them."""
    return {f"n{at}": 1 for at in range(names)}


def count_printed_calls(tree: ConjunctionTree, node: PathNode, terms: tuple[TypedAttribute, ...]) -> int:
    """Count the calls of DESCENT that Algorithm 1 makes below a node, its `while` read as `if`."""
    if not terms:
        return 0
    head, tail = terms[0], terms[1:]
    children = list(tree.list_children(node, head))
    return (
        1
        + count_printed_calls(tree, node, tail)
        + sum(1 + count_printed_calls(tree, child, tail) for child in children)
    )


def spread_arrivals(rate_from: float, rate_to: float, seconds: float) -> NDArray[np.float64]:
    """Return when events arrive while the rate goes evenly from one to another: the n-th when the area below is n."""
    total = int((rate_from + rate_to) / 2 * seconds)
    count = np.arange(total, dtype=np.float64)
    slope = (rate_to - rate_from) / seconds
    if abs(slope) < 1e-9:
        return count / rate_from
    return (-rate_from + np.sqrt(rate_from**2 + 2 * slope * count)) / slope
