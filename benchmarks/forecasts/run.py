"""How many events a second forecasts take, in one process on one core: `python -m benchmarks.forecasts.run`.

Events come as an Arrow table of `id`, `time`, `type` (a dictionary). Timed is `Detector.detect_many` with a model, and
the count of detections and forecasts: reading, asking the filters, moving the machines on, following the courses and
writing down what is told; objects are not made. The detector goes on through one stream: the first piece is a warm-up,
and each repeat takes the next. By turns a plain loop takes fewer events of the same stream. Time is the processor's.

Before anything is timed, the loop and the detector must give the same probabilities at the same events.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import tidings as td
from benchmarks.forecasts.plain import PlainForecastLoop
from benchmarks.patterns.run import format_heading
from tidings.bench.harness.timing import Clock, Figure, measure_seconds
from tidings.bench.workloads.composites import PublicationStream, composites, publications, uniform_stream
from tidings.lang import WrittenPattern
from tidings.model.patterns import Mode

if TYPE_CHECKING:
    from tidings.model.patterns import Pattern

SEED = 8
HORIZON, THRESHOLD = 10, 0.5
LOOPED = 2_000_000
"""Steps (patterns times events) that the plain loop takes in a repeat."""


@dataclass(frozen=True, slots=True)
class ForecastCase:
    """A row: the number of patterns, what is forecast of them, the stream, and the rate that must be reached."""

    key: str
    called: str
    patterns: int
    tell: str
    events: int
    must: int
    aim: int
    published: bool = False


CASES = (
    ForecastCase("one", "1 pattern of 5 steps, at every event", 1, "every", 500_000, 200_000, 1_000_000),
    ForecastCase("fifty", "50 such, on crossing", 50, "crossing", 200_000, 0, 0),
    ForecastCase("paper", "1,000 of the paper, uniform events, on crossing", 1000, "crossing", 60_000, 50_000, 200_000),
    ForecastCase(
        "published", "1,000 of the paper, its publications", 1000, "crossing", 60_000, 50_000, 200_000, published=True
    ),
)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--only", nargs="*", choices=[*(case.key for case in CASES), "training"], help="these rows")
    options.add_argument("--quick", action="store_true", help="tiny sizes, for a smoke test; the figures mean nothing")
    arguments = options.parse_args()
    only = arguments.only or [*(case.key for case in CASES), "training"]
    print(f"{format_heading('forecasts')}\n", flush=True)
    columns = f"{'events/s':>12} {'spread':>7} {'must':>9} {'aim':>10} {'plain loop':>11} {'forecasts an event':>19}"
    print(f"{'':52}{columns}")
    for case in CASES:
        if case.key in only:
            measure_case(case, repeat=arguments.repeat, quick=arguments.quick)
    if "training" in only:
        measure_training(repeat=min(3, arguments.repeat), quick=arguments.quick)


def draw_patterns(case: ForecastCase, *, quick: bool) -> list[Pattern]:
    """Return the patterns of a row."""
    if case.patterns < 1000:
        return composites(case.patterns, length=5, pool=50, later=1, seed=SEED)
    return composites(20 if quick else case.patterns, seed=SEED)


def stream_of(case: ForecastCase, patterns: list[Pattern], count: int) -> PublicationStream:
    """Return a stream of so many events."""
    if not case.published:
        return uniform_stream(count, seed=SEED + 1)
    whole = publications(patterns, seed=SEED + 1)
    turns = -(-count // len(whole))
    types = np.tile(whole.types, turns)[:count]
    return PublicationStream(types, np.arange(count, dtype=np.int64) * 1_000_000)


def watch_patterns(patterns: list[Pattern], model: td.Model, case: ForecastCase) -> td.Detector:
    """Return a detector that forecasts them all."""
    detector = td.Detector(model=model)
    detector.add_many(write_patterns(patterns), horizon=HORIZON, threshold=THRESHOLD, tell=case.tell)
    return detector


def write_patterns(patterns: list[Pattern]) -> list[WrittenPattern]:
    """Return patterns under their numbers."""
    return [WrittenPattern(f"p{number}", pattern, Mode.RESTART, None) for number, pattern in enumerate(patterns)]


def measure_case(case: ForecastCase, *, repeat: int, quick: bool) -> None:
    """Time one row beside the plain loop, and print it."""
    events = 2_000 if quick else case.events
    patterns = draw_patterns(case, quick=quick)
    stream = stream_of(case, patterns, events * (repeat + 2))
    table, names = stream.table(), stream.names()
    learner = td.Detector()
    learner.add_many(write_patterns(patterns))
    detector = watch_patterns(patterns, td.train(learner, table.slice(0, events)), case)
    loop = PlainForecastLoop.of(detector, HORIZON, THRESHOLD)
    check_agreement(case, patterns, detector, table.slice(0, min(events, 500)), names[: min(events, 500)])
    detector.detect_many(table.slice(0, events))
    few = max(1, min(events, LOOPED // len(patterns)))
    ours, plain, forecasts = [], [], 0
    for turn in range(1, repeat + 1):
        piece = table.slice(turn * events, events)
        results: list[td.Detections] = []
        taking = partial(take_events, detector, piece, results)
        ours.append(measure_seconds(taking, Clock.PROCESSOR) / events)
        forecasts = len(results[0].forecasts)
        some = names[turn * events : turn * events + few]
        plain.append(measure_seconds(partial(loop.take, some), Clock.PROCESSOR) / few)
    mine, other = Figure("s", tuple(ours)), Figure("s", tuple(plain))
    must, aim = (f"{n:,}" if n else "" for n in (case.must, case.aim))
    print(
        f"{case.called:<52}{1 / mine.median:>12,.0f} {mine.spread:>7.0%} {must:>9} {aim:>10} "
        f"{other.median / mine.median:>10,.0f}x {forecasts / events:>19.3f}",
        flush=True,
    )


def take_events(detector: td.Detector, events: object, results: list[td.Detections]) -> None:
    """Feed events to a detector, and keep what it finds."""
    results.append(detector.detect_many(events))


def check_agreement(
    case: ForecastCase, patterns: list[Pattern], detector: td.Detector, table: object, names: list[str]
) -> None:
    """Raise an error unless the loop and the detector forecast the same of the first pattern at every event."""
    model = detector.model
    assert model is not None
    single = watch_patterns(patterns[:1], model, ForecastCase("", "", 1, "every", 0, 0, 0))
    probabilities = single.detect_many(table).forecasts.probabilities
    chances: list[float] = []
    PlainForecastLoop.of(single, HORIZON, THRESHOLD).take(names, every=chances)
    if not np.array_equal(probabilities, np.array(chances)):
        msg = f"{case.key}: the loop and the detector do not agree"
        raise SystemExit(msg)


def measure_training(*, repeat: int, quick: bool) -> None:
    """Time training on a million events with a thousand patterns."""
    events, count = (20_000, 20) if quick else (1_000_000, 1_000)
    table = uniform_stream(events, seed=SEED).table()
    learner = td.Detector()
    learner.add_many(write_patterns(composites(count, seed=SEED)))
    td.train(learner, table.slice(0, 1_000))
    seconds = Figure(
        "s", tuple(measure_seconds(lambda: td.train(learner, table), Clock.PROCESSOR) for _ in range(repeat))
    )
    title = f"training, {events:,} events, {count:,} patterns"
    print(f"{title:<52}{seconds.median:>10.1f} s {seconds.spread:>7.0%} {'60 s':>9} {'20 s':>10}")


if __name__ == "__main__":
    main()
