"""Subscriptions with a chosen match rate over the trees of Table 1.

The paper varies the match rate and does not say how. Here each of the twelve constraints (six names, four concepts,
two numbers) accepts a random event with the same chance, the twelfth root of the rate, at every height: a name or a
concept is the root with a chance that makes it so, else a node of any lower level; a number is a range of that width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.bench.workloads.concept_hierarchies import CONCEPTS, NUMBERS, WIDTH, name_node
from tidings.model import And, IsA, Range, Test

if TYPE_CHECKING:
    from numpy.random import Generator

    from tidings.model import Filter

CONSTRAINTS = 2 * CONCEPTS + 2 * NUMBERS
"""Names, and what is asked of their values."""


def draw_rated(n: int, *, height: int, rate: float, seed: int) -> list[tuple[str, Filter]]:
    """Return subscriptions of which an event matches this share, about."""
    rng = np.random.default_rng([seed, 3])
    chance = rate ** (1 / CONSTRAINTS)
    return [
        (f"s{at}", And(tuple(_test(of, height, chance, rng) for of in range(CONCEPTS + NUMBERS)))) for at in range(n)
    ]


def _test(of: int, height: int, chance: float, rng: Generator) -> Test:
    name = _draw_node(f"name{of}", height, chance, rng)
    if of < CONCEPTS:
        return Test(name, IsA(_draw_node(f"kind{of}", height, chance, rng), f"kind{of}"))
    low = float(rng.random() * (1 - chance))
    return Test(name, Range(low, low + chance))


def _draw_node(word: str, height: int, chance: float, rng: Generator) -> str:
    """Draw a node that a random leaf is below with this chance: the root, or a node of any lower level."""
    lower = sum(1 / WIDTH**level for level in range(1, height + 1)) / height
    if rng.random() < (chance - lower) / (1 - lower):
        return word
    level = int(rng.integers(1, height, endpoint=True))
    return name_node(word, level, int(rng.integers(WIDTH**level)))
