"""Memory under constant change: `python -m benchmarks.churn`.

A hundred thousand subscriptions, of which a thousand at a time are removed and replaced by others with other values:
places, text patterns, sets and names that never come again. After each round, in which every subscription is
replaced once on average, the resident memory of the process and the sizes of the lists that rows point into. If
those lists kept what only the dead asked for, they would grow for ever; they must follow the living. What else
grows levels off: the parser keeps the last 100,000 texts of tests.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

from tidings import Matcher
from tidings.engine.compile.code_spaces import LinearSpace

AT_ONCE = 1000
WORDS = [f"word{number}" for number in range(2000)]


def filter_text(rng: random.Random) -> str:
    """Return a filter: half of them plain, the others of the kinds for which the engine keeps lists of their own."""
    price = rng.randint(1, 10**6)
    if rng.random() < 0.5:
        return f"make = '{rng.choice(WORDS)}' and price < {price}"
    number = rng.randint(0, 10**9)
    return rng.choice(
        [
            f"title contains 'x{number}' and price > {price}",
            f"spot near ({rng.uniform(-170, 170):.4f}, {rng.uniform(-80, 80):.4f}) {rng.randint(1, 50)} km",
            f"city in ('a{number}', 'b{number}', 'c{number}')",
            f"(make = '{rng.choice(WORDS)}' or year = {1990 + number % 40}) and price in [{price} .. {price + 1000}]",
            f"name = 'n{number}'",
        ]
    )


def measure_sizes(matcher: Matcher) -> Counter[str]:
    """Return how long the lists are that the rows of all segments point into."""
    total: Counter[str] = Counter()
    for part in matcher.backend.state.parts:  # type: ignore[union-attr]
        segment = part.segment
        total["slots"] += len(segment)
        total["end points"] += sum(len(space) for space in segment.spaces if not isinstance(space, LinearSpace))
        total["intervals of unions"] += len(segment.index.rows.union_low)
        total["items"] += len(segment.exact_checks.items)
        total["patterns"] += sum(len(automaton.tests) for automaton in segment.automata.values())
    return total


def read_resident_memory() -> int:
    """Return the resident memory in MB."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    return 0


def main() -> None:
    """Change all subscriptions again and again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=17)
    arguments = parser.parse_args()
    rng, matcher = random.Random(16), Matcher()
    matcher.add_many([(number, filter_text(rng)) for number in range(arguments.subscriptions)])
    living, following = list(range(arguments.subscriptions)), arguments.subscriptions
    show("start", matcher)
    for number in range(1, arguments.rounds + 1):
        begun = time.perf_counter()
        for _ in range(arguments.subscriptions // AT_ONCE):
            rng.shuffle(living)
            matcher.remove_many(living[:AT_ONCE])
            added = range(following, following + AT_ONCE)
            matcher.add_many([(id, filter_text(rng)) for id in added])
            living[:AT_ONCE], following = added, following + AT_ONCE
        show(f"round {number}, {time.perf_counter() - begun:.0f} s", matcher)
    matcher.compact()
    show("compact()", matcher)


def show(title: str, matcher: Matcher) -> None:
    """Print a line."""
    lists = ", ".join(f"{name} {size:,}" for name, size in measure_sizes(matcher).items())
    print(f"{title}: {read_resident_memory()} MB; {len(matcher):,} subscriptions; {lists}", flush=True)


if __name__ == "__main__":
    main()
