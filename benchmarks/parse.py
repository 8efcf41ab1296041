"""How many filters a second are parsed: `python -m benchmarks.parse`.

Typical saved searches in text notation (seeded, 1 to 6 predicates, some with `or`, `not`, sets and polygons),
on one core. The baseline in the same run is the grammar alone. "First time" empties the cache of
predicates before each repetition; "loaded before" is what a second load of similar searches costs.
"""

from __future__ import annotations

import argparse

from tidings.bench.harness.results import describe_machine
from tidings.bench.harness.timing import time_work
from tidings.bench.workloads import saved_searches
from tidings.lang import parse, render
from tidings.lang.filters.fast_text import FAST_PARSER, parse_fast
from tidings.lang.filters.parse_text import parse_text


def main() -> None:
    """Measure and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--filters", type=int, default=20_000)
    options.add_argument("--quick", action="store_true", help="a tenth of the work, for a smoke test")
    arguments = options.parse_args()
    report(arguments.filters // 10 if arguments.quick else arguments.filters)


def report(count: int) -> None:
    """Measure `count` saved searches in each notation."""
    texts = [text for _, text in saved_searches(count, seed=1)]
    slow = texts[: max(200, count // 40)]
    trees = [parse(text) for text in texts]
    jsons = [render(tree, notation="json") for tree in trees]

    def parse_first_time() -> None:
        FAST_PARSER.cache.clear()
        _parse_all(texts, "text")

    rows = {
        "text, first time": (time_work(parse_first_time), len(texts)),
        "text, loaded before": (time_work(lambda: _parse_all(texts, "text")), len(texts)),
        "text, grammar alone (baseline)": (time_work(lambda: [parse_text(text) for text in slow], repeat=3), len(slow)),
        "json": (time_work(lambda: _parse_all(jsons, "json"), repeat=3), len(jsons)),
        "render text": (time_work(lambda: [render(tree) for tree in trees], repeat=3), len(trees)),
    }
    slow_count = sum(parse_fast(text) is None for text in texts)
    base = rows["text, grammar alone (baseline)"]
    base_rate = base[1] / base[0].median
    print(f"parse: {count:,} saved searches, {slow_count:,} of them left to the grammar; {describe_machine()}")
    for name, (timing, amount) in rows.items():
        rate = amount / timing.median
        print(f"  {name:<32} {rate:>10,.0f}/s  +-{timing.spread:.0%}   {rate / base_rate:6.1f}x the grammar")


def _parse_all(sources: list[str], notation: str) -> None:
    for source in sources:
        parse(source, notation=notation)


if __name__ == "__main__":
    main()
