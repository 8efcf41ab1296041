"""Concept trees as in table 1 of the CTPS paper: trees of names and of values, two children to a node.

Six attributes, each with a tree of names; four of them have values from a tree of concepts, two have numbers. An
event names leaves. A subscription names a node of any level, all levels equally likely, so it covers a leaf of a tree
of height h with probability (1 + 1/2 + ... + 1/2**h) / (h + 1).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidings.bench.workloads.seeded_workload import Baseline, Workload, split_in_chunks
from tidings.concepts import Declared, Ontology, Tree
from tidings.model import And, IsA, Kind, Range, Test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    from tidings.bench.workloads.workload_columns import WorkloadColumn
    from tidings.kernels.array_types import IntArray

CONCEPTS, NUMBERS = 4, 2
"""Attributes with values from a concept tree, and attributes with numbers."""

ATTRIBUTES = CONCEPTS + NUMBERS

WIDTH = 2
"""Children of a node."""

PRECISION = 1000
"""Numbers are decimals of three digits below one."""


def build_concepts(*, height: int = 5) -> Workload:
    """Conjunctions of `is a` and numbers under names that are concepts themselves."""
    covering = sum(0.5**level for level in range(height + 1)) / (height + 1)
    return Workload(
        key="concepts",
        description=f"CTPS table 1: 6 names from concept trees, 4 values `is a`, 2 numbers; trees of height {height}",
        expected=lambda n: n * covering ** (ATTRIBUTES + CONCEPTS) * 0.5**NUMBERS,
        tolerance=0.5,
        make_events=lambda count, rng: _draw_events(count, rng, height),
        make_filters=lambda n, rng: _draw_filters(n, rng, height),
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
    nodes = [(level, place) for level in range(height + 1) for place in range(WIDTH**level)]
    return Tree(
        {
            name_node(word, level, place): [name_node(word, level - 1, place // WIDTH)] if level else []
            for level, place in nodes
        }
    )


def build_ontology(height: int) -> Ontology:
    """Return the trees of names and of values, with the kind of each name declared."""
    names = {f"name{number}": _build_tree(f"name{number}", height) for number in range(ATTRIBUTES)}
    values = {f"kind{number}": _build_tree(f"kind{number}", height) for number in range(CONCEPTS)}
    declared: dict[str, Declared] = {}
    for number in range(ATTRIBUTES):
        declaration = Declared(Kind.CONCEPT, f"kind{number}") if number < CONCEPTS else Declared(Kind.NUMBER)
        for level in range(height + 1):
            declared |= {name_node(f"name{number}", level, place): declaration for place in range(WIDTH**level)}
    return Ontology(trees=values, attribute_trees=names, attributes=declared)


def _draw_events(count: int, rng: Generator, height: int) -> dict[str, WorkloadColumn]:
    """Return events with one leaf of each tree of names; the columns are all the leaves."""
    leaves = WIDTH**height
    columns: dict[str, WorkloadColumn] = {}
    for number in range(ATTRIBUTES):
        named = rng.integers(0, leaves, count)
        values = _draw_values(count, rng, number, height)
        for place in range(leaves):
            columns[name_node(f"name{number}", height, place)] = pa.array(values, mask=named != place)
    return columns


def _draw_values(count: int, rng: Generator, number: int, height: int) -> NDArray[np.generic]:
    if number >= CONCEPTS:
        return rng.integers(0, PRECISION, count) / PRECISION
    names = np.array([name_node(f"kind{number}", height, place) for place in range(WIDTH**height)], object)
    return names[rng.integers(0, len(names), count)]


def _draw_filters(n: int, rng: Generator, height: int) -> Iterator[And]:
    """Yield filters as trees; the tests are shared, there being only a few thousand."""
    make_test = [_cache_tests(number) for number in range(ATTRIBUTES)]
    for count in split_in_chunks(n):
        chosen = [_draw_parts(count, rng, number, height) for number in range(ATTRIBUTES)]
        for row in range(count):
            yield And(tuple(make_test[number](*(draw[row] for draw in chosen[number])) for number in range(ATTRIBUTES)))


def _draw_parts(count: int, rng: Generator, number: int, height: int) -> list[list[int]]:
    """Draw a node of the tree of names and a value: a node of the tree of values, or a side and a number."""
    name = _draw_nodes(count, rng, height)
    if number < CONCEPTS:
        value = _draw_nodes(count, rng, height)
    else:
        value = [rng.integers(0, 2, count), rng.integers(0, PRECISION, count)]
    return [numbers.tolist() for numbers in (*name, *value)]


def _draw_nodes(count: int, rng: Generator, height: int) -> list[IntArray]:
    level = rng.integers(0, height, count, endpoint=True)
    return [level, (rng.random(count) * WIDTH**level).astype(np.int64)]


def _cache_tests(number: int) -> Callable[..., Test]:
    """Return a cached function from the numbers of `_draw_parts` to a test on attribute `at`."""

    def make_test(level: int, place: int, first: int, second: int) -> Test:
        if number < CONCEPTS:
            condition: IsA | Range = IsA(name_node(f"kind{number}", first, second), f"kind{number}")
        else:
            condition = Range(second / PRECISION, None) if first else Range(None, second / PRECISION)
        return Test(name_node(f"name{number}", level, place), condition)

    return cache(make_test)
