"""Filters that are trees: and, or and not over predicates drawn from a pool, the popular ones very often.

The shapes of the trees are drawn once for a workload and each compiled to a function from predicates to a filter,
so a filter costs its own nodes and little else; predicates are shared objects.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.bench.workloads.base import Baseline, Workload
from tidings.bench.workloads.parameter_forms import some_of, spread, zipf_draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from numpy.random import Generator

    from tidings.bench.workloads.base import Pair
    from tidings.model import Filter, Test

ATTRIBUTES, VALUES, PRESENT = 122, 100, 20
"""How many attributes there are, how many values each has, and how many attributes an event carries."""

POOL = 100_000
"""Distinct predicates."""

LEAVES = (5, 15)
"""The fewest and the most leaves of a tree."""

LEVELS = 9
"""No tree is deeper; leaves count as a level, `not` does not."""

NEGATED = 0.1
"""The share of nodes that stand under `not`."""

SHAPES = 4096
"""Distinct shapes of trees."""

CHUNK = 10_000


def boolean() -> Workload:
    """Trees with any root."""
    return _trees("boolean", "the root free", share=0.30, rooted=False)


def boolean_and() -> Workload:
    """The same with `and` at the root, so that something can be ruled out."""
    return _trees("boolean-and", "the root `and`", share=0.035, rooted=True)


def _trees(key: str, root: str, *, share: float, rooted: bool) -> Workload:
    def pairs(n: int, rng: Generator) -> Iterator[Pair]:
        return _filters(n, rng, rooted=rooted)

    return Workload(
        key=key,
        description=f"and/or/not trees of 5-15 leaves from 100,000 predicates, {root}; 20 of 122 attributes present",
        expected=lambda n: n * share,
        tolerance=0.35,
        make_events=_events,
        make_pairs=pairs,
        schema={f"a{number}": "number" for number in range(ATTRIBUTES)},
        baseline=Baseline.BRUTE,
    )


def _events(count: int, rng: Generator) -> pa.Table:
    import pyarrow as pa

    chosen = some_of(rng, count, wanted=PRESENT, among=ATTRIBUTES)
    given = spread(chosen, rng.integers(0, VALUES, chosen.shape), ATTRIBUTES)
    return pa.table({f"a{number}": column for number, column in enumerate(given)})


def _filters(n: int, rng: Generator, *, rooted: bool) -> Iterator[Pair]:
    seed = int(rng.integers(2**62))
    pool, shapes = _pool(seed), _shapes(seed, rooted)
    for begin in range(0, n, CHUNK):
        count = min(CHUNK, n - begin)
        leaves = zipf_draw(rng, (count, LEAVES[1]), len(pool), 1.0).tolist()
        which = rng.integers(0, SHAPES, count).tolist()
        for row in range(count):
            yield f"s{begin + row}", shapes[which[row]]([pool[leaf] for leaf in leaves[row]])


@lru_cache(maxsize=2)  # a benchmark asks for the same filters more than once
def _pool(seed: int) -> list[Test]:
    return predicates(np.random.default_rng(seed))


@lru_cache(maxsize=2)
def _shapes(seed: int, rooted: bool) -> list[Callable[[list[Test]], Filter]]:
    plain = Random(seed)  # for many small draws, which NumPy is slow at
    return [shape(plain, rooted=rooted) for _ in range(SHAPES)]


def predicates(rng: Generator) -> list[Test]:
    """Draw distinct predicates, the four kinds evenly as long as there are new ones; the first is the most popular."""
    found: dict[tuple[Any, ...], Test] = {}
    while len(found) < POOL:
        kinds, attributes = rng.integers(0, 4, POOL).tolist(), rng.integers(0, ATTRIBUTES, POOL).tolist()
        values = some_of(rng, POOL, wanted=3, among=VALUES)
        orders = rng.integers(0, 3, POOL).tolist()
        for kind, attribute, three, order in zip(kinds, attributes, values.tolist(), orders, strict=True):
            # One of three ascending numbers would not be uniform, one of them by chance is.
            key = (kind, attribute, *three) if kind == 3 else (kind, attribute, three[order])
            if key not in found:
                found[key] = _predicate(*key)
                if len(found) == POOL:
                    break
    return list(found.values())


def _predicate(kind: int, attribute: int, *values: int) -> Test:
    from tidings.model import In, Is, Range, Test

    conditions: tuple[Callable[[], Any], ...] = (
        lambda: Is(values[0]),
        lambda: Range(None, values[0], high_open=True),
        lambda: Range(values[0], None),
        lambda: In(values),
    )
    return Test(f"a{attribute}", conditions[kind]())


def shape(rng: Random, *, rooted: bool) -> Callable[[list[Test]], Filter]:
    """Draw a tree and return the function that puts predicates at its leaves."""
    from tidings.model import And, Not, Or

    while True:
        leaves = rng.randint(*LEAVES)
        written, levels = _written(rng, 0, leaves, root="And" if rooted else None)
        if levels <= LEVELS:
            made: Callable[[list[Test]], Filter] = eval(f"lambda t: {written}", {"And": And, "Or": Or, "Not": Not})  # noqa: S307 - our own words
            return made


def _written(rng: Random, first: int, last: int, *, root: str | None = None) -> tuple[str, int]:
    """Write the tree over the leaves from `first` up to `last`, and say how many levels it has."""
    if last - first == 1:
        text, levels = f"t[{first}]", 1
    else:
        children = min(rng.randint(2, 3), last - first)
        cuts = sorted(rng.sample(range(first + 1, last), children - 1))
        ends = [first, *cuts, last]
        parts = [_written(rng, *span) for span in pairwise(ends)]
        joined = ", ".join(part for part, _ in parts)
        word = root or ("And" if rng.random() < 0.5 else "Or")
        text, levels = f"{word}(({joined}))", 1 + max(level for _, level in parts)
    # A root that must be `and` stays one.
    negated = root is None and rng.random() < NEGATED
    return (f"Not({text})" if negated else text), levels
