"""Concept trees as in table 1 of the CTPS paper: trees of names and of values, two children to a node.

Six attributes, each with a tree of names; four of them have values from a tree of concepts, two have numbers. An
event names leaves. A subscription names a node of any level, all levels alike, so it hears of a leaf of a tree of
height h with the chance (1 + 1/2 + ... + 1/2**h) / (h + 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.bench.workloads.base import Baseline, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.random import Generator
    from numpy.typing import NDArray

    from tidings.bench.workloads.base import Pair
    from tidings.concepts import Ontology, Tree

CONCEPTS, NUMBERS = 4, 2
"""Attributes with values from a concept tree, and attributes with numbers."""

WIDTH = 2
"""Children of a node."""

PRECISION = 1000
"""Numbers are decimals of three digits below one."""

CHUNK = 10_000


def concepts(*, height: int = 5) -> Workload:
    """Conjunctions of `is a` and numbers under names that are concepts themselves."""
    attributes = CONCEPTS + NUMBERS
    heard = sum(0.5**level for level in range(height + 1)) / (height + 1)

    def pairs(n: int, rng: Generator) -> Iterator[Pair]:
        return _filters(n, rng, height)

    def events(count: int, rng: Generator) -> pa.Table:
        return _events(count, rng, height)

    return Workload(
        key="concepts",
        description=f"CTPS table 1: 6 names from concept trees, 4 values `is a`, 2 numbers; trees of height {height}",
        expected=lambda n: n * heard ** (attributes + CONCEPTS) * 0.5**NUMBERS,
        tolerance=0.5,
        make_events=events,
        make_pairs=pairs,
        make_ontology=lambda: ontology(height),
        baseline=Baseline.BRUTE,
    )


def node(word: str, level: int, place: int) -> str:
    """Name the node at a place of a level: `kind0` is a root, `kind0_101` its right, left, right descendant.

    >>> node("kind0", 3, 5)
    'kind0_101'
    """
    return f"{word}_{place:0{level}b}" if level else word


def _tree(word: str, height: int) -> Tree:
    from tidings.concepts import Tree

    nodes = [(level, place) for level in range(height + 1) for place in range(WIDTH**level)]
    return Tree(
        {node(word, level, place): [node(word, level - 1, place // WIDTH)] if level else [] for level, place in nodes}
    )


def ontology(height: int) -> Ontology:
    """Return the trees of names and of values, and what each name holds."""
    from tidings.concepts import Declared, Ontology
    from tidings.model import Kind

    names = {f"name{at}": _tree(f"name{at}", height) for at in range(CONCEPTS + NUMBERS)}
    values = {f"kind{at}": _tree(f"kind{at}", height) for at in range(CONCEPTS)}
    declared: dict[str, Any] = {}
    for at in range(CONCEPTS + NUMBERS):
        holds = Declared(Kind.CONCEPT, f"kind{at}") if at < CONCEPTS else Declared(Kind.NUMBER)
        for level in range(height + 1):
            declared |= {node(f"name{at}", level, place): holds for place in range(WIDTH**level)}
    return Ontology(trees=values, attribute_trees=names, attributes=declared)


def _events(count: int, rng: Generator, height: int) -> pa.Table:
    """Return events with one leaf of each tree of names; the columns are all the leaves."""
    import pyarrow as pa

    leaves = WIDTH**height
    columns: dict[str, pa.Array] = {}
    for at in range(CONCEPTS + NUMBERS):
        named = rng.integers(0, leaves, count)
        values = _values(count, rng, at, height)
        for place in range(leaves):
            columns[node(f"name{at}", height, place)] = pa.array(values, mask=named != place)
    return pa.table(columns)


def _values(count: int, rng: Generator, at: int, height: int) -> NDArray[Any]:
    if at >= CONCEPTS:
        return rng.integers(0, PRECISION, count) / PRECISION
    names = np.array([node(f"kind{at}", height, place) for place in range(WIDTH**height)], object)
    return names[rng.integers(0, len(names), count)]


def _filters(n: int, rng: Generator, height: int) -> Iterator[Pair]:
    """Yield filters as trees; the tests are shared, there being only a few thousand."""
    from tidings.model import And

    tests = [_tests(at, height) for at in range(CONCEPTS + NUMBERS)]
    for begin in range(0, n, CHUNK):
        count = min(CHUNK, n - begin)
        chosen = [_drawn(count, rng, at, height) for at in range(CONCEPTS + NUMBERS)]
        for row in range(count):
            parts = tuple(tests[at](*(draw[row] for draw in chosen[at])) for at in range(CONCEPTS + NUMBERS))
            yield f"s{begin + row}", And(parts)


def _drawn(count: int, rng: Generator, at: int, height: int) -> list[list[int]]:
    """Draw a node of the names' tree and a value: a node of the values' tree, or a number and a side."""
    level = rng.integers(0, height, count, endpoint=True)
    name = [level, (rng.random(count) * WIDTH**level).astype(np.int64)]
    if at < CONCEPTS:
        below = rng.integers(0, height, count, endpoint=True)
        value = [below, (rng.random(count) * WIDTH**below).astype(np.int64)]
    else:
        value = [rng.integers(0, 2, count), rng.integers(0, PRECISION, count)]
    return [drawn.tolist() for drawn in (*name, *value)]


def _tests(at: int, height: int) -> Any:  # noqa: ARG001 - every height has the same names
    """Return a function from what was drawn to a test, which remembers what it made."""
    from functools import cache

    from tidings.model import IsA, Range, Test

    def concept(level: int, place: int, below: int, of: int) -> Test:
        return Test(node(f"name{at}", level, place), IsA(node(f"kind{at}", below, of), f"kind{at}"))

    def number(level: int, place: int, side: int, end: int) -> Test:
        value = end / PRECISION
        condition = Range(value, None) if side else Range(None, value)
        return Test(node(f"name{at}", level, place), condition)

    return cache(concept if at < CONCEPTS else number)
