"""Concept trees as in table 1 of the CTPS paper: trees of names and of values, two children to a node.

Six attributes, each with a tree of names; four of them have values from a tree of concepts, two have numbers. An
event names leaves. A subscription names a node of any level, all levels equally likely, so it covers a leaf of a tree
of height h with probability (1 + 1/2 + ... + 1/2**h) / (h + 1).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.bench.workloads.base import CHUNK, Baseline, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from numpy.random import Generator
    from numpy.typing import NDArray

    from tidings.bench.workloads.base import Pair
    from tidings.concepts import Ontology, Tree
    from tidings.model import Test

CONCEPTS, NUMBERS = 4, 2
"""Attributes with values from a concept tree, and attributes with numbers."""

WIDTH = 2
"""Children of a node."""

PRECISION = 1000
"""Numbers are decimals of three digits below one."""


def build_concepts(*, height: int = 5) -> Workload:
    """Conjunctions of `is a` and numbers under names that are concepts themselves."""
    attributes = CONCEPTS + NUMBERS
    covering = sum(0.5**level for level in range(height + 1)) / (height + 1)

    def pairs(n: int, rng: Generator) -> Iterator[Pair]:
        return _draw_filters(n, rng, height)

    def events(count: int, rng: Generator) -> pa.Table:
        return _draw_events(count, rng, height)

    return Workload(
        key="concepts",
        description=f"CTPS table 1: 6 names from concept trees, 4 values `is a`, 2 numbers; trees of height {height}",
        expected=lambda n: n * covering ** (attributes + CONCEPTS) * 0.5**NUMBERS,
        tolerance=0.5,
        make_events=events,
        make_pairs=pairs,
        make_ontology=lambda: build_ontology(height),
        baseline=Baseline.BRUTE,
    )


def name_node(word: str, level: int, place: int) -> str:
    """Return the name of a node: `kind0` is a root, `kind0_101` its right, left, right descendant.

    >>> name_node("kind0", 3, 5)
    'kind0_101'
    """
    return f"{word}_{place:0{level}b}" if level else word


def _build_tree(word: str, height: int) -> Tree:
    from tidings.concepts import Tree

    nodes = [(level, place) for level in range(height + 1) for place in range(WIDTH**level)]
    return Tree(
        {
            name_node(word, level, place): [name_node(word, level - 1, place // WIDTH)] if level else []
            for level, place in nodes
        }
    )


def build_ontology(height: int) -> Ontology:
    """Return the trees of names and of values, with the kind of each name declared."""
    from tidings.concepts import Declared, Ontology
    from tidings.model import Kind

    names = {f"name{at}": _build_tree(f"name{at}", height) for at in range(CONCEPTS + NUMBERS)}
    values = {f"kind{at}": _build_tree(f"kind{at}", height) for at in range(CONCEPTS)}
    declared: dict[str, Any] = {}
    for at in range(CONCEPTS + NUMBERS):
        declaration = Declared(Kind.CONCEPT, f"kind{at}") if at < CONCEPTS else Declared(Kind.NUMBER)
        for level in range(height + 1):
            declared |= {name_node(f"name{at}", level, place): declaration for place in range(WIDTH**level)}
    return Ontology(trees=values, attribute_trees=names, attributes=declared)


def _draw_events(count: int, rng: Generator, height: int) -> pa.Table:
    """Return events with one leaf of each tree of names; the columns are all the leaves."""
    import pyarrow as pa

    leaves = WIDTH**height
    columns: dict[str, pa.Array] = {}
    for at in range(CONCEPTS + NUMBERS):
        named = rng.integers(0, leaves, count)
        values = _draw_values(count, rng, at, height)
        for place in range(leaves):
            columns[name_node(f"name{at}", height, place)] = pa.array(values, mask=named != place)
    return pa.table(columns)


def _draw_values(count: int, rng: Generator, at: int, height: int) -> NDArray[Any]:
    if at >= CONCEPTS:
        return rng.integers(0, PRECISION, count) / PRECISION
    names = np.array([name_node(f"kind{at}", height, place) for place in range(WIDTH**height)], object)
    return names[rng.integers(0, len(names), count)]


def _draw_filters(n: int, rng: Generator, height: int) -> Iterator[Pair]:
    """Yield filters as trees; the tests are shared, there being only a few thousand."""
    from tidings.model import And

    make_test = [_cache_tests(at) for at in range(CONCEPTS + NUMBERS)]
    for begin in range(0, n, CHUNK):
        count = min(CHUNK, n - begin)
        chosen = [_draw_parts(count, rng, at, height) for at in range(CONCEPTS + NUMBERS)]
        for row in range(count):
            parts = tuple(make_test[at](*(draw[row] for draw in chosen[at])) for at in range(CONCEPTS + NUMBERS))
            yield f"s{begin + row}", And(parts)


def _draw_parts(count: int, rng: Generator, at: int, height: int) -> list[list[int]]:
    """Draw a node of the tree of names and a value: a node of the tree of values, or a side and a number."""
    level = rng.integers(0, height, count, endpoint=True)
    name = [level, (rng.random(count) * WIDTH**level).astype(np.int64)]
    if at < CONCEPTS:
        below = rng.integers(0, height, count, endpoint=True)
        value = [below, (rng.random(count) * WIDTH**below).astype(np.int64)]
    else:
        value = [rng.integers(0, 2, count), rng.integers(0, PRECISION, count)]
    return [numbers.tolist() for numbers in (*name, *value)]


def _cache_tests(at: int) -> Callable[..., Test]:
    """Return a cached function from the numbers of `_draw_parts` to a test on attribute `at`."""
    from tidings.model import IsA, Range, Test

    def make_concept_test(level: int, place: int, below: int, inner: int) -> Test:
        return Test(name_node(f"name{at}", level, place), IsA(name_node(f"kind{at}", below, inner), f"kind{at}"))

    def make_number_test(level: int, place: int, side: int, end: int) -> Test:
        value = end / PRECISION
        condition = Range(value, None) if side else Range(None, value)
        return Test(name_node(f"name{at}", level, place), condition)

    return cache(make_concept_test if at < CONCEPTS else make_number_test)
