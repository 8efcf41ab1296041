"""How many events a second patterns take, in one process on one core: `python -m benchmarks.patterns.run`.

Events come as an Arrow table of `id`, `time`, `type` (a dictionary) and, where there are keys, `user` (text). Timed is
`Detector.detect_many` with the count of detections: reading the columns, asking the filters, moving the machines on and
writing reports down; `Detection` objects are not made. The detector goes on through one stream: the first piece is a
warm-up, and each repeat takes the next one. Beside it, by turns, a plain loop in Python takes fewer events of the same
stream, which it is given as lists, and where it is asked the paper's own machine takes some. Time is the processor's.

Before anything is timed, detector and plain loop must have found as many matches of each pattern in the same events.
The paper's machine is not held to them: it reports otherwise (`tidings.papers.p_topss.paper_machine`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import tidings as td
from benchmarks.patterns.cases import CASES, SEED, PatternCase, draw_abc
from benchmarks.patterns.plain import PlainPatternLoop
from tidings.bench.harness.results import describe_machine
from tidings.bench.harness.timing import Clock, Figure, measure_seconds
from tidings.bench.workloads.composites import composites
from tidings.lang import WrittenPattern, parse_pattern, render_pattern
from tidings.model.patterns import Mode
from tidings.papers.p_topss.paper_machine import PaperMachine

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from tidings.model.patterns import Pattern

RATIO = ("hundred", "ten-thousand")
"""Two rows whose times for an event are compared, and how many times longer the second may take."""

MOST = 2.0


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of a row: microseconds an event of each, and detections an event."""

    case: PatternCase
    ours: Figure
    plain: Figure
    paper: Figure | None
    detections: float

    @property
    def rate(self) -> float:
        """Events a second."""
        return 1e6 / self.ours.median


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--only", nargs="*", choices=[case.key for case in CASES], help="these rows")
    options.add_argument("--compiling", action="store_true", help="time and memory of adding patterns, too")
    options.add_argument("--quick", action="store_true", help="tiny sizes, for a smoke test; the figures mean nothing")
    arguments = options.parse_args()
    print(f"{format_heading()}\n", flush=True)
    rows = measure_table(arguments.only or [case.key for case in CASES], repeat=arguments.repeat, quick=arguments.quick)
    if comparison := format_comparison(rows):
        print(comparison)
    if arguments.compiling:
        measure_compiling(20 if arguments.quick else 1_000)


def format_heading(title: str = "patterns") -> str:
    """Return a line with machine, date, commit and command."""
    git = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(git, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)  # noqa: S603 - ours
    command = " ".join([f"python -m benchmarks.{title}.run", *sys.argv[1:]])
    commit = done.stdout.strip() or "no git"
    return f"{title}: {describe_machine()}, one core, {datetime.now(UTC):%Y-%m-%d}, {commit}\n  {command}"


# The table -------------------------------------------------------------------------------------


def measure_table(keys: Iterable[str], *, repeat: int, quick: bool) -> list[Measured]:
    """Measure rows, and print each as soon as it is measured."""
    print("| patterns | events/s | spread | must | aim | plain loop | paper's machine | detections an event |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    rows = []
    for case in [case for case in CASES if case.key in set(keys)]:
        rows.append(measure_case(case.shrink() if quick else case, repeat=repeat))
        print(format_row(rows[-1]), flush=True)
    return rows


def measure_case(case: PatternCase, *, repeat: int) -> Measured:
    """Check that detector and loop agree, warm up, and measure them in turn."""
    patterns = case.patterns()
    events = case.events((repeat + 1) * case.many + case.few)
    detector, plain = build_detector(patterns, case.mode), PlainPatternLoop(patterns, mode=case.mode)
    check_agreement(case, detector, plain, events.slice(0, case.few))
    paper = _build_paper_machine(patterns) if case.paper else None
    ours, loops, papers = [], [], []
    counts: list[int] = []
    for turn in range(repeat + 1):
        piece = events.slice(case.few + turn * case.many, case.many)
        lists = _lists(piece.slice(0, case.few))
        ours.append(
            measure_seconds(lambda piece=piece: counts.append(len(detector.detect_many(piece))), Clock.PROCESSOR)
        )
        loops.append(measure_seconds(lambda lists=lists: plain.take(*lists), Clock.PROCESSOR))
        if paper is not None:
            some = _lists(piece.slice(0, case.paper))
            papers.append(measure_seconds(lambda some=some: _feed(paper, *some), Clock.PROCESSOR))
    return Measured(
        case,
        _to_figure(ours[1:], case.many),
        _to_figure(loops[1:], case.few),
        _to_figure(papers[1:], case.paper) if papers else None,
        sum(counts[1:]) / (repeat * case.many),
    )


def build_detector(patterns: list[Pattern], mode: str) -> td.Detector:
    """Return a detector with the patterns compiled."""
    detector = td.Detector()
    detector.add_many(
        [WrittenPattern(str(number), pattern, Mode(mode), None) for number, pattern in enumerate(patterns)]
    )
    detector.detect_many([])
    return detector


def check_agreement(case: PatternCase, detector: td.Detector, plain: PlainPatternLoop, events: pa.Table) -> None:
    """Refuse to time what differs."""
    ours = {int(name): count for name, count in detector.detect_many(events).by_pattern().items()}
    loop = {number: count for number, count in plain.take(*_lists(events)).items() if count}
    if ours != loop:
        wrong = sum(ours.get(number) != loop.get(number) for number in {*ours, *loop})
        msg = (
            f"`{case.key}`: detector and plain loop differ in {wrong} patterns; figures of a wrong answer mean nothing"
        )
        raise RuntimeError(msg)


def _lists(events: pa.Table) -> tuple[list[str], list[int], list[str] | None]:
    import pyarrow as pa

    keys = events["user"].to_pylist() if "user" in events.column_names else None
    return events["type"].to_pylist(), events["time"].cast(pa.int64()).to_pylist(), keys


def _build_paper_machine(patterns: list[Pattern]) -> PaperMachine:
    machine = PaperMachine()
    for number, pattern in enumerate(patterns):
        machine.add(str(number), pattern)
    return machine


def _feed(machine: PaperMachine, types: list[str], times: list[int], _: object) -> None:
    for name, at in zip(types, times, strict=True):
        machine.on_event((name,), at)


def _to_figure(seconds: list[float], events: int) -> Figure:
    return Figure("us", tuple(second * 1e6 / events for second in seconds))


def format_row(row: Measured) -> str:
    """Return a row of the table."""
    case = row.case
    ends = [f"{end:,.0f}" if end else "" for end in (case.must, case.aim)]
    beside = [
        "" if other is None else f"{other.median / row.ours.median:,.0f}x ({1e6 / other.median:,.0f}/s)"
        for other in (row.plain, row.paper)
    ]
    cells = [case.title, f"{row.rate:,.0f}", f"+-{row.ours.spread:.0%}", *ends, *beside, f"{row.detections:.3g}"]
    return f"| {' | '.join(cells)} |"


def format_comparison(rows: list[Measured]) -> str:
    """Return how many times longer an event takes with a hundred times the patterns, as a line."""
    by = {row.case.key: row.ours.median for row in rows}
    if not by.keys() >= set(RATIO):
        return ""
    few, many = (by[key] for key in RATIO)
    return f"\n10,000 patterns against 100: {many / few:.2f}x the time of an event (must: under {MOST:.0f}x)"


# Adding ----------------------------------------------------------------------------------------


def measure_compiling(n: int) -> None:
    """Measure the time of adding patterns, as text and as trees, and the memory they keep, trees included."""
    print("\n| added | text parsed | compiled | memory a pattern | of that, what kernels read |")
    print("|---|---|---|---|---|")
    for title, mode, patterns in (
        (f"{n:,} `a;b;c`", "restart", draw_abc(n)),
        (f"{n:,} `a;b;c`, mode `next`", "next", draw_abc(n)),
        (f"{n:,} of the paper", "restart", composites(n, seed=SEED)),
    ):
        texts = [render_pattern(pattern) for pattern in patterns]
        build_detector(patterns[:2], mode)
        parsed: list[Pattern] = []
        reading = measure_seconds(
            lambda texts=texts, into=parsed: into.extend(map(parse_pattern, texts)), Clock.PROCESSOR
        )
        adding = measure_seconds(lambda parsed=parsed, mode=mode: build_detector(parsed, mode), Clock.PROCESSOR)
        whole, arrays = _measure_bytes(texts, mode)
        print(f"| {title} | {reading:.2f} s | {adding:.2f} s | {whole / n:,.0f} B | {arrays / n:,.0f} B |", flush=True)


def _measure_bytes(texts: list[str], mode: str) -> tuple[int, int]:
    """Return the bytes that Python and NumPy allocate for patterns as text, and the bytes of the arrays."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    detector = build_detector([parse_pattern(text) for text in texts], mode)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return after - before, sum(
        part.nbytes for machine_, _ in detector.run.prepare_graph_runs() for part in machine_.graph
    )


if __name__ == "__main__":
    main()
