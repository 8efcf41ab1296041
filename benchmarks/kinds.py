"""Cost of reading attributes by declared kinds: `python -m benchmarks.kinds [--against OTHER/src]`.

Subscriptions of three ranges, asked in batches of 1,024 events: `numbers` are Arrow columns of numbers, `rows` are
mappings, `texts` are Arrow columns of text that hold numbers. Each is declared, or nothing is. Rows and texts are also
mixed: a tenth of the tests ask for text, and a tenth of the values are words. Mixed kinds are held against the same
tests and values kept apart, in declared attributes of one kind each; the others against the declared way of their form.
With `--against`, what an older version can do is also run by its source tree, in interleaved pairs of processes.
Ratios are told with the 90 % interval of their mean.

Times are processor time, reading included, on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WAYS = [
    *("numbers declared", "numbers undeclared"),
    *("rows declared", "rows undeclared", "rows apart", "rows mixed"),
    *("texts declared", "texts apart", "texts mixed"),
]
ATTRIBUTES, EVENTS, WORDS = 10, 1024, ("ford", "opel", "fiat", "audi")


def main() -> None:
    """Measure and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--subscriptions", type=int, default=200_000)
    options.add_argument("--batches", type=int, default=12)
    options.add_argument("--pairs", type=int, default=10)
    options.add_argument("--against", type=Path, help="the src folder of another version")
    options.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.way:
        print(json.dumps(measure_way(arguments.way, arguments.subscriptions, arguments.batches)))
        return
    ours = Path(__file__).resolve().parents[1] / "src"
    rounds = [{way: measure_in_process(ours, way, arguments) for way in WAYS} for _ in range(arguments.pairs)]
    print(
        f"kinds: {arguments.subscriptions:,} subscriptions of 3 ranges over {ATTRIBUTES} attributes,"
        f" batches of {EVENTS:,}"
    )
    for way in WAYS:
        base = f"{way.split()[0]} {'apart' if 'mixed' in way else 'declared'}"
        print(f"  {way:20} {statistics.median(turn[way] for turn in rounds):8.1f} us an event", end="")
        print(f"   ratio to {base.split()[1]} {format_ratios([turn[way] / turn[base] for turn in rounds])}")
    for way in [way for way in WAYS if "mixed" not in way] if arguments.against else ():
        pairs = [
            (measure_in_process(ours, way, arguments), measure_in_process(arguments.against, way, arguments))
            for _ in range(arguments.pairs)
        ]
        print(f"  {way:20} against the other: ratio {format_ratios([turn / two for turn, two in pairs])}")


def format_ratios(ratios: list[float]) -> str:
    """Return the median of ratios and the 90 % interval of their mean, by resampling."""
    rng = random.Random(1)
    means = sorted(statistics.fmean(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return f"{statistics.median(ratios):.3f}, 90 % interval {means[100]:.3f} to {means[1899]:.3f}"


def measure_in_process(src: Path, way: str, arguments: argparse.Namespace) -> float:
    """Return microseconds an event, measured in a process of its own."""
    command = [sys.executable, __file__, "--way", way]
    command += ["--subscriptions", str(arguments.subscriptions), "--batches", str(arguments.batches)]
    environment = {**os.environ, "PYTHONPATH": str(src)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    return float(json.loads(ran.stdout))


def measure_way(way: str, subscriptions: int, batches: int) -> float:
    """Return microseconds an event of one way."""
    import pyarrow as pa

    import tidings as td

    rng = random.Random(7)
    kinds = {f"a{at}": "number" for at in range(ATTRIBUTES)}
    if "apart" in way:
        kinds |= {f"b{at}": "text" for at in range(ATTRIBUTES)}
    schema = None if "undeclared" in way or "mixed" in way else td.Schema(kinds)
    matcher = td.Matcher(schema=schema)
    matcher.add_many(pa.table({"id": list(range(subscriptions)), "filter": draw_texts(rng, subscriptions, way)}))
    matcher.compact()
    columns = [draw_events(rng, way) for _ in range(batches + 2)]
    tables = [pa.table(part) if "rows" not in way else list(split_rows(part)) for part in columns]
    for table in tables[:2]:
        matcher.match_many(table)
    begin_s = time.process_time()
    for table in tables[2:]:
        matcher.match_many(table)
    return (time.process_time() - begin_s) / (batches * EVENTS) * 1e6


def draw_texts(rng: random.Random, count: int, way: str) -> list[str]:
    """Return filters of three ranges each; where kinds are mixed, a tenth of the tests are of text."""
    return [" and ".join(test(rng, at, way) for at in sorted(rng.sample(range(ATTRIBUTES), 3))) for _ in range(count)]


def test(rng: random.Random, at: int, way: str) -> str:
    """Return one test."""
    if ("mixed" in way or "apart" in way) and rng.random() < 0.1:
        return f"{'a' if 'mixed' in way else 'b'}{at} = '{rng.choice(WORDS)}'"
    low = rng.randrange(9000)
    return f"a{at} in [{low} .. {low + 1000}]"


def draw_events(rng: random.Random, way: str) -> dict[str, list[object]]:
    """Return the columns of a batch: numbers, or text that holds them; where kinds are mixed, some words between."""
    columns = {f"a{at}": [value(rng, way) for _ in range(EVENTS)] for at in range(ATTRIBUTES)}
    if "apart" not in way:
        return columns
    words = {f"b{name[1:]}": [cell if cell in WORDS else None for cell in values] for name, values in columns.items()}
    return {name: [None if cell in WORDS else cell for cell in values] for name, values in columns.items()} | words


def value(rng: random.Random, way: str) -> object:
    """Return one value."""
    if ("mixed" in way or "apart" in way) and rng.random() < 0.1:
        return rng.choice(WORDS)
    number = rng.randrange(10_000)
    return str(number) if "texts" in way else number


def split_rows(columns: dict[str, list[object]]) -> Iterator[dict[str, object]]:
    """Yield columns as rows."""
    for values in zip(*columns.values(), strict=True):
        yield {name: value for name, value in zip(columns, values, strict=True) if value is not None}


if __name__ == "__main__":
    main()
