"""`make demo`: a stream of car ads meets a few thousand saved searches, on Spark.

Ads are written as a directory of JSON files, as a crawler would leave them, and read back as a stream; the call
to `match` is the one a batch job would make. A few ads are spoilt on purpose, to show where bad events go. All
of it is seeded: the same options give the same matches.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tidings import spark as ts
from tidings.errors import TidingsError
from tidings.testing import workloads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ADS = """
    id BIGINT, make STRING, model STRING, year INT, price STRING, odometer BIGINT, fuel STRING, color STRING,
    tags ARRAY<STRING>, posted TIMESTAMP, spot STRUCT<lon: DOUBLE, lat: DOUBLE>,
    seller STRUCT<kind: STRING, name: STRING, rating: DOUBLE>
"""
"""The stream's schema. A price is text, since sellers write what they like; filters say that it is a number."""

SPOILT = ({"price": "call me"}, {"spot": {"lon": 13.4, "lat": 525.2}}, {"price": "4.500,-"})
"""What is wrong with the bad ads: each of them gets one of these."""

FILES = 16
"""Files the ads come in; the stream reads two at a time."""

SHORT = {
    "spark.sql.shuffle.partitions": "2",
    # Java's second compiler only pays in programs that run for longer than this one.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
"""Settings of a run that is over within a minute."""

MADE = ("ads", "matches", "dead_letters", "checkpoints", "searches.jsonl", "spark.log")
"""What a run leaves in its folder, and the next run replaces."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the run found."""

    ads: int
    searches: int
    matches: int
    matched_ads: int
    seconds: float
    examples: list[Row]
    letters: list[Row]
    bad: int


def demo(
    ads: Annotated[int, typer.Option(min=1, help="How many car ads.")] = 1500,
    searches: Annotated[int, typer.Option(min=1, help="How many saved searches.")] = 3000,
    out: Annotated[Path, typer.Option(help="Where ads, matches and dead letters are written.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(help="The same seed gives the same ads and searches.")] = 7,
) -> None:
    """Match a stream of car ads against saved searches, on Spark."""
    console = Console(highlight=False)
    try:
        wanted = _written(console, out, ads, searches, seed)
        _report(console, _run(console, out, wanted), dict(wanted), out)
    except TidingsError as problem:
        Console(stderr=True, highlight=False).print(Text(f"error: {problem}"))
        raise typer.Exit(1) from None


# --- the ads and the searches ---------------------------------------------------------------------


def _written(console: Console, out: Path, ads: int, searches: int, seed: int) -> list[tuple[str, str]]:
    """Write the ads and the searches, and return the searches."""
    _cleared(out)
    made = _spoil(workloads.car_ads(ads, seed), seed)
    wanted = workloads.saved_searches(searches, seed + 1)
    size = -(-len(made) // FILES)
    for start in range(0, len(made), size):
        _write_lines(out / "ads" / f"ads-{start // size:03}.json", made[start : start + size])
    _write_lines(out / "searches.jsonl", [{"id": id_, "filter": text} for id_, text in wanted])
    console.print(f"wrote {len(made):,} car ads and {len(wanted):,} saved searches into {out}/")
    return wanted


def _cleared(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in MADE:
        shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink(missing_ok=True)
    (out / "ads").mkdir()


def _spoil(ads: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Make about one ad in five hundred unreadable, as the world does."""
    rng = Random(seed)
    for number in rng.sample(range(len(ads)), -(-len(ads) // 500)):
        ads[number].update(rng.choice(SPOILT))
    return ads


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows), encoding="utf-8")


# --- the pipeline ---------------------------------------------------------------------------------


def _run(console: Console, out: Path, wanted: list[tuple[str, str]]) -> Outcome:
    session = _started(console, out)
    stream = session.readStream.schema(ADS).option("maxFilesPerTrigger", 2).json(str(out / "ads"))
    # The searches were saved for ads of a certain day; a real stream leaves `now` out.
    now = workloads.NOW
    matches = ts.match(stream, wanted, event_id="id", keep=["make", "model", "year", "price", "posted"], now=now)
    letters = ts.dead_letters(stream, wanted, event_id="id", now=now)
    STOP.check()
    begun = time.perf_counter()
    queries = [_writing(matches, out, "matches"), _writing(letters, out, "dead_letters")]
    total = sum(1 for path in (out / "ads").iterdir() for _ in path.open(encoding="utf-8"))
    _followed(console, queries, total)
    return _outcome(session, out, total, len(wanted), time.perf_counter() - begun)


def _started(console: Console, out: Path) -> SparkSession:
    begun = time.perf_counter()
    with console.status("starting Spark ..."), _stderr_into(out / "spark.log"):
        session = ts.session("tidings demo", config=SHORT)
    STOP.watch()  # Spark has just put its own handler in place
    STOP.check()
    console.print(f"started Spark {session.version} in {time.perf_counter() - begun:.0f} s (its log: {out}/spark.log)")
    return session


@contextmanager
def _stderr_into(path: Path) -> Iterator[None]:
    """Let Java, and the workers it starts, inherit a file for standard error; ours is put back."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("w", encoding="utf-8") as log:
            os.dup2(log.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _writing(frame: DataFrame, out: Path, name: str) -> StreamingQuery:
    """Write a stream as JSON files until all that is there has been read."""
    writer = frame.writeStream.format("json").option("checkpointLocation", str(out / "checkpoints" / name))
    return writer.trigger(availableNow=True).start(str(out / name))


def _followed(console: Console, queries: list[StreamingQuery], total: int) -> None:
    columns = (TextColumn("matching ads"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("", total=total)
            while any(query.isActive for query in queries):
                STOP.check()
                progress.update(task, completed=_read_so_far(queries[0]))
                time.sleep(0.25)
            for query in queries:
                query.awaitTermination()  # raises what went wrong, if anything did
            progress.update(task, completed=total)
    finally:
        for query in queries:
            query.stop()


def _read_so_far(query: StreamingQuery) -> int:
    return sum(step.numInputRows for step in query.recentProgress)


def _outcome(session: SparkSession, out: Path, ads: int, searches: int, seconds: float) -> Outcome:
    kinds = "event BIGINT, subscription STRING, make STRING, model STRING, year INT, price STRING, posted TIMESTAMP"
    matches = session.read.schema(kinds).json(str(out / "matches"))
    letters = session.read.schema("event BIGINT, reason STRING, row STRING").json(str(out / "dead_letters"))
    by_ad = matches.groupBy("event", "make", "model", "year", "price").agg(
        F.array_sort(F.collect_list("subscription")).alias("searches")
    )
    counts = by_ad.agg(F.sum(F.size("searches")), F.count("*")).first()
    assert counts is not None  # an aggregate without groups has one row
    examples = by_ad.where(F.size("searches") <= 3).orderBy("event").limit(4).collect()
    bad = letters.orderBy("event").collect()
    return Outcome(ads, searches, counts[0] or 0, counts[1], seconds, examples, bad[:3], len(bad))


class Stop:
    """Ctrl-C as a wish that is asked about between steps: an exception inside a call to Java leaves a trace and a hang.

    The second Ctrl-C ends the process where it stands.
    """

    def __init__(self) -> None:
        """Nobody has asked yet."""
        self.asked = False

    def watch(self) -> None:
        """Take Ctrl-C from whoever had it; outside the main thread Python does not allow that."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._ask)

    def _ask(self, *_: object) -> None:
        if self.asked:
            os._exit(130)
        self.asked = True

    def check(self) -> None:
        """Give up here if that was asked."""
        if self.asked:
            raise KeyboardInterrupt


STOP = Stop()
"""The wish to stop."""


# --- what it says ---------------------------------------------------------------------------------


def _report(console: Console, found: Outcome, wanted: dict[str, str], out: Path) -> None:
    table = Table(title="Tidings: car ads against saved searches", title_justify="left", show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    rate = found.ads / found.seconds
    for name, value in {
        "ads read": f"{found.ads:,}",
        "saved searches": f"{found.searches:,}",
        "matches": f"{found.matches:,}",
        "ads that somebody wants": f"{found.matched_ads:,}",
        "dead letters": f"{found.bad:,}",
        "time": f"{found.seconds:.1f} s",
        "rate": f"{rate:,.0f} ads/s, {rate * found.searches / 1e6:,.2f} million pairs judged/s",
    }.items():
        table.add_row(name, value)
    console.print(table)
    _print_examples(console, found, wanted)
    console.print(f"\nmatches:      {out}/matches/*.json\ndead letters: {out}/dead_letters/*.json")
    console.print(f"the searches: {out}/searches.jsonl\nthe ads:      {out}/ads/*.json")


def _print_examples(console: Console, found: Outcome, wanted: dict[str, str]) -> None:
    console.print("\nA few ads, and the searches that caught them:")
    for ad in found.examples:
        price = f"for {ad.price}" if ad.price else "without a price"
        console.print(f"  ad {ad.event}: {ad.make} {ad.model}, {ad.year}, {price}", markup=False)
        for id_ in ad.searches:
            console.print(Text(f"    {id_}: {wanted[id_]}"), no_wrap=True, overflow="ellipsis")
    console.print("\nA few ads that could not be read, and why:")
    for letter in found.letters:
        console.print(Text(f"  ad {letter.event}: {letter.reason}"), no_wrap=True, overflow="ellipsis")


def main() -> None:
    """Run the demo; Ctrl-C ends it without a trace."""
    app = typer.Typer(add_completion=False)
    app.command()(demo)
    STOP.watch()
    app()


if __name__ == "__main__":
    main()
