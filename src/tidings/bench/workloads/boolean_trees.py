"""Filters that are trees: and, or and not over predicates drawn from a pool, the popular ones very often.

The shapes of the trees are drawn once for a workload and each compiled to a function from predicates to a filter,
so a filter costs its own nodes and little else; predicates are shared objects.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from tidings.bench.workloads.seeded_workload import Baseline, Workload, split_in_chunks
from tidings.bench.workloads.workload_columns import draw_sparse, draw_subsets, draw_zipf
from tidings.model import And, Filter, In, Is, Not, Or, Range, Test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.random import Generator

ATTRIBUTES = tuple(f"a{number}" for number in range(122))

VALUES, PRESENT = 100, 20
"""Number of values of an attribute, and of attributes that an event carries."""

POOL = 100_000
"""Distinct predicates."""

LEAVES = (5, 15)
"""Least and greatest number of leaves of a tree."""

LEVELS = 9
"""Greatest depth of a tree; leaves count as a level, `not` does not."""

NEGATED = 0.1
"""Share of nodes that are under `not`."""

SHAPES = 4096
"""Distinct shapes of trees."""


def build_boolean() -> Workload:
    """Trees with any root."""
    return _build_workload("boolean", "the root free", share=0.30, rooted=False)


def build_boolean_and() -> Workload:
    """Trees with `and` at the root, so that an index can rule some of them out."""
    return _build_workload("boolean-and", "the root `and`", share=0.035, rooted=True)


def _build_workload(key: str, root: str, *, share: float, rooted: bool) -> Workload:
    return Workload(
        key=key,
        description=f"and/or/not trees of 5-15 leaves from 100,000 predicates, {root}; 20 of 122 attributes present",
        expected=lambda n: n * share,
        tolerance=0.35,
        make_events=lambda count, rng: draw_sparse(rng, count, ATTRIBUTES, wanted=PRESENT, values=VALUES),
        make_filters=lambda n, rng: _draw_filters(n, rng, rooted=rooted),
        schema=dict.fromkeys(ATTRIBUTES, "number"),
        baseline=Baseline.BRUTE,
    )


def _draw_filters(n: int, rng: Generator, *, rooted: bool) -> Iterator[Filter]:
    seed = int(rng.integers(2**62))
    pool, shapes = draw_pool(seed), draw_shapes(seed, rooted)
    for count in split_in_chunks(n):
        leaves = draw_zipf(rng, (count, LEAVES[1]), len(pool), 1.0).tolist()
        which = rng.integers(0, SHAPES, count).tolist()
        for shape, row in zip(which, leaves, strict=True):
            yield shapes[shape]([pool[leaf] for leaf in row])


@lru_cache(maxsize=2)  # a benchmark asks for the same filters more than once
def draw_pool(seed: int) -> list[Test]:
    """Draw distinct predicates, the four kinds evenly as long as there are new ones; the first is the most popular."""
    rng = np.random.default_rng(seed)
    predicates: dict[tuple[int, ...], Test] = {}
    while len(predicates) < POOL:
        kinds, attributes = rng.integers(0, 4, POOL).tolist(), rng.integers(0, len(ATTRIBUTES), POOL).tolist()
        values = draw_subsets(rng, POOL, wanted=3, among=VALUES)
        orders = rng.integers(0, 3, POOL).tolist()
        for kind, attribute, three, order in zip(kinds, attributes, values.tolist(), orders, strict=True):
            # The first of three ascending numbers would not be uniform; one picked at random is.
            key = (kind, attribute, *three) if kind == 3 else (kind, attribute, three[order])
            if key not in predicates:
                predicates[key] = _make_predicate(*key)
                if len(predicates) == POOL:
                    break
    return list(predicates.values())


@lru_cache(maxsize=2)
def draw_shapes(seed: int, rooted: bool) -> list[Callable[[list[Test]], Filter]]:
    """Draw the shapes of trees, each a function from predicates to a filter."""
    rng = Random(seed)  # NumPy is slow at many small draws
    return [_draw_shape(rng, rooted=rooted) for _ in range(SHAPES)]


def _make_predicate(kind: int, attribute: int, *values: int) -> Test:
    makers: tuple[Callable[[], Is | Range | In], ...] = (
        lambda: Is(values[0]),
        lambda: Range(None, values[0], high_open=True),
        lambda: Range(values[0], None),
        lambda: In(values),
    )
    return Test(ATTRIBUTES[attribute], makers[kind]())


def _draw_shape(rng: Random, *, rooted: bool) -> Callable[[list[Test]], Filter]:
    while True:
        leaves = rng.randint(*LEAVES)
        source, levels = _render_tree(rng, 0, leaves, root="And" if rooted else None)
        if levels <= LEVELS:
            build: Callable[[list[Test]], Filter] = eval(f"lambda t: {source}", {"And": And, "Or": Or, "Not": Not})  # noqa: S307 - our own words
            return build


def _render_tree(rng: Random, first: int, last: int, *, root: str | None = None) -> tuple[str, int]:
    """Draw a tree over the leaves from `first` up to `last`; return it as Python source, and its number of levels."""
    if last - first == 1:
        text, levels = f"t[{first}]", 1
    else:
        children = min(rng.randint(2, 3), last - first)
        cuts = sorted(rng.sample(range(first + 1, last), children - 1))
        ends = [first, *cuts, last]
        parts = [_render_tree(rng, *span) for span in pairwise(ends)]
        operands = ", ".join(part for part, _ in parts)
        word = root or ("And" if rng.random() < 0.5 else "Or")
        text, levels = f"{word}(({operands}))", 1 + max(level for _, level in parts)
    # A root that must be `and` stays one.
    negated = root is None and rng.random() < NEGATED
    return (f"Not({text})" if negated else text), levels
