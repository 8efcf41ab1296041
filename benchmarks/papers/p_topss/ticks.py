"""Trades of four shares, millions a week and half of them in the same millisecond as another.

`python -m benchmarks.papers.p_topss.ticks`. The trades are read where `TIDINGS_DATA` or `../shared/data` has them.
Where times are equal, the order is that of the file. However the trades are cut into batches, the detections must be
the same, and three of the counts are held to a loop written straight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tidings as td
from benchmarks.papers.p_topss.logins import agrees
from tidings.bench.harness.timing import Clock, measure_seconds
from tidings.bench.workloads.real_data import VARIABLE, data_folder
from tidings.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "stock-ticks/us_equity_trades_20131007_20131011.parquet"
LARGE, HUGE = 1_000, 5_000
"""Shares in a trade that is large, and in one that is huge."""

PATTERNS = {
    "in a row": f"""
        large = qty >= {LARGE} and symbol = $s
        a:large , b:large , c:large within 1 s
    """,
    "at once": f"""
        large = qty >= {LARGE} and symbol = $s
        a:large ; b:large ; c:large within 1 ms
    """,
    "after a huge one": f"""
        huge  = qty >= {HUGE} and symbol = $s
        large = qty >= {LARGE} and symbol = $s
        huge ; not large for 100 ms
    """,
    "across": f"""
        spy = symbol = 'SPY' and qty >= {HUGE}
        bac = symbol = 'BAC' and qty >= {HUGE}
        spy ; bac within 5 ms
    """,
}
"""Comparisons between events are not in the language: filters ask for single trades, and variables for one share."""

BATCHES = (1_000, 65_536)
"""Trades in a batch, beside all at once and sizes by chance."""

MS = 1_000
"""Microseconds."""


def read_trades(most: int | None = None) -> pa.Table:
    """Return the first trades, or all: `id`, `time`, `symbol` and `qty`."""
    folder = data_folder()
    if folder is None or not (folder / FILE).exists():
        msg = f"there is no `{FILE}`; set {VARIABLE} to the folder that has it"
        raise FileError(msg)
    read = pq.read_table(folder / FILE, columns=["symbol", "ts_ny", "qty"]).slice(0, most).combine_chunks()
    ids = pa.array(np.arange(read.num_rows))
    return pa.table({"id": ids, "time": read["ts_ny"], "symbol": read["symbol"], "qty": read["qty"]})


def build_detector() -> td.Detector:
    """Return a detector with the four patterns."""
    detector = td.Detector()
    for name, text in PATTERNS.items():
        detector.add(name, text)
    return detector


def split_batches(events: pa.Table, size: int | None) -> Iterator[pa.Table]:
    """Cut trades into batches of a size; nothing: of sizes by chance, single trades among them."""
    rng, at = np.random.default_rng(1), 0
    while at < events.num_rows:
        step = size or int(rng.choice([1, 7, 500, 20_000, 150_000]))
        yield events.slice(at, step)
        at += step


def detect_all(events: pa.Table, size: int | None) -> pa.Table:
    """Return the detections of trades in batches."""
    watch = build_detector()
    parts = [watch.detect_many(batch) for batch in split_batches(events, size)]
    return pa.concat_tables([part.to_arrow() for part in parts if len(part)])


def count_by_hand(events: pa.Table) -> dict[str, int]:
    """Count three of the patterns by a loop over the trades."""
    counts = dict.fromkeys(("in a row", "at once", "across"), 0)
    row: dict[str, list[int]] = {}
    once: dict[str, list[int]] = {}
    spy: int | None = None
    times = events["time"].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    for at, symbol, qty in zip(times, events["symbol"].to_pylist(), events["qty"].to_pylist(), strict=True):
        if qty < LARGE:
            row[symbol] = []
            continue
        for name, condition, within in (("in a row", row, 1000 * MS), ("at once", once, MS)):
            mine = condition[symbol] = [*condition.get(symbol, []), at][-3:]
            if len(mine) == 3 and at - mine[0] <= within:
                counts[name] += 1
                condition[symbol] = []
        if qty >= HUGE and symbol == "SPY":
            spy = at
        elif qty >= HUGE and symbol == "BAC" and spy is not None and at - spy <= 5 * MS:
            counts["across"] += 1
            spy = None
    return counts


def format_report(most: int | None) -> list[str]:
    """Return lines: how many trades share their time, the matches in every batching, and the rates."""
    events = read_trades(most)
    whole = detect_all(events, events.num_rows)
    for size in (*BATCHES, None):
        if detect_all(events, size) != whole:
            msg = f"trades: batches of {size or 'sizes by chance'} give other detections than all at once"
            raise RuntimeError(msg)
    counts = {row["values"]: row["counts"] for row in whole["pattern"].value_counts().to_pylist()}
    right = count_by_hand(events)
    agrees("trades", {name: counts.get(name, 0) for name in right}, right)
    times = events["time"].cast(pa.int64()).to_numpy()
    same = float(np.mean(np.diff(times) == 0)) if len(times) > 1 else 0.0
    summary = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    lines = [f"{len(times):,} trades, {same:.0%} at the time of the one before: {summary}; the same in every batching"]
    for size in (*BATCHES, events.num_rows):
        watch = build_detector()
        watch.detect_many(events.slice(0, 1))
        pieces = list(split_batches(events.slice(1), size))
        seconds = measure_seconds(
            lambda watch=watch, pieces=pieces: [len(watch.detect_many(p)) for p in pieces], Clock.PROCESSOR
        )
        lines.append(f"trades in batches of {min(size, events.num_rows):,}: {events.num_rows / seconds:,.0f} trades/s")
    return lines


def main() -> None:
    """Print them."""
    print("\n".join(format_report(None)))


if __name__ == "__main__":
    main()
